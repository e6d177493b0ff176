// Tests of rankine run, and of rankine faults.

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "engine/faults/fault.h"
#include "engine/lab/commands.h"
#include "engine/network/wall.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

// Real data under each clock. No check of the wall clock depends on the load of this machine.
TEST(Run, VirtualClockEqualsThePrediction) {
  for (const Algorithm& entry : catalogue()) {
    const Json result = json_of("run " + std::string(name_of(entry.collective)) + " --algo " +
                                std::string(entry.name) +
                                " --ranks 4 --bytes 4004 --network switch --rounds --json" +
                                (entry.takes("segments") ? " --segments 2" : ""));
    EXPECT_EQ(result["equal"], true) << entry.name;
    EXPECT_EQ(result["wrong"], 0) << entry.name;
    EXPECT_EQ(result["clock"], "virtual");
    EXPECT_FALSE(result["rounds"].empty()) << entry.name;
  }
}

TEST(Run, WallClockReportsAskedAndAchieved) {
  const Json result = json_of(
      "run all_reduce --algo ring --ranks 3 --bytes 3000 --clock wall --repeat 2 --rounds --json");
  const auto number = [&result](const char* member) { return result[member].get<double>(); };
  EXPECT_EQ(result["wrong"], 0);
  EXPECT_GE(number("dilate"), 1.0);
  EXPECT_DOUBLE_EQ(number("asked"), number("predicted") * number("dilate"));
  EXPECT_GE(number("measured_min") + 1e-8, number("asked"));  // the wall clock is never early
  EXPECT_LE(number("measured_min"), number("measured"));
  EXPECT_LE(number("measured"), number("measured_max"));
  EXPECT_DOUBLE_EQ(number("ratio"), number("measured") / number("asked"));
  const Json& deadlines = result["deadlines"];
  EXPECT_EQ(deadlines["all"], 2 * 4 * 3);  // runs, rounds, ranks
  EXPECT_LE(deadlines["missed"], deadlines["all"]);
  EXPECT_GE(deadlines["late_worst"], deadlines["late_median"]);
  ASSERT_EQ(result["rounds"].size(), 4U);
  for (const Json& round : result["rounds"]) {
    EXPECT_GE(round["measured"].get<double>() + 1e-8, round["asked"].get<double>());
  }
}

TEST(Dilation, MakesRoomForWakeUpsAndData) {
  // 7 ms, messages of 0.5 ms, wake-ups 60 ms late, data moved in 1 s.
  WallDemands demands{7e-3, 0.5e-3, 60e-3, 1};
  const double fitting = fitting_dilation(demands);
  EXPECT_DOUBLE_EQ(fitting, 2300);  // a sixteenth of the time for the data
  EXPECT_EQ(dilation_refusal(demands, fitting), "");
  EXPECT_TRUE(has(dilation_refusal(demands, 100), "50 ms")) << dilation_refusal(demands, 100);
  EXPECT_TRUE(has(dilation_refusal(demands, 130), "1 s")) << dilation_refusal(demands, 130);
  EXPECT_EQ(dilation_refusal(demands, 150), "");
  demands.data = 0;
  EXPECT_DOUBLE_EQ(fitting_dilation(demands), 480);  // four wake-ups per message
  demands.least = 7e-3;
  EXPECT_DOUBLE_EQ(fitting_dilation(demands), 430);  // 2 % at the end
  EXPECT_EQ(fitting_dilation({1, 0.1, 1e-6, 1e-3}), 1);
  EXPECT_DOUBLE_EQ(fitting_dilation({1e-5, 1e-5, 1e-9, 0}), 2000);  // 20 ms at least
  EXPECT_EQ(fitting_dilation({}), 1);                               // nothing to send
  EXPECT_EQ(dilation_refusal({}, 1), "");
}

// rankine faults.

TEST(Faults, ListsThemAllAndPrintsARowEach) {
  const std::string list = output_of("faults --list");
  for (const faults::Fault& fault : faults::faults()) EXPECT_TRUE(has(list, fault.name));
  const std::string table = output_of("faults --fault 7..8 --collective gather --ranks 4");
  EXPECT_TRUE(has(table, "7  root_differs") && has(table, "8  collective_differs")) << table;
  EXPECT_TRUE(has(table, "0 hangs, 0 wrong, 0 undocumented, 0 late")) << table;
  const Json counts = json_of(
      "faults --processes --fault killed --collective all_reduce --algo ring --ranks 3 --json");
  EXPECT_GT(counts["total"]["ok"], 0);
  EXPECT_GT(counts["faults"][0]["errors"]["rank lost"], 0);
  // Two ranks are left in each cycle, and make a good call.
  EXPECT_GE(json_of("faults --processes --cycles 2 --ranks 3 --json")["total"]["ok"], 4);
  EXPECT_TRUE(has(output_of("faults --processes --fault gone,topology --collective broadcast "
                            "--algo chain --ranks 2"),
                  "topology"));
}

TEST(Faults, RefusesAVariableThatIsUnknown) {
  const ScopedEnv misspelt("RANKINE_NETWROK", "scale_out");
  const Captured run = run_line("faults --quick --fault stall");
  EXPECT_EQ(run.exit, 2);
  EXPECT_TRUE(has(run.err, "RANKINE_NETWROK")) << run.err;
}

}  // namespace
}  // namespace rankine::tools
