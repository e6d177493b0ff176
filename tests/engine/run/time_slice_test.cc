// Who gives its core away has a short slice afterwards, and nothing else of its scheduling has
// changed.
#include "engine/run/process.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>

#include "engine/run/machine.h"

namespace rankine {
namespace {

// What f returns on a thread that is new, and has the slice that threads begin with.
template <class F>
std::int64_t on_new_thread(const F& f) {
  std::int64_t result = 0;
  std::thread([&] { result = f(); }).join();
  return result;
}

class TimeSlice : public testing::Test {
 protected:
  void SetUp() override {
    usual_ = on_new_thread(time_slice_ns);
    if (usual_ == 0) GTEST_SKIP() << "this kernel does not tell a thread's slice";
    if (usual_ <= kShortSliceNs) GTEST_SKIP() << "slices are short here from the start";
  }
  std::int64_t usual_ = 0;
};

TEST_F(TimeSlice, IsShortAfterAYield) {
  EXPECT_EQ(on_new_thread([] {
              yield_cpu();
              return time_slice_ns();
            }),
            kShortSliceNs);
  EXPECT_EQ(on_new_thread(time_slice_ns), usual_) << "of others it remains";
}

TEST_F(TimeSlice, IsShortAfterASleep) {
  EXPECT_EQ(on_new_thread([] {
              const Atomic<std::uint32_t> word{0};
              futex_wait(word, 1, now_ns());
              return time_slice_ns();
            }),
            kShortSliceNs);
}

TEST_F(TimeSlice, IsInheritedByThreads) {
  EXPECT_EQ(on_new_thread([] {
              shorten_time_slice();
              return on_new_thread(time_slice_ns);
            }),
            kShortSliceNs);
}

TEST_F(TimeSlice, LeavesTheNiceValue) {
  // Any thread may take a nicer value than it has, and no other.
  const int nicer = std::min(getpriority(PRIO_PROCESS, 0) + 1, 19);
  EXPECT_EQ(on_new_thread([nicer] {
              EXPECT_EQ(setpriority(PRIO_PROCESS, 0, nicer), 0);
              shorten_time_slice();
              EXPECT_EQ(time_slice_ns(), kShortSliceNs);
              return getpriority(PRIO_PROCESS, 0);
            }),
            nicer);
}

// A thread that runs when nobody else wants to has no share to be given early.
TEST_F(TimeSlice, LeavesOtherPolicies) {
  EXPECT_EQ(on_new_thread([] {
              const sched_param none{};
              EXPECT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
              EXPECT_EQ(time_slice_ns(), 0);
              shorten_time_slice();
              return sched_getscheduler(0);
            }),
            SCHED_IDLE);
}

}  // namespace
}  // namespace rankine
