#include <optional>

#include "engine/run/interpret.h"
#include "engine/run/walk.h"

namespace rankine {
namespace {

// The ops for which awaited() has an answer.
constexpr bool may_wait(OpCode code) noexcept {
  constexpr std::uint32_t kAll =
      1U << static_cast<int>(OpCode::wait_readers) | 1U << static_cast<int>(OpCode::wait_entry) |
      1U << static_cast<int>(OpCode::wait_progress) | 1U << static_cast<int>(OpCode::wait_message) |
      1U << static_cast<int>(OpCode::wait_credit) | 1U << static_cast<int>(OpCode::send) |
      1U << static_cast<int>(OpCode::wait_post) | 1U << static_cast<int>(OpCode::wait_posts) |
      1U << static_cast<int>(OpCode::choose);
  return (kAll >> static_cast<int>(code) & 1) != 0;
}

// The condition for which an op would wait now; an empty one if the op can run.
WaitTarget awaited(const Op& op, const Plan& plan, RankState& state) noexcept {
  RankControl& rank_control = *state.waiter.rank_control;
  const auto unless_reached = [](const WaitTarget& one) {
    return one.is_reached() ? WaitTarget{} : one;
  };
  const auto post_of = [&](Rank peer) {
    const Board& board = state.boards[static_cast<std::size_t>(peer)];
    return unless_reached({&board.half(state.posts - 1).flag, state.posts, peer});
  };
  switch (op.code) {
    case OpCode::wait_readers:
      state.waiter.behind = 1;
      for (const Readers& readers : state.readers) {
        if (!awaits(op, state, readers)) continue;
        for (const WaitTarget& reader : readers.all) {
          if (!reader.is_reached()) return reader;
        }
      }
      return {};
    case OpCode::wait_entry:
      return unless_reached({&rank_control.entry(op.peer, state.waiter.call).call,
                             static_cast<std::uint32_t>(state.waiter.call), op.peer});
    case OpCode::wait_progress:
      return unless_reached(
          {&rank_control.progress(op.peer).value, state.progress_base + op.value, op.peer});
    case OpCode::wait_message: {
      const Inbox& inbox = state.inbox[op.peer];
      const std::uint32_t number = inbox.base + op.value;
      return unless_reached({&inbox.mailbox.slot(number).flag, number + 1, op.peer});
    }
    case OpCode::wait_credit:
      return unless_reached(
          state.outbox[op.peer].awaited_credit(op.peer, state.outbox[op.peer].base + op.value));
    case OpCode::send: {
      const Outbox& outbox = state.outbox[op.peer];
      return unless_reached(
          outbox.awaited_credit(op.peer, outbox.credit_to_send(outbox.base + op.value)));
    }
    case OpCode::wait_post:
      return post_of(op.peer);
    case OpCode::wait_posts:
      for (Rank q = 0; q < plan.ranks; ++q) {
        if (q == state.waiter.rank) continue;
        if (const WaitTarget post = post_of(q); post.word != nullptr) return post;
      }
      return {};
    case OpCode::choose:
      for (Rank r = 0; begin_choice(plan, state) && r < plan.ranks; ++r) {
        if (r == state.waiter.rank) continue;
        const WaitTarget told = unless_reached(exchange_of(r, state));
        if (told.word != nullptr) return told;
      }
      return {};
    default:
      return {};
  }
}

// Non-blocking mode: the walk resumes at a cursor, and stops there again before an op that would
// wait.
struct FromCursor {
  static constexpr bool kMayStop = true;
  static constexpr bool kIsBegun = true;
  Cursor& cursor;

  std::optional<Walked> stop(const Op& op, std::size_t ops, std::size_t operands, const Plan& plan,
                             RankState& state) noexcept {
    if (!may_wait(op.code)) return std::nullopt;
    const WaitTarget next = awaited(op, plan, state);
    // Not is_reached() once more: when the one missing post has come, another may be missing.
    if (next.word == nullptr) {
      if (cursor.waited) has_come(state.waiter);
      cursor.waited = false;
      return std::nullopt;
    }
    cursor.op = ops;
    cursor.operand = operands;
    cursor.waited = true;
    return worth_waiting(state.waiter, next, op.round, cursor.next_look_ns) ? Walked::waiting
                                                                            : Walked::failed;
  }
};

}  // namespace

Walked interpret_some(const Plan& plan, RankState& state, Cursor& cursor) noexcept {
  return walk(plan, state, NoObserver{}, FromCursor{cursor});
}

}  // namespace rankine
