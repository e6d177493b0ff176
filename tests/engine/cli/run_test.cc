// Tests of rankine run, of GOAL texts, and of rankine faults.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/ring.h"
#include "engine/cli/simulate.h"
#include "engine/lab/commands.h"
#include "engine/network/simulate.h"
#include "engine/network/wall.h"
#include "tests/engine/cli/tool_fixtures.h"

// rankine run: real data under each clock. No check of the wall clock depends on the load of this
// machine.

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
  for (const Algorithm& entry : catalogue()) {
    std::vector<std::string> arguments = {std::string(name_of(entry.collective)),
                                          "--algo",
                                          std::string(entry.name),
                                          "--ranks",
                                          "4",
                                          "--bytes",
                                          "4004",
                                          "--network",
                                          "switch",
                                          "--rounds"};
    if (entry.takes("segments")) arguments.insert(arguments.end(), {"--segments", "2"});
    const Json result = run_json(arguments);
    EXPECT_EQ(result["equal"], true) << entry.name;
    EXPECT_EQ(result["wrong"], 0) << entry.name;
    EXPECT_EQ(result["clock"], "virtual");
    EXPECT_FALSE(result["rounds"].empty()) << entry.name;
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
            "rankine run: --counts has 2 entries; allowed for all_gather among 4 ranks are 4\n");
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

// The mailboxes keep the budget of ports of the clock's network.
TEST(Run, PortsLimitMessagesInFlight) {
  for (const char* clock : {"none", "virtual"}) {
    const Json result = run_json({"all_reduce", "--algo", "ring", "--ranks", "3", "--bytes", "3000",
                                  "--clock", clock, "--ports", "1"});
    EXPECT_EQ(result["wrong"], 0) << clock;
    EXPECT_EQ(result["most_sent"], Json({1, 1, 1})) << clock;
    EXPECT_EQ(result["most_received"], Json({1, 1, 1})) << clock;
  }
  const Json unlimited =
      run_json({"all_reduce", "--algo", "ring", "--ranks", "3", "--clock", "none"});
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
  // The wall clock is never early.
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
  // 7 ms, messages of 0.5 ms, wake-ups 60 ms late, data moved in 1 s.
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

// Reads GOAL texts back: their messages match, and ranks that wait as stated take as long as the
// simulator's critical path.

namespace {

struct Line {
  std::string what;  // send, recv or calc
  std::int64_t bytes = 0;
  int peer = -1, tag = -1;
  std::vector<int> requires_lines;
};

struct Program {
  std::map<int, Line> lines;
};

// Reads GOAL by LogGOPSim's grammar; any other text fails the test.
std::vector<Program> read_goal(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  int ranks = 0;
  in >> word >> ranks;
  EXPECT_EQ(word, "num_ranks");
  std::vector<Program> programs(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    int rank = -1;
    in >> word >> rank;
    EXPECT_EQ(word, "rank");
    EXPECT_EQ(rank, r);
    in >> word;
    EXPECT_EQ(word, "{");
    Program& program = programs[static_cast<std::size_t>(r)];
    while (in >> word && word != "}") {
      EXPECT_EQ(word.front(), 'l');
      std::string next;
      in >> next;
      if (next == "requires") {
        std::string other;
        in >> other;
        program.lines.at(std::stoi(word.substr(1)))
            .requires_lines.push_back(std::stoi(other.substr(1)));
        EXPECT_LT(std::stoi(other.substr(1)), std::stoi(word.substr(1)));
        continue;
      }
      EXPECT_EQ(word.back(), ':');
      Line line;
      line.what = next;
      if (next == "calc") {
        in >> line.bytes;
      } else {
        std::string bytes, direction, tag;
        in >> bytes >> direction >> line.peer >> tag >> line.tag;
        EXPECT_EQ(bytes.back(), 'b');
        line.bytes = std::stoll(bytes);
        EXPECT_EQ(direction, next == "send" ? "to" : "from");
        EXPECT_EQ(tag, "tag");
      }
      EXPECT_TRUE(program.lines.emplace(std::stoi(word.substr(1)), line).second);
    }
  }
  EXPECT_FALSE(in >> word) << word;
  return programs;
}

// Plays the programs: every send starts as soon as possible and takes alpha + bytes * beta.
class Played {
 public:
  Played(const std::vector<Program>& programs, const Rational& alpha, const Rational& beta)
      : programs_(programs), alpha_(alpha), beta_(beta) {
    for (std::size_t r = 0; r < programs.size(); ++r) {
      for (const auto& [label, line] : programs[r].lines) {
        if (line.what != "send") continue;
        const auto key = std::tuple(static_cast<int>(r), line.peer, line.tag);
        EXPECT_TRUE(sends_.emplace(key, std::pair(r, label)).second);
      }
    }
  }
  Rational end() {
    Rational latest;
    std::size_t received = 0;
    for (std::size_t r = 0; r < programs_.size(); ++r) {
      for (const auto& [label, line] : programs_[r].lines) {
        latest = std::max(latest, end_of(r, label));
        received += line.what == "recv" ? 1 : 0;
      }
    }
    EXPECT_EQ(received, sends_.size());
    return latest;
  }

 private:
  Rational end_of(std::size_t r, int label) {
    const auto key = std::pair(r, label);
    if (const auto found = ends_.find(key); found != ends_.end()) return found->second;
    const Line& line = programs_[r].lines.at(label);
    Rational end;
    for (const int other : line.requires_lines) end = std::max(end, end_of(r, other));
    if (line.what == "send") end = end + alpha_ + beta_ * Rational(line.bytes);
    if (line.what == "recv") {
      const auto sent = sends_.find({line.peer, static_cast<int>(r), line.tag});
      EXPECT_NE(sent, sends_.end());
      if (sent == sends_.end()) return end;
      const auto& [from, at] = sent->second;
      EXPECT_EQ(programs_[from].lines.at(at).bytes, line.bytes);
      end = std::max(end, end_of(from, at));
    }
    ends_[key] = end;
    return end;
  }

  const std::vector<Program>& programs_;
  const Rational alpha_, beta_;
  std::map<std::tuple<int, int, int>, std::pair<std::size_t, int>> sends_;
  std::map<std::pair<std::size_t, int>, Rational> ends_;
};

TEST(CollectiveSpec, OfARing) {
  const auto text = goal_text(ring_all_gather(3), {Collective::all_gather, 3, 3}, 10);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text,
            "num_ranks 3\n"
            "\nrank 0 {\nl1: send 4b to 1 tag 1\nl2: recv 3b from 2 tag 3\n"
            "l3: send 3b to 1 tag 4\nl3 requires l2\nl4: recv 3b from 2 tag 6\n}\n"
            "\nrank 1 {\nl1: recv 4b from 0 tag 1\nl2: send 3b to 2 tag 2\n"
            "l3: recv 3b from 0 tag 4\nl4: send 4b to 2 tag 5\nl4 requires l1\n}\n"
            "\nrank 2 {\nl1: recv 3b from 1 tag 2\nl2: send 3b to 0 tag 3\n"
            "l3: recv 4b from 1 tag 5\nl4: send 3b to 0 tag 6\nl4 requires l1\n}\n");
}

TEST(CollectiveSpec, ReadBackTakesAsLongAsTheCriticalPath) {
  const Fabric& fabric = plain_regime().fabric;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {1, 2, 5, 6, 8}) {
      Params params{.ranks = n, .segments = 3};
      params = entry.only_taken(params);
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      constexpr std::uint64_t kBytes = 1'000'003;
      const auto text = goal_text(schedule, goal, kBytes);
      ASSERT_TRUE(text.ok()) << text.status().text();
      const auto simulated =
          simulate(schedule, goal, fabric, kBytes, {.unlimited_ports = true, .lower = true});
      ASSERT_TRUE(simulated.ok());
      const std::vector<Program> programs = read_goal(*text);
      const Rational end = Played(programs, fabric.link.alpha, fabric.link.beta).end();
      EXPECT_EQ(end, Rational(simulated->end, simulated->ticks_per_second))
          << name_of(entry.collective) << " " << entry.name << " N=" << n;
    }
  }
}

TEST(CollectiveSpec, MoreLinesThanAllowed) {
  const CollectiveSpec goal{Collective::all_gather, 4, 4};
  EXPECT_TRUE(goal_text(ring_all_gather(4), goal, 4, {}, 24).ok());
  const auto refused = goal_text(ring_all_gather(4), goal, 4, {}, 23);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "4 ranks have more than 23 sends, receives and sums, which are allowed in GOAL");
}

}  // namespace

// rankine faults: its output and its refusals.

namespace {

TEST(Faults, CountsWhatItPlays) {
  const Captured tool =
      run_captured({"faults", "--fault", "4,never_calls", "--collective", "broadcast", "--algo",
                    "chain", "--ranks", "2,3", "--repeat", "2", "--json"});
  ASSERT_EQ(tool.exit, 0) << tool.err << tool.out;
  const nlohmann::json json = nlohmann::json::parse(tool.out);
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
  const nlohmann::json json = nlohmann::json::parse(tool.out);
  EXPECT_EQ(json["ranks_are"], "processes");
  EXPECT_EQ(json["not_played"], nlohmann::json({"topology"}));
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
  const nlohmann::json json = nlohmann::json::parse(tool.out);
  EXPECT_EQ(json["cycles"], 12);
  ASSERT_EQ(json["faults"].size(), 1u);
  EXPECT_EQ(json["faults"][0]["name"], "cycles");
  // Two ranks are left in each cycle, and make a good call.
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
  EXPECT_NE(tool.out.find("not played with ranks as processes"), std::string::npos) << tool.out;
  EXPECT_NE(tool.out.find("topology"), std::string::npos) << tool.out;
  const Captured list = run_captured({"faults", "--list"});
  EXPECT_NE(list.out.find("for threads only: only a team reads"), std::string::npos) << list.out;
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
                 {"--fault is 'topology'", "threads: only a team reads"});
  expect_refused({"faults", "--cycles", "5"}, {"--cycles", "--processes"});
  expect_refused({"faults", "--cycles", "5", "--processes", "--fault", "gone"},
                 {"--cycles", "--fault"});
  expect_refused({"faults", "--cycles", "0", "--processes"}, {"--cycles", "0", "1"});
  // No broadcast has an operation.
  expect_refused({"faults", "--fault", "6", "--collective", "broadcast"}, {"no case is left"});
}

}  // namespace
}  // namespace rankine::tools
