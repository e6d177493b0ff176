// Fault families of threads and forks: refused threads, forked processes, and exit().
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/team.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/machine.h"
#include "numa/cpus.h"

namespace rankine::faults {
namespace {

int threads_of_this_process() {
  int threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads += entry.exists() ? 1 : 0;
  }
  return threads;
}

// Ranks are processes: the system refuses one of them its helper thread for started calls.
void refuse_a_helper(const FaultCase& test, const CollectiveCase& call, Rank victim, Tally& tally) {
  std::optional<Limit> none;
  RankFixture fixture(test, {.at_once = true, .documented = {Code::system}}, tally,
                      {.before_meeting =
                           [&](Rank rank) {
                             if (rank != victim) return;
                             none.emplace(RLIMIT_NPROC, 0);
                             fixture.judge().mark_fault();
                           },
                       .after_meeting = [&](Rank) { none.reset(); },
                       .asks_for =
                           [&](Rank rank, CommunicatorOptions& options) {
                             if (rank == victim) options.progress_core = allowed_cpus().front();
                           }});
  fixture.run([&](Seat& seat) {
    fixture.judge().blame("a helper thread was made although threads are refused");
    seat.call(call);
  });
}

}  // namespace

void inject_thread_creation(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                            Tally& tally) {
  Judge judge(test, {.documented = {Code::system}}, tally);
  // The limit counts a user's threads, and not the superuser's: become a user without processes.
  const auto nobody = static_cast<uid_t>(200'000 + getpid());
  if (geteuid() == 0 && setresuid(nobody, nobody, nobody) != 0) {
    judge.excuse(std::string("setresuid: ") + std::strerror(errno));
    return;
  }
  if (test.processes) return refuse_a_helper(test, call, dice.below(test.ranks), tally);
  const bool is_alone = geteuid() == nobody;
  const int threads = threads_of_this_process();
  // Numbers of the team's threads that the limit allows. If the user has other processes: only 0.
  std::set<int> rooms = {0};
  if (is_alone) rooms.insert({1, test.ranks / 2, test.ranks - 1});
  for (const int room : rooms) {
    if (room >= test.ranks) continue;
    const auto team = [&] {
      const Limit limit(RLIMIT_NPROC, is_alone ? static_cast<rlim_t>(threads + room) : 0);
      return Team::create(team_options(test));
    }();
    if (judge.answer(team.status())) {
      judge.blame("a team of " + std::to_string(test.ranks) + " threads was made; allowed is " +
                  std::to_string(room));
    }
    const int left = threads_of_this_process();
    if (left != threads) judge.blame(std::to_string(left - threads) + " threads stay behind");
  }
}

namespace {

// Checks the inherited communicator in a forked child: calls must return Code::forked at once, and
// a new communicator must work. Returns 0, or one bit per broken promise.
int live_as_a_child(const FaultCase& test, const CollectiveCase& call, RankFixture& fixture) {
  int failed = 0;
  const std::int64_t begin_ns = clock_of_promises();
  for (Seat& seat : fixture.seats()) {
    CaseBuffers buffers;
    buffers.fill(call, seat.rank());
    if (seat.member->call(call_of(call, buffers)).code() != Code::forked) failed |= 1;
    if (!buffers.check_untouched().empty()) failed |= 2;
    seat.member.reset();
  }
  if (fixture.communicator().health().code() != Code::forked) failed |= 4;
  if (clock_of_promises() - begin_ns > kGraceNs) failed |= 8;
  Tally mine;
  fresh_start(test, call, mine);
  if (mine.broken() != 0) failed |= 16;
  return failed;
}

// Waits for the child, for a minute at most, and then kills it. Returns true if it ended with
// `code`.
bool expect_exit(ChildProcess child, int code, Judge& judge) {
  if (!child.runs()) {
    judge.excuse(std::string("fork: ") + std::strerror(errno));
    return false;
  }
  const int status = child.wait(std::chrono::minutes(1)).value_or(SIGKILL);
  if (WIFEXITED(status) && WEXITSTATUS(status) == code) return true;
  judge.blame("the child ended with " + describe_end(status));
  return false;
}

// Ranks are processes: one forks between two calls, as a program does to start another program.
void fork_in_a_rank(const FaultCase& test, const CollectiveCase& call, Rank forks, Tally& tally) {
  RankFixture fixture(test, {}, tally);
  fixture.run([&](Seat& seat) {
    if (!seat.call(call)) return;
    if (seat.rank() == forks) {
      if (expect_exit(ChildProcess([&] { return live_as_a_child(test, call, fixture); }), 0,
                      fixture.judge())) {
        fixture.judge().answer(Status(Code::forked, ""), {{Code::forked}});
      }
    }
    seat.call(call);
  });
}

}  // namespace

void inject_fork(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  if (kThreadSanitizer) {
    Judge(test, {}, tally).excuse("the thread sanitizer allows no threads in a forked child");
    return;
  }
  const bool between_calls = dice.one_in(2);
  if (test.processes) return fork_in_a_rank(test, call, dice.below(test.ranks), tally);
  RankFixture fixture(test, {}, tally);
  if (!fixture.works()) return;
  fixture.run([&](Seat& seat) { seat.call(call); });
  ChildProcess child;
  const auto start_child = [&] {
    child = ChildProcess([&] { return live_as_a_child(test, call, fixture); });
  };
  if (between_calls) start_child();
  // If not between calls, a thread that is no rank forks in the midst of them.
  fixture.run([&](Seat& seat) { seat.call_often(20, call); },
              [&] {
                if (!between_calls) start_child();
              });
  if (expect_exit(std::move(child), 0, fixture.judge())) {
    fixture.judge().answer(Status(Code::forked, ""), {{Code::forked}});  // for each rank there
  }
}

namespace {

// The child's one thread has made calls as a rank of the parent. Now it is a rank of a new
// communicator, and lets the other ranks wait longer than their interval of looking for dead ranks.
int be_a_rank_anew(const FaultCase& test, const CollectiveCase& call, Rank rank) {
  Tally mine;
  FaultCase alone = test;
  alone.processes = false;  // its ranks are threads, even if the parent's are processes
  {
    RankFixture fixture(alone, {}, mine);
    AtRound late(0, [] {
      sleep_ns(3 * look_about_ns());
      return true;
    });
    fixture.run(
        [&](Seat& seat) {
          if (seat.rank() != rank) seat.call(call);
        },
        [&] {
          if (fixture.works()) {
            fixture.seats()[static_cast<std::size_t>(rank)].call(call, {.observer = &late});
          }
        });
  }
  for (const std::string& remark : mine.remarks) std::fprintf(stderr, "%s\n", remark.c_str());
  return mine.broken() != 0 ? 1 : 0;
}

}  // namespace

void inject_fork_after_calls(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                             Tally& tally) {
  if (kThreadSanitizer) {
    Judge(test, {}, tally).excuse("the thread sanitizer allows no threads in a forked child");
    return;
  }
  const Rank forks = dice.below(test.ranks);
  RankFixture fixture(test, {}, tally);
  fixture.run([&](Seat& seat) {
    if (!seat.call(call) || seat.rank() != forks) return;
    expect_exit(ChildProcess([&] { return be_a_rank_anew(test, call, forks); }), 0,
                fixture.judge());
  });
}

namespace {

std::atomic<bool> stands_still{false}, goes_on{false};

// For at_allocation(): stops the thread at this allocation.
void stand_still() {
  stands_still.store(true);
  wait_for([] { return goes_on.load(); });
}

// Destroys an inherited communicator: queries must answer at once, and the destruction must free
// none of the inherited state. Returns 0, or one bit per broken promise.
int destroy_all(RankFixture& fixture, const Call& call) {
  int failed = 0;
  std::unique_ptr<Communicator> communicator = fixture.take_communicator();
  std::unique_ptr<Member>& first = fixture.seats().front().member;
  const MemoryRange lines = communicator->memory_of(0).lines.ranges.empty()
                                ? MemoryRange{}
                                : communicator->memory_of(0).lines.ranges.front();
  if (lines.bytes != 0) failed |= 1;
  if (communicator->memory_bytes() != 0 || communicator->cached_plans() != 0) failed |= 2;
  if (communicator->flight_record().empty()) failed |= 4;
  if (first->plan_of(call).status().code() != Code::forked) failed |= 8;
  watch_blocks(true);
  const std::int64_t before = blocks_alive();
  // Only the handles may be freed, and the reference count of the state.
  first.reset();
  const std::int64_t after_one = blocks_alive();
  communicator.reset();
  const std::int64_t after_all = blocks_alive();
  watch_blocks(false);
  if (new_can_fail() && (before - after_one > 2 || after_one - after_all > 1)) failed |= 16;
  return failed;
}

}  // namespace

void inject_child_destroys(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                           Tally& tally) {
  if (kThreadSanitizer) {
    Judge(test, {}, tally)
        .excuse("the thread sanitizer's allocator may be locked in a forked child for ever");
    return;
  }
  // All ranks plan, or one stops while it plans; then its process forks.
  const bool still = new_can_fail() && dice.one_in(2);
  const int allocation = 1 + dice.below(20);
  const Rank forks = test.processes ? dice.below(test.ranks) : 0;
  RankFixture fixture(test, {.documented = {Code::forked}}, tally, {.director_at = forks});
  if (!fixture.works()) return;
  float data = 0;  // enough for a plan
  const auto planned = [&data](std::size_t count) {
    return Call{.in = &data, .out = &data, .count = count};
  };
  const auto done = [&] { return fixture.arrived() > 0; };
  stands_still.store(false);
  goes_on.store(false);
  fixture.run(
      [&](Seat& seat) {
        const Rank r = seat.rank();
        if (still && r == forks) at_allocation(allocation, stand_still);
        for (std::size_t n = 1; !done() && (!still || r == forks); ++n) {
          std::optional<AllocationsCount> counts;
          if (still) counts.emplace();
          const auto count = n * static_cast<std::size_t>(test.ranks + r);
          const Status status = seat.member->plan_of(planned(count)).status();
          if (!status.ok()) fixture.judge().answer(status);
        }
        wait_for(done);
        // The children must not have changed anything for the parent's ranks.
        seat.call(call, {.documented = Codes{}});
      },
      [&] {
        if (still) wait_for([] { return stands_still.load(); });
        const int children = still ? 1 : 20;
        for (int i = 0; i < children; ++i) {
          expect_exit(ChildProcess([&] { return destroy_all(fixture, planned(1)); }), 0,
                      fixture.judge());
          fixture.judge().answer(Status(Code::forked, ""));  // for the child's call
        }
        goes_on.store(true);
        fixture.arrive();
      });
  at_allocation(0, nullptr);
}

namespace {

constexpr int kExitCode = 42;

// Ranks are processes: one calls exit(). Its member lies in a static object, which exit() destroys,
// or in memory that stays until the process ends.
void exit_of_a_process(const FaultCase& test, const CollectiveCase& call, Rank victim,
                       bool others_call, bool is_static, Tally& tally) {
  RankFixture fixture(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  fixture.run([&](Seat& seat) {
    if (!seat.call(call)) return;
    if (seat.rank() != victim) {
      if (!others_call) sleep_ns(50'000'000);
      seat.call(meeting(test, test.ranks));
      return;
    }
    if (dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO) < 0) _exit(1);
    static std::unique_ptr<Member> destroyed_by_exit;
    if (is_static) destroyed_by_exit = std::move(seat.member);
    fixture.judge().mark_fault();
    fixture.goes(victim);
    std::exit(kExitCode);
  });
}

// Runs in a child, and ends it by exit() in a rank.
int exit_in_a_rank(const FaultCase& test, const CollectiveCase& call, Rank victim,
                   bool others_call) {
  // exit() must not write the parent's buffered output a second time.
  if (dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO) < 0) return 1;
  static std::unique_ptr<Team> team;  // destroyed by exit()
  auto made = Team::create(team_options(test));
  if (!made.ok()) return 2;
  team = std::move(*made);
  Tally mine;
  Judge judge(test, {.documented = {Code::aborted, Code::rank_lost}}, mine);
  std::vector<CaseBuffers> buffers(static_cast<std::size_t>(test.ranks));
  const auto f = [&](Member& me) {
    if (me.rank() == victim) std::exit(kExitCode);
    if (!others_call) sleep_ns(20 * kGraceNs);
    judge.call(me, buffers[static_cast<std::size_t>(me.rank())], call);
  };
  static_cast<void>(team->run(f));
  return 3;
}

}  // namespace

void inject_process_exit(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                         Tally& tally) {
#if defined(__SANITIZE_THREAD__)
  Judge(test, {}, tally)
      .excuse("the thread sanitizer takes threads that exit() leaves for a fault");
  return;
#endif
  const Rank victim = dice.below(test.ranks);
  const bool others_call = !dice.one_in(4);
  if (test.processes) {
    return exit_of_a_process(test, call, victim, others_call, dice.one_in(2), tally);
  }
  Judge judge(test, {}, tally);
  const std::int64_t begin_ns = clock_of_promises();
  expect_exit(ChildProcess([&] { return exit_in_a_rank(test, call, victim, others_call); }),
              kExitCode, judge);
  // One second is promised; the rest is for the start of a team on a loaded machine.
  if (clock_of_promises() - begin_ns > 10 * kGraceNs)
    judge.blame("exit() took more than ten seconds");
}

}  // namespace rankine::faults
