// Tests of the order in which rounds state their messages, and an exact search for better orders.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/schedule.h"
#include "algorithms/schedule/stating_order.h"
#include "engine/network/port_model.h"
#include "engine/read/sweep.h"

namespace rankine {

// A variable, from 1 on, or the opposite of one: negative.
using Literal = int;
using Clause = std::vector<Literal>;

// Satisfy is a SAT solver by conflict-driven clause learning. Each undecided variable is tried as
// true; a conflict becomes the clause that would have prevented it at the earliest decision (first
// unique implication point). Its answers are exact. It suits a few thousand conflicts: it keeps all
// learnt clauses, and simplifies none. Marques-Silva & Sakallah, "GRASP: a search algorithm for
// propositional satisfiability", IEEE Trans. Computers 48(5), 1999; two watched literals and
// activities: Moskewicz et al., "Chaff: engineering an efficient SAT solver", DAC 2001.
class Satisfy {
 public:
  Literal variable() {
    values_.push_back(0);
    reasons_.push_back(kNone);
    levels_.push_back(0);
    activities_.push_back(0);
    watches_.resize(watches_.size() + 2);
    waiting_.push({0, variables()});
    return variables();
  }
  // Adds a clause: one of its literals must hold. A clause has no variable twice.
  void add(Clause clause) { clauses_.push_back(std::move(clause)); }

  // The values of the variables (index 0 is unused) that satisfy all clauses; nullopt if no values
  // do. May be called once.
  std::optional<std::vector<bool>> satisfied() {
    for (std::size_t c = 0; c < clauses_.size(); ++c) {
      if (clauses_[c].empty()) return std::nullopt;
      if (clauses_[c].size() > 1) watch(c);
    }
    for (std::size_t c = 0; c < clauses_.size(); ++c) {
      if (clauses_[c].size() > 1) continue;
      if (value(clauses_[c][0]) < 0) return std::nullopt;
      if (value(clauses_[c][0]) == 0) hold(clauses_[c][0], kNone);
    }
    while (true) {
      if (const std::size_t conflict = propagate(); conflict != kNone) {
        if (decisions_.empty()) return std::nullopt;
        learn(conflict);
      } else if (!decide()) {
        std::vector<bool> out;
        for (const int value : values_) out.push_back(value > 0);
        return out;
      }
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};
  static std::size_t at(Literal l) { return static_cast<std::size_t>(std::abs(l)); }
  int variables() const { return static_cast<int>(values_.size()) - 1; }
  int value(Literal l) const { return l > 0 ? values_[at(l)] : -values_[at(l)]; }
  // The clauses that watch l, which must be checked when l becomes false.
  std::vector<std::size_t>& watches(Literal l) { return watches_[2 * at(l) + (l < 0 ? 1 : 0)]; }
  void watch(std::size_t c) {
    watches(clauses_[c][0]).push_back(c);
    watches(clauses_[c][1]).push_back(c);
  }

  void hold(Literal l, std::size_t reason) {
    values_[at(l)] = l > 0 ? 1 : -1;
    reasons_[at(l)] = reason;
    levels_[at(l)] = decisions_.size();
    held_.push_back(l);
  }

  // Derives the consequences of the literals that hold. Returns the clause that then cannot hold,
  // or kNone.
  std::size_t propagate() {
    while (next_ < held_.size()) {
      const Literal is_false = -held_[next_++];
      std::vector<std::size_t>& list = watches(is_false);
      std::size_t kept = 0;
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::size_t c = list[i];
        Clause& clause = clauses_[c];
        if (clause[0] == is_false) std::swap(clause[0], clause[1]);
        if (value(clause[0]) <= 0 && watches_another(c)) continue;
        list[kept++] = c;
        if (value(clause[0]) > 0) continue;
        if (value(clause[0]) == 0) {
          hold(clause[0], c);
          continue;
        }
        while (++i < list.size()) list[kept++] = list[i];
        list.resize(kept);
        return c;
      }
      list.resize(kept);
    }
    return kNone;
  }
  // Tries to replace the clause's second literal, which is false, as a watched literal.
  bool watches_another(std::size_t c) {
    Clause& clause = clauses_[c];
    for (std::size_t i = 2; i < clause.size(); ++i) {
      if (value(clause[i]) < 0) continue;
      std::swap(clause[1], clause[i]);
      watches(clause[1]).push_back(c);
      return true;
    }
    return false;
  }

  bool decide() {
    while (!waiting_.empty()) {
      const Literal l = waiting_.top().second;
      waiting_.pop();
      if (l == 0 || value(l) != 0) continue;
      decisions_.push_back(held_.size());
      hold(l, kNone);
      return true;
    }
    return false;
  }

  // Goes back from a conflict to the decision at which the learnt clause has a consequence.
  void learn(std::size_t conflict) {
    Clause learnt{0};
    std::vector<bool> seen(values_.size(), false);
    int open = 0;  // literals of the latest decision that remain to be replaced
    std::size_t c = conflict, i = held_.size(), back = 0;
    do {
      for (const Literal l : clauses_[c]) {
        if (seen[at(l)] || levels_[at(l)] == 0) continue;
        seen[at(l)] = true;
        activities_[at(l)] += step_;
        if (levels_[at(l)] == decisions_.size()) {
          ++open;
        } else {
          learnt.push_back(l);
          if (levels_[at(l)] > back) {
            back = levels_[at(l)];
            std::swap(learnt[1], learnt.back());
          }
        }
      }
      do --i;
      while (!seen[at(held_[i])]);
      c = reasons_[at(held_[i])];
    } while (--open > 0);
    learnt[0] = -held_[i];
    step_ *= kMoreEachTime;
    go_back(back);
    const Literal follows = learnt[0];
    clauses_.push_back(std::move(learnt));
    const bool alone = clauses_.back().size() == 1;
    if (!alone) watch(clauses_.size() - 1);
    hold(follows, alone ? kNone : clauses_.size() - 1);
  }
  void go_back(std::size_t level) {
    const std::size_t first = decisions_[level];
    for (; held_.size() > first; held_.pop_back()) {
      const std::size_t v = at(held_.back());
      values_[v] = 0;
      waiting_.push({activities_[v], static_cast<int>(v)});
    }
    decisions_.resize(level);
    next_ = first;
  }

  static constexpr double kMoreEachTime = 1.05;  // enough for 14000 conflicts
  double step_ = 1;
  std::vector<Clause> clauses_;  // the first two literals of each are watched
  std::vector<std::vector<std::size_t>> watches_{2};
  // By variable: 1, -1 or 0 (undecided); the clause that implied it; the number of decisions before
  // it; its activity in conflicts.
  std::vector<int> values_{0};
  std::vector<std::size_t> reasons_{kNone}, levels_{0};
  std::vector<double> activities_{0};
  // Candidates for the next decision, the most active first. Some are decided already, or have
  // become more active.
  std::priority_queue<std::pair<double, Literal>> waiting_;
  std::vector<Literal> held_;           // in order of assignment
  std::vector<std::size_t> decisions_;  // the index of each in held_
  std::size_t next_ = 0;                // next index in held_ to propagate
};

struct Ends {
  Rank from, to;
};

struct ByClock {
  int ports;
  std::vector<std::int64_t> costs;  // by message, more than 0
  std::int64_t limit;
};

// SomeOrder finds one order of messages in which ports carry all of them in time by several clocks,
// which differ in ports and prices; or it proves that no such order exists.
//
// An order is in time by one clock if and only if starts exist with two properties. All messages
// end by the limit. When a message j starts, fewer than k of the messages that are stated before j
// and share its sender, or its receiver, are still in flight. (By induction, ports that take
// messages as stated then have a free port for j; and if they are in time, their starts have both
// properties.) So the question is one about clauses:
// - before(i, j), for i and j that meet at a port: not both before(i, j) and before(j, i).
// - begun(m, t): m has started by t. It starts at the first such t; later ones do not matter.
// - not begun(j, t), or for one i of any k messages that meet j at one end: not before(i, j), or
//   begun(i, t - cost of i). This holds for every t and every choice of k.
// One more clock, with one port and costs of 1, excludes cycles in the order.
class SomeOrder {
 public:
  // The order of the messages, or nullopt if no order is in time by all clocks.
  static std::optional<std::vector<std::size_t>> of(const std::vector<Ends>& messages,
                                                    std::vector<ByClock> clocks) {
    const auto n = static_cast<std::int64_t>(messages.size());
    clocks.push_back({1, std::vector<std::int64_t>(messages.size(), 1), n});
    SomeOrder some(messages);
    for (const ByClock& clock : clocks) some.must_be_in_time(clock);
    const auto holds = some.clauses_.satisfied();
    if (!holds) return std::nullopt;
    const auto start = [&](std::size_t m) {
      const auto& begun = some.begun_[m];
      return std::find_if(begun.begin(), begun.end(),
                          [&](Literal l) { return (*holds)[static_cast<std::size_t>(l)]; }) -
             begun.begin();
    };
    std::vector<std::size_t> order(messages.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return start(a) < start(b); });
    return order;
  }

 private:
  using Which = std::vector<std::size_t>;

  explicit SomeOrder(const std::vector<Ends>& messages) : begun_(messages.size()) {
    std::map<std::pair<Rank, bool>, Which> ends;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      ends[{messages[m].from, true}].push_back(m);
      ends[{messages[m].to, false}].push_back(m);
    }
    for (auto& [end, which] : ends) {
      for (const std::size_t j : which) {
        for (const std::size_t i : which) {
          if (i >= j || before_.count({i, j}) > 0) continue;
          const Literal l = clauses_.variable();
          before_[{i, j}] = l;
          before_[{j, i}] = -l;
        }
      }
      ends_.push_back(std::move(which));
    }
  }

  void must_be_in_time(const ByClock& clock) {
    for (std::size_t m = 0; m < begun_.size(); ++m) {
      begun_[m].clear();
      const std::int64_t latest = clock.limit - clock.costs[m];
      if (latest < 0) clauses_.add({});
      for (std::int64_t t = 0; t < latest; ++t) {
        begun_[m].push_back(clauses_.variable());
      }
    }
    for (const Which& end : ends_) {
      for (const std::size_t j : end) {
        Which others;
        for (const std::size_t i : end) {
          if (i != j) others.push_back(i);
        }
        for_each_choice(others, clock.ports, 0, {},
                        [&](const Which& chosen) { one_has_ended(chosen, j, clock); });
      }
    }
  }

  // Requires that one of `chosen`, which all meet j at one end, has ended when j starts, or is
  // stated after j.
  void one_has_ended(const Which& chosen, std::size_t j, const ByClock& clock) {
    const std::int64_t latest = clock.limit - clock.costs[j];
    for (std::int64_t t = 0; t <= latest; ++t) {
      Clause clause;
      if (t < latest) clause.push_back(-begun(j, t));
      for (const std::size_t i : chosen) {
        clause.push_back(-before_.at({i, j}));
        if (t >= clock.costs[i]) clause.push_back(begun(i, t - clock.costs[i]));
      }
      clauses_.add(std::move(clause));
    }
  }
  // For a t before the latest possible start; at that one begun() is always true.
  Literal begun(std::size_t m, std::int64_t t) const {
    return begun_[m].at(static_cast<std::size_t>(t));
  }

  // Calls visit(choice) for every choice of `so_many` messages from index i on, added to `chosen`.
  template <class Visit>
  static void for_each_choice(const Which& of, int so_many, std::size_t i, Which chosen,
                              const Visit& visit) {
    if (so_many == 0) return visit(chosen);
    for (; i < of.size(); ++i) {
      Which more = chosen;
      more.push_back(of[i]);
      for_each_choice(of, so_many - 1, i + 1, std::move(more), visit);
    }
  }

  Satisfy clauses_;
  std::vector<Which> ends_;  // messages that each rank sends, or receives
  std::map<std::pair<std::size_t, std::size_t>, Literal> before_;  // for messages that meet
  std::vector<std::vector<Literal>> begun_;                        // for the latest clock
};

namespace {

using Time = std::int64_t;
using Order = std::vector<std::size_t>;

constexpr int kRanks = 6;

Time time_of(const std::vector<Ends>& messages, const Order& order, const ByClock& clock) {
  const Schedule schedule{kRanks, kRanks, 1, [](int, Send) {}};
  PortModel<Time> model(schedule, {Collective::all_gather, kRanks, kRanks}, clock.ports,
                        Sync::rounds);
  model.begin_round(0);
  for (const std::size_t m : order) {
    model.take({messages[m].from, messages[m].to, block(0), block(0), copy}, clock.costs[m]);
  }
  model.end_round();
  return model.round_end();
}

bool in_time(const std::vector<Ends>& messages, const Order& order,
             const std::vector<ByClock>& clocks) {
  return std::all_of(clocks.begin(), clocks.end(), [&](const ByClock& clock) {
    return time_of(messages, order, clock) <= clock.limit;
  });
}

// Calls visit(order) for all orders.
template <class Visit>
void for_each_order(std::size_t n, const Visit& visit) {
  Order order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  do visit(order);
  while (std::next_permutation(order.begin(), order.end()));
}

// On one port ranks 0 and 1 have 4 each to send. So rank 0 sends its 2 and 2 in either half of that
// time, and rank 1 sends its 2 in one half and its 1 and 1 in the other half. In the latter half
// rank 3 or rank 4 would have to receive both a 2 and a 1, which takes too long.
TEST(SomeOrder, AllPortsMayHaveTheTimeAndNoOrderDoes) {
  const std::vector<Ends> messages = {{0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {5, 2}};
  const std::vector<Time> costs = {2, 2, 2, 1, 1, 2};
  EXPECT_FALSE(SomeOrder::of(messages, {{1, costs, 4}}).has_value());
  const std::optional<Order> order = SomeOrder::of(messages, {{1, costs, 5}});
  ASSERT_TRUE(order.has_value());
  EXPECT_EQ(time_of(messages, *order, {1, costs, 5}), 5);
  EXPECT_TRUE(SomeOrder::of(messages, {{2, costs, 2}}).has_value());
  EXPECT_FALSE(SomeOrder::of(messages, {{2, costs, 1}}).has_value());
}

// Small rounds by four clocks. In some rounds an order exists for each clock; in others one clock
// has no order. The answer equals that of trying all orders, and the order found is in time.
TEST(SomeOrder, SaysWhatGoingThroughAllOrdersDoes) {
  std::mt19937 random(1);
  const auto below = [&random](unsigned n) { return static_cast<int>(random() % n); };
  int found = 0, none = 0, apart = 0;  // apart: each clock has an order, but no order all clocks
  for (int round = 0; round < 400; ++round) {
    std::vector<Ends> messages;
    for (int n = 5 + below(2); n > 0; --n) messages.push_back({below(2), 2 + below(3)});
    std::vector<ByClock> clocks;
    while (clocks.size() < 4) {
      clocks.push_back({1 + below(3), {}, Time{1} << 20});
      for (std::size_t m = 0; m < messages.size(); ++m) clocks.back().costs.push_back(1 + below(9));
      Time least = clocks.back().limit;
      for_each_order(messages.size(), [&](const Order& order) {
        least = std::min(least, time_of(messages, order, clocks.back()));
      });
      clocks.back().limit = least;
    }
    const bool too_short = below(4) == 0;
    if (too_short) --clocks.back().limit;
    bool exists = false;
    for_each_order(messages.size(), [&](const Order& order) {
      exists = exists || in_time(messages, order, clocks);
    });
    const std::optional<Order> order = SomeOrder::of(messages, clocks);
    ASSERT_EQ(order.has_value(), exists) << "round " << round;
    if (order) {
      EXPECT_TRUE(in_time(messages, *order, clocks)) << "round " << round;
    }
    ++(exists ? found : too_short ? none : apart);
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(none, 50);
  EXPECT_GT(apart, 10);
}

// Asks for `pigeons` pigeons in `holes` holes, each in one hole, and no two in one.
std::optional<std::vector<bool>> placed(int pigeons, int holes) {
  Satisfy clauses;
  std::vector<Clause> of_pigeon(static_cast<std::size_t>(pigeons));
  for (Clause& holds : of_pigeon) {
    for (int h = 0; h < holes; ++h) holds.push_back(clauses.variable());
  }
  for (std::size_t p = 0; p < of_pigeon.size(); ++p) {
    clauses.add(of_pigeon[p]);
    for (std::size_t q = 0; q < p; ++q) {
      for (std::size_t h = 0; h < static_cast<std::size_t>(holes); ++h) {
        clauses.add({-of_pigeon[p][h], -of_pigeon[q][h]});
      }
    }
  }
  return clauses.satisfied();
}

TEST(Satisfy, PigeonsFindAHoleEachWhereThereAreAsMany) {
  const auto held = placed(6, 6);
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(std::count(held->begin(), held->end(), true), 6);
  EXPECT_FALSE(placed(6, 5).has_value());
  EXPECT_FALSE(placed(1, 0).has_value());
  EXPECT_TRUE(placed(0, 0).has_value());
}

}  // namespace

// The order in which rounds state their messages. By rounds, ports take messages as stated and
// never look ahead, so an order can make a round last longer than its busiest port needs. This test
// times every entry of the catalogue round by round. The late lines stand in round_order.txt, with
// the remedy that SomeOrder finds (exact either way).
//
// The need of a port is the least time in which k ports can carry a rank's messages of the round in
// one direction, each message on one port (found by search). The need of a round is the maximum
// over all ranks and directions. Prices: a message costs 1 (alpha), its blocks (beta), or both.
//
// To write the table anew (and then read the changes):
//   export RANKINE_TEST_ORDER_OUT=$PWD/tests/engine/network/round_order.txt
//   third_party/bazel run //tests/engine/network:network_test -- --gtest_filter=RoundOrder.*

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

// An order of the round's messages that takes no longer than needed in all of these cases.
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

// The remedy for a late round; see the table.
enum class Help { ordered, apart, no_port, none };

// The results of one entry of the catalogue.
struct Row {
  int tried = 0;                // cases: parameters, ports and prices
  int longer = 0;               // cases with a round longer than its need
  std::map<Help, int> of_help;  // the longer cases, by remedy
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

// The remedy for a round of messages that is late in one case.
Help help_for(const Round& round, const Schedule& schedule, const CollectiveSpec& goal, Case late) {
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
  const CollectiveSpec goal = goal_of(*c.algorithm, c.params, schedule);
  const std::vector<Case> cases = all_cases();
  std::vector<std::optional<Help>> of_case(cases.size());  // the worst remedy of its late rounds
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
