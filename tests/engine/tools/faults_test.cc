// rankine faults: what it prints, and what it refuses.
#include "engine/tools/faults.h"

#include <gtest/gtest.h>

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
  expect_refused({"faults", "--fault", "40"}, {"--fault", "40", "1", "39"});
  expect_refused({"faults", "--ranks", "1"}, {"--ranks", "1", "2"});
  expect_refused({"faults", "--algo", "rnig"}, {"--algo", "rnig", "ring"});
  // No broadcast has an operation.
  expect_refused({"faults", "--fault", "6", "--collective", "broadcast"}, {"no case is left"});
}

}  // namespace
}  // namespace rankine::tools
