// Whether clauses can be satisfied together: conflict-driven clause learning. Whatever is not
// decided yet is tried true; a conflict becomes the clause that would have shown it where the
// earliest decision allows (first unique implication point). Exact either way, and for a few
// thousand conflicts: clauses learnt are kept, and nothing is simplified.
// Marques-Silva & Sakallah, "GRASP: a search algorithm for propositional satisfiability", IEEE
// Trans. Computers 48(5), 1999; two watched literals and activities: Moskewicz et al., "Chaff:
// engineering an efficient SAT solver", DAC 2001.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace rankine {

// A variable from 1 on, or the opposite of one: negative.
using Literal = int;
using Clause = std::vector<Literal>;

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
  // One of them must hold. No variable twice.
  void add(Clause clause) { clauses_.push_back(std::move(clause)); }

  // What makes all hold, by variable (0 is none); nothing where that cannot be. Once.
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
  // The clauses that watch it, to hear when it is false.
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

  // What follows from what holds; the clause that cannot hold then.
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
  // Instead of its second literal, which is false.
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

  // Goes back from a conflict to where the clause learnt from it says something.
  void learn(std::size_t conflict) {
    Clause learnt{0};
    std::vector<bool> seen(values_.size(), false);
    int open = 0;  // of the latest decision, and not yet replaced by what they follow from
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

  static constexpr double kMoreEachTime = 1.05;  // up to 14000 conflicts
  double step_ = 1;
  std::vector<Clause> clauses_;  // the first two literals of each are watched
  std::vector<std::vector<std::size_t>> watches_{2};
  // By variable: 1, -1 or 0 for neither; the clause that it follows from; after how many decisions;
  // how much it has to do with conflicts.
  std::vector<int> values_{0};
  std::vector<std::size_t> reasons_{kNone}, levels_{0};
  std::vector<double> activities_{0};
  // What to decide next, the most active first; some are decided, or have become more active.
  std::priority_queue<std::pair<double, Literal>> waiting_;
  std::vector<Literal> held_;           // in this order
  std::vector<std::size_t> decisions_;  // where in that each is
  std::size_t next_ = 0;                // of those, what to propagate
};

}  // namespace rankine
