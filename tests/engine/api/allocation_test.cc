// A repeated call allocates no memory, on any rank and on any transport, in C++ and in C. This
// test's operators new count the memory.

#include "engine/api/c/rankine.h"
#include "engine/api/experts.h"
#include "engine/api/team.h"
#include "tests/engine/run/counted_memory.h"
#include "tests/testing.h"

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

// calls(n) makes the calls n times. All ranks of a team call this.
template <class Calls>
void expect_no_memory(Member& me, const Calls& calls) {
  calls(2);  // the second round covers the case that the first round's plans met in the cache
  me.barrier().throw_if_error();
  const std::size_t before = me.rank() == 0 ? CountedMemory::begin() : 0;
  me.barrier().throw_if_error();
  calls(20);
  me.barrier().throw_if_error();
  if (me.rank() == 0) {
    EXPECT_EQ(CountedMemory::most.load(), before);
  }
  me.barrier().throw_if_error();
}

class Allocation : public testing::TestWithParam<Setting> {};

TEST_P(Allocation, NoneAfterTheFirstCall) {
  if (!kCountsMemory) GTEST_SKIP() << "operator new is the sanitizer's";
  const auto [ranks, count, mode] = GetParam();
  auto team = Team::create({.ranks = ranks, .wait = WaitPolicy{.mode = mode, .probes = 4}}).value();
  const std::size_t all = count * static_cast<std::size_t>(ranks);
  const Status status = team->run([&, n = count](Member& me) {
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
    expect_no_memory(me, calls);
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

INSTANTIATE_TEST_SUITE_P(Settings, Allocation,
                         testing::Values(Setting{1, 10, WaitPolicy::Mode::spin},
                                         Setting{2, 10, WaitPolicy::Mode::spin},
                                         Setting{2, 9'000, WaitPolicy::Mode::yield},
                                         Setting{3, 700, WaitPolicy::Mode::park},
                                         Setting{5, 33, WaitPolicy::Mode::yield}));

// Tokens choose other experts in each call.
TEST(AllocationByExperts, NoneAfterTheFirstCall) {
  if (!kCountsMemory) GTEST_SKIP() << "operator new is the sanitizer's";
  constexpr std::size_t kTokens = 10;
  auto team = Team::create({.ranks = 2}).value();
  const Status status = team->run([&](Member& me) {
    auto experts =
        Experts::create(me, {.experts = 6, .choices = 3, .row_elements = 100, .capacity = 7})
            .value();
    std::vector<BFloat16> tokens(kTokens * 100), rows(42 * 100), out(tokens);
    std::array<std::int32_t, kTokens * 3> indices{};
    std::int32_t next = me.rank();
    const auto calls = [&](int repetitions) {
      for (int i = 0; i < repetitions; ++i) {
        for (std::int32_t& index : indices) index = (next += i + 1) % 7 - 1;
        experts.dispatch(tokens, indices, rows).throw_if_error();
        std::size_t arrived = 0;
        for (const std::size_t count : experts.counts()) arrived += count;
        experts.combine(std::span(rows).first(arrived * 100), {}, out).throw_if_error();
      }
    };
    expect_no_memory(me, calls);
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

// One thread plays two ranks. Fails if a successful call makes a name for an error, a list of its
// requests or handles, or a new object for each call of a group.
TEST(AllocationInC, NoneAfterTheFirstCall) {
  if (!kCountsMemory) GTEST_SKIP() << "operator new is the sanitizer's";
  std::array<rkComm_t, 2> comms{};
  ASSERT_EQ(rkCommInitAll(comms.data(), 2, nullptr), rkSuccess);
  std::array<std::array<float, 4>, 2> in{}, out{};
  const auto sum = [&](std::size_t rank) {
    return rkAllReduce(in[rank].data(), out[rank].data(), 4, rkFloat32, rkSum, comms[rank]);
  };
  std::array<rkRequest_t, 2> requests{};
  for (std::size_t rank : {0, 1}) {
    ASSERT_EQ(rkGroupStart(), rkSuccess);
    ASSERT_EQ(sum(rank), rkSuccess);
    ASSERT_EQ(rkGroupEndPrepare(&requests[rank]), rkSuccess);
  }
  int failed = 0;
  const auto calls = [&](int repetitions) {
    for (int i = 0; i < repetitions; ++i) {
      // Started, waited for in turn and together.
      failed += rkRequestStart(requests[0]);
      failed += sum(1);
      failed += rkRequestWait(requests[0]);
      for (rkRequest_t request : requests) failed += rkRequestStart(request);
      failed += rkRequestWaitAll(requests.size(), requests.data());
      // A group of calls and messages of both ranks.
      failed += rkGroupStart();
      for (std::size_t rank : {0, 1}) {
        failed += sum(rank);
        failed += rkBarrier(comms[rank]);
      }
      failed += rkSend(in[0].data(), 4, rkFloat32, 1, comms[0]);
      failed += rkRecv(out[1].data(), 4, rkFloat32, 0, comms[1]);
      failed += rkGroupEnd();
    }
  };
  calls(2);
  const std::size_t before = CountedMemory::begin();
  calls(20);
  EXPECT_EQ(CountedMemory::most.load(), before);
  EXPECT_EQ(failed, rkSuccess) << rkGetLastError(nullptr);
  for (rkRequest_t request : requests) EXPECT_EQ(rkRequestFree(request), rkSuccess);
  for (rkComm_t comm : comms) EXPECT_EQ(rkCommDestroy(comm), rkSuccess);
}

}  // namespace
}  // namespace rankine
