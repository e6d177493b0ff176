// A call in one piece, for plans in which two ranks post their inputs to each other and add up
// (Plan::exchanges). It does what walk() does with such ops, with addresses that are found once for
// all calls with the same buffers. Between the two halves, at kPosted, walk() can take over.
#pragma once

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

// One rank's side. Arrays of two: for even and odd numbers of posts.
struct Exchange {
  Exchange() = default;
  // Requires plan.exchanges.
  Exchange(const Plan& of, const RankState& state, const void* in, void* out)
      : plan(&of), input(static_cast<const std::byte*>(in)) {
    const auto self = static_cast<std::size_t>(state.waiter.rank);
    const RankPlan& mine = of.rank[self];
    const Op &post = mine.ops[0], &sum = mine.ops[2];
    peer = static_cast<Rank>(1 - self);
    round = sum.round;
    input += mine.operands[0].offset;
    bytes = post.bytes;
    output = static_cast<std::byte*>(out) + sum.offset;
    count = sum.bytes / of.element_bytes;
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
  int divisor = 0;
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
  [[gnu::always_inline]] void post_input(RankState& state, RankLines& lines) const noexcept {
    fault_point();
    const std::size_t now = state.posts & 1;
    will_read(input, bytes);
    will_write(places[now], bytes);
    if (!copy_few_bytes(places[now], input, bytes)) std::memcpy(places[now], input, bytes);
    post(state.waiter, lines, *reinterpret_cast<PostHeader*>(halves[now]), ++state.posts,
         static_cast<std::uint16_t>(state.call_history >> 16));
  }
  // True if the peer's post has come. Relaxed, as WaitTarget: sum_posts() looks again.
  bool has_come(const RankState& state) const noexcept {
    return WaitTarget{&others[(state.posts - 1) & 1]->flag, state.posts, peer}.is_reached();
  }
  // Waits for the peer's post and adds up. False: aborted.
  [[gnu::always_inline]] bool sum_posts(RankState& state) const noexcept {
    fault_point();
    const std::size_t now = (state.posts - 1) & 1;
    if (!wait_post(*others[now], peer, round, *plan, state)) return false;
    for (const void* source : sources[now]) will_read(source, bytes);
    will_write(output, bytes);
    plan->fold(output, sources[now], 2, count, divisor);
    ++state.progress_base;
    state.call_history = history_after(state.call_history, state.waiter.fingerprint);
    return true;
  }
};

// The cursor of a call between its post and its sum.
inline constexpr Cursor kPosted{
    .op = 1, .operand = 1, .waited = true, .next_look_ns = kNextLookIsFirst};

}  // namespace rankine
