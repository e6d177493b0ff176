// Random calls of every kind in one communicator after the other, while other threads ask it all
// that may be asked at any time. RANKINE_TEST_CALLS says how many calls of ranks in
// all, RANKINE_TEST_SEED which.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/faults/collective_case.h"
#include "tests/engine/api/random_case.h"

namespace rankine {
namespace {

// Asks for all that a monitor may want, until told to stop.
class Monitor {
 public:
  explicit Monitor(const Communicator& communicator)
      : thread_([this, &communicator] {
          constexpr int kOneRecordIn = 5000;  // it lists thousands of calls
          for (int i = 0; !stop_.load(std::memory_order_relaxed); ++i) {
            if (!communicator.health().ok()) return;
            static_cast<void>(communicator.memory_of(i % 9));
            static_cast<void>(communicator.memory_bytes());
            static_cast<void>(communicator.cached_plans());
            if (i % kOneRecordIn == 0) static_cast<void>(communicator.flight_record());
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
        }) {}
  ~Monitor() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// As a server's calls are: most are of the few hundred kinds that it knows, in any order, and now
// and then there is a new one.
std::uint64_t case_of(std::uint64_t seed, int round, std::uint64_t call) {
  constexpr std::uint64_t kKnown = 300, kOneNewIn = 200;
  const std::uint64_t dice = splitmix(seed * kSplitMixStep + call);
  const std::uint64_t team = mixed(seed, static_cast<std::uint64_t>(round));
  return dice % kOneNewIn == 0 ? dice : team + dice / kOneNewIn % kKnown;
}

TEST(Mix, RandomCallsBesideMonitors) {
  const std::uint64_t calls = number_of("RANKINE_TEST_CALLS", 400'000);
  const std::uint64_t seed = number_of("RANKINE_TEST_SEED", 1);
  constexpr int kRanks[] = {2, 3, 4, 8};
  constexpr std::uint64_t kPerTeam = 20'000;
  std::uint64_t made = 0, begun = 0;  // by all ranks; together
  for (int round = 0; made < calls; ++round) {
    const int ranks = kRanks[round % std::size(kRanks)];
    const auto n = static_cast<std::uint64_t>(ranks);
    const std::uint64_t more = std::min(kPerTeam, (calls - made + n - 1) / n);
    auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(2)});
    ASSERT_TRUE(team.ok()) << team.status().text();
    std::mutex mutex;
    std::string fault;
    Status status;
    {
      const Monitor one((*team)->communicator()), other((*team)->communicator());
      status = (*team)->run([&](Member& me) {
        CaseBuffers buffers;
        for (std::uint64_t i = 0; i < more; ++i) {
          const CollectiveCase test = random_case(case_of(seed, round, begun + i), ranks);
          const std::string found = run_case(me, test, buffers);
          if (found.empty()) continue;
          const std::lock_guard lock(mutex);
          if (fault.empty()) fault = to_string(test) + ": " + found;
          return;
        }
      });
    }
    ASSERT_EQ(fault, "");
    ASSERT_TRUE(status.ok()) << status.text();
    made += more * n;
    begun += more;
  }
}

}  // namespace
}  // namespace rankine
