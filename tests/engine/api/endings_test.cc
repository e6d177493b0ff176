// The CPUs that the teams of this process use, and unexpected ends and forks of threads and
// processes.

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/api/buckets.h"
#include "engine/api/team.h"
#include "engine/api/threads.h"
#include "engine/faults/failing_new.h"
#include "engine/faults/refuse_calls.h"
#include "engine/run/machine.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using Cpus = std::vector<int>;

TEST(TakenCores, AreTakenAsOftenAsTheyAreHeld) {
  std::optional<TakenCores> first(Cpus{3, 1});
  {
    const TakenCores second(Cpus{1, 2});
    EXPECT_EQ(TakenCores::all(), (Cpus{1, 1, 2, 3}));
  }
  EXPECT_EQ(TakenCores::all(), (Cpus{1, 3}));
  first.reset();
  EXPECT_EQ(TakenCores::all(), Cpus{});
}

// All or none: a CPU of a failed TakenCores would stay taken, and all later teams would avoid it.
TEST(TakenCores, AreAllTakenOrNoneWhereThereIsNoMemory) {
  if (!faults::new_can_fail()) GTEST_SKIP() << "operator new is the sanitizer's";
  bool was_taken = false;
  std::int64_t refused = 0;
  while (!was_taken) {
    Cpus cpus{0, 1, 2};
    faults::fail_allocation(refused + 1, false);
    try {
      const faults::AllocationsCount counts;
      const TakenCores taken(std::move(cpus));
      was_taken = true;
    } catch (const std::bad_alloc&) {
      ++refused;
    }
    faults::fail_allocation(0, false);
    EXPECT_EQ(TakenCores::all(), Cpus{}) << "allocation " << refused;
  }
  EXPECT_GE(refused, 3);
}

// Threads and processes that end or fork at unexpected times, where the fault table (engine/faults)
// does not look: ended threads, forks and exit() in ranks are faults 14 and 27 to 31.

using std::chrono_literals::operator""ms;
using testing_processes::is_child;
using testing_processes::run_in_child;

constexpr auto kLong = 60'000ms;

Status sum(Member& me, std::size_t count = 3) {
  std::vector<std::uint32_t> data(count, 1);
  Status status = me.all_reduce(std::span(data));
  if (status.ok() && data.back() != static_cast<std::uint32_t>(me.ranks())) {
    return {Code::system, "a wrong sum"};
  }
  return status;
}

// --- Forks

TEST(ForkedChild, HasAThreadIdOfItsOwn) {
  const int in_parent = thread_id();
  EXPECT_EQ(in_parent, static_cast<int>(syscall(SYS_gettid)));
  const std::string end = run_in_child([&] {
    int failed = thread_id() == static_cast<int>(syscall(SYS_gettid)) ? 0 : 1;
    failed |= thread_has_ended(thread_id()) ? 2 : 0;
    failed |= thread_has_ended(in_parent) ? 0 : 4;  // the thread of the parent
    if (membarrier_available()) barrier_everywhere();
    return failed;
  });
  EXPECT_EQ(end, "exit 0");
}

bool is_mapped(const MemoryRange& range) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(range.base) / page * page;
  unsigned char there = 0;
  return mincore(reinterpret_cast<void*>(begin), 1, &there) == 0;
}

TEST(ForkedChild, LeavesAloneWhatItHasInherited) {
  auto team = Team::create({.ranks = 3, .timeout = kLong}).value();
  ASSERT_TRUE(team->run([](Member& me) { sum(me, 40'000).throw_if_error(); }).ok());
  auto all = std::make_unique<Ranks>(CommunicatorOptions{.ranks = 3, .timeout = kLong});
  auto buckets = std::make_unique<Buckets>(*all->members().front());
  all->run([](Member& me) { return sum(me, 40'000); });
  std::vector<MemoryRange> ranges;
  for (Communicator* communicator : {&team->communicator(), &all->communicator()}) {
    for (Rank r = 0; r < 3; ++r) {
      const RankMemory memory = communicator->memory_of(r);
      for (const MemoryPart* part : {&memory.lines, &memory.mailboxes, &memory.scratch}) {
        ranges.insert(ranges.end(), part->ranges.begin(), part->ranges.end());
      }
    }
  }
  ASSERT_FALSE(ranges.empty());
  EXPECT_EQ(run_in_child([&] {
              buckets.reset();
              all.reset();
              team.reset();
              for (const MemoryRange& range : ranges) {
                if (!is_mapped(range)) return 1;
              }
              return 0;
            }),
            "exit 0");
}

TEST(ForkedChild, OfARanksFunctionEndsWhereTheFunctionReturns) {
  auto team = Team::create({.ranks = 3, .timeout = kLong}).value();
  std::string end;
  const Status status = team->run([&](Member& me) {
    if (me.rank() != 1) return;
    const pid_t pid = fork();
    if (pid == 0) {
      is_child = true;
      return;
    }
    int ended = -1;
    waitpid(pid, &ended, 0);
    end = describe_end(ended);
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(end, "exit 0");
}

// --- Threads that end

TEST(RankOfATeam, CancelledBetweenRunsEndsInTheNext) {
  auto team = Team::create({.ranks = 3, .timeout = kLong}).value();
  std::atomic<pthread_t> victim{};
  ASSERT_TRUE(team->run([&](Member& me) {
                    if (me.rank() == 1) victim.store(pthread_self());
                  })
                  .ok());
  pthread_cancel(victim.load());
  std::vector<Status> results(3);
  const Status status = team->run([&](Member& me) {
    results[static_cast<std::size_t>(me.rank())] = sum(me);  // no cancellation point
    pthread_testcancel();
    if (me.rank() != 1) sum(me).throw_if_error();
  });
  for (const Status& result : results) EXPECT_TRUE(result.ok()) << result.text();
  EXPECT_NE(status.code(), Code::ok);
  EXPECT_EQ(name_of(team->communicator().health().code()), name_of(Code::rank_lost));
}

// Calls (also failing calls) and functions that own ranks are no cancellation points. So
// cancellation unwinds no noexcept function, and no rank's memory disappears while other ranks use
// it.
TEST(CancelledThread, ComesOutOfAFailingCallFirst) {
  const std::string path =
      (std::filesystem::temp_directory_path() / "rankine_endings_test.json").string();
  const ScopedEnv record("RANKINE_FLIGHT_RECORD", path.c_str());
  Ranks all({.ranks = 2, .timeout = 200ms});
  Status result;
  std::atomic<bool> goes_on_after{false};
  std::thread thread([&] {
    pthread_cancel(pthread_self());
    result = sum(*all.members()[0]);  // no other rank calls
    pthread_testcancel();
    goes_on_after.store(true);
  });
  thread.join();
  EXPECT_EQ(name_of(result.code()), name_of(Code::timeout)) << result.text();
  EXPECT_FALSE(goes_on_after.load());
  EXPECT_GT(std::filesystem::file_size(path), 0u);
  std::filesystem::remove(path);
}

TEST(CancelledThread, EndsAfterItsTeam) {
  std::atomic<int> ran{0};
  bool destroyed = false, goes_on_after = false;
  std::thread thread([&] {
    pthread_cancel(pthread_self());
    auto team = Team::create({.ranks = 3, .timeout = kLong}).value();
    team->run([&](Member& me) {
          sum(me).throw_if_error();
          ran.fetch_add(1);
        })
        .throw_if_error();
    team.reset();
    destroyed = true;
    pthread_testcancel();
    goes_on_after = true;
  });
  thread.join();
  EXPECT_EQ(ran.load(), 3);
  EXPECT_TRUE(destroyed);
  EXPECT_FALSE(goes_on_after);
}

// --- Processes that end

TEST(ProcessThatExits, ByOtherWaysThanExit) {
  const auto end_by = [](void (*end)()) {
    return run_in_child([end] {
      static std::unique_ptr<Team> team;  // exit() would destroy it
      team = Team::create({.ranks = 3, .timeout = kLong}).value();
      static_cast<void>(team->run([end](Member& me) {
        if (me.rank() == 1) end();
        sum(me).throw_if_error();
      }));
      return 99;
    });
  };
  EXPECT_EQ(end_by([] { std::quick_exit(8); }), "exit 8");
  EXPECT_EQ(end_by([] { std::abort(); }), "signal 6 (Aborted)");
}

TEST(Team, MayBeDestroyedByARank) {
  EXPECT_EQ(run_in_child([] {
              auto team = Team::create({.ranks = 3, .timeout = kLong}).value();
              Team* const owned = team.release();
              std::atomic<int> aborted{0};
              const Status status = owned->run([&](Member& me) {
                if (me.rank() == 1) {
                  delete owned;
                } else {
                  aborted += sum(me).code() == Code::aborted ? 1 : 0;
                }
              });
              return aborted.load() == 2 && status.code() == Code::aborted ? 0 : 1;
            }),
            "exit 0");
}

TEST(Team, IsNotRunByItsOwnRanks) {
  auto team = Team::create({.ranks = 2, .timeout = kLong}).value();
  std::vector<Status> results(2);
  const Status status = team->run([&](Member& me) {
    results[static_cast<std::size_t>(me.rank())] = team->run([](Member&) {});
  });
  EXPECT_TRUE(status.ok()) << status.text();
  for (const Status& result : results) {
    EXPECT_EQ(name_of(result.code()), name_of(Code::invalid_argument));
    EXPECT_NE(result.text().find("in another run"), std::string::npos) << result.text();
  }
}

// --- A kernel that hides the CPUs of threads

TEST(Sandbox, ThatHidesTheAffinityMask) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer asks for it in each thread";
#endif
  EXPECT_EQ(run_in_child([] {
              if (faults::refuse_calls({SYS_sched_getaffinity}) != 0) return 77;
              auto team = Team::create({.ranks = 2, .timeout = kLong});
              if (!team.ok()) return 1;
              if (!(*team)->run([](Member& me) { sum(me).throw_if_error(); }).ok()) return 2;
              for (const RankReport& rank : (*team)->report()) {
                if (!rank.pin.refused() || rank.pin.error != EPERM) return 3;
              }
              return 0;
            }),
            "exit 0");
}

}  // namespace
}  // namespace rankine
