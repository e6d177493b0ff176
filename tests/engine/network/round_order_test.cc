// Tests of the order in which rounds state their messages.

#include "algorithms/catalogue.h"
#include "algorithms/schedule/schedule.h"
#include "algorithms/schedule/stating_order.h"
#include "engine/network/port_model.h"
#include "engine/read/sweep.h"
#include "tests/budget.h"
#include "tests/testing.h"

// The order in which rounds state their messages. By rounds, ports take messages as stated and
// never look ahead, so an order can make a round last longer than its busiest port needs. This test
// times every entry of the catalogue round by round. The late lines stand in round_order.txt. An
// exact search found no better order for them.
//
// The need of a port is the least time in which k ports can carry a rank's messages of the round in
// one direction, each message on one port (found by search). The need of a round is the maximum
// over all ranks and directions. Prices: a message costs 1 (alpha), its blocks (beta), or both.
//
// To write the table anew (and then read the changes):
//   export RANKINE_TEST_ORDER_OUT=$PWD/tests/engine/network/round_order.txt
//   third_party/bazel run //tests/engine/network:network_test -- --gtest_filter=RoundOrder.*

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

// The need of the busiest port.
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

Time time_of(const Round& round, const Schedule& schedule, const CollectiveSpec& goal, int k,
             Price price) {
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

// A number of ports and a price from the table.
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

// The results of one entry of the catalogue.
struct Row {
  int tried = 0;    // cases: parameters, ports and prices
  int no_port = 0;  // cases with a late round for which no order helps
  int late = 0;     // other cases with a round longer than its need
  std::set<int> ports;
  Time took = 1, needs = 1;  // the worst round
};

// True if no order can help, because a switch copies a message to all other ranks or adds up the
// messages of all others. k + 1 such transfers at once, unless they are all p, would meet at a rank
// that is the root of none of them, which has k ports. So p transfers take ceil(p / k), although a
// rank needs a port for p - 1 of them only.
bool switch_is_busy(const Round& round, int p, int k, Price price, Time took) {
  const Transfer& any = round.front();
  if (is_message(any) || any.from.size() + any.to.size() != p) return false;
  return static_cast<int>(round.size()) == p && p > k + 1 &&
         took == (p + k - 1) / k * price.of(any);
}

void look_at(const SweepResult& c, Row& row) {
  const Schedule schedule = c.algorithm->make(c.params);
  const CollectiveSpec goal = goal_of(*c.algorithm, c.params, schedule);
  const std::vector<Case> cases = all_cases();
  std::vector<int> late(cases.size(), 0), no_port(cases.size(), 0);
  for (int i = 0; i < schedule.rounds; ++i) {
    const Round round = round_of(schedule, i);
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
      (switch_is_busy(round, schedule.ranks, k, price, took) ? no_port : late)[n] = 1;
      row.ports.insert(k);
    }
  }
  row.tried += static_cast<int>(cases.size());
  row.late += std::accumulate(late.begin(), late.end(), 0);
  row.no_port += std::accumulate(no_port.begin(), no_port.end(), 0);
}

std::string text_of(const std::string& line, const Row& row) {
  std::ostringstream out;
  out << line << ": " << row.no_port + row.late << " of " << row.tried << " cases, ports "
      << *row.ports.begin() << "-" << *row.ports.rbegin() << ", at worst " << row.took << " for "
      << row.needs << ": no_port " << row.no_port << ", late " << row.late << "\n";
  return out.str();
}

constexpr std::string_view kLegend =
    "# Lines of the catalogue with a round that lasts longer than its busiest port needs, N = "
    "2-33,\n"
    "# 1 to 4 ports, by rounds (written by round_order_test.cc, which says what that means).\n"
    "#   at worst    a round took so long for what was needed\n"
    "#   no_port     no order helps: a switch's transfers take a port of every rank\n"
    "#   late        an exact search found an order for each of these cases, but none that is in "
    "time in all\n";

// An entry of the catalogue, and its row of the table: empty if no round is late.
using Rows = std::vector<std::pair<std::string, std::string>>;

Rows rows(const Sample& sample) {
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
  Rows out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!sample.has(i)) continue;
    const auto& [line, cases] = lines[i];
    Row row;
    for (const SweepResult& c : cases) look_at(c, row);
    out.emplace_back(line, row.ports.empty() ? "" : text_of(line, row));
  }
  return out;
}

TEST(RoundOrder, NoRoundLastsLongerThanItsBusiestPortNeedsButForTheseReasons) {
  if (const char* path = std::getenv("RANKINE_TEST_ORDER_OUT"); path != nullptr) {
    std::ofstream out(path);
    out << kLegend;
    for (const auto& [line, row] : rows(Sample(nullptr, 1))) out << row;
    return;
  }
  std::ifstream in("tests/engine/network/round_order.txt");
  std::map<std::string, std::string> expected;
  for (std::string row; std::getline(in, row);) {
    if (!row.starts_with('#')) expected[row.substr(0, row.find(':'))] = row + "\n";
  }
  for (const auto& [line, row] : rows(Sample("lines by round", 8))) {
    EXPECT_EQ(expected[line], row) << line;
    expected.erase(line);
  }
  EXPECT_TRUE(!budget_is_all() || expected.empty()) << "a row of no line";
}

// Stated rank by rank, the second message of each of three ranks waits for the first message of
// another.
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
  const CollectiveSpec goal{Collective::all_gather, 3, 3};
  EXPECT_EQ(need(by_rank, 1, {1, 0}), 2);
  EXPECT_GT(time_of(by_rank, schedule, goal, 1, {1, 0}), 2);
  EXPECT_EQ(time_of(by_side, schedule, goal, 1, {1, 0}), 2);
}

}  // namespace
}  // namespace rankine
