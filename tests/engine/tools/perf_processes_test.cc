// perf among processes: copies of the tool measure with it, and whatever ends it or one of them
// leaves none of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/engine/tools/tool_process.h"

namespace rankine::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> among_processes(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"perf", "all_reduce", "--processes", "-w", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string id = std::to_string(process);
  std::ifstream file("/proc/" + id + "/task/" + id + "/children");
  std::vector<pid_t> all;
  for (pid_t one = 0; file >> one;) all.push_back(one);
  return all;
}

bool is_gone(pid_t process) {
  for (int looks = 0; looks < 500; ++looks) {
    if (kill(process, 0) != 0) return true;
    usleep(10'000);
  }
  return false;
}

void expect_none_left(const std::vector<pid_t>& copies) {
  for (const pid_t one : copies) EXPECT_TRUE(is_gone(one)) << one;
}

TEST(PerfAmongProcesses, TellsWhatAllOfThemHaveMeasured) {
  ToolProcess tool(among_processes({"-t", "3", "-b", "8", "-e", "128K", "-f", "128", "-n", "2",
                                    "-m", "3", "--stats", "--json", "-"}));
  const auto json = nlohmann::json::parse(tool.rest());
  EXPECT_EQ(tool.wait(), 0) << tool.err();
  EXPECT_EQ(json["config"]["processes"], true);
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["out_of_bounds"]["okay"], true);
  ASSERT_EQ(json["results"].size(), 3U);
  std::set<int> processes;
  for (const auto& device : json["config"]["devices"]) processes.insert(device["pid"].get<int>());
  EXPECT_EQ(processes.size(), 3U);
  for (const auto& row : json["results"]) {
    EXPECT_FALSE(row["algorithm"].get<std::string>().empty());
    EXPECT_GT(row["out_of_place"]["time"], 0);
  }
}

TEST(PerfAmongProcesses, SharePayloadsWhereTheyAreAsked) {
  ToolProcess tool(among_processes({"--shared-payloads", "-t", "3", "-b", "8", "-e", "1M", "-f",
                                    "64", "-n", "2", "--fresh", "--json", "-"}));
  const auto json = nlohmann::json::parse(tool.rest());
  EXPECT_EQ(tool.wait(), 0) << tool.err();
  EXPECT_EQ(json["config"]["shared_payloads"], true);
  EXPECT_EQ(json["out_of_bounds"]["okay"], true);
  ToolProcess threads({"perf", "all_reduce", "--shared-payloads", "-t", "2"});
  threads.rest();
  EXPECT_EQ(threads.wait(), 2);
  EXPECT_THAT(threads.err(), HasSubstr("--shared-payloads is of processes; add --processes"));
}

TEST(PerfAmongProcesses, SaysSo) {
  ToolProcess tool(among_processes({"-t", "2", "-b", "8", "-e", "8", "-n", "2", "--fresh"}));
  EXPECT_THAT(tool.rest(), HasSubstr(": all_reduce among 2 processes\n"));
  EXPECT_EQ(tool.wait(), 0) << tool.err();
}

// One that measures until it is told to end, when it has begun to.
struct Endless {
  ToolProcess tool{among_processes({"-t", "3", "-b", "8", "-e", "64", "-N", "0"})};
  std::vector<pid_t> copies;

  Endless() {
    for (std::string line = tool.line(); !line.empty() && line[0] == '#';) line = tool.line();
    copies = children_of(tool.id());
  }
};

TEST(PerfAmongProcesses, EndWithTheTool) {
  for (const int signal : {SIGINT, SIGTERM, SIGKILL}) {
    Endless endless;
    ASSERT_EQ(endless.copies.size(), 2U);
    endless.tool.signal(signal);
    endless.tool.rest();
    EXPECT_EQ(endless.tool.wait(), signal == SIGKILL ? 1000 + SIGKILL : 128 + signal);
    expect_none_left(endless.copies);
  }
}

TEST(PerfAmongProcesses, SaysWhichOneWasKilled) {
  Endless endless;
  ASSERT_EQ(endless.copies.size(), 2U);
  kill(endless.copies[1], SIGKILL);
  endless.tool.rest();
  EXPECT_NE(endless.tool.wait(), 0);
  EXPECT_THAT(endless.tool.err(),
              HasSubstr("process " + std::to_string(endless.copies[1]) + " has ended"));
  expect_none_left(endless.copies);
}

TEST(PerfAmongProcesses, RefusesWhatTheyHaveNot) {
  for (const auto& [option, value] :
       {std::pair("--network", "scale_out"), std::pair("--probe", "")}) {
    std::vector<std::string> more = {"-t", "2", option};
    if (*value != '\0') more.emplace_back(value);
    ToolProcess tool(among_processes(more));
    tool.rest();
    EXPECT_EQ(tool.wait(), 2);
    EXPECT_THAT(tool.err(), HasSubstr("leave out --processes"));
  }
}

}  // namespace
}  // namespace rankine::tools
