// Tests of rankine run, of GOAL texts, and of rankine faults.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
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
#include "tests/numa/fixtures.h"

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

// Reads GOAL texts back: their messages match, and ranks that wait as stated take as long as the
// simulator's critical path.

struct Line {
  std::string what;  // send, recv or calc
  std::int64_t bytes = 0;
  int peer = -1, tag = -1;
  std::vector<int> requires_lines;
};

using Program = std::map<int, Line>;

// Reads GOAL by LogGOPSim's grammar; any other text fails the test.
std::vector<Program> read_goal(const std::string& text) {
  std::istringstream in(text);
  std::string word;
  const auto expect_word = [&](const std::string& wanted) {
    in >> word;
    EXPECT_EQ(word, wanted);
  };
  std::size_t ranks = 0;
  expect_word("num_ranks");
  in >> ranks;
  std::vector<Program> programs(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    expect_word("rank");
    expect_word(std::to_string(r));
    expect_word("{");
    while (in >> word && word != "}") {
      EXPECT_EQ(word.front(), 'l');
      const int number = std::stoi(word.substr(1));
      const bool is_label = word.back() == ':';
      std::string next;
      in >> next;
      EXPECT_EQ(is_label, next != "requires");
      if (!is_label) {
        in >> next;
        programs[r].at(number).requires_lines.push_back(std::stoi(next.substr(1)));
        EXPECT_LT(std::stoi(next.substr(1)), number);
        continue;
      }
      Line line;
      line.what = next;
      in >> next;
      line.bytes = std::stoll(next);
      if (line.what != "calc") {
        EXPECT_EQ(next.back(), 'b');
        expect_word(line.what == "send" ? "to" : "from");
        in >> line.peer;
        expect_word("tag");
        in >> line.tag;
      }
      EXPECT_TRUE(programs[r].emplace(number, line).second);
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
      for (const auto& [label, line] : programs[r]) {
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
      for (const auto& [label, line] : programs_[r]) {
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
    const Line& line = programs_[r].at(label);
    Rational end;
    for (const int other : line.requires_lines) end = std::max(end, end_of(r, other));
    if (line.what == "send") end = end + alpha_ + beta_ * Rational(line.bytes);
    if (line.what == "recv") {
      const auto& [from, at] = sends_.at({line.peer, static_cast<int>(r), line.tag});
      EXPECT_EQ(programs_[from].at(at).bytes, line.bytes);
      end = std::max(end, end_of(from, at));
    }
    return ends_[key] = end;
  }

  const std::vector<Program>& programs_;
  const Rational alpha_, beta_;
  std::map<std::tuple<int, int, int>, std::pair<std::size_t, int>> sends_;
  std::map<std::pair<std::size_t, int>, Rational> ends_;
};

TEST(GoalText, ReadBackTakesAsLongAsTheCriticalPath) {
  const Fabric& fabric = plain_regime().fabric;
  for (const Algorithm& entry : catalogue()) {
    for (const int n : {1, 2, 5, 6, 8}) {
      const Params params = entry.only_taken({.ranks = n, .segments = 3});
      if (entry.refusal(params)) continue;
      const Schedule schedule = entry.make(params);
      const CollectiveSpec goal = goal_of(entry, params, schedule);
      constexpr std::uint64_t kBytes = 1'000'003;
      const auto text = goal_text(schedule, goal, kBytes).value();
      const auto simulated =
          simulate(schedule, goal, fabric, kBytes, {.unlimited_ports = true, .lower = true})
              .value();
      const std::vector<Program> programs = read_goal(text);
      const Rational end = Played(programs, fabric.link.alpha, fabric.link.beta).end();
      EXPECT_EQ(end, Rational(simulated.end, simulated.ticks_per_second))
          << name_of(entry.collective) << " " << entry.name << " N=" << n;
    }
  }
  const CollectiveSpec goal{Collective::all_gather, 4, 4};
  EXPECT_TRUE(goal_text(ring_all_gather(4), goal, 4, {}, 24).ok());
  EXPECT_TRUE(has(goal_text(ring_all_gather(4), goal, 4, {}, 23).status().text(), "23"));
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
