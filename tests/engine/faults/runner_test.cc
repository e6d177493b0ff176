// The runner must count broken promises: planted hangs, deaths, wrong successes, undocumented
// errors, damage and lateness.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"

namespace rankine::faults {
namespace {

const CollectiveCase kCall{.collective = Collective::all_reduce, .ranks = 3, .count = 9};

void play_well(const FaultCase& test, Tally& tally) { fresh_start(test, kCall, tally); }

// Set by a hanging case in the process that plays it; only then does the watcher's time pass.
std::atomic<bool>& hangs() {
  static auto* const shared =
      new (mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<bool>(false);
  return *shared;
}

void hang() {
  hangs().store(true);
  for (;;) pause();
}

void play_hang(const FaultCase&, Tally&) { hang(); }

// A call hangs on all ranks while another thread waits for it.
void play_hanging_call(const FaultCase& test, Tally& tally) {
  RankFixture scene(test, {}, tally);
  AtRound stuck(0, [] {
    hang();
    return true;
  });
  scene.run(
      [&](Seat& seat) { seat.call(kCall, {.observer = seat.rank() == 1 ? &stuck : nullptr}); });
}

void play_death(const FaultCase&, Tally&) { raise(SIGSEGV); }
void play_exit(const FaultCase&, Tally&) { _exit(7); }
void play_exception(const FaultCase&, Tally&) { throw std::runtime_error("out of luck"); }

// One bit of one rank's result is changed before the check.
void play_wrong_success(const FaultCase& test, Tally& tally) {
  RankFixture scene(test, {}, tally);
  scene.run([&](Seat& seat) {
    seat.call(kCall, {.returned = [&] {
                if (seat.rank() == 1) static_cast<unsigned char*>(seat.buffers.out())[3] ^= 1;
              }});
  });
}

// A byte after the result is changed.
void play_damage(const FaultCase& test, Tally& tally) {
  RankFixture scene(test, {.documented = {Code::aborted}}, tally);
  AtRound abort(0, [&] {
    scene.communicator().abort("now");
    return true;
  });
  scene.run([&](Seat& seat) {
    seat.call(kCall, {.observer = &abort, .returned = [&] {
                        if (seat.rank() != 2) return;
                        static_cast<unsigned char*>(seat.buffers.out())[kCall.count * 4] ^= 1;
                      }});
  });
}

// The result of a refused call is changed.
void play_touched(const FaultCase& test, Tally& tally) {
  RankFixture scene(test, {.documented = {Code::invalid_argument}}, tally);
  scene.run([&](Seat& seat) {
    seat.call(kCall,
              {.spoil = [](Call& call) { call.in = nullptr; },
               .returned = [&] { static_cast<unsigned char*>(seat.buffers.out())[0] ^= 1; }});
  });
}

void play_undocumented(const FaultCase& test, Tally& tally) {
  RankFixture scene(test, {.documented = {Code::timeout}}, tally);
  AtRound abort(0, [&] {
    scene.communicator().abort("now");
    return true;
  });
  scene.run([&](Seat& seat) { seat.call(kCall, {.observer = &abort}); });
}

// The time that a rank of play_late() reads.
thread_local std::int64_t time_of_this_rank = 0;

// One call takes all of its permitted time, one takes longer, and one longer call is excused.
void play_late(const FaultCase& test, Tally& tally) {
  constexpr std::int64_t kMostNs = std::chrono::nanoseconds(kLong).count() + kGraceNs;
  clock_of_promises = [] { return time_of_this_rank; };
  RankFixture scene(test, {}, tally);
  AtRound just_in_time(0, [&] { return (time_of_this_rank += kMostNs) > 0; });
  AtRound slow(0, [&] { return (time_of_this_rank += kMostNs + 1) > 0; });
  scene.run([&](Seat& seat) {
    const bool is_slow = seat.rank() > 0;
    seat.call(kCall, {.observer = is_slow ? &slow : &just_in_time, .excused = seat.rank() == 1});
  });
}

void play_impossible(const FaultCase& test, Tally& tally) {
  Judge(test, {}, tally).excuse("the moon is wrong");
}

Fault planted(void (*play)(const FaultCase&, Tally&)) {
  return {99, "planted", "planted", "planted", {}, Grain::collective, false, nullptr, play};
}

// Runs the planted case between two good ones in one process; the last one shows that the runner
// goes on.
Tally run(void (*play)(const FaultCase&, Tally&)) {
  const Fault good = planted(play_well), bad = planted(play);
  const std::vector<FaultCase> cases = {{&good, Collective::all_reduce, nullptr, 3, 1},
                                        {&bad, Collective::all_reduce, nullptr, 3, 2},
                                        {&good, Collective::all_reduce, nullptr, 3, 3}};
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t now = 0;
  hangs().store(false);
  const auto results =
      run_cases(cases, {.jobs = 1,
                        .patience_ns = 2 * kSecond,
                        .clock = [&now] { return now += hangs().load() ? kSecond : 0; },
                        .progress = [](std::size_t, const FaultCase&) { hangs().store(false); }});
  EXPECT_TRUE(results.ok()) << results.status().text();
  if (!results.ok()) return {};
  for (const std::size_t i : {0, 2}) {
    EXPECT_EQ((*results)[i].tally.broken(), 0);
    EXPECT_EQ((*results)[i].tally.returned[0], 3);
    EXPECT_EQ((*results)[i].test.seed, i + 1);
  }
  return (*results)[1].tally;
}

bool says(const Tally& tally, const std::string& words) {
  for (const std::string& remark : tally.remarks) {
    if (remark.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(Runner, KillsAndCountsWhatHangs) {
  for (const auto play : {play_hang, play_hanging_call}) {
    const Tally tally = run(play);
    EXPECT_EQ(tally.hangs, 1);
    EXPECT_EQ(tally.cases, 1);
    EXPECT_EQ(tally.broken(), 1);
    EXPECT_TRUE(says(tally, "no call has come to its end for 2 s"));
    EXPECT_TRUE(says(tally, "all_reduce among 3 ranks, seed 2"));
  }
}

TEST(Runner, CountsDeathsAndExceptions) {
  const Tally death = run(play_death);
  EXPECT_EQ(death.undocumented, 1);
  EXPECT_EQ(death.broken(), 1);
  EXPECT_TRUE(says(death, "signal 11") || says(death, "exit code"));  // a sanitizer exits
  const Tally exit = run(play_exit);
  EXPECT_EQ(exit.undocumented, 1);
  EXPECT_TRUE(says(exit, "exit code 7"));
  const Tally thrown = run(play_exception);
  EXPECT_EQ(thrown.undocumented, 1);
  EXPECT_TRUE(says(thrown, "out of luck"));
}

TEST(Runner, CountsWrongSuccessesAndDamage) {
  const Tally wrong = run(play_wrong_success);
  EXPECT_EQ(wrong.wrong, 1);
  EXPECT_EQ(wrong.broken(), 1);
  EXPECT_TRUE(says(wrong, "rank 1, all_reduce"));
  const Tally damage = run(play_damage);
  EXPECT_EQ(damage.wrong, 1);
  EXPECT_EQ(damage.broken(), 1);
  EXPECT_TRUE(says(damage, "aborted, but byte"));
  const Tally touched = run(play_touched);
  EXPECT_EQ(touched.wrong, 3);
  EXPECT_EQ(touched.broken(), 3);
}

TEST(Runner, CountsWhatIsNotDocumented) {
  const Tally tally = run(play_undocumented);
  EXPECT_EQ(tally.undocumented, 3);
  EXPECT_EQ(tally.broken(), 3);
  EXPECT_TRUE(says(tally, "undocumented aborted: now"));
}

TEST(Runner, CountsLatenessButOfRanksAtFault) {
  const Tally tally = run(play_late);
  EXPECT_EQ(tally.late, 1);
  EXPECT_EQ(tally.broken(), 1);
}

TEST(Runner, SaysWhatCannotBeDoneHere) {
  const Tally tally = run(play_impossible);
  EXPECT_EQ(tally.impossible, 1);
  EXPECT_EQ(tally.why_impossible, "the moon is wrong");
  EXPECT_EQ(tally.broken(), 0);
}

}  // namespace
}  // namespace rankine::faults
