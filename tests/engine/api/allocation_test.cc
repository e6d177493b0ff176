// A repeated call allocates no memory, on any rank and on any transport. This test's operators new
// count the memory.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/api/team.h"
#include "tests/engine/run/counted_memory.h"

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
  if (!kCountsMemory) GTEST_SKIP() << "operator new is the sanitizer's";
  const auto [ranks, count, mode] = GetParam();
  auto team = Team::create({.ranks = ranks, .wait = WaitPolicy{.mode = mode, .probes = 4}});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const std::size_t all = count * static_cast<std::size_t>(ranks);
  std::size_t before = 0, most = 0;
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
    me.barrier().throw_if_error();
    if (me.rank() == 0) before = CountedMemory::begin();
    me.barrier().throw_if_error();
    calls(20);
    me.barrier().throw_if_error();
    if (me.rank() == 0) most = CountedMemory::most.load();
    me.barrier().throw_if_error();
  });
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(most, before);
}

INSTANTIATE_TEST_SUITE_P(Settings, Allocation,
                         testing::Values(Setting{1, 10, WaitPolicy::Mode::spin},
                                         Setting{2, 10, WaitPolicy::Mode::spin},
                                         Setting{2, 9'000, WaitPolicy::Mode::yield},
                                         Setting{3, 700, WaitPolicy::Mode::park},
                                         Setting{5, 33, WaitPolicy::Mode::yield}));

}  // namespace
}  // namespace rankine
