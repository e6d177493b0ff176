// The order in which rounds state their messages. By rounds, ports take messages as stated and
// never look ahead, so an order can make a round last longer than its busiest port needs. Every
// line of the catalogue is timed round by round; those that do so stand in round_order.txt, with
// what another order would give.
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
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/edge_colours.h"
#include "algorithms/schedule/in_time.h"
#include "engine/network/port_model.h"
#include "engine/read/sweep.h"

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

Time dataflow(const Schedule& schedule, const Goal& goal, int k, Price price) {
  PortModel<Time> model(schedule, goal, k, Sync::dataflow);
  for (int round = 0; round < schedule.rounds; ++round) {
    model.begin_round(model.end());
    for_each_transfer(schedule, round, [&](const Transfer& t) { model.take(t, price.of(t)); });
    model.end_round();
  }
  return model.end();
}

Round round_of(const Schedule& schedule, int k) {
  Round round;
  for_each_transfer(schedule, k, [&](const Transfer& t) { round.push_back(t); });
  return round;
}

// Runs of neighbours in which nobody sends or receives twice, of one length each.
std::vector<Round> matchings(const Round& round) {
  std::vector<Round> out;
  std::set<Rank> senders, receivers;
  for (const Transfer& t : round) {
    const bool fits = !out.empty() && senders.count(t.from.front()) == 0 &&
                      receivers.count(t.to.front()) == 0 &&
                      out.back().front().what.list.size() == t.what.list.size();
    if (!fits) {
      out.emplace_back();
      senders.clear();
      receivers.clear();
    }
    out.back().push_back(t);
    senders.insert(t.from.front());
    receivers.insert(t.to.front());
  }
  return out;
}

// All orders of few matchings.
bool some_order_does(const Round& coloured_round, const std::function<bool(const Round&)>& does) {
  const std::vector<Round> parts = matchings(coloured_round);
  constexpr std::size_t kFew = 6;
  if (parts.size() > kFew) return false;
  std::vector<std::size_t> order(parts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  do {
    Round round;
    for (const std::size_t i : order) {
      round.insert(round.end(), parts[i].begin(), parts[i].end());
    }
    if (does(round)) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

// Of one line of the catalogue.
struct Row {
  int tried = 0;   // cases: parameters, ports and prices
  int longer = 0;  // of which a round takes longer than its busiest port needs
  int coloured = 0, reordered = 0, no_port = 0,
      open = 0;  // of these: what would help; see the table
  std::set<int> ports;
  Time took = 1, needs = 1;    // of the worst round
  Time stated = 1, other = 1;  // dataflow, where colours lose most
};

enum class Help { coloured, reordered, no_port, open };

// Nothing helps where a switch copies a message to everybody else, or adds up everybody else's:
// unless all p take part, k + 1 of these at once meet at the rank that is not among them, which has
// k ports. So p of them take ceil(p / k), although a rank is part of p - 1 only.
bool switch_is_busy(const Round& round, int p, int k, Price price, Time took) {
  const Transfer& any = round.front();
  if (is_message(any) || any.from.size() + any.to.size() != p) return false;
  return static_cast<int>(round.size()) == p && p > k + 1 &&
         took == (p + k - 1) / k * price.of(any);
}

void look_at(const SweepResult& c, Row& row) {
  const Schedule schedule = c.algorithm->make(c.params);
  const Goal goal = goal_of(*c.algorithm, c.params, schedule);
  const Schedule colours = coloured(schedule);
  for (int k = 1; k <= kMostPorts; ++k) {
    for (const Price price : kPrices) {
      ++row.tried;
      bool longer = false;
      Help help = Help::coloured;
      for (int i = 0; i < schedule.rounds; ++i) {
        const Round round = round_of(schedule, i);
        const Time took = time_of(round, schedule, goal, k, price);
        const Time needs = need(round, k, price);
        ASSERT_GE(took, needs) << c.name();
        if (took == needs) continue;
        longer = true;
        if (took * row.needs > row.took * needs) {
          row.took = took;
          row.needs = needs;
        }
        const auto does = [&](const Round& other) {
          return time_of(other, schedule, goal, k, price) == needs;
        };
        if (switch_is_busy(round, schedule.ranks, k, price, took)) {
          help = std::max(help, Help::no_port);
        } else if (const Round other = round_of(colours, i); does(other)) {
          continue;
        } else {
          help = std::max(help, some_order_does(other, does) ? Help::reordered : Help::open);
        }
      }
      if (!longer) continue;
      ++row.longer;
      ++(help == Help::coloured    ? row.coloured
         : help == Help::reordered ? row.reordered
         : help == Help::no_port   ? row.no_port
                                   : row.open);
      row.ports.insert(k);
    }
  }
}

void look_at_dataflow(const SweepResult& c, Row& row) {
  const Schedule schedule = c.algorithm->make(c.params), colours = coloured(schedule);
  const Goal goal = goal_of(*c.algorithm, c.params, schedule);
  for (int k = 1; k <= kMostPorts; ++k) {
    for (const Price price : kPrices) {
      const Time stated = dataflow(schedule, goal, k, price);
      const Time other = dataflow(colours, goal, k, price);
      if (other * row.stated > row.other * stated) {
        row.stated = stated;
        row.other = other;
      }
    }
  }
}

std::string text_of(const std::string& line, const Row& row) {
  std::ostringstream out;
  out << line << ": " << row.longer << " of " << row.tried << " cases, ports " << *row.ports.begin()
      << "-" << *row.ports.rbegin() << ", at worst " << row.took << " for " << row.needs << ":";
  if (row.coloured > 0) out << " coloured " << row.coloured;
  if (row.reordered > 0) out << " reordered " << row.reordered;
  if (row.no_port > 0) out << " no_port " << row.no_port;
  if (row.open > 0) out << " open " << row.open;
  if (row.no_port == 0) out << "; dataflow " << row.other << " for " << row.stated;
  return out.str() + "\n";
}

constexpr std::string_view kLegend =
    "# Lines of the catalogue with a round that lasts longer than its busiest port needs, N = "
    "2-33,\n"
    "# 1 to 4 ports, by rounds (written by round_order_test.cc, which says what that means).\n"
    "#   at worst    a round took so long for what was needed\n"
    "#   coloured    cases in which stating rounds colour by colour (edge_colours.h) would do\n"
    "#   reordered   in which the colours in another order would\n"
    "#   no_port     in which no order does: a switch's transfers take a port of everybody\n"
    "#   open        messages of several lengths, for which neither does\n"
    "#   dataflow    what colours would cost without barriers, where they cost most: why the "
    "order\n"
    "#               stands\n";

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
    if (row.longer == 0) continue;
    for (const SweepResult& c : cases) look_at_dataflow(c, row);
    out += text_of(line, row);
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
