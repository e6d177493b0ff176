// The mailbox of an ordered pair of ranks: single producer, single consumer, fixed capacity.
//
//   slot   header (post.h) | payload ...     64-byte aligned, in the reader's memory
//
// The flag of a slot is the number of the message in it plus one, so a reader waits on the line
// that carries the data: a small message costs one cache-line transfer. Data that does not fit
// travels as an address, is used where it is, and must stay there until the credit comes back.
// Credit: how many messages the reader has done with, on a line of its own; the sender looks at it
// only when the slots that it knows to be free run out. Credit for messages in slots is given every
// half capacity, so at most half the capacity may be under way without fear.
//
// Numbers are absolute, modulo 2^32, over the life of the mailbox.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/run/post.h"

namespace rankine {

inline constexpr std::uint32_t kSlots = 16;  // of a mailbox, where nobody says otherwise
inline constexpr std::uint32_t kUnderWay = kSlots / 2;

// What the two sides share. `slots` has capacity * stride bytes, zeroed, aligned to a cache line.
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

// What fits into the line of the header.
inline constexpr std::size_t kSmallPayload = kCacheLine - sizeof(PostHeader);

// How far slots lie apart that take so many bytes, and what slots so far apart take.
constexpr std::size_t stride_for(std::size_t payload_bytes) {
  return whole_lines(sizeof(PostHeader) + payload_bytes);
}
constexpr std::size_t payload_of(std::size_t stride) { return stride - sizeof(PostHeader); }

inline std::byte* payload(PostHeader& slot) {
  return reinterpret_cast<std::byte*>(&slot) + sizeof(PostHeader);
}

// The sender's end. Used by the sending rank only.
struct Outbox {
  Mailbox mailbox;
  std::uint32_t base = 0;  // messages sent before this call
  std::uint32_t credit_seen = 0;

  // Until the reader has done with all messages before `number`. False: aborted.
  bool wait_credit(Waiter& waiter, Rank to, std::uint32_t number, int round) noexcept {
    if (reached(credit_seen, number)) return true;
    if (!wait_until(waiter, mailbox.credit->value, number, to, round)) return false;
    // Acquire: this may see more than the wait did, and is relied on without another look.
    credit_seen = mailbox.credit->value.load(std::memory_order_acquire);
    return true;
  }

  // What wait_credit() would wait for, and up to where credit is due before message `number` can be
  // sent: the slot is free when its former message, one capacity before, has been used.
  Awaited awaited_credit(Rank to, std::uint32_t number) const noexcept {
    if (reached(credit_seen, number)) return {};
    return {&mailbox.credit->value, number, to};
  }
  std::uint32_t credit_to_send(std::uint32_t number) const noexcept {
    return number + 1 - mailbox.capacity;
  }

  // The payload's first `bytes` come from `data`: the data itself, or its address. False: aborted.
  // Always inlined, since bench/fingerprint has a copy of its own.
  [[gnu::always_inline]] bool send(Waiter& waiter, Rank to, std::uint32_t number, const void* data,
                                   std::size_t bytes, int round) noexcept {
    if (!wait_credit(waiter, to, credit_to_send(number), round)) return false;
    PostHeader& slot = mailbox.slot(number);
    std::byte* place = payload(slot);
    will_write(place, bytes);
    // The reader probes the first line: it is written in one go, and last.
    const auto* from = static_cast<const std::byte*>(data);
    if (bytes > kSmallPayload) {
      std::memcpy(place + kSmallPayload, from + kSmallPayload, bytes - kSmallPayload);
    }
    std::memcpy(place, from, std::min(bytes, kSmallPayload));
    post(waiter, slot, number + 1, static_cast<std::uint16_t>(bytes));  // pairs with Inbox::wait()
    return true;
  }
};

// The reader's end. Used by the receiving rank only.
struct Inbox {
  Mailbox mailbox;
  std::uint32_t base = 0;  // messages received before this call

  // Until message `number` is there, of the call that is ours. nullptr: aborted.
  PostHeader* wait(Waiter& waiter, Rank from, std::uint32_t number, int round) noexcept {
    PostHeader& slot = mailbox.slot(number);
    return wait_for_post(waiter, slot, number + 1, from, round) ? &slot : nullptr;
  }

  // All messages before `number` have been used; `now`: the sender waits for it.
  void release(Waiter& waiter, std::uint32_t number, bool now) noexcept {
    if (now || number % mailbox.under_way() == 0) {
      publish(*waiter.crossbar, waiter.rank, mailbox.credit->value, number);
    }
  }
};

}  // namespace rankine
