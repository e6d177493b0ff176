// rankine run: real data under each clock. Of the wall clock nothing is asserted that depends on
// how busy this machine is.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/network/wall.h"
#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

Json run_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "run");
  arguments.push_back("--json");
  const Captured run = run_captured(arguments);
  EXPECT_EQ(run.exit, 0) << run.err << run.out;
  return run.exit == 0 ? Json::parse(run.out) : Json();
}

TEST(Run, VirtualClockEqualsThePrediction) {
  for (const Algorithm& line : catalogue()) {
    std::vector<std::string> arguments = {std::string(name_of(line.collective)),
                                          "--algo",
                                          std::string(line.name),
                                          "--ranks",
                                          "4",
                                          "--bytes",
                                          "4004",
                                          "--network",
                                          "switch",
                                          "--rounds"};
    if (line.takes("segments")) arguments.insert(arguments.end(), {"--segments", "2"});
    const Json result = run_json(arguments);
    EXPECT_EQ(result["equal"], true) << line.name;
    EXPECT_EQ(result["wrong"], 0) << line.name;
    EXPECT_EQ(result["clock"], "virtual");
    EXPECT_FALSE(result["rounds"].empty()) << line.name;
  }
}

TEST(Run, BlocksOfUnlikeSizes) {
  for (const char* collective :
       {"reduce_scatter", "all_gather", "gather", "scatter", "all_to_all"}) {
    const std::string_view name = collective;
    const bool pairs = name == "all_to_all", rooted = name == "gather" || name == "scatter";
    const Json result =
        run_json({collective, "--algo", rooted ? "linear" : "direct", "--ranks", "3", "--counts",
                  pairs ? "4,0,8K,44,1000,12,0,0,400" : "4K,0,1000"});
    EXPECT_EQ(result["equal"], true) << collective;
    EXPECT_EQ(result["wrong"], 0) << collective;
    EXPECT_EQ(result["bytes"], pairs ? 8192 + 4 : 4096 + 1000) << collective;
  }
  const Captured refused =
      run_captured({"run", "all_gather", "--algo", "ring", "--ranks", "4", "--counts", "1K,2K"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_EQ(refused.err,
            "rankine run: --counts has 2 entries; all_gather among 4 ranks has 4 blocks\n");
}

TEST(Run, LoweredAndByRounds) {
  const Json result = run_json({"all_reduce", "--algo", "switch", "--ranks", "4", "--lower",
                                "--sync", "rounds", "--bytes", "1K"});
  EXPECT_EQ(result["equal"], true);
  EXPECT_EQ(result["wrong"], 0);
}

TEST(Run, WithoutAClockDataAreRight) {
  const Json result = run_json({"all_gather", "--algo", "bruck", "--ranks", "5", "--bytes", "10000",
                                "--clock", "none", "--repeat", "3"});
  EXPECT_EQ(result["wrong"], 0);
  EXPECT_EQ(result["runs"], 3);
  EXPECT_GT(result["measured"], 0);
}

// The mailboxes keep the budget, on the network its clock does.
TEST(Run, PortsLimitMessagesInFlight) {
  for (const char* clock : {"none", "virtual"}) {
    const Json result = run_json({"all_reduce", "--algo", "ring", "--ranks", "3", "--bytes", "3000",
                                  "--clock", clock, "--ports", "1"});
    EXPECT_EQ(result["wrong"], 0) << clock;
    EXPECT_EQ(result["most_sent"], Json({1, 1, 1})) << clock;
    EXPECT_EQ(result["most_received"], Json({1, 1, 1})) << clock;
  }
  const Json unlimited = run_json({"all_reduce", "--algo", "ring", "--ranks", "3", "--clock",
                                   "none"});
  EXPECT_FALSE(unlimited.contains("most_sent"));
}

TEST(Run, SaysOnWhichNetwork) {
  const Json result = run_json({"all_reduce", "--algo", "ring", "--ranks", "2", "--bytes", "64",
                                "--network", "scale_out", "--alpha", "3us", "--bandwidth", "10GB/s",
                                "--ports", "2", "--wiring", "ring"});
  EXPECT_DOUBLE_EQ(result["alpha"].get<double>(), 3e-6);
  EXPECT_DOUBLE_EQ(result["beta"].get<double>(), 1e-10);
  EXPECT_EQ(result["ports"], 2);
  EXPECT_EQ(result["wiring"], "ring");
}

TEST(Run, WallClockReportsAskedAndAchieved) {
  const Json result = run_json({"all_reduce", "--algo", "ring", "--ranks", "3", "--bytes", "3000",
                                "--clock", "wall", "--repeat", "2", "--rounds"});
  EXPECT_EQ(result["wrong"], 0);
  EXPECT_GE(result["dilate"], 1.0);
  EXPECT_DOUBLE_EQ(result["asked"].get<double>(),
                   result["predicted"].get<double>() * result["dilate"].get<double>());
  // Never early.
  EXPECT_GE(result["measured_min"].get<double>() + 1e-8, result["asked"].get<double>());
  EXPECT_LE(result["measured_min"], result["measured"]);
  EXPECT_LE(result["measured"], result["measured_max"]);
  EXPECT_DOUBLE_EQ(result["ratio"].get<double>(),
                   result["measured"].get<double>() / result["asked"].get<double>());
  EXPECT_EQ(result["deadlines"]["all"], 2 * 4 * 3);  // runs, rounds, ranks
  EXPECT_LE(result["deadlines"]["missed"], result["deadlines"]["all"]);
  EXPECT_GE(result["deadlines"]["late_worst"], result["deadlines"]["late_median"]);
  ASSERT_EQ(result["rounds"].size(), 4U);
  for (const Json& round : result["rounds"]) {
    EXPECT_GE(round["measured"].get<double>() + 1e-8, round["asked"].get<double>());
  }
}

TEST(Run, RefusesWhatTheMachineCannotHonour) {
  const Captured run = run_captured({"run", "all_reduce", "--algo", "ring", "--ranks", "4",
                                     "--bytes", "64", "--clock", "wall", "--dilate", "0.000001"});
  EXPECT_EQ(run.exit, 3) << run.out;
  EXPECT_NE(run.err.find("--dilate is 1e-06"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("this machine can do"), std::string::npos) << run.err;
}

TEST(Run, NamesWhatIsWrong) {
  const auto error_of = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "all_reduce", "--algo", "ring"});
    const Captured run = run_captured(more);
    EXPECT_EQ(run.exit, 2) << run.out;
    return run.err;
  };
  EXPECT_NE(error_of({"--clock", "sundial"}).find("--clock is 'sundial'"), std::string::npos);
  EXPECT_NE(error_of({"--dilate", "0"}).find("--dilate is '0'; allowed are positive"),
            std::string::npos);
  EXPECT_NE(error_of({"--ranks", "2000"})
                .find("--ranks is '2000'; allowed are whole numbers from 1 to 1024"),
            std::string::npos);
  EXPECT_NE(error_of({"--ranks", "2", "--root", "2"}).find("root is 2"), std::string::npos);
  const Captured pat =
      run_captured({"run", "all_gather", "--algo", "pat", "--ranks", "8", "--aggregation", "1"});
  EXPECT_EQ(pat.exit, 0) << pat.err;
  EXPECT_NE(pat.out.find("all_gather 'pat', A = 1, on 8 threads"), std::string::npos) << pat.out;
}

TEST(Dilation, MakesRoomForWakeUpsAndData) {
  // 7 ms, messages of 0.5 ms, woken 60 ms late, data moved in 1 s.
  WallDemands demands{7e-3, 0.5e-3, 60e-3, 1};
  const double fitting = fitting_dilation(demands);
  EXPECT_DOUBLE_EQ(fitting, 2300);  // a sixteenth of the time for the data
  EXPECT_EQ(dilation_refusal(demands, fitting), "");
  EXPECT_NE(dilation_refusal(demands, 100).find("50 ms"), std::string::npos)
      << dilation_refusal(demands, 100);
  EXPECT_NE(dilation_refusal(demands, 130).find("moving the data takes 1 s"), std::string::npos)
      << dilation_refusal(demands, 130);
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

}  // namespace
}  // namespace rankine::tools
