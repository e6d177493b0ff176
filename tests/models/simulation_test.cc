// Thousands of runs of the whole executor, each from a seed: random calls of the catalogue's
// algorithms and of random schedules, on mailboxes and directly, with stalls, deaths, departures,
// aborts and disagreements. In every run each surviving rank ends in time, with the right data or
// with an error that the fault allows.
//
// RANKINE_TEST_SEED=n replays run n. RANKINE_TEST_SEEDS=n runs n seeds; the budget sets the
// default.

#include <gtest/gtest.h>

#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/compile/lower.h"
#include "tests/budget.h"
#include "tests/engine/run/random.h"
#include "tests/engine/run/random_call.h"
#include "tests/engine/run/replay.h"
#include "tests/engine/run/test_team.h"
#include "tests/models/simulator.h"

namespace rankine::model {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

enum class Trouble : std::uint8_t { none, hiccup, stall, death, departure, abort, mismatch };
constexpr const char* kTroubles[] = {"no fault",    "a hiccup", "a stall",       "a death",
                                     "a departure", "an abort", "a disagreement"};

struct Life {
  std::string fault;  // empty: the run was right
  std::string text;   // describes the run
  std::uint64_t trace = 0;
  Trouble trouble = Trouble::none;
  std::set<Code> codes;  // results of the ranks
  std::size_t calls = 0;
};

// The faults that a test plants.
struct Planted {
  bool wakes = true;
  std::string relaxed_in{};
  LowerOptions::Mutant mutant = LowerOptions::Mutant::none;
  bool one_half = false;  // boards with one half only
};

const Algorithm* pick_algorithm(Random& random, int ranks) {
  if (random.one_in(3)) return nullptr;  // use a random schedule
  for (;;) {
    const auto which = static_cast<std::size_t>(random.below(static_cast<int>(catalogue().size())));
    const Algorithm& algorithm = catalogue()[which];
    Params params{.ranks = ranks};
    if (!algorithm.refusal(params)) return &algorithm;
  }
}

Life live(std::uint64_t seed, const Planted& planted = {}) {
  Life result;
  Random random(seed);
  int ranks = random.between(2, 9);
  if (random.one_in(100)) ranks = 16;
  if (random.one_in(400)) ranks = 33;
  const bool large = ranks > 9;
  const std::size_t slot_payload = random.pick(std::vector<std::size_t>{8, 48, 112});
  std::vector<TestCall> made;
  for (int i = random.between(1, large ? 1 : 3); i > 0; --i) {
    made.push_back(random_call(random, {.ranks = ranks,
                                        .slot_payload = slot_payload,
                                        .most_elements = random.pick(std::vector<int>{8, 40, 200}),
                                        .mutant = planted.mutant,
                                        .algorithm = pick_algorithm(random, ranks)}));
    result.text += "\n  " + made.back().text;
    if (made.back().before.empty()) {
      result.fault = "no plan";
      return result;
    }
  }
  std::vector<const TestCall*> calls;
  for (const TestCall& call : made) calls.push_back(&call);
  for (int i = large ? 0 : random.below(4); i > 0; --i) calls.push_back(&random.pick(made));

  result.trouble = random.one_in(3) ? Trouble::none : static_cast<Trouble>(random.between(1, 6));
  const Trouble trouble = result.trouble;
  if (trouble == Trouble::mismatch && calls.size() < 2) calls.push_back(calls.front());
  const auto victim = static_cast<std::size_t>(random.below(ranks));
  const auto where = static_cast<std::size_t>(random.below(static_cast<int>(calls.size())));
  const auto at = static_cast<std::uint64_t>(random.below(30));
  const std::int64_t timeout = random.pick(std::vector<std::int64_t>{300'000'000, 5 * kSecond});

  TestTeam* team = nullptr;
  Simulator::Options options{
      .seed = seed, .wakes = planted.wakes, .relaxed_in = planted.relaxed_in};
  // Ranks must look about, because an ending thread sends no signal, and no wake_futex rings when a
  // peer enters another call.
  options.looks_about =
      trouble == Trouble::death || trouble == Trouble::mismatch || random.one_in(2);
  if (!planted.wakes) options.looks_about = false;
  std::set<Code> allowed;
  using Kind = Simulator::Fault::Kind;
  switch (trouble) {
    case Trouble::none:
    case Trouble::departure:
    case Trouble::mismatch:
      break;
    case Trouble::hiccup:
      options.faults.push_back({.kind = Kind::stall,
                                .thread = victim,
                                .at = at,
                                .ns = timeout / random.between(2, 1000)});
      break;
    case Trouble::stall:
      options.faults.push_back(
          {.kind = Kind::stall, .thread = victim, .at = at, .ns = 2 * timeout});
      break;
    case Trouble::death:
      options.faults.push_back({.kind = Kind::die, .thread = victim, .at = at});
      break;
    case Trouble::abort: {
      const bool in_signal = random.one_in(2);
      options.faults.push_back(
          {.kind = Kind::act, .thread = victim, .at = at, .act = [&team, in_signal] {
             RankControl& rank_control = team->rank_control();
             in_signal ? rank_control.abort_now()
                       : rank_control.abort({Code::aborted, "by the test"});
           }});
      break;
    }
  }
  if (trouble == Trouble::stall) allowed = {Code::timeout};
  if (trouble == Trouble::death || trouble == Trouble::departure) allowed = {Code::rank_lost};
  if (trouble == Trouble::abort) allowed = {Code::aborted};
  // If a rank finishes its wrong call before any rank looks, the others wait until the timeout.
  if (trouble == Trouble::mismatch) allowed = {Code::mismatch, Code::timeout};

  Simulator simulator(options);
  TestTeam own(
      {.ranks = ranks,
       .policy = random_policy(random),
       .timeout_ns = timeout,
       .first_count = random.one_in(3) ? 0U - static_cast<std::uint32_t>(random.below(9)) : 0U,
       .slot_payload = slot_payload,
       .strict = random.one_in(2),
       .one_half = planted.one_half,
       .choose = [&](std::size_t r, std::size_t i) -> std::optional<std::size_t> {
         if (r != victim || i != where) return i;
         if (trouble == Trouble::departure) return std::nullopt;
         return trouble == Trouble::mismatch ? (i + 1) % calls.size() : i;
       },
       .launch =
           [&](std::vector<std::function<void()>> bodies) { simulator.run(std::move(bodies)); }});
  team = &own;
  own.run(calls, seed);
  result.trace = simulator.trace();
  result.text = std::to_string(ranks) + " ranks, " + kTroubles[static_cast<int>(trouble)] +
                " of rank " + std::to_string(victim) + " at call " + std::to_string(where) +
                " or op " + std::to_string(at) + ", timeout " +
                std::to_string(timeout / 1'000'000) + " ms" + result.text;

  const auto complain = [&](std::size_t r, const std::string& what) {
    if (result.fault.empty()) result.fault = "rank " + std::to_string(r) + ": " + what;
  };
  result.fault = simulator.race();
  for (std::size_t r = 0; r < own.endings().size(); ++r) {
    const TestTeam::Ending& ending = own.endings()[r];
    result.calls += ending.calls;
    result.codes.insert(ending.status.code());
    if (!ending.wrong_data.empty()) complain(r, "wrong data: " + ending.wrong_data);
    const bool is_victim = r == victim && trouble != Trouble::none;
    if (!ending.status.ok() && !allowed.contains(ending.status.code())) {
      complain(r, std::string(name_of(ending.status.code())) + ": " + ending.status.text());
    }
    const bool may_stop = is_victim && (trouble == Trouble::death || trouble == Trouble::departure);
    if (ending.status.ok() && ending.calls != calls.size() && !may_stop) {
      complain(r, "stopped after " + std::to_string(ending.calls) + " calls");
    }
    if (!is_victim && ending.slowest_ns > timeout + kSecond) {
      complain(r, "a call took " + std::to_string(ending.slowest_ns) + " ns");
    }
  }
  return result;
}

std::string replay(std::uint64_t seed) {
  return "\nreplay with: bazel test //tests/models:simulation_test --test_env=RANKINE_TEST_SEED=" +
         std::to_string(seed);
}

TEST(Simulation, EveryRunEndsWellOrWithOneReason) {
  const auto only = number_from_environment("RANKINE_TEST_SEED");
  const int usual = affordable(static_cast<int>(budgeted(2'000, 10'000)));
  const auto seeds = only ? 1
                          : static_cast<int>(number_from_environment("RANKINE_TEST_SEEDS")
                                                 .value_or(static_cast<std::uint64_t>(usual)));
  std::size_t calls = 0, troubled[7] = {}, failed[7] = {};
  for (int i = 0; i < seeds; ++i) {
    const std::uint64_t seed = only.value_or(static_cast<std::uint64_t>(i) + 1);
    const Life result = live(seed);
    ASSERT_EQ(result.fault, "") << result.text << replay(seed);
    calls += result.calls;
    const auto trouble = static_cast<std::size_t>(result.trouble);
    ++troubled[trouble];
    const bool all_ok = result.codes.size() == 1 && result.codes.contains(Code::ok);
    failed[trouble] += all_ok ? 0 : 1;
    if (only) std::printf("%s\n", result.text.c_str());
  }
  std::printf("%zu calls completed by ranks\n", calls);
  for (std::size_t t = 0; t < 7; ++t) {
    std::printf("%s: %zu runs, %zu of them with an error\n", kTroubles[t], troubled[t], failed[t]);
    // A fault kind that never causes an error tests nothing.
    if (only || seeds < 1000 || t < static_cast<std::size_t>(Trouble::stall)) continue;
    EXPECT_GT(failed[t], troubled[t] / 10) << kTroubles[t];
  }
}

TEST(Simulation, ASeedReplaysItsRun) {
  std::set<std::uint64_t> different;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Life first = live(seed), second = live(seed);
    ASSERT_EQ(first.trace, second.trace) << "seed " << seed;
    ASSERT_EQ(first.text, second.text);
    ASSERT_EQ(first.calls, second.calls);
    different.insert(first.trace);
  }
  EXPECT_EQ(different.size(), 100U);
}

// The first fault that planted errors cause within 300 seeds; empty: none.
std::string first_fault(const Planted& planted) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Life result = live(seed, planted);
    if (!result.fault.empty()) return "seed " + std::to_string(seed) + ", " + result.fault;
  }
  return {};
}

TEST(Simulation, FindsWhatIsPlanted) {
  using Mutant = LowerOptions::Mutant;
  const struct {
    const char* name;
    Planted planted;
  } plants[] = {{"wake-ups are lost", {.wakes = false}},
                {"a publication is relaxed", {.relaxed_in = "rankine::publish("}},
                {"a look at a word is relaxed", {.relaxed_in = "rankine::wait_until("}},
                {"every third wait for progress is left out", {.mutant = Mutant::dropped_wait}},
                {"messages are given back before they are used", {.mutant = Mutant::early_release}},
                {"nobody waits for readers", {.mutant = Mutant::no_write_after_read}},
                {"calls end before peers have read", {.mutant = Mutant::no_exit_waits}},
                {"boards have one half", {.one_half = true}}};
  for (const auto& [name, planted] : plants) {
    const std::string found = first_fault(planted);
    EXPECT_NE(found, "") << name;
    std::printf("%s: %s\n", name, found.c_str());
  }
}

// Mutants on simulated threads, which run the real interpreter; only mutants that stay inside their
// memory. The simulator reports every conflicting access regardless of timing, and a run that is
// stuck reaches its deadline at once.

TEST(Mutants, EachIsNoticedByTheSimulator) {
  expect_all_noticed(true, [](const Session& session, Random& random, bool one_half) {
    Simulator simulator({.seed = random.next()});
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .timeout_ns = 200'000'000,
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .one_half = one_half,
                   .launch = [&](std::vector<std::function<void()>> bodies) {
                     simulator.run(std::move(bodies));
                   }});
    const std::string fault = team.run(session.calls, random.next());
    return fault.empty() ? simulator.race() : fault;
  });
}

// The simulator reports nothing without the mutants.
TEST(Mutants, OfPlansAsTheyAreNothingIsNoticed) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    const Session session = random_session(random, {.calls = {.ranks = 9}});
    Simulator simulator({.seed = seed});
    TestTeam team({.ranks = session.ranks,
                   .policy = random_policy(random),
                   .first_count = session.first_count,
                   .slot_payload = session.slot_payload,
                   .launch = [&](std::vector<std::function<void()>> bodies) {
                     simulator.run(std::move(bodies));
                   }});
    EXPECT_EQ(team.run(session.calls, seed), "") << "seed " << seed;
    EXPECT_EQ(simulator.race(), "") << "seed " << seed;
  }
}

}  // namespace
}  // namespace rankine::model
