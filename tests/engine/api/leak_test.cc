// Nothing is left behind: after a thousand communicators and teams that were made, used, aborted or
// broken, and destroyed, the process has the threads, descriptors and mappings that it had, and no
// more memory.
#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/team.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""s;

// The sanitizers keep freed memory, and map as they like.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnsMemory = false;
#else
constexpr bool kOwnsMemory = true;
#endif

// This one, and one of the thread sanitizer's own.
#if defined(__SANITIZE_THREAD__)
constexpr int kThreads = 2;
#else
constexpr int kThreads = 1;
#endif

constexpr int kRanks = 3;
constexpr std::size_t kSmall = 10, kLarge = 20'000;  // by mailbox; directly, with scratch

// Entries of a folder of /proc/self, without "." and "..".
int entries(const char* folder) {
  DIR* opened = opendir(folder);
  int count = -2;
  while (readdir(opened) != nullptr) ++count;
  closedir(opened);
  return count;
}

struct Held {
  int threads = 0, descriptors = 0, mappings = 0;
  long resident_kib = 0;
};

Held held() {
  Held now;
  now.threads = entries("/proc/self/task");
  now.descriptors = entries("/proc/self/fd");
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) ++now.mappings;
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  now.resident_kib = pages * (sysconf(_SC_PAGESIZE) / 1024);
  return now;
}

// A thread that was joined may be listed for a moment more: the kernel wakes the joiner first.
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

// One life after the other, of each kind.
void a_team_that_works() {
  const auto team = Team::create({.ranks = kRanks}).value();
  EXPECT_TRUE(team->run([](Member& me) { use(me).throw_if_error(); }).ok());
}

void a_team_in_which_a_rank_throws() {
  const auto team = Team::create({.ranks = kRanks}).value();
  const Status status = team->run([](Member& me) {
    if (me.rank() == 1) throw std::runtime_error("out of luck");
    use(me).throw_if_error();
  });
  EXPECT_EQ(name_of(status.code()), name_of(Code::remote_error));
}

void a_team_that_never_runs() { EXPECT_EQ(Team::create({.ranks = kRanks}).value()->ranks(), 3); }

void a_communicator_that_works() {
  Ranks all({.ranks = kRanks});
  expect(all.run(use), Code::ok);
}

void a_communicator_that_is_aborted() {
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

void a_communicator_whose_calls_disagree() {
  Ranks all({.ranks = kRanks});
  expect(all.run([](Member& me) {
    std::vector<float> data(kSmall, 1.0F);
    return me.all_reduce(std::span(data), me.rank() == 0 ? ReduceOp::max : ReduceOp::sum);
  }),
         Code::mismatch);
}

void a_communicator_that_a_rank_leaves() {
  Ranks all({.ranks = kRanks});
  all.drop(0);
  auto results = all.run(use);
  results.erase(results.begin());
  expect(results, Code::rank_lost);
}

void a_communicator_that_nobody_joins() {
  EXPECT_EQ(Communicator::create({.ranks = kRanks}).value()->ranks(), kRanks);
}

TEST(Leaks, NothingIsLeftOfAThousandLives) {
  constexpr void (*kLives[])() = {a_team_that_works,
                                  a_communicator_that_is_aborted,
                                  a_team_in_which_a_rank_throws,
                                  a_communicator_that_works,
                                  a_communicator_whose_calls_disagree,
                                  a_team_that_never_runs,
                                  a_communicator_that_a_rank_leaves,
                                  a_communicator_that_nobody_joins};
  // One heap for all threads: how many glibc would make is chance.
  if (kOwnsMemory) mallopt(M_ARENA_MAX, 1);
  constexpr int kRounds = 125, kWarmUp = 10;  // 1,000 lives
  std::vector<Held> after;                    // each round
  Held settled;
  for (int round = 0; round < kRounds; ++round) {
    for (const auto live : kLives) live();
    after.push_back(held());
    if (round == kWarmUp) settled = after.back();
  }
  const Held last = after.back();
  EXPECT_EQ(threads_in_the_end(kThreads), kThreads);
  EXPECT_EQ(last.descriptors, settled.descriptors);
  if (!kOwnsMemory) return;
  // glibc keeps a few stacks of ended threads, how many depends on who ended first: so the least of
  // the last rounds counts, against the most of the first.
  const auto mappings = [](const Held& a, const Held& b) { return a.mappings < b.mappings; };
  const int most_before =
      std::max_element(after.begin(), after.begin() + kWarmUp, mappings)->mappings;
  const int least_after = std::min_element(after.end() - kWarmUp, after.end(), mappings)->mappings;
  EXPECT_LE(least_after, most_before);
  // 900 lives later: less than a KiB of each could stay unseen.
  EXPECT_LT(last.resident_kib, settled.resident_kib + 1024)
      << "from " << settled.resident_kib << " KiB";
}

}  // namespace
}  // namespace rankine
