// Tests that every algorithm is proved and states the truth, on sweeps, on tori and after damage.

#include <iostream>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"
#include "engine/base/parallel.h"
#include "engine/read/count.h"
#include "engine/read/draw.h"
#include "engine/read/sweep.h"
#include "engine/read/verify.h"
#include "tests/algorithms/reference.h"
#include "tests/budget.h"
#include "tests/engine/read/listed.h"
#include "tests/testing.h"

// Proves the whole catalogue for every N up to 24, or 64 with --all, and checks its statements.
// `rankine verify` goes further.

namespace rankine {
namespace {

TEST(VerifySweep, TheWholeCatalogue) {
  SweepOptions options;
  options.ranks_to = budget_is_all() ? 64 : 24;
  const std::vector<SweepResult> results = sweep(options);
  std::map<const Algorithm*, int> failures;
  for (const SweepResult& result : results) {
    int& failed = failures[result.algorithm];
    if (result.ok()) continue;
    if (++failed <= 3) ADD_FAILURE() << result.name() << ": " << result.failure;
  }
  for (const auto& [line, failed] : failures) {
    EXPECT_EQ(failed, 0) << name_of(line->collective) << " " << line->name;
  }
  EXPECT_EQ(failures.size(), catalogue().size());
  std::cout << results.size() << " schedules of " << failures.size() << " algorithms\n";
}

// A second opinion: every small case is executed on integers by code that the engine does not use.
TEST(VerifySweep, EveryCaseGivesTheRightNumbers) {
  SweepOptions options;
  options.ranks_to = budget_is_all() ? 28 : 13;
  const std::vector<SweepResult> cases = sweep_cases(options);
  const Sample sample("right numbers", 3);
  parallel_for(cases.size(), [&](std::size_t i) {
    if (!sample.has(i)) return;
    const Schedule schedule = cases[i].algorithm->make(cases[i].params);
    const CollectiveSpec goal = goal_of(*cases[i].algorithm, cases[i].params, schedule);
    const std::string wrong = failure(schedule, goal);
    EXPECT_EQ(wrong, "") << cases[i].name();
  });
}

TEST(VerifySweep, DoesNotDependOnTheNumberOfThreads) {
  SweepOptions options;
  options.ranks_to = 12;
  options.threads = 1;
  const std::vector<SweepResult> one = sweep(options);
  options.threads = 2;
  std::size_t calls = 0, last = 0;
  const std::vector<SweepResult> two = sweep(options, [&](std::size_t done, std::size_t all) {
    ++calls;
    EXPECT_GT(done, last);
    EXPECT_EQ(all, one.size());
    last = done;
  });
  EXPECT_EQ(calls, one.size());
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].name(), two[i].name());
    EXPECT_EQ(one[i].failure, two[i].failure);
    EXPECT_EQ(one[i].rounds, two[i].rounds);
  }
}

TEST(VerifySweep, Cases) {
  SweepOptions options;
  options.collective = Collective::broadcast;
  options.algorithm = "chain";
  options.ranks_from = 2;
  options.ranks_to = 3;
  options.all_roots_up_to = 2;
  options.values["segments"] = {"1", "4"};
  std::vector<std::string> names;
  for (const SweepResult& result : sweep_cases(options)) names.push_back(result.name());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "broadcast chain N=2 root=0 P=1", "broadcast chain N=2 root=0 P=4",
                       "broadcast chain N=2 root=1 P=1", "broadcast chain N=2 root=1 P=4",
                       "broadcast chain N=3 root=0 P=1", "broadcast chain N=3 root=0 P=4",
                       "broadcast chain N=3 root=1 P=1", "broadcast chain N=3 root=1 P=4",
                       "broadcast chain N=3 root=2 P=1", "broadcast chain N=3 root=2 P=4"}));
}

TEST(VerifySweep, WhatIsWrongIsTheCasesFailure) {
  SweepOptions options;
  options.collective = Collective::all_gather;
  options.algorithm = "ring";
  options.ranks_from = options.ranks_to = 3;
  options.verify.max_states = 2;
  const std::vector<SweepResult> results = sweep(options);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].failure,
            "too_large: 3 ranks x 3 blocks x 1 plane take more states; allowed are 2");
}

// Proves algorithms on rings and tori at sizes beyond the catalogue's sweep, and on the tori of
// papers, and checks their statements.

bool on_tori(const SweepResult& result) { return result.algorithm->takes("dims"); }

// All lines that take dims, on one torus or ring, except lines that refuse the sizes.
std::vector<SweepResult> swept(const std::vector<int>& dims) {
  SweepOptions options;
  options.ranks_from = options.ranks_to = Torus(dims).ranks();
  options.values["dims"] = {dims_text(dims)};
  options.all_roots_up_to = 0;  // the first, the middle and the last one
  std::vector<SweepResult> out;
  for (const Algorithm& entry : catalogue()) {
    if (!entry.takes("dims")) continue;
    options.collective = entry.collective;
    options.algorithm = entry.name;
    for (SweepResult& result : sweep(options)) out.push_back(std::move(result));
  }
  return out;
}

class TorusSweep : public testing::TestWithParam<std::vector<int>> {};

TEST_P(TorusSweep, IsProvedAndStatedTruthfully) {
  const std::vector<int>& dims = GetParam();
  if (Torus(dims).ranks() > 130 && !budget_is_all()) GTEST_SKIP() << "a large sweep; --all runs it";
  const std::vector<SweepResult> results = swept(dims);
  // All-reduces in eleven forms, all-gathers and reduce-scatters in six; broadcasts and reduces in
  // one, from three roots; an all-to-all. One more of the first five along link-disjoint cycles,
  // which exist unless a dimension has two ranks. On crosses, all-reduces in two forms.
  const bool has_cycles =
      dims.size() == 1 || std::all_of(dims.begin(), dims.end(), [](int a) { return a > 2; });
  const bool equal = std::count(dims.begin(), dims.end(), dims.front()) == std::ssize(dims);
  const int ports = 2 * static_cast<int>(dims.size());
  const bool has_crosses =
      dims.size() == 1 || (equal && dims.size() < 4 && dims.front() % (ports + 1) == 0);
  EXPECT_EQ(results.size(), 33u + (has_cycles ? 3u : 0u) + (has_crosses ? 4u : 0u));
  for (const SweepResult& result : results) {
    EXPECT_TRUE(on_tori(result));
    EXPECT_EQ(result.failure, "") << result.name();
  }
}

std::string name_of_case(const testing::TestParamInfo<std::vector<int>>& info) {
  return dims_text(info.param);
}

INSTANTIATE_TEST_SUITE_P(Rings, TorusSweep,
                         testing::Values(std::vector{130}, std::vector{243}, std::vector{256},
                                         std::vector{512}, std::vector{729}, std::vector{1000}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Tori, TorusSweep,
                         testing::Values(std::vector{3, 3}, std::vector{4, 4}, std::vector{3, 5},
                                         std::vector{8, 8}, std::vector{9, 9}, std::vector{3, 3, 3},
                                         std::vector{4, 4, 4}, std::vector{27, 27},
                                         std::vector{5, 3}, std::vector{2, 3, 4},
                                         std::vector{2, 2, 2, 2}, std::vector{3, 3, 3, 3},
                                         std::vector{16, 16}, std::vector{5, 5},
                                         std::vector{25, 25}, std::vector{7, 7, 7},
                                         std::vector{6, 6}, std::vector{5, 7}, std::vector{3, 4, 5},
                                         std::vector{2, 3, 2, 2}, std::vector{12, 10}),
                         name_of_case);

// Is the proof strict? Every schedule of the catalogue is damaged, one transfer at a time, and
// every damage must show: verify() refutes it, or the catalogue's entry states a wrong number.
//
// Some redirections do no damage but give another schedule of the collective, as good by every
// number that a line states:
// - another sender that holds an equal value (in a barrier: any sender that completes the receiver)
// - seen backwards in time, another receiver of a reduction: the contribution joins the sum at
//   another rank, and still reaches the result once
// They are counted separately and must meet these conditions: the mutant is proved and states the
// truth, moves as many blocks and messages as the original, and differs from it in the counts of
// single ranks. Any other mutant that passes is a hole in the proof.

enum class Damage {
  drop,
  double_at_once,  // again in the same round
  double_later,    // again one round later, in a new round after the last
  other_sender,
  other_receiver,
  other_block,
  double_block,   // one of several, at once
  drop_block,     // one of several
  drop_receiver,  // one of several: a multicast
  drop_sender,    // one of several: an ALU
};
constexpr std::array kDamages = {
    std::pair{Damage::drop, "drop"},
    std::pair{Damage::double_at_once, "double at once"},
    std::pair{Damage::double_later, "double one round later"},
    std::pair{Damage::other_sender, "other sender"},
    std::pair{Damage::other_receiver, "other receiver"},
    std::pair{Damage::other_block, "other block"},
    std::pair{Damage::double_block, "double one block"},
    std::pair{Damage::drop_block, "drop one block"},
    std::pair{Damage::drop_receiver, "drop one receiver"},
    std::pair{Damage::drop_sender, "drop one sender"},
};

struct Mutant {
  Damage damage;
  int round = 0;                  // of the damaged transfer
  std::size_t index = 0;          // its index within the round
  Rank was = -1, now = -1;        // of a redirection
  std::vector<Transfer> instead;  // replaces the damaged one; a redirected one comes last
  std::string text() const {
    std::string out = kDamages[static_cast<std::size_t>(damage)].second;
    out += ", round " + std::to_string(round) + ", transfer " + std::to_string(index);
    if (was >= 0) out += ", " + std::to_string(was) + " to " + std::to_string(now);
    return out;
  }
};

// The schedule with one transfer changed. `rounds` and `mutant` must outlive it.
Schedule damaged(const Schedule& original, const TransferList& rounds, const Mutant& mutant) {
  Schedule out = original;
  out.phases.clear();
  const bool is_later = mutant.damage == Damage::double_later;
  if (is_later && mutant.round + 1 == original.rounds) ++out.rounds;
  out.round = [&rounds, &mutant, is_later](int k, Send send) {
    if (static_cast<std::size_t>(k) < rounds.size()) {
      const std::vector<Transfer>& transfers = rounds[static_cast<std::size_t>(k)];
      for (std::size_t i = 0; i < transfers.size(); ++i) {
        if (k != mutant.round || i != mutant.index) {
          send.exactly(transfers[i]);
        } else {
          for (const Transfer& t : mutant.instead) send.exactly(t);
        }
      }
    }
    if (is_later && k == mutant.round + 1) {
      send.exactly(rounds[static_cast<std::size_t>(mutant.round)][mutant.index]);
    }
  };
  return out;
}

IndexList changed(const IndexList& list, int at, int value) {
  IndexList out;
  int i = 0;
  list.for_each([&](int index) { out.append(IndexList(i++ == at ? value : index)); });
  return out;
}
IndexList without(const IndexList& list, int at) {
  IndexList out;
  int i = 0;
  list.for_each([&](int index) {
    if (i++ != at) out.append(IndexList(index));
  });
  return out;
}

// The ranks to redirect to: all if there are few, else the neighbours and the opposite one.
std::vector<Rank> others(int ranks, const RankSet& set, Rank not_this) {
  std::vector<Rank> out;
  const std::vector<Rank> members = set.to_vector();
  const auto add = [&](Rank r) {
    r %= ranks;
    if (r == not_this || std::count(members.begin(), members.end(), r) > 0) return;
    if (std::count(out.begin(), out.end(), r) == 0) out.push_back(r);
  };
  if (ranks <= 9) {
    for (Rank r = 0; r < ranks; ++r) add(r);
  } else {
    for (const Rank step : {1, ranks / 2, ranks - 1}) add(members[0] + step);
  }
  return out;
}

template <class Visit>
void for_each_mutant(const Schedule& schedule, const TransferList& rounds, const Visit& visit) {
  for (int k = 0; k < schedule.rounds; ++k) {
    const std::vector<Transfer>& transfers = rounds[static_cast<std::size_t>(k)];
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const Transfer& t = transfers[i];
      visit(Mutant{Damage::drop, k, i, -1, -1, {}});
      visit(Mutant{Damage::double_at_once, k, i, -1, -1, {t, t}});
      visit(Mutant{Damage::double_later, k, i, -1, -1, {t}});
      const int senders = t.from.size(), receivers = t.to.size(), blocks = t.what.list.size();
      // The first, the middle and the last of many represent all.
      const auto some = [](int count) {
        std::vector<int> out;
        for (const int at : {0, count / 2, count - 1}) {
          if (out.empty() || at > out.back()) out.push_back(at);
        }
        return out;
      };
      for (const int at : some(senders)) {
        for (const Rank r : others(schedule.ranks, t.from, -1)) {
          Transfer instead = t;
          instead.from = changed(t.from, at, r);
          visit(Mutant{Damage::other_sender, k, i, t.from[at], r, {std::move(instead)}});
        }
        if (senders == 1) continue;
        Transfer instead = t;
        instead.from = without(t.from, at);
        visit(Mutant{Damage::drop_sender, k, i, t.from[at], -1, {std::move(instead)}});
      }
      for (const int at : some(receivers)) {
        for (const Rank r : others(schedule.ranks, t.to, -1)) {
          Transfer instead = t;
          instead.to = changed(t.to, at, r);
          visit(Mutant{Damage::other_receiver, k, i, t.to[at], r, {std::move(instead)}});
        }
        if (receivers == 1) continue;
        Transfer instead = t;
        instead.to = without(t.to, at);
        visit(Mutant{Damage::drop_receiver, k, i, t.to[at], -1, {std::move(instead)}});
      }
      for (const int at : some(blocks)) {
        if (schedule.blocks > 1) {
          Transfer instead = t;
          const Block b = (t.what.list[at] + 1) % schedule.blocks;
          instead.what.list = changed(t.what.list, at, b);
          instead.where.list = changed(t.where.list, at, b);
          visit(Mutant{Damage::other_block, k, i, -1, -1, {std::move(instead)}});
        }
        if (blocks == 1) continue;
        Transfer rest = t, single = t;
        rest.what.list = without(t.what.list, at);
        rest.where.list = without(t.where.list, at);
        single.what.list = IndexList(t.what.list[at]);
        single.where.list = IndexList(t.where.list[at]);
        visit(Mutant{Damage::drop_block, k, i, -1, -1, {rest}});
        visit(Mutant{Damage::double_block, k, i, -1, -1, {t, single}});
        for (const Rank r : others(schedule.ranks, t.from, -1)) {
          Transfer other = single;
          other.from = changed(t.from, 0, r);
          visit(Mutant{Damage::other_sender, k, i, t.from[0], r, {rest, std::move(other)}});
        }
        for (const Rank r : others(schedule.ranks, t.to, -1)) {
          Transfer other = single;
          other.to = changed(t.to, 0, r);
          visit(Mutant{Damage::other_receiver, k, i, t.to[0], r, {rest, std::move(other)}});
        }
      }
    }
  }
}

// The contributions to a block that a rank holds when the round begins.
std::vector<Rank> held(const RoundView& before, Rank r, Block b, int plane) {
  for (const HoldingView& holding : before.ranks[static_cast<std::size_t>(r)]) {
    if (holding.block == b && holding.plane == plane) return holding.contributions;
  }
  return {};
}

struct Tally {
  std::int64_t mutants = 0, refuted = 0, misstated = 0, recounted = 0, equivalent = 0;
  std::int64_t told_twice = 0;
};

class Jury {
 public:
  explicit Jury(const SweepResult& base)
      : base_(base),
        line_(*base.algorithm),
        schedule_(line_.make(base.params)),
        goal_(goal_of(line_, base.params, schedule_)),
        rounds_(list_of(schedule_)),
        counts_(count(schedule_)) {
    options_.progress = false;  // mutants do not change the waits
  }

  void run() {
    const auto violation = verify(schedule_, goal_, options_);
    ASSERT_FALSE(violation) << base_.name() << ": " << violation->text;
    const auto untruth = compare_statement(line_, base_.params, goal_, counts_);
    ASSERT_FALSE(untruth) << base_.name() << ": " << *untruth;
    for_each_mutant(schedule_, rounds_, [this](const Mutant& mutant) { judge(mutant); });
  }

  std::map<Damage, Tally> tallies;
  std::vector<std::string> survivors;

 private:
  void judge(const Mutant& mutant) {
    Tally& tally = tallies[mutant.damage];
    ++tally.mutants;
    const Schedule suspect = damaged(schedule_, rounds_, mutant);
    if (verify(suspect, goal_, options_)) {
      ++tally.refuted;
      return;
    }
    const Counts counts = count(suspect);
    if (compare_statement(line_, base_.params, goal_, counts)) {
      ++tally.misstated;
      return;
    }
    // If a line leaves a number to be computed, tools print the number of the schedule.
    if (leaves_numbers_open(line_) && !(counts == counts_)) {
      ++tally.recounted;
      return;
    }
    // If N is not a power of a radix above two, a dissemination reaches some ranks by two ways, and
    // a barrier needs only one of them.
    if (mutant.damage == Damage::drop && is_idempotent(goal_.collective) &&
        base_.params.radix > 2) {
      ++tally.told_twice;
      return;
    }
    const bool is_another_way = mutant.damage == Damage::other_sender ? sends_the_same(mutant)
                                : mutant.damage == Damage::other_receiver
                                    ? mutant.instead.back().kind == TransferKind::reduce
                                    : false;
    if (is_another_way && moves_as_much(counts.total, counts_.total) && !(counts == counts_)) {
      ++tally.equivalent;
      return;
    }
    survivors.push_back(base_.name() + ": " + mutant.text());
  }

  static bool leaves_numbers_open(const Algorithm& entry) {
    return entry.sent == kComputed || entry.received == kComputed ||
           entry.send_ports == kComputed || entry.receive_ports == kComputed;
  }

  // Compares blocks, not messages: a block that is redirected alone is a further message.
  static bool moves_as_much(const RankCounts& a, const RankCounts& b) {
    return a.sent == b.sent && a.received == b.received;
  }

  bool sends_the_same(const Mutant& mutant) {
    if (is_idempotent(goal_.collective)) return true;
    if (views_.empty()) views_ = view_rounds(schedule_, goal_);
    const RoundView& before = views_[static_cast<std::size_t>(mutant.round)];
    bool same = true;
    mutant.instead.back().what.list.for_each([&](Block b) {
      const int plane = mutant.instead.back().what.plane;
      same = same && held(before, mutant.was, b, plane) == held(before, mutant.now, b, plane);
    });
    return same;
  }

  const SweepResult& base_;
  const Algorithm& line_;
  const Schedule schedule_;
  const CollectiveSpec goal_;
  const TransferList rounds_;
  const Counts counts_;
  VerifyOptions options_;
  std::vector<RoundView> views_;
};

TEST(Mutation, EveryDamageShows) {
  SweepOptions options;
  options.ranks_from = 2;
  options.ranks_to = 9;
  std::vector<SweepResult> cases = sweep_cases(options);
  options.values = {{"segments", {"1", "2"}}, {"group", {"0"}}, {"aggregation", {"0"}}};
  for (const int n : {12, 16}) {
    options.ranks_from = options.ranks_to = n;
    for (SweepResult& one : sweep_cases(options)) cases.push_back(std::move(one));
  }
  std::vector<SweepResult> some;
  const Sample sample("damaged schedules", 12);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (sample.has(i)) some.push_back(std::move(cases[i]));
  }
  // The longest first, so that no core is left with one at the end.
  cases.assign(some.rbegin(), some.rend());

  std::mutex mutex;
  std::map<Damage, Tally> tallies;
  std::map<std::string, std::int64_t> equivalents;
  std::vector<std::string> survivors;
  parallel_for(cases.size(), [&](std::size_t i) {
    Jury jury(cases[i]);
    jury.run();
    const std::lock_guard lock(mutex);
    for (const auto& [damage, tally] : jury.tallies) {
      tallies[damage].mutants += tally.mutants;
      tallies[damage].refuted += tally.refuted;
      tallies[damage].misstated += tally.misstated;
      tallies[damage].recounted += tally.recounted;
      tallies[damage].equivalent += tally.equivalent;
      tallies[damage].told_twice += tally.told_twice;
      if (tally.equivalent > 0) {
        equivalents[std::string(name_of(cases[i].algorithm->collective)) + " " +
                    std::string(cases[i].algorithm->name)] += tally.equivalent;
      }
    }
    survivors.insert(survivors.end(), jury.survivors.begin(), jury.survivors.end());
  });

  std::cout << cases.size() << " schedules\n";
  for (const auto& [damage, name] : kDamages) {
    const Tally& tally = tallies[damage];
    std::cout << "  " << name << ": " << tally.mutants << " mutants, " << tally.refuted
              << " refuted, " << tally.misstated << " misstated, " << tally.recounted
              << " recounted, " << tally.equivalent << " equivalent\n";
    if (damage != Damage::other_sender && damage != Damage::other_receiver) {
      EXPECT_EQ(tally.equivalent, 0) << name;
    }
  }
  if (budget_is_all()) {
    EXPECT_GT(tallies[Damage::drop].told_twice, 0) << "the exception has no case";
  }
  EXPECT_LT(tallies[Damage::drop].told_twice, tallies[Damage::drop].mutants / 300);
  for (const auto& [name, number] : equivalents) {
    std::cout << "  equivalent redirections of " << name << ": " << number << "\n";
  }
  std::sort(survivors.begin(), survivors.end());
  EXPECT_EQ(survivors.size(), 0u);
  for (std::size_t i = 0; i < std::min<std::size_t>(survivors.size(), 40); ++i) {
    ADD_FAILURE() << survivors[i];
  }
}

}  // namespace
}  // namespace rankine
