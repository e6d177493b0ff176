// Whether messages can be stated in an order in which ports carry them in time: in one order by
// several clocks, which differ in ports and prices. Exact, either way.
//
// An order does by one clock just where starts can be found, such that everything has ended by the
// limit, and that fewer than k of the messages that an end of j carries and that are stated before
// j have not ended when j starts, for every j and both of its ends. (Ports that take messages as
// stated find one free then, by induction; and where they are in time, their starts are such.) So
// whether there is one is a question about clauses:
//   before(i, j)     for i and j that meet at a port; not both this and before(j, i)
//   begun(m, t)      has started by t (it starts at the first such t, and no later one matters)
//   not begun(j, t), or not before(i, j) or begun(i, t - cost of i) for one i of these,
//                    for any k that meet j at one end, and any t
// No order goes round in circles: a clock more, of one port, on which everything takes 1.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "algorithms/schedule/schedule.h"
#include "tests/engine/network/satisfy.h"

namespace rankine {

struct Ends {
  Rank from, to;
};

struct ByClock {
  int ports;
  std::vector<std::int64_t> costs;  // by message, more than 0
  std::int64_t limit;
};

// Where the messages are stated, or nothing where no order does by all clocks.
class SomeOrder {
 public:
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

  // Of `chosen`, which all meet j at one end, when j starts, or is stated after j.
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
  // For a t before the latest possible, by which it must have.
  Literal begun(std::size_t m, std::int64_t t) const {
    return begun_[m].at(static_cast<std::size_t>(t));
  }

  // visit(choice) for any so many of those from i on, with what is chosen.
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
  std::vector<Which> ends_;  // of ranks: what each sends, and what it receives
  std::map<std::pair<std::size_t, std::size_t>, Literal> before_;  // of those that meet
  std::vector<std::vector<Literal>> begun_;                        // of the latest clock
};

}  // namespace rankine
