// No leaks: after hundreds of communicators and teams that were created, used, aborted or broken,
// and destroyed, the process has the same threads, descriptors and, to the byte, memory as before.
// Memory is counted at allocation (operator new, numa/'s mmap), because resident memory depends on
// glibc and the kernel.
#include <dirent.h>

#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/run/counted_memory.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""s;

// This thread, and one thread of the thread sanitizer.
#if defined(__SANITIZE_THREAD__)
constexpr int kThreads = 2;
#else
constexpr int kThreads = 1;
#endif

constexpr int kRanks = 3;

// Returns the number of entries of a folder of /proc/self, without "." and "..".
int entries(const char* folder) {
  DIR* opened = opendir(folder);
  int count = -2;
  while (readdir(opened) != nullptr) ++count;
  closedir(opened);
  return count;
}

// A joined thread may be listed for a moment longer, because the kernel wakes the joiner first.
int threads_in_the_end(int wanted) {
  const auto patience = std::chrono::steady_clock::now() + 20s;
  int threads = entries("/proc/self/task");
  while (threads > wanted && std::chrono::steady_clock::now() < patience) {
    std::this_thread::yield();
    threads = entries("/proc/self/task");
  }
  return threads;
}

Status use(Member& me) {
  for (const std::size_t count : {10U, 20'000U}) {  // by mailbox; directly, with scratch
    std::vector<std::uint32_t> data(count, 1);
    Status status = me.all_reduce(std::span(data));
    if (!status.ok()) return status;
    if (data[count - 1] != kRanks) return {Code::system, "wrong data"};
  }
  return me.barrier();
}

// The lives of communicators and teams, in turn. Rank 1 does `odd` in place of the calls.
struct Life {
  bool is_team;
  Code code;
  std::function<Status(Member&, Ranks*)> odd;
};

const Life kLives[] = {
    {true, Code::ok, [](Member& me, Ranks*) { return use(me); }},
    {false, Code::aborted,
     [](Member&, Ranks* all) {
       all->communicator().abort("enough");
       return all->communicator().health();
     }},
    {true, Code::remote_error,
     [](Member&, Ranks*) -> Status { throw std::runtime_error("out of luck"); }},
    {false, Code::ok, [](Member& me, Ranks*) { return use(me); }},
    {false, Code::mismatch,
     [](Member& me, Ranks*) {
       std::vector<std::uint32_t> data(10);
       return me.all_reduce(std::span(data), ReduceOp::max);
     }},
    {false, Code::rank_lost,
     [](Member& me, Ranks* all) {
       all->drop(me.rank());
       while (all->communicator().health().ok()) std::this_thread::yield();
       return all->communicator().health();
     }},
};

void live(const Life& life) {
  if (life.is_team) {
    const auto team = Team::create({.ranks = kRanks}).value();
    const Status status = team->run(
        [&](Member& me) { (me.rank() == 1 ? life.odd(me, nullptr) : use(me)).throw_if_error(); });
    EXPECT_EQ(name_of(status.code()), name_of(life.code)) << status.text();
    return;
  }
  EXPECT_EQ(Communicator::create({.ranks = kRanks}).value()->ranks(), kRanks);  // no rank joins
  Ranks all({.ranks = kRanks});
  expect_all(all.run([&](Member& me) { return me.rank() == 1 ? life.odd(me, &all) : use(me); }),
             life.code);
}

TEST(Leaks, NothingIsLeftOfManyLives) {
  const CountedMappings mappings;
  // The first use creates objects once per process, so each kind lives once before the counts.
  for (const Life& life : kLives) live(life);
  const int descriptors = entries("/proc/self/fd");
  const std::size_t bytes = CountedMemory::now.load();
  EXPECT_EQ(mappings.bytes.load(), 0u);
  for (int turn = 0; turn < 100; ++turn) {
    for (const Life& life : kLives) live(life);
  }
  EXPECT_EQ(threads_in_the_end(kThreads), kThreads);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(mappings.bytes.load(), 0u);
  if (kCountsMemory) {
    EXPECT_EQ(CountedMemory::now.load(), bytes);
  }
}

}  // namespace
}  // namespace rankine
