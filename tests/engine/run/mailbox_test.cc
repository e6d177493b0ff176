// One mailbox, two threads: data and order, credit, and counters that wrap.
#include "engine/run/mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "tests/engine/run/random.h"

namespace rankine {
namespace {

constexpr std::size_t kStride = 128;
constexpr std::size_t kPayload = payload_of(kStride);
constexpr std::int64_t kMinute = 60'000'000'000;

struct alignas(kCacheLine) Slots {
  std::byte bytes[kSlots * kStride];
};

constexpr std::uint64_t kFingerprint = 0x123456789abcdef;

// From rank 0 to rank 1.
struct Pair {
  explicit Pair(std::uint32_t first, WaitPolicy policy = {.mode = WaitPolicy::Mode::yield},
                std::uint32_t capacity = kSlots)
      : crossbar(2, policy, kMinute) {
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      (new (slots.bytes + i * kStride) PostHeader)->flag.store(first);
    }
    credit.value.store(first);
    // Who waits long looks at what the other says that it calls.
    for (Rank r : {0, 1}) crossbar.record(r).of(0).fingerprint.store(kFingerprint);
    outbox = {{slots.bytes, kStride, &credit, capacity}, first, first};
    inbox = {{slots.bytes, kStride, &credit, capacity}, first};
  }
  Crossbar crossbar;
  Slots slots{};
  Counter credit;
  Outbox outbox;
  Inbox inbox;
  Waiter sender{.crossbar = &crossbar, .rank = 0, .fingerprint = kFingerprint};
  Waiter receiver{.crossbar = &crossbar, .rank = 1, .fingerprint = kFingerprint};
};

constexpr std::uint32_t kFirsts[] = {0U, 0U - 50U, 0x80000000U - 50U};

TEST(Mailbox, MessagesArriveInOrderWithTheirData) {
  constexpr std::uint32_t kMessages = affordable(40'000);
  for (const std::uint32_t first : kFirsts) {
    for (const auto mode : {WaitPolicy::Mode::yield, WaitPolicy::Mode::park}) {
      Pair pair(first, {.mode = mode, .probes = 2, .yield_ns = 0});
      std::thread writer([&] {
        Random sizes(1), pace(2);
        for (std::uint32_t m = 0; m < kMessages; ++m) {
          if (pace.one_in(50)) std::this_thread::yield();
          std::array<std::byte, kPayload> data;
          const auto bytes = static_cast<std::size_t>(sizes.below(kPayload + 1));
          data.fill(static_cast<std::byte>(m));
          pair.sender.deadline_ns = 0;
          ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, data.data(), bytes, 1));
        }
      });
      Random sizes(1), pace(3);
      for (std::uint32_t m = 0; m < kMessages; ++m) {
        if (pace.one_in(70)) std::this_thread::yield();
        pair.receiver.deadline_ns = 0;
        PostHeader* slot = pair.inbox.wait(pair.receiver, 0, first + m, 1);
        ASSERT_NE(slot, nullptr);
        EXPECT_EQ(slot->fingerprint, kFingerprint);
        ASSERT_EQ(slot->note, static_cast<std::uint32_t>(sizes.below(kPayload + 1)));
        const std::vector<std::byte> wanted(slot->note, static_cast<std::byte>(m));
        EXPECT_TRUE(std::equal(wanted.begin(), wanted.end(), payload(*slot)));
        pair.inbox.release(pair.receiver, first + m + 1, false);
      }
      writer.join();
    }
  }
}

// A message by address: the sender's memory is its own again once the credit is back.
TEST(Mailbox, MemorySentByAddressIsLeftAloneUntilTheCredit) {
  constexpr std::uint32_t kMessages = affordable(20'000);
  for (const std::uint32_t first : kFirsts) {
    Pair pair(first);
    std::thread writer([&] {
      std::vector<std::uint64_t> data(20);
      for (std::uint32_t m = 0; m < kMessages; ++m) {
        data.assign(data.size(), m);
        const std::uint64_t* address = data.data();
        pair.sender.deadline_ns = 0;
        ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, &address, sizeof(address), 1));
        ASSERT_TRUE(pair.outbox.wait_credit(pair.sender, 1, first + m + 1, 1));
      }
    });
    for (std::uint32_t m = 0; m < kMessages; ++m) {
      pair.receiver.deadline_ns = 0;
      PostHeader* slot = pair.inbox.wait(pair.receiver, 0, first + m, 1);
      ASSERT_NE(slot, nullptr);
      const std::uint64_t* address;
      std::memcpy(&address, payload(*slot), sizeof(address));
      for (int i = 0; i < 20; ++i) ASSERT_EQ(address[i], m);
      pair.inbox.release(pair.receiver, first + m + 1, true);
    }
    writer.join();
  }
}

// Half the slots may always be sent without the receiver's help, wherever the numbers stand and
// however many slots there are; all of them where nothing is under way, and not one more.
TEST(Mailbox, HalfTheCapacityNeedsNoFreshCredit) {
  for (const std::uint32_t capacity : {2U, 8U, kSlots}) {
    for (std::uint32_t used = 0; used < 3 * capacity; ++used) {
      for (const std::uint32_t first : kFirsts) {
        Pair pair(first, {.mode = WaitPolicy::Mode::park}, capacity);
        const std::uint64_t word = 5;
        for (std::uint32_t m = 0; m < used; ++m) {
          ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, &word, sizeof(word), 1));
          ASSERT_NE(pair.inbox.wait(pair.receiver, 0, first + m, 1), nullptr);
          pair.inbox.release(pair.receiver, first + m + 1, false);
        }
        // One thread: a send that had to wait would never return.
        for (std::uint32_t m = used; m < used + capacity / 2; ++m) {
          ASSERT_TRUE(pair.outbox.send(pair.sender, 1, first + m, &word, sizeof(word), 1));
        }
      }
    }
    Pair full(0, {.mode = WaitPolicy::Mode::park}, capacity);
    full.crossbar.abort({Code::aborted, "over"});
    const std::uint64_t word = 5;
    for (std::uint32_t m = 0; m < capacity; ++m) {
      EXPECT_TRUE(full.outbox.send(full.sender, 1, m, &word, sizeof(word), 1));
    }
    EXPECT_FALSE(full.outbox.send(full.sender, 1, capacity, &word, sizeof(word), 1));
  }
}

TEST(Mailbox, AnAbortEndsBothSides) {
  Pair pair(0);
  const std::uint64_t word = 5;
  pair.crossbar.abort({Code::aborted, "over"});
  EXPECT_EQ(pair.inbox.wait(pair.receiver, 0, 0, 1), nullptr);
  for (std::uint32_t m = 0; m < kSlots; ++m) {
    EXPECT_TRUE(pair.outbox.send(pair.sender, 1, m, &word, sizeof(word), 1));
  }
  EXPECT_FALSE(pair.outbox.send(pair.sender, 1, kSlots, &word, sizeof(word), 1));
}

}  // namespace
}  // namespace rankine
