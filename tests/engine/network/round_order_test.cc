// The order in which rounds state their messages. By rounds, ports take messages as stated and
// never look ahead, so an order can make a round last longer than its busiest port needs. Every
// line of the catalogue is timed round by round; those that do so stand in round_order.txt, with
// whether another order would not (some_order.h, exact either way).
//
// What a port needs: the least time in which k ports can carry a rank's messages of the round, one
// direction, each message on one port (found by search); of all ranks and directions the most.
// Prices: a message costs 1 (alpha), its blocks (beta), or both.
//
// To write the table anew (and then read what changed):
//   export RANKINE_TEST_ORDER_OUT=$PWD/tests/engine/network/round_order.txt
//   third_party/bazel run //tests/engine/network:round_order_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/stating_order.h"
#include "engine/network/port_model.h"
#include "engine/read/sweep.h"
#include "tests/engine/network/some_order.h"

namespace rankine {
namespace {

using Time = std::int64_t;
using Times = std::vector<Time>;
using Round = std::vector<Transfer>;

constexpr int kMostPorts = 4;

struct Price {
  Time alpha, beta;
  Time of(const Transfer& t) const { return is_local(t) ? 0 : alpha + beta * t.what.list.size(); }
};
constexpr Price kPrices[] = {{1, 0}, {0, 1}, {1, 1}};

// What the busiest port needs.
Time need(const Round& round, int k, Price price) {
  std::map<std::pair<Rank, bool>, Times> of_rank;
  for (const Transfer& t : round) {
    if (is_local(t)) continue;
    t.from.for_each([&](Rank r) { of_rank[{r, true}].push_back(price.of(t)); });
    t.to.for_each([&](Rank r) { of_rank[{r, false}].push_back(price.of(t)); });
  }
  std::set<Times> different;
  for (auto& [rank, times] : of_rank) {
    std::sort(times.rbegin(), times.rend());
    different.insert(times);
  }
  Time most = 0;
  for (const Times& times : different) {
    most = std::max(most, least_time(times, k));
  }
  return most;
}

Time time_of(const Round& round, const Schedule& schedule, const Goal& goal, int k, Price price) {
  PortModel<Time> model(schedule, goal, k, Sync::rounds);
  model.begin_round(0);
  for (const Transfer& t : round) model.take(t, price.of(t));
  model.end_round();
  return model.round_end();
}

Round round_of(const Schedule& schedule, int k) {
  Round round;
  for_each_transfer(schedule, k, [&](const Transfer& t) { round.push_back(t); });
  return round;
}

// Of the table, a number of ports and a price.
struct Case {
  int k;
  Price price;
};
std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (int k = 1; k <= kMostPorts; ++k) {
    for (const Price price : kPrices) out.push_back({k, price});
  }
  return out;
}

// An order of the round's messages that takes no longer than is needed in any of these cases.
std::optional<Round> order_for(const Round& round, const std::vector<Case>& cases) {
  Round messages;
  std::vector<Ends> ends;
  for (const Transfer& t : round) {
    if (is_local(t)) continue;
    messages.push_back(t);
    ends.push_back({t.from.front(), t.to.front()});
  }
  std::vector<ByClock> clocks;
  for (const auto& [k, price] : cases) {
    clocks.push_back({k, {}, need(round, k, price)});
    for (const Transfer& t : messages) clocks.back().costs.push_back(price.of(t));
  }
  const auto order = SomeOrder::of(ends, clocks);
  if (!order) return std::nullopt;
  Round out;
  for (const std::size_t i : *order) out.push_back(messages[i]);
  return out;
}

// What would help a round that is late; see the table.
enum class Help { ordered, apart, no_port, none };

// Of one line of the catalogue.
struct Row {
  int tried = 0;                // cases: parameters, ports and prices
  int longer = 0;               // of which a round takes longer than its busiest port needs
  std::map<Help, int> of_help;  // of these
  std::set<int> ports;
  Time took = 1, needs = 1;  // of the worst round
};

// Nothing helps where a switch copies a message to everybody else, or adds up everybody else's:
// unless all p take part, k + 1 of these at once meet at the rank that is not among them, which has
// k ports. So p of them take ceil(p / k), although a rank is part of p - 1 only.
bool switch_is_busy(const Round& round, int p, int k, Price price, Time took) {
  const Transfer& any = round.front();
  if (is_message(any) || any.from.size() + any.to.size() != p) return false;
  return static_cast<int>(round.size()) == p && p > k + 1 &&
         took == (p + k - 1) / k * price.of(any);
}

// What would help a round of messages that is late in one case.
Help help_for(const Round& round, const Schedule& schedule, const Goal& goal, Case late) {
  EXPECT_TRUE(std::all_of(round.begin(), round.end(), is_message)) << "not known of switches";
  const auto does = [&](const Round& order, const std::vector<Case>& cases) {
    return std::all_of(cases.begin(), cases.end(), [&](const Case& c) {
      return time_of(order, schedule, goal, c.k, c.price) == need(round, c.k, c.price);
    });
  };
  if (const auto order = order_for(round, {late})) {
    EXPECT_TRUE(does(*order, {late}));
  } else {
    return Help::none;
  }
  if (const auto order = order_for(round, all_cases())) {
    EXPECT_TRUE(does(*order, all_cases()));
    return Help::ordered;
  }
  return Help::apart;
}

void look_at(const SweepResult& c, Row& row) {
  const Schedule schedule = c.algorithm->make(c.params);
  const Goal goal = goal_of(*c.algorithm, c.params, schedule);
  const std::vector<Case> cases = all_cases();
  std::vector<std::optional<Help>> of_case(cases.size());  // the worst of its late rounds
  for (int i = 0; i < schedule.rounds; ++i) {
    const Round round = round_of(schedule, i);
    int late = 0;
    bool apart = false;
    for (std::size_t n = 0; n < cases.size(); ++n) {
      const auto& [k, price] = cases[n];
      const Time took = time_of(round, schedule, goal, k, price);
      const Time needs = need(round, k, price);
      ASSERT_GE(took, needs) << c.name();
      if (took == needs) continue;
      if (took * row.needs > row.took * needs) {
        row.took = took;
        row.needs = needs;
      }
      const bool no_port = switch_is_busy(round, schedule.ranks, k, price, took);
      const Help help = no_port ? Help::no_port : help_for(round, schedule, goal, cases[n]);
      of_case[n] = std::max(of_case[n].value_or(help), help);
      ++late;
      apart = apart || help == Help::apart;
    }
    if (apart) {
      EXPECT_EQ(late, 1) << c.name() << " round " << i << ": fewer might be";
    }
  }
  for (std::size_t n = 0; n < cases.size(); ++n) {
    ++row.tried;
    if (!of_case[n]) continue;
    ++row.longer;
    ++row.of_help[*of_case[n]];
    row.ports.insert(cases[n].k);
  }
}

std::string text_of(const std::string& line, const Row& row) {
  std::ostringstream out;
  out << line << ": " << row.longer << " of " << row.tried << " cases, ports " << *row.ports.begin()
      << "-" << *row.ports.rbegin() << ", at worst " << row.took << " for " << row.needs << ":";
  constexpr const char* kNames[] = {" ordered ", " apart ", " no_port ", " none "};
  for (const auto& [help, n] : row.of_help) out << kNames[static_cast<int>(help)] << n;
  return out.str() + "\n";
}

constexpr std::string_view kLegend =
    "# Lines of the catalogue with a round that lasts longer than its busiest port needs, N = "
    "2-33,\n"
    "# 1 to 4 ports, by rounds (written by round_order_test.cc, which says what that means).\n"
    "#   at worst    a round took so long for what was needed\n"
    "#   ordered     cases in which another order would do, the same one in all\n"
    "#   apart       in which another would do, but none does in all: the one that is stated "
    "takes\n"
    "#               too long in one of them, which is the least\n"
    "#   no_port     in which no order does: a switch's transfers take a port of everybody\n"
    "#   none        in which no order of the messages does\n";

std::string table() {
  SweepOptions options;
  options.ranks_from = 2;
  options.ranks_to = 33;
  options.all_roots_up_to = 0;
  options.values["segments"] = {"1", "2", "3", "8"};
  std::vector<std::pair<std::string, std::vector<SweepResult>>> lines;
  for (SweepResult& c : sweep_cases(options)) {
    if (c.params.root != 0 || c.params.peer > 1) continue;
    const std::string line =
        std::string(name_of(c.algorithm->collective)) + " " + std::string(c.algorithm->name);
    if (lines.empty() || lines.back().first != line) lines.push_back({line, {}});
    lines.back().second.push_back(std::move(c));
  }
  std::string out(kLegend);
  for (const auto& [line, cases] : lines) {
    Row row;
    for (const SweepResult& c : cases) look_at(c, row);
    if (row.longer > 0) out += text_of(line, row);
  }
  return out;
}

TEST(RoundOrder, NoRoundLastsLongerThanItsBusiestPortNeedsButForTheseReasons) {
  const std::string found = table();
  if (const char* out = std::getenv("RANKINE_TEST_ORDER_OUT"); out != nullptr) {
    std::ofstream(out) << found;
    return;
  }
  std::ifstream in("tests/engine/network/round_order.txt");
  std::ostringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(expected.str(), found);
}

// Rank by rank, the first of two messages each way round three ranks is what the second waits for.
TEST(RoundOrder, RankByRankARingOfThreeIsSerial) {
  Round by_rank, by_side;
  for (Rank r : ranks(3)) {
    by_rank.push_back({r, (r + 1) % 3, block(0), block(0), copy});
    by_rank.push_back({r, (r + 2) % 3, block(0), block(0), copy});
  }
  for (const int side : {1, 2}) {
    for (Rank r : ranks(3)) by_side.push_back({r, (r + side) % 3, block(0), block(0), copy});
  }
  const Schedule schedule{3, 3, 1, [](int, Send) {}};
  const Goal goal{Collective::all_gather, 3, 3};
  EXPECT_EQ(need(by_rank, 1, {1, 0}), 2);
  EXPECT_GT(time_of(by_rank, schedule, goal, 1, {1, 0}), 2);
  EXPECT_EQ(time_of(by_side, schedule, goal, 1, {1, 0}), 2);
}

}  // namespace
}  // namespace rankine
