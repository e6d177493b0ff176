// A call in one piece, for plans in which two ranks post their inputs to each other and add up, or
// join both (Plan::exchanges). It does what walk() does with such ops, with addresses that are
// found once for all calls with the same buffers. Between the two halves, at kPosted, walk() can
// take over.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/run/interpret.h"
#include "engine/run/sharing.h"
#include "engine/run/wait.h"

namespace rankine {

// Waits for a post of `peer`, the one with the number of this rank's last post.
[[gnu::always_inline]] inline bool wait_post(const PostHeader& half, Rank peer, int round,
                                             const Plan& plan, RankState& state) noexcept {
  if (!wait_for_post(state.waiter, half, state.posts, peer, round)) return false;
  if (half.bytes_or_history != state.call_history >> 16) [[unlikely]] {
    report_call_history_mismatch(*state.waiter.rank_control, state.waiter.rank, peer);
    return false;
  }
  if (state.waiter.buffer_hashes.suspect(half.buffer_hash)) [[unlikely]]
    return check_no_alias(plan, state.waiter, peer);
  return true;
}

// A hash of all calls so far. Boards see nothing of calls on other transports, so they use the hash
// to detect an earlier call that went wrong unnoticed.
inline std::uint32_t history_after(std::uint32_t call_history, std::uint64_t fingerprint) {
  return (call_history ^ static_cast<std::uint32_t>(fingerprint ^ fingerprint >> 32)) * 0x9e3779b1U;
}

// A kernel in place of a sum: `count` bytes of each source, one behind the other.
inline void join(void* dst, const void* const* srcs, int, std::size_t count, int) noexcept {
  copy_bytes(dst, srcs[0], count);
  copy_bytes(static_cast<std::byte*>(dst) + count, srcs[1], count);
}

// One rank's side. Arrays of two: for even and odd numbers of posts.
struct Exchange {
  Exchange() = default;
  // Requires plan.exchanges.
  Exchange(const Plan& of, const RankState& state, const void* in, void* out,
           const BufferHashes& buffer_hashes)
      : plan(&of), input(static_cast<const std::byte*>(in)), hashes(buffer_hashes) {
    const auto self = static_cast<std::size_t>(state.waiter.rank);
    const RankPlan& mine = of.rank[self];
    const Op& post = mine.ops[0];
    const Op& sum = *std::ranges::find(mine.ops, OpCode::fold, &Op::code);
    peer = static_cast<Rank>(1 - self);
    round = sum.round;
    input += mine.operands[0].offset;
    bytes = post.bytes;
    output = static_cast<std::byte*>(out) + sum.offset;
    const bool adds = sum.operands == 2;
    count = adds ? sum.bytes / of.element_bytes : sum.bytes;
    fold = adds ? of.fold : join;
    divisor = (sum.flags & kDivides) != 0 ? of.divisor : 0;
    for (const std::uint32_t n : {0U, 1U}) {
      halves[n] = state.boards[self].halves[n];
      places[n] = halves[n] + post.offset;
      others[n] = &state.boards[1 - self].half(n);
      for (std::size_t i = 0; i < 2; ++i) {
        const Operand& from = mine.operands[1 + i];
        sources[n][i] = from.memory == Memory::board
                            ? state.boards[from.rank].at(n, from.offset)
                            : static_cast<const std::byte*>(in) + from.offset;
      }
    }
  }

  const Plan* plan = nullptr;
  const std::byte* input = nullptr;  // what this rank posts
  std::byte* output = nullptr;
  std::size_t bytes = 0, count = 0;
  ReduceKernel fold = nullptr;
  int divisor = 0;
  BufferHashes hashes;
  Rank peer = 0;
  int round = 0;
  std::byte *halves[2] = {}, *places[2] = {};  // of this rank's post, and of its data
  const PostHeader* others[2] = {};            // the peer's
  const void* sources[2][2] = {};              // of the sum

  // False: this call must be walked, because the counters enter a new stretch
  // (bound_counter_skew()).
  static bool fits(const RankState& state) noexcept {
    return ((state.progress_base + 1) & (kCounterStretch - 1)) != 0;
  }
  // `lines`: this rank's.
  void post_input(RankState& state, RankLines& lines) const noexcept {
    std::uint32_t number;
    if (!post_few_bytes(state, number)) {
      std::memcpy(places[state.posts & 1], input, bytes);
      publish_half(state, state.posts);
    }
    wake(state, lines);
  }
  // Waits for the peer's post and adds up. False: aborted.
  [[gnu::noinline]] bool sum_posts(RankState& state) const noexcept {
    fault_point();
    if (!is_as_expected(state, state.posts)) {
      state.waiter.buffer_hashes = hashes;
      const PostHeader& other = *others[(state.posts - 1) & 1];
      if (!wait_post(other, peer, round, *plan, state)) return false;
    }
    add_up(state, state.posts);
    return true;
  }

  // The frequent case in its parts, which call no function but the sum: values that are needed
  // after a function call would cost a short way as much as the rest. post_few_bytes() posts an
  // input of few bytes and sets the number of the post; RankControl::has_sleepers() then tells if
  // wake() is due. False: nothing has happened, and post_input() posts.
  [[gnu::always_inline]] bool post_few_bytes(RankState& state,
                                             std::uint32_t& number) const noexcept {
    fault_point();
    const std::uint32_t before = state.posts;
    std::byte* const place = places[before & 1];
    will_read(input, bytes);
    will_write(place, bytes);
    if (!copy_few_bytes(place, input, bytes)) [[unlikely]]
      return false;
    number = publish_half(state, before);
    return true;
  }
  void wake(RankState& state, RankLines& lines) const noexcept {
    state.waiter.rank_control->announce(lines, half(state.posts - 1).flag);
  }
  // True if the peer's post with that number has come. Relaxed, as WaitTarget: what follows looks
  // again.
  bool has_come(std::uint32_t number) const noexcept {
    return reached(others[(number - 1) & 1]->flag.load(std::memory_order_relaxed), number);
  }
  // True if the post has come, and wait_post() would find no fault with it: add_up() can follow.
  [[gnu::always_inline]] bool is_as_expected(const RankState& state,
                                             std::uint32_t number) const noexcept {
    const PostHeader& other = *others[(number - 1) & 1];
    // Acquire: pairs with publish_half().
    if (!reached(other.flag.load(std::memory_order_acquire), number)) return false;
    will_read(&other.bytes_or_history, sizeof(PostHeader) - sizeof(other.flag));
    return other.fingerprint == state.waiter.fingerprint &&
           other.bytes_or_history == history(state) && !hashes.suspect(other.buffer_hash);
  }
  [[gnu::always_inline]] void add_up(RankState& state, std::uint32_t number) const noexcept {
    const std::size_t now = (number - 1) & 1;
    for (const void* source : sources[now]) will_read(source, bytes);
    will_write(output, bytes);
    fold(output, sources[now], 2, count, divisor);
    ++state.progress_base;
    state.call_history = history_after(state.call_history, state.waiter.fingerprint);
  }

 private:
  PostHeader& half(std::uint32_t number) const {
    return *reinterpret_cast<PostHeader*>(halves[number & 1]);
  }
  static std::uint16_t history(const RankState& state) {
    return static_cast<std::uint16_t>(state.call_history >> 16);
  }
  // Returns the number of the post, whose data are in its half. `before`: the former post's number.
  [[gnu::always_inline]] std::uint32_t publish_half(RankState& state,
                                                    std::uint32_t before) const noexcept {
    PostHeader& header = half(before);
    const std::uint32_t number = state.posts = before + 1;
    describe_post(header, state.waiter.fingerprint, history(state), hashes.own);
    header.flag.store(number, std::memory_order_release);  // pairs with wait_for_post()
    return number;
  }
};

// The cursor of a call between its post and its sum.
inline constexpr Cursor kPosted{
    .op = 1, .operand = 1, .waited = true, .next_look_ns = kNextLookIsFirst};

}  // namespace rankine
