#include "numa/system_calls.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>

namespace rankine {
namespace {

TEST(ScopedSystemCalls, NestLikeAStack) {
  EXPECT_EQ(&system_calls(), &real_system_calls());
  SystemCalls first = real_system_calls();
  first.madvise = [](void*, std::size_t, int) { return 1; };
  SystemCalls second = first;
  second.madvise = [](void*, std::size_t, int) { return 2; };
  {
    ScopedSystemCalls outer(first);
    EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 1);
    {
      ScopedSystemCalls inner(second);
      EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 2);
    }
    EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 1);
  }
  EXPECT_EQ(&system_calls(), &real_system_calls());
}

TEST(ScopedSystemCalls, KeepACopyOfTheTable) {
  auto table = std::make_unique<SystemCalls>(real_system_calls());
  table->madvise = [](void*, std::size_t, int) { return 3; };
  ScopedSystemCalls scope(*table);
  table.reset();
  EXPECT_EQ(system_calls().madvise(nullptr, 0, 0), 3);
}

}  // namespace
}  // namespace rankine
