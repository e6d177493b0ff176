// A repeated call allocates no memory, on any rank and on any transport.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/team.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> allocations{0};

[[maybe_unused]] void* counted(std::size_t bytes, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1);
  void* memory =
      alignment <= alignof(std::max_align_t)
          ? std::malloc(bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// The sanitizers replace these operators, and libraries bind to theirs before ours.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
#endif

}  // namespace

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// All forms of new are replaced because the compiler chooses among them. The compiler inlines one
// half of a pair in some places, and then warns that malloc and delete do not match.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
void* operator new(std::size_t bytes) { return counted(bytes, 1); }
void* operator new[](std::size_t bytes) { return counted(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace rankine {
namespace {

struct Setting {
  int ranks;
  std::size_t count;
  WaitPolicy::Mode mode;
};

void PrintTo(const Setting& s, std::ostream* out) {
  *out << s.ranks << " ranks, " << s.count << " elements, mode " << static_cast<int>(s.mode);
}

class Allocation : public testing::TestWithParam<Setting> {};

TEST_P(Allocation, NoneAfterTheFirstCall) {
  if (!kCounts) GTEST_SKIP() << "operator new is the sanitizer's";
  const auto [ranks, count, mode] = GetParam();
  auto team = Team::create({.ranks = ranks, .wait = WaitPolicy{.mode = mode, .probes = 4}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const std::size_t all = count * static_cast<std::size_t>(ranks);
  const Status status = (*team)->run([&, n = count](Member& me) {
    std::vector<float> vector(n, 1.0F), other(n), wide(all, 1.0F), wide_too(all);
    const auto calls = [&](int repetitions) {
      for (int i = 0; i < repetitions; ++i) {
        for (const std::optional<Transport> transport :
             {std::optional(Transport::mailbox), std::optional(Transport::direct),
              std::optional<Transport>()}) {
          const CallOptions options{.transport = transport};
          me.all_reduce(std::span(vector), ReduceOp::max, options).throw_if_error();
          me.all_reduce(std::span<const float>(vector), std::span(other), ReduceOp::sum, options)
              .throw_if_error();
          me.all_gather(std::span<const float>(vector), std::span(wide), options).throw_if_error();
          me.reduce_scatter(std::span<const float>(wide), std::span(vector), ReduceOp::min, options)
              .throw_if_error();
          me.all_to_all(std::span<const float>(wide), std::span(wide_too), options)
              .throw_if_error();
          me.broadcast(std::span(vector), 0, options).throw_if_error();
        }
        me.all_reduce(std::span(vector)).throw_if_error();
        me.all_reduce(std::span(vector), ReduceOp::sum, {.algorithm = "ring"}).throw_if_error();
        me.barrier().throw_if_error();
      }
    };
    calls(2);  // the second round covers the case that the first round's plans met in the cache
    if (me.rank() == 0) counting.store(true);
    me.barrier().throw_if_error();
    calls(20);
    me.barrier().throw_if_error();
    if (me.rank() == 0) counting.store(false);
    me.barrier().throw_if_error();
  });
  counting.store(false);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(allocations.exchange(0), 0);
}

INSTANTIATE_TEST_SUITE_P(Settings, Allocation,
                         testing::Values(Setting{1, 10, WaitPolicy::Mode::spin},
                                         Setting{2, 10, WaitPolicy::Mode::spin},
                                         Setting{2, 9'000, WaitPolicy::Mode::yield},
                                         Setting{3, 700, WaitPolicy::Mode::park},
                                         Setting{5, 33, WaitPolicy::Mode::yield}));

}  // namespace
}  // namespace rankine
