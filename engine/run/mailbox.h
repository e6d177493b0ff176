// Mailboxes and boards are the places where a rank writes data that other ranks wait for. A mailbox
// carries messages between an ordered pair of ranks; a board carries one post to several ranks.
//
// PostHeader stands before the data, in a slot of a mailbox or a half of a board, and identifies
// the call that the data belong to.
//
//   flag | note | mark | fingerprint      then the data
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/base/memory.h"
#include "engine/run/plan.h"
#include "engine/run/wait.h"

namespace rankine {

struct PostHeader {
  Atomic<std::uint32_t> flag{0};  // one past the number of the message or post here
  // Message: its bytes, less than 64 KiB. Board: the upper half of the poster's
  // RankState::call_history, which shows if its earlier calls equal ours.
  std::uint16_t bytes_or_history = 0;
  BufferHash buffer_hash;  // of the writer's buffers
  std::uint64_t fingerprint = 0;
};
static_assert(sizeof(PostHeader) == kPostHeader);

// The writer describes the data as those of its call, and then publishes them. `lines`, `own`: the
// writer's.
[[gnu::always_inline]] inline void describe_post(PostHeader& header, std::uint64_t fingerprint,
                                                 std::uint16_t bytes_or_history,
                                                 BufferHash own) noexcept {
  will_write(&header.bytes_or_history, sizeof(PostHeader) - sizeof(header.flag));
  header.bytes_or_history = bytes_or_history;
  header.buffer_hash = own;
  header.fingerprint = fingerprint;
}
[[gnu::always_inline]] inline void post(Waiter& waiter, RankLines& lines, PostHeader& header,
                                        std::uint32_t flag, std::uint16_t bytes_or_history,
                                        BufferHash own) noexcept {
  describe_post(header, waiter.fingerprint, bytes_or_history, own);
  publish(*waiter.rank_control, lines, header.flag, flag);  // pairs with wait_for_post()
}

// Waits until the writer's flag has reached `flag`, in a call equal to ours. False: aborted.
[[gnu::always_inline]] inline bool wait_for_post(Waiter& waiter, const PostHeader& header,
                                                 std::uint32_t flag, Rank writer,
                                                 int round) noexcept {
  return wait_for_call(waiter, header.flag, flag, writer, round, [&header] {
    will_read(&header.bytes_or_history, sizeof(PostHeader) - sizeof(header.flag));
    return header.fingerprint;
  });
}

// A mailbox carries messages of an ordered pair of ranks: single producer, single consumer, fixed
// capacity.
//
//   slot   PostHeader | payload ...     64-byte aligned, in the reader's memory
//
// The flag of a slot is its message's number plus one, so a reader waits on the line that carries
// the data: a small message costs one cache-line transfer. Data that does not fit travels as an
// address, is used in place, and must stay there until the credit comes back. Credit is the number
// of messages that the reader has finished with, on its own line; the sender reads it only when the
// slots that it knows to be free run out. The reader gives credit for messages in slots every half
// capacity, so a sender never blocks with at most half the capacity in flight.
//
// Numbers are absolute, modulo 2^32, over the life of the mailbox.

inline constexpr std::uint32_t kSlots = 16;  // default capacity of a mailbox
inline constexpr std::uint32_t kUnderWay = kSlots / 2;

// The memory that both sides share. `slots` has capacity * stride bytes, zeroed, aligned to a cache
// line.
struct Mailbox {
  std::byte* slots = nullptr;
  std::uint32_t stride = 0;
  Counter* credit = nullptr;        // written by the reader
  std::uint32_t capacity = kSlots;  // slots; a power of two, so that numbers may wrap; at least 2

  PostHeader& slot(std::uint32_t number) const {
    return *reinterpret_cast<PostHeader*>(slots + std::size_t{number & (capacity - 1)} * stride);
  }
  std::uint32_t under_way() const { return capacity / 2; }
};

// The largest payload in the header's line, bytes.
inline constexpr std::size_t kSmallPayload = kCacheLine - sizeof(PostHeader);

// The distance in bytes between slots with that payload, and the payload for that distance.
constexpr std::size_t stride_for(std::size_t payload_bytes) {
  return whole_lines(sizeof(PostHeader) + payload_bytes);
}
constexpr std::size_t payload_of(std::size_t stride) { return stride - sizeof(PostHeader); }

inline std::byte* payload(PostHeader& slot) {
  return reinterpret_cast<std::byte*>(&slot) + sizeof(PostHeader);
}

// The sender's end. Only the sending rank uses it.
struct Outbox {
  Mailbox mailbox;
  std::uint32_t base = 0;  // messages sent before this call
  std::uint32_t credit_seen = 0;

  // Waits until the reader has finished with all messages before `number`. False: aborted.
  bool wait_credit(Waiter& waiter, Rank to, std::uint32_t number, int round) noexcept {
    if (reached(credit_seen, number)) return true;
    if (!wait_until(waiter, mailbox.credit->value, number, to, round)) return false;
    // Acquire: this may see a later value than the wait did, and is relied on without another look.
    credit_seen = mailbox.credit->value.load(std::memory_order_acquire);
    return true;
  }

  // awaited_credit() is the condition of wait_credit(); credit_to_send() is the credit needed
  // before message `number` can be sent: the slot is free when its former message, one capacity
  // before, has been used.
  WaitTarget awaited_credit(Rank to, std::uint32_t number) const noexcept {
    if (reached(credit_seen, number)) return {};
    return {&mailbox.credit->value, number, to};
  }
  std::uint32_t credit_to_send(std::uint32_t number) const noexcept {
    return number + 1 - mailbox.capacity;
  }

  // The payload's first `bytes` come from `data`: the data themselves or their address. False:
  // aborted.
  [[gnu::always_inline]] bool send(Waiter& waiter, Rank to, std::uint32_t number, const void* data,
                                   std::size_t bytes, int round) noexcept {
    if (!wait_credit(waiter, to, credit_to_send(number), round)) return false;
    PostHeader& slot = mailbox.slot(number);
    std::byte* place = payload(slot);
    will_write(place, bytes);
    // The reader polls the first line, so that line is written in one go, and last.
    const auto* from = static_cast<const std::byte*>(data);
    if (bytes > kSmallPayload) {
      std::memcpy(place + kSmallPayload, from + kSmallPayload, bytes - kSmallPayload);
    }
    std::memcpy(place, from, std::min(bytes, kSmallPayload));
    // Pairs with Inbox::wait().
    post(waiter, waiter.rank_control->lines(waiter.rank), slot, number + 1,
         static_cast<std::uint16_t>(bytes), waiter.buffer_hashes.own);
    return true;
  }
};

// The reader's end. Only the receiving rank uses it.
struct Inbox {
  Mailbox mailbox;
  std::uint32_t base = 0;  // messages received before this call

  // Waits until message `number` has come, in a call equal to ours. nullptr: aborted.
  PostHeader* wait(Waiter& waiter, Rank from, std::uint32_t number, int round) noexcept {
    PostHeader& slot = mailbox.slot(number);
    return wait_for_post(waiter, slot, number + 1, from, round) ? &slot : nullptr;
  }

  // All messages before `number` have been used. `now`: the sender waits for the credit.
  void release(Waiter& waiter, std::uint32_t number, bool now) noexcept {
    if (now || number % mailbox.under_way() == 0) {
      publish(*waiter.rank_control, waiter.rank, mailbox.credit->value, number);
    }
  }
};

// A board is the place where a rank posts data once for several other ranks, alternating between
// two halves.
//
//   half   PostHeader | data ...     64-byte aligned
//
// Data that fit into the header's line stand there; larger data begin on the next line. Posts are
// numbered, modulo 2^32, over the life of the communicator; all ranks make the same posts. Post n
// is in half n & 1, with the flag n + 1.
//
// No rank waits for readers: every rank reads every post, so a rank that has found all posts n
// knows that all ranks have finished with post n - 1, whose half is written next. A rank is at most
// one post ahead of another, and no rank's own buffers are read when its call ends.
//
// Two ranks have one half each, and exchange them: a rank writes post n + 1 where it has just read
// the other's post n. A core that reads a line modified by another core also gets the right to
// modify it, so each line crosses once per post. With two halves per rank, the writer has to take
// the line back from its reader first, and each line crosses twice.

struct Board {
  std::byte* halves[2] = {};  // zeroed at first, aligned to a cache line

  std::byte* at(std::uint32_t number, std::size_t offset) const {
    return halves[number & 1] + offset;
  }
  PostHeader& half(std::uint32_t number) const {
    return *reinterpret_cast<PostHeader*>(at(number, 0));
  }
};

// The size of a half that holds `data_bytes` bytes of data.
constexpr std::uint32_t board_stride(std::size_t data_bytes) {
  return static_cast<std::uint32_t>(kCacheLine + whole_lines(data_bytes));
}

// The number of halves in each rank's memory.
constexpr std::size_t halves_of_a_rank(int ranks) { return ranks == 2 ? 1 : 2; }

// The place of a rank's post with that number: the rank whose memory holds it, and the half there.
struct HalfPlace {
  std::size_t rank = 0, half = 0;
};
constexpr HalfPlace half_place(int ranks, std::size_t rank, std::uint32_t number) {
  const std::size_t turn = number & 1;
  return ranks == 2 ? HalfPlace{rank ^ turn, 0} : HalfPlace{rank, turn};
}

// A rank's board. halves_of(r): the start of the halves in rank r's memory, `stride` bytes each.
template <class HalvesOf>
Board board_of(int ranks, std::size_t rank, std::size_t stride, const HalvesOf& halves_of) {
  const auto place = [&](std::uint32_t number) -> std::byte* {
    const HalfPlace there = half_place(ranks, rank, number);
    return halves_of(there.rank) + there.half * stride;
  };
  return {{place(0), place(1)}};
}

}  // namespace rankine
