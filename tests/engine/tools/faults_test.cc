// rankine faults: what it prints, and what it refuses.
#include "engine/tools/faults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::json;

TEST(Faults, CountsWhatItPlays) {
  const Captured tool =
      run_captured({"faults", "--fault", "4,never_calls", "--collective", "broadcast", "--algo",
                    "chain", "--ranks", "2,3", "--repeat", "2", "--json"});
  ASSERT_EQ(tool.exit, 0) << tool.err << tool.out;
  const Json json = Json::parse(tool.out);
  ASSERT_EQ(json["faults"].size(), 2u);
  EXPECT_EQ(json["faults"][0]["name"], "count_differs");
  EXPECT_EQ(json["faults"][1]["number"], 9);
  // Two numbers of ranks, twice.
  EXPECT_EQ(json["faults"][0]["cases"], 4);
  EXPECT_EQ(json["total"]["cases"], 8);
  EXPECT_GT(json["total"]["ok"], 0);
  for (const char* count : {"hangs", "wrong", "undocumented", "late", "not_possible"}) {
    EXPECT_EQ(json["total"][count], 0) << count;
  }
  EXPECT_TRUE(json["total"]["remarks"].empty());
}

TEST(Faults, CountsAmongProcesses) {
  const Captured tool =
      run_captured({"faults", "--processes", "--fault", "4,topology,killed", "--collective",
                    "all_reduce", "--algo", "ring", "--ranks", "2,3", "--repeat", "2", "--json"});
  ASSERT_EQ(tool.exit, 0) << tool.err << tool.out;
  const Json json = Json::parse(tool.out);
  EXPECT_EQ(json["ranks_are"], "processes");
  EXPECT_EQ(json["not_played"], Json({"topology"}));
  ASSERT_EQ(json["faults"].size(), 2u);
  EXPECT_EQ(json["faults"][1]["name"], "killed");
  EXPECT_EQ(json["faults"][1]["cases"], 4);
  EXPECT_EQ(json["total"]["cases"], 8);
  EXPECT_GT(json["total"]["ok"], 0);
  EXPECT_GT(json["faults"][1]["errors"]["rank lost"], 0);
  for (const char* count : {"hangs", "wrong", "undocumented", "late", "not_possible"}) {
    EXPECT_EQ(json["total"][count], 0) << count << tool.out;
  }
}

TEST(Faults, CountsCycles) {
  const Captured tool =
      run_captured({"faults", "--processes", "--cycles", "12", "--ranks", "3", "--json"});
  ASSERT_EQ(tool.exit, 0) << tool.err << tool.out;
  const Json json = Json::parse(tool.out);
  EXPECT_EQ(json["cycles"], 12);
  ASSERT_EQ(json["faults"].size(), 1u);
  EXPECT_EQ(json["faults"][0]["name"], "cycles");
  // Two are left each time, and make a good call.
  EXPECT_GE(json["total"]["ok"], 24);
  EXPECT_EQ(json["total"]["undocumented"], 0) << tool.out;
  const Captured text = run_captured({"faults", "--processes", "--cycles", "2"});
  EXPECT_NE(text.out.find("2 cycles: "), std::string::npos) << text.out;
}

TEST(Faults, SaysWhatIsNotPlayedAmongProcesses) {
  const Captured tool =
      run_captured({"faults", "--processes", "--fault", "gone,topology", "--collective",
                    "broadcast", "--algo", "chain", "--ranks", "2"});
  ASSERT_EQ(tool.exit, 0) << tool.err << tool.out;
  EXPECT_NE(tool.out.find("not played where ranks are processes"), std::string::npos) << tool.out;
  EXPECT_NE(tool.out.find("topology"), std::string::npos) << tool.out;
  const Captured list = run_captured({"faults", "--list"});
  EXPECT_NE(list.out.find("for threads only: a team asks"), std::string::npos) << list.out;
}

TEST(Faults, PrintsARowPerFault) {
  const Captured tool =
      run_captured({"faults", "--fault", "7..8", "--collective", "gather", "--ranks", "4"});
  ASSERT_EQ(tool.exit, 0) << tool.err << tool.out;
  EXPECT_NE(tool.out.find("7  root_differs"), std::string::npos) << tool.out;
  EXPECT_NE(tool.out.find("8  collective_differs"), std::string::npos) << tool.out;
  EXPECT_NE(tool.out.find("0 hangs, 0 wrong, 0 undocumented, 0 late"), std::string::npos)
      << tool.out;
}

TEST(Faults, ListsThemAll) {
  const Captured tool = run_captured({"faults", "--list"});
  EXPECT_EQ(tool.exit, 0);
  for (const faults::Fault& fault : faults::faults()) {
    EXPECT_NE(tool.out.find(std::string(fault.name)), std::string::npos) << fault.name;
  }
}

TEST(Faults, RefusesWhatItDoesNotKnow) {
  setenv("RANKINE_NETWROK", "scale_out", 1);
  const Captured misspelt = run_captured({"faults", "--quick", "--fault", "stall"});
  unsetenv("RANKINE_NETWROK");
  EXPECT_EQ(misspelt.exit, 2);
  EXPECT_EQ(misspelt.out, "");
  EXPECT_NE(misspelt.err.find("environment variable RANKINE_NETWROK is unknown"), std::string::npos)
      << misspelt.err;
  const auto expect_refused = [](const std::vector<std::string>& arguments,
                                 const std::vector<std::string>& words) {
    const Captured tool = run_captured(arguments);
    EXPECT_EQ(tool.exit, 2);
    EXPECT_EQ(tool.out, "");
    for (const std::string& word : words) {
      EXPECT_NE(tool.err.find(word), std::string::npos)
          << "'" << word << "' is not in " << tool.err;
    }
  };
  expect_refused({"faults", "--fault", "stal"}, {"--fault is 'stal'", "did you mean 'stall'?"});
  expect_refused({"faults", "--fault", "51"}, {"--fault", "51", "1", "50"});
  expect_refused({"faults", "--ranks", "1"}, {"--ranks", "1", "2"});
  expect_refused({"faults", "--algo", "rnig"}, {"--algo", "rnig", "ring"});
  expect_refused({"faults", "--fault", "killed"}, {"--fault is 'killed'", "--processes"});
  expect_refused({"faults", "--fault", "topology", "--processes"},
                 {"--fault is 'topology'", "threads: a team asks"});
  expect_refused({"faults", "--cycles", "5"}, {"--cycles", "--processes"});
  expect_refused({"faults", "--cycles", "5", "--processes", "--fault", "gone"},
                 {"--cycles", "--fault"});
  expect_refused({"faults", "--cycles", "0", "--processes"}, {"--cycles", "0", "1"});
  // No broadcast has an operation.
  expect_refused({"faults", "--fault", "6", "--collective", "broadcast"}, {"no case is left"});
}

}  // namespace
}  // namespace rankine::tools
