// GOAL text read back: its messages fit together, and whoever waits as it says takes as long as the
// simulator's critical path.
#include "engine/tools/goal_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/ring.h"
#include "engine/network/simulate.h"

namespace rankine::tools {
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

// As LogGOPSim's grammar has it; nothing else may stand there.
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

// When all is done, where every send starts as soon as it may and takes alpha + bytes * beta.
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

TEST(Goal, OfARing) {
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

TEST(Goal, ReadBackTakesAsLongAsTheCriticalPath) {
  const Fabric& fabric = plain_regime().fabric;
  for (const Algorithm& line : catalogue()) {
    for (const int n : {1, 2, 5, 6, 8}) {
      Params params{.ranks = n, .segments = 3};
      params = line.only_taken(params);
      if (line.refusal(params)) continue;
      const Schedule schedule = line.make(params);
      const Goal goal = goal_of(line, params, schedule);
      constexpr std::uint64_t kBytes = 1'000'003;
      const auto text = goal_text(schedule, goal, kBytes);
      ASSERT_TRUE(text.ok()) << text.status().text();
      const auto simulated =
          simulate(schedule, goal, fabric, kBytes, {.unlimited_ports = true, .lower = true});
      ASSERT_TRUE(simulated.ok());
      const std::vector<Program> programs = read_goal(*text);
      const Rational end = Played(programs, fabric.link.alpha, fabric.link.beta).end();
      EXPECT_EQ(end, Rational(simulated->end, simulated->ticks_per_second))
          << name_of(line.collective) << " " << line.name << " N=" << n;
    }
  }
}

TEST(Goal, MoreLinesThanAllowed) {
  const Goal goal{Collective::all_gather, 4, 4};
  EXPECT_TRUE(goal_text(ring_all_gather(4), goal, 4, {}, 24).ok());
  const auto refused = goal_text(ring_all_gather(4), goal, 4, {}, 23);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "4 ranks have more than 23 sends, receives and sums, which are allowed in GOAL");
}

}  // namespace
}  // namespace rankine::tools
