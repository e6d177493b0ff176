// Two ranks on one thread, op by op: who is how far ahead is up to the test.
#include "engine/run/mailbox.h"

#include <gtest/gtest.h>

#include <array>
#include <new>
#include <vector>

#include "engine/run/fingerprint.h"
#include "engine/run/interpret.h"

namespace rankine {
namespace {

class Pair {
 public:
  explicit Pair(std::uint32_t first) {
    for (std::size_t r = 0; r < 2; ++r) {
      const Board board = board_of(2, r, kCacheLine, [&](std::size_t of) { return lines_[of]; });
      for (const std::uint32_t n : {0U, 1U}) (new (&board.half(n)) PostHeader)->flag.store(first);
      for (RankState& state : states_) state.boards.push_back(board);
    }
    for (std::size_t r = 0; r < 2; ++r) {
      RankState& state = states_[r];
      state.waiter = {.crossbar = &crossbar_, .rank = static_cast<Rank>(r)};
      state.posts = first;
      state.memory.resize(8);
      state.operands.resize(2);  // what an op reads, and where it stores
      state.memory_of(r, Memory::input) = reinterpret_cast<std::byte*>(&input_[r]);
      state.memory_of(r, Memory::output) = reinterpret_cast<std::byte*>(&output_[r]);
    }
  }

  // The first half of a call.
  bool post(std::size_t r, std::uint64_t word) {
    input_[r] = word;
    RankState& state = states_[r];
    ++state.waiter.call;
    state.waiter.fingerprint = state.waiter.call;
    past_[r] = state.past;
    return play(r, {{.code = OpCode::post, .operands = 1, .offset = kPostHeader, .bytes = 8}, {}},
                {{.rank = static_cast<std::uint16_t>(r), .memory = Memory::input}});
  }
  // And the second: what the other has posted in it.
  std::uint64_t read(std::size_t r) {
    states_[r].past = past_[r];  // which counts calls, not halves of calls
    const auto peer = static_cast<std::uint16_t>(1 - r);
    const bool read = play(r,
                           {{.code = OpCode::wait_post, .peer = peer},
                            {.code = OpCode::fold, .operands = 1, .bytes = 8},
                            {}},
                           {{.rank = peer, .memory = Memory::board, .offset = kPostHeader}});
    return read ? output_[r] : ~std::uint64_t{0};
  }
  RankState& state(std::size_t r) { return states_[r]; }
  Crossbar& crossbar() { return crossbar_; }

 private:
  bool play(std::size_t r, std::vector<Op> ops, std::vector<Operand> operands) {
    Plan plan;
    plan.transport = Transport::board;
    plan.ranks = 2;
    plan.rank.resize(2);
    plan.rank[r].ops = std::move(ops);
    plan.rank[r].operands = std::move(operands);
    return interpret(plan, states_[r]);
  }

  Crossbar crossbar_{2, {.mode = WaitPolicy::Mode::park, .probes = 0}, 1'000'000};
  alignas(kCacheLine) std::byte lines_[2][kCacheLine]{};
  std::array<std::uint64_t, 2> input_{}, output_{};
  std::array<std::uint32_t, 2> past_{};
  std::array<RankState, 2> states_;
};

TEST(Board, ASlowReaderStillFindsTheCallBefore) {
  for (const std::uint32_t first : {0U, 1U, 0U - 2U, 0x80000000U - 2U}) {
    Pair pair(first);
    for (std::uint64_t i = 0; i < 6; ++i) {
      // Rank 1 is done with call i and has posted for the next when rank 0 comes to read.
      if (i == 0) {
        ASSERT_TRUE(pair.post(1, 100));
      }
      ASSERT_TRUE(pair.post(0, 10 + i));
      EXPECT_EQ(pair.read(1), 10 + i);
      ASSERT_TRUE(pair.post(1, 101 + i));
      EXPECT_EQ(pair.read(0), 100 + i);
    }
  }
}

TEST(Board, AnOlderPostIsNoPost) {
  Pair pair(7);
  ASSERT_TRUE(pair.post(0, 1));
  EXPECT_EQ(pair.read(0), ~std::uint64_t{0}) << "nobody has posted anything";
  EXPECT_EQ(pair.crossbar().reason().code(), Code::timeout);
}

TEST(Board, AnotherCallsPostIsReported) {
  Pair pair(0);
  ASSERT_TRUE(pair.post(0, 1));
  ASSERT_TRUE(pair.post(1, 2));
  pair.state(0).waiter.fingerprint = 99;
  EXPECT_EQ(pair.read(0), ~std::uint64_t{0});
  EXPECT_EQ(pair.crossbar().reason().code(), Code::mismatch);
}

TEST(Board, AnotherPastIsReported) {
  Pair pair(0);
  pair.state(1).past = 5U << 16;  // a call that nobody else made
  ASSERT_TRUE(pair.post(0, 1));
  ASSERT_TRUE(pair.post(1, 2));
  EXPECT_EQ(pair.read(0), ~std::uint64_t{0});
  EXPECT_EQ(pair.crossbar().reason().text(),
            "rank 0 and rank 1 make the same call, but made different ones before");
}

TEST(Board, HalvesHoldWholeLines) {
  EXPECT_EQ(board_stride(0), 64U);
  EXPECT_EQ(board_stride(1), 128U);
  EXPECT_EQ(board_stride(64), 128U);
  EXPECT_EQ(board_stride(65), 192U);
}

}  // namespace
}  // namespace rankine
