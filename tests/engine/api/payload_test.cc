// Member::allocate: calls on what it gives, how long it stays, and what it refuses.
#include "engine/api/member.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/team.h"
#include "numa/memory.h"
#include "numa/system_calls.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

template <class T>
concept CanBeAllocated = requires(Member& me) {
  me.allocate<T>(1);
};
static_assert(CanBeAllocated<float> && CanBeAllocated<BFloat16> && CanBeAllocated<std::byte>);
static_assert(!CanBeAllocated<std::string> && !CanBeAllocated<const float> &&
              !CanBeAllocated<float&> && !CanBeAllocated<void>);
static_assert(!std::is_copy_constructible_v<Payload<float>> &&
              !std::is_copy_assignable_v<Payload<float>>);
static_assert(std::is_nothrow_move_constructible_v<Payload<float>> &&
              std::is_nothrow_move_assignable_v<Payload<float>>);

// Bytes that arenas have mapped.
std::atomic<std::size_t> mapped{0};

SystemCalls counting_calls() {
  SystemCalls calls = real_system_calls();
  calls.mmap = [](void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset) {
    void* const result = real_system_calls().mmap(address, bytes, protection, flags, file, offset);
    if (result != MAP_FAILED) mapped += bytes;
    return result;
  };
  calls.munmap = [](void* address, std::size_t bytes) {
    mapped -= bytes;
    return real_system_calls().munmap(address, bytes);
  };
  return calls;
}

void expect_ok(const std::vector<Status>& results) {
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

// --- Calls.

const std::vector<std::size_t> kSizes = {0, 1, 3, 64, 1023, 4099, 300'007};

// What rank r brings at place i; sums of all ranks' are exact in every type used here.
template <class T>
T brought(Rank r, std::size_t i) {
  return static_cast<T>(static_cast<int>(i % 5) + r);
}
template <class T>
T sum_of_all(int ranks, std::size_t i) {
  return static_cast<T>(ranks * static_cast<int>(i % 5) + ranks * (ranks - 1) / 2);
}

template <class T>
void expect_sums(std::span<const T> out, int ranks) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    ASSERT_EQ(out[i], sum_of_all<T>(ranks, i)) << "at " << i << " of " << out.size();
  }
}

template <class T>
void reduce_and_gather(Member& me) {
  const int n = me.ranks();
  for (const std::size_t size : kSizes) {
    auto in = me.allocate<T>(size).value();
    auto out = me.allocate<T>(size).value();
    ASSERT_EQ(in.span().size(), size);
    for (std::size_t i = 0; i < size; ++i) {
      ASSERT_EQ(in.span()[i], T{}) << "not zero";
      in.span()[i] = brought<T>(me.rank(), i);
    }
    me.all_reduce(std::span<const T>(in.span()), out.span()).throw_if_error();
    expect_sums<T>(out.span(), n);
    me.all_reduce(in.span()).throw_if_error();
    expect_sums<T>(in.span(), n);
    // In place at this rank's own block.
    auto all = me.allocate<T>(size * static_cast<std::size_t>(n)).value();
    const auto block = [&](Rank r) {
      return all.span().subspan(static_cast<std::size_t>(r) * size, size);
    };
    for (std::size_t i = 0; i < size; ++i) block(me.rank())[i] = brought<T>(me.rank(), i);
    me.all_gather(std::span<const T>(block(me.rank())), all.span()).throw_if_error();
    for (Rank r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(block(r)[i], brought<T>(r, i));
    }
  }
}

TEST(Payload, CallsOfATeam) {
  for (const int ranks : {1, 2, 3}) {
    auto team = Team::create({.ranks = ranks});
    ASSERT_TRUE(team.ok()) << team.status().text();
    const Status status = (*team)->run([](Member& me) {
      reduce_and_gather<float>(me);
      reduce_and_gather<std::int8_t>(me);
      reduce_and_gather<double>(me);
    });
    EXPECT_TRUE(status.ok()) << status.text();
  }
}

TEST(Payload, CallsOfCallersThreads) {
  Ranks ranks({.ranks = 3});
  expect_ok(ranks.run([](Member& me) -> Status {
    reduce_and_gather<std::uint64_t>(me);
    return {};
  }));
}

// --- Where and how.

TEST(Payload, LinesAndPagesOfItsOwn) {
  Ranks ranks({.ranks = 1});
  Member& me = *ranks.members()[0];
  const std::size_t huge = huge_page_bytes();
  std::vector<Payload<std::byte>> payloads;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, huge - 1, huge,
                                  huge + 1, std::size_t{0}}) {
    payloads.push_back(me.allocate<std::byte>(bytes).value());
    const auto at = reinterpret_cast<std::uintptr_t>(payloads.back().span().data());
    EXPECT_NE(at, 0U);
    EXPECT_EQ(at % (bytes >= huge ? huge : page_bytes()), 0U);
    EXPECT_EQ(payloads.back().span().size(), bytes);
    std::fill(payloads.back().span().begin(), payloads.back().span().end(), std::byte{0x5A});
  }
  std::vector<std::pair<std::uintptr_t, std::size_t>> places;
  for (const auto& payload : payloads) {
    places.emplace_back(reinterpret_cast<std::uintptr_t>(payload.span().data()),
                        std::max<std::size_t>(payload.span().size(), 1));
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) {
    EXPECT_LE(places[i - 1].first + places[i - 1].second, places[i].first) << "overlap";
  }
}

TEST(Payload, IsCounted) {
  Ranks ranks({.ranks = 2});
  const Communicator& communicator = ranks.communicator();
  const std::size_t before = communicator.memory_bytes();
  auto payload = ranks.members()[1]->allocate<double>(1000).value();
  EXPECT_EQ(communicator.memory_of(0).payloads.bytes, 0U);
  const MemoryPart part = communicator.memory_of(1).payloads;
  EXPECT_EQ(part.bytes, 2 * page_bytes());
  ASSERT_EQ(part.ranges.size(), 1U);
  EXPECT_EQ(part.ranges[0].base, payload.span().data());
  EXPECT_EQ(part.ranges[0].bytes, 2 * page_bytes());
  EXPECT_EQ(communicator.memory_bytes(), before + 2 * page_bytes());
  payload = {};
  EXPECT_EQ(communicator.memory_bytes(), before);
}

// --- How long.

class PayloadLife : public testing::Test {
 protected:
  PayloadLife() { mapped = 0; }
  ~PayloadLife() override { EXPECT_EQ(mapped, 0U) << "left behind"; }

  ScopedSystemCalls scope_{counting_calls()};
};

TEST_F(PayloadLife, FreedEarlyByItsHandle) {
  Ranks ranks({.ranks = 1});
  Member& me = *ranks.members()[0];
  const std::size_t before = mapped;
  {
    auto kept = me.allocate<float>(10'000).value();
    const std::size_t one = mapped - before;
    EXPECT_GE(one, 40'000U);
    {
      const auto brief = me.allocate<float>(10'000).value();
      EXPECT_EQ(mapped, before + 2 * one);
    }
    EXPECT_EQ(mapped, before + one);
    kept.span()[9'999] = 1.0F;
  }
  EXPECT_EQ(mapped, before);
}

TEST_F(PayloadLife, AHandleMoves) {
  Ranks ranks({.ranks = 1});
  Member& me = *ranks.members()[0];
  const std::size_t before = mapped;
  auto a = me.allocate<int>(100).value();
  const std::size_t one = mapped - before;
  int* const at = a.span().data();
  a.span()[99] = 7;
  Payload<int> b = std::move(a);
  EXPECT_TRUE(a.span().empty());  // NOLINT: moved from
  EXPECT_EQ(a.span().data(), nullptr);
  EXPECT_EQ(b.span().data(), at);
  Payload<int> c = me.allocate<int>(5).value();
  EXPECT_EQ(mapped, before + 2 * one);
  c = std::move(b);
  EXPECT_EQ(mapped, before + one) << "what it had went";
  EXPECT_EQ(c.span().size(), 100U);
  EXPECT_EQ(c.span()[99], 7);
  Payload<int>& same = c;
  c = std::move(same);
  EXPECT_EQ(c.span().data(), at) << "to itself";
  c = {};
  EXPECT_EQ(mapped, before);
  EXPECT_TRUE(c.span().empty());
}

TEST_F(PayloadLife, GoesWithItsMember) {
  Payload<float> outlives;
  {
    Ranks ranks({.ranks = 2});
    outlives = ranks.members()[0]->allocate<float>(1000).value();
    auto other = ranks.members()[1]->allocate<float>(1000).value();
    const std::size_t with_both = mapped;
    ranks.drop(0);
    EXPECT_LT(mapped, with_both);
    EXPECT_TRUE(outlives.span().empty());
    EXPECT_EQ(outlives.span().data(), nullptr);
    EXPECT_EQ(ranks.communicator().memory_of(0).payloads.bytes, 0U);
    EXPECT_EQ(other.span().size(), 1000U) << "another member's";
    other.span()[999] = 1.0F;
  }
  EXPECT_EQ(mapped, 0U) << "the communicator, too";
  EXPECT_TRUE(outlives.span().empty());
  outlives = {};
}

TEST_F(PayloadLife, OutlivesATeam) {
  std::vector<Payload<float>> kept(2);
  {
    auto team = Team::create({.ranks = 2});
    ASSERT_TRUE(team.ok()) << team.status().text();
    for (int run = 0; run < 2; ++run) {
      const Status status = (*team)->run([&](Member& me) {
        auto& mine = kept[static_cast<std::size_t>(me.rank())];
        if (run == 0) {
          mine = me.allocate<float>(5000).value();
          std::fill(mine.span().begin(), mine.span().end(), 1.0F);
        } else {
          me.all_reduce(mine.span()).throw_if_error();
          EXPECT_EQ(mine.span()[4999], 2.0F) << "between runs it stays";
        }
      });
      EXPECT_TRUE(status.ok()) << status.text();
    }
  }
  for (const auto& payload : kept) EXPECT_TRUE(payload.span().empty());
}

// Handles may go on one thread while the member goes on another: whoever is first takes it back.
TEST_F(PayloadLife, HandlesAndMembersGoAtOnce) {
  for (int round = 0; round < 200; ++round) {
    Ranks ranks({.ranks = 1});
    std::vector<Payload<int>> payloads;
    for (int i = 0; i < 8; ++i) payloads.push_back(ranks.members()[0]->allocate<int>(10).value());
    std::atomic<int> ready{0};
    const auto meet = [&] {
      ++ready;
      while (ready < 2) std::this_thread::yield();
    };
    std::thread handles([&] {
      meet();
      payloads.clear();
    });
    meet();
    ranks.drop(0);
    handles.join();
  }
}

// --- What is refused.

void expect_refused(const Result<Payload<double>>& result, Code code,
                    const std::vector<std::string>& words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), code);
  for (const std::string& word : words) {
    EXPECT_NE(result.status().text().find(word), std::string::npos) << result.status().text();
  }
}

TEST(Payload, RefusalsNameTheArgumentAndEndNothing) {
  Ranks ranks({.ranks = 2});
  Member& me = *ranks.members()[1];
  const std::string most = std::to_string(PTRDIFF_MAX / 8);
  expect_refused(me.allocate<double>(kMost), Code::invalid_argument,
                 {"n is " + std::to_string(kMost), "up to " + most});
  expect_refused(me.allocate<double>(kMost / 8 + 1), Code::invalid_argument, {"up to " + most});
  expect_refused(me.allocate<double>(PTRDIFF_MAX / 8 + 1), Code::invalid_argument,
                 {"up to " + most});
  // More than there are addresses.
  expect_refused(me.allocate<double>(PTRDIFF_MAX / 8), Code::out_of_memory,
                 {"n is " + most, "rank 1", "Cannot allocate memory"});
  {
    SystemCalls calls = real_system_calls();
    calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
      errno = EPERM;
      return MAP_FAILED;
    };
    ScopedSystemCalls scope(calls);
    expect_refused(me.allocate<double>(3), Code::out_of_memory,
                   {"n is 3;", "24 bytes", "rank 1", "Operation not permitted"});
  }
  EXPECT_TRUE(ranks.communicator().health().ok());
  expect_ok(ranks.run([](Member& member) {
    auto x = member.allocate<double>(10).value();
    return member.all_reduce(x.span());
  }));
}

TEST(Payload, AfterTheEndOfTheCommunicator) {
  Ranks ranks({.ranks = 2});
  auto payload = ranks.members()[0]->allocate<int>(3).value();
  ranks.communicator().abort("enough");
  payload.span()[2] = 5;
  EXPECT_EQ(payload.span().size(), 3U) << "it is the member's, which is still there";
  EXPECT_TRUE(ranks.members()[0]->allocate<int>(3).ok());
}

TEST(Payload, AForkedChildHasACopy) {
  std::optional<Ranks> ranks(std::in_place, CommunicatorOptions{.ranks = 1});
  Member& me = *ranks->members()[0];
  auto payload = me.allocate<int>(5000).value();
  payload.span()[4999] = 1;
  EXPECT_EQ(testing_processes::run_in_child([&] {
              int* const at = payload.span().data();
              if (payload.span().size() != 5000 || at[4999] != 1) return 1;
              at[4999] = 2;
              if (me.allocate<int>(1).status().code() != Code::forked) return 2;
              payload = {};
              if (at[4999] != 2) return 3;  // still there
              ranks.reset();
              return at[4999] == 2 ? 0 : 4;
            }),
            "exit 0");
  EXPECT_EQ(payload.span()[4999], 1) << "a copy";
}

}  // namespace
}  // namespace rankine
