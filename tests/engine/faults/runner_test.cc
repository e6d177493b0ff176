// The runner must count broken promises: planted hangs, deaths, wrong successes, undocumented
// errors, damage and lateness. The signals and cycles of faults among processes are tested too.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "tests/testing.h"

namespace rankine::faults {
namespace {

const CollectiveCase kCall{.collective = Collective::all_reduce, .ranks = 3, .count = 9};

void play_well(const FaultCase&, Dice&, const CollectiveCase&, Tally&) {}

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

void play_hang(const FaultCase&, Dice&, const CollectiveCase&, Tally&) { hang(); }

// A call hangs on all ranks while another thread waits for it.
void play_hanging_call(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
  RankFixture scene(test, {}, tally);
  AtRound stuck(0, [] {
    hang();
    return true;
  });
  scene.run(
      [&](Seat& seat) { seat.call(kCall, {.observer = seat.rank() == 1 ? &stuck : nullptr}); });
}

void play_death(const FaultCase&, Dice&, const CollectiveCase&, Tally&) { raise(SIGSEGV); }
void play_exit(const FaultCase&, Dice&, const CollectiveCase&, Tally&) { _exit(7); }
void play_exception(const FaultCase&, Dice&, const CollectiveCase&, Tally&) {
  throw std::runtime_error("out of luck");
}

// One bit of one rank's result is changed before the check.
void play_wrong_success(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
  RankFixture scene(test, {}, tally);
  scene.run([&](Seat& seat) {
    seat.call(kCall, {.returned = [&] {
                if (seat.rank() == 1) static_cast<unsigned char*>(seat.buffers.out())[3] ^= 1;
              }});
  });
}

// A byte after the result is changed.
void play_damage(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
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
void play_touched(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
  RankFixture scene(test, {.documented = {Code::invalid_argument}}, tally);
  scene.run([&](Seat& seat) {
    seat.call(kCall,
              {.spoil = [](Call& call) { call.in = nullptr; },
               .returned = [&] { static_cast<unsigned char*>(seat.buffers.out())[0] ^= 1; }});
  });
}

void play_undocumented(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
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
void play_late(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
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

void play_impossible(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
  Judge(test, {}, tally).excuse("the moon is wrong");
}

Fault planted(Play* play) {
  return {.number = 99, .name = "planted", .what = "planted", .how = "planted", .play = play};
}

// Runs the planted case between two good ones in one process; the last one shows that the runner
// goes on.
Tally run(Play* play) {
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

struct Planted {
  Play* play;
  std::int64_t Tally::*count;
  std::int64_t broken;
  const char* words;
};

TEST(Runner, CountsEveryBrokenPromise) {
  for (const auto& [play, count, broken, words] :
       {Planted{play_hang, &Tally::hangs, 1, "no call has come to its end for 2 s"},
        Planted{play_hanging_call, &Tally::hangs, 1, "all_reduce among 3 ranks, seed 2"},
        Planted{play_death, &Tally::undocumented, 1, ""},  // signal 11; a sanitizer exits
        Planted{play_exit, &Tally::undocumented, 1, "exit 7"},
        Planted{play_exception, &Tally::undocumented, 1, "out of luck"},
        Planted{play_wrong_success, &Tally::wrong, 1, "rank 1, all_reduce"},
        Planted{play_damage, &Tally::wrong, 1, "aborted, but byte"},
        Planted{play_touched, &Tally::wrong, 3, ""},
        Planted{play_undocumented, &Tally::undocumented, 3, "undocumented aborted: now"},
        Planted{play_late, &Tally::late, 1, ""}}) {  // the rank at fault is excused
    const Tally tally = run(play);
    EXPECT_EQ(tally.*count, broken) << words;
    EXPECT_EQ(tally.broken(), broken) << words;
    EXPECT_EQ(tally.cases, 1);
    EXPECT_TRUE(says(tally, words)) << words;
  }
}

TEST(Runner, SaysWhatCannotBeDoneHere) {
  const Tally tally = run(play_impossible);
  EXPECT_EQ(tally.impossible, 1);
  EXPECT_EQ(tally.why_impossible, "the moon is wrong");
  EXPECT_EQ(tally.broken(), 0);
}

// The list contains exactly the signals that end a process, according to the kernel, in one child
// per signal.
TEST(FatalSignals, AreAllThatEndAProcess) {
  const auto ends_a_process = [](int signal) {
    const ChildProcess child([signal] {
      const rlimit no_core{};
      setrlimit(RLIMIT_CORE, &no_core);
      sigset_t all;
      sigemptyset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
      std::signal(signal, SIG_DFL);
      kill(getpid(), signal);  // the signal arrives before kill() returns
      return 0;
    });
    siginfo_t end{};
    waitid(P_PID, static_cast<id_t>(child.id()), &end, WEXITED | WSTOPPED | WNOWAIT);
    return (end.si_code == CLD_KILLED || end.si_code == CLD_DUMPED) && end.si_status == signal;
  };
  const auto listed = fatal_signals();
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool is_ours = signal < 32 || signal >= SIGRTMIN;  // glibc uses the others itself
    const bool is_in = std::find(listed.begin(), listed.end(), signal) != listed.end();
    const bool is_alike = signal > SIGRTMIN && signal < SIGRTMAX;
    if (!is_ours || is_alike) continue;
    EXPECT_EQ(ends_a_process(signal), is_in) << strsignal(signal);
  }
}

// A case has at most a hundred cycles, and the cases together have all of them.
TEST(Cycles, AreAsManyAsAreAskedFor) {
  for (const int wanted : {1, 100, 101, 1000}) {
    Selection selection;
    selection.faults = {&rankine::faults::faults()[43]};
    selection.ranks = {4};
    selection.processes = true;
    selection.cycles = wanted;
    int all = 0;
    std::set<std::uint64_t> seeds;
    for (const FaultCase& test : cases_of(selection)) {
      EXPECT_LE(test.cycles, kMostCycles);
      all += test.cycles;
      EXPECT_TRUE(seeds.insert(test.seed).second);
    }
    EXPECT_EQ(all, wanted);
  }
}

// The faults inspect every warning. The table is read once per process, so the process must be
// new.
TEST(UsersTuningTable, IsNoPartOfAnyFault) {
  const char* const given = std::getenv("RANKINE_TUNING");
  const std::string before = given != nullptr ? given : "";
  setenv("RANKINE_TUNING", "/no/such/table.json", 1);
  Selection selection;
  for (const int number : {18, 19, 20, 21}) {
    selection.faults.push_back(&rankine::faults::faults()[static_cast<std::size_t>(number - 1)]);
  }
  selection.ranks = {2};
  clock_of_promises = [] { return std::int64_t{0}; };
  const auto results = run_cases(cases_of(selection));
  given != nullptr ? setenv("RANKINE_TUNING", before.c_str(), 1) : unsetenv("RANKINE_TUNING");
  ASSERT_TRUE(results.ok()) << results.status().text();
  for (const CaseResult& result : *results) {
    EXPECT_EQ(result.tally.broken(), 0) << to_string(result.test);
    for (const std::string& remark : result.tally.remarks) ADD_FAILURE() << remark;
  }
}

}  // namespace
}  // namespace rankine::faults
