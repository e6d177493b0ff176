// No leaks: after a thousand communicators and teams that were created, used, aborted or broken,
// and destroyed, the process has the same threads, descriptors and, to the byte, memory as before.
// Memory is counted at allocation (operator new, numa/'s mmap), because resident memory depends on
// glibc and the kernel.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/team.h"
#include "numa/system_calls.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/run/counted_memory.h"

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
constexpr std::size_t kSmall = 10, kLarge = 20'000;  // by mailbox; directly, with scratch

// Returns the number of entries of a folder of /proc/self, without "." and "..".
int entries(const char* folder) {
  DIR* opened = opendir(folder);
  int count = -2;
  while (readdir(opened) != nullptr) ++count;
  closedir(opened);
  return count;
}

// Bytes that arenas have mapped.
std::atomic<std::size_t> mapped_bytes{0};

SystemCalls counting_calls() {
  SystemCalls calls = real_system_calls();
  calls.mmap = [](void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset) {
    void* const result = real_system_calls().mmap(address, bytes, protection, flags, file, offset);
    if (result != MAP_FAILED) mapped_bytes += bytes;
    return result;
  };
  calls.munmap = [](void* address, std::size_t bytes) {
    const int result = real_system_calls().munmap(address, bytes);
    if (result == 0) mapped_bytes -= bytes;
    return result;
  };
  return calls;
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
  for (const std::size_t count : {kSmall, kLarge}) {
    std::vector<std::uint32_t> data(count, 1);
    Status status = me.all_reduce(std::span(data));
    if (!status.ok()) return status;
    if (data[count - 1] != kRanks) return {Code::system, "wrong data"};
  }
  return me.barrier();
}

void expect(const std::vector<Status>& results, Code code) {
  for (const Status& status : results) {
    EXPECT_EQ(name_of(status.code()), name_of(code)) << status.text();
  }
}

// One life of each kind.
void use_team() {
  const auto team = Team::create({.ranks = kRanks}).value();
  EXPECT_TRUE(team->run([](Member& me) { use(me).throw_if_error(); }).ok());
}

void throw_in_team() {
  const auto team = Team::create({.ranks = kRanks}).value();
  const Status status = team->run([](Member& me) {
    if (me.rank() == 1) throw std::runtime_error("out of luck");
    use(me).throw_if_error();
  });
  EXPECT_EQ(name_of(status.code()), name_of(Code::remote_error));
}

void make_idle_team() { EXPECT_EQ(Team::create({.ranks = kRanks}).value()->ranks(), 3); }

void use_communicator() {
  Ranks all({.ranks = kRanks});
  expect(all.run(use), Code::ok);
}

void abort_communicator() {
  Ranks all({.ranks = kRanks});
  expect(all.run([&](Member& me) {
    if (me.rank() == 2) {
      all.communicator().abort("enough");
      return all.communicator().health();
    }
    return use(me);
  }),
         Code::aborted);
}

void disagree_in_communicator() {
  Ranks all({.ranks = kRanks});
  expect(all.run([](Member& me) {
    std::vector<float> data(kSmall, 1.0F);
    return me.all_reduce(std::span(data), me.rank() == 0 ? ReduceOp::max : ReduceOp::sum);
  }),
         Code::mismatch);
}

void leave_communicator() {
  Ranks all({.ranks = kRanks});
  all.drop(0);
  auto results = all.run(use);
  results.erase(results.begin());
  expect(results, Code::rank_lost);
}

void make_lone_communicator() {
  EXPECT_EQ(Communicator::create({.ranks = kRanks}).value()->ranks(), kRanks);
}

TEST(Leaks, NothingIsLeftOfAThousandLives) {
  constexpr void (*kLives[])() = {use_team,           abort_communicator,       throw_in_team,
                                  use_communicator,   disagree_in_communicator, make_idle_team,
                                  leave_communicator, make_lone_communicator};
  const ScopedSystemCalls scope(counting_calls());
  // The first use creates objects once per process, so each kind lives once before the counts.
  for (const auto live : kLives) live();
  const int descriptors = entries("/proc/self/fd");
  const std::size_t bytes = CountedMemory::now.load();
  EXPECT_EQ(mapped_bytes.load(), 0u);
  for (int life = 0; life < 1000; ++life) kLives[life % std::size(kLives)]();
  EXPECT_EQ(threads_in_the_end(kThreads), kThreads);
  EXPECT_EQ(entries("/proc/self/fd"), descriptors);
  EXPECT_EQ(mapped_bytes.load(), 0u);
  if (kCountsMemory) {
    EXPECT_EQ(CountedMemory::now.load(), bytes);
  }
}

}  // namespace
}  // namespace rankine
