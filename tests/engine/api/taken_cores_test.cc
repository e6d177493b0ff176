// Which CPUs the teams of this process have taken.
#include "engine/api/threads.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "engine/faults/failing_new.h"

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

// Else some would be nobody's, and all later teams would avoid them.
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

}  // namespace
}  // namespace rankine
