// Channels carry 8-byte messages between two threads: the engine's mailbox and two well-known SPSC
// queues. This header also has the two measurements, ping-pong and stream.
#pragma once

#include <readerwriterqueue/readerwriterqueue.h>

#include <array>
#if __has_include(<boost/lockfree/spsc_queue.hpp>)
#include <boost/lockfree/spsc_queue.hpp>
#define RANKINE_HAS_BOOST 1
#endif
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "engine/run/mailbox.h"
#include "engine/run/rank_control.h"
#include "engine/run/wait.h"

namespace rankine {

// A one-way channel of 8-byte messages; one thread uses each of its two sides.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual void send(std::uint64_t message) = 0;
  virtual std::uint64_t receive() = 0;
};

// Aborts if a queue loses or repeats a message: its time would be wrong.
inline void check(std::uint64_t got, std::uint64_t expected) {
  if (got == expected) return;
  std::fprintf(stderr, "mailbox: message %llu in place of %llu\n",
               static_cast<unsigned long long>(got), static_cast<unsigned long long>(expected));
  std::abort();
}

class OurMailbox final : public Channel {
 public:
  OurMailbox() : rank_control_(2, WaitPolicy{}, 30'000'000'000) {
    for (std::uint32_t i = 0; i < kSlots; ++i) new (slots_[i].bytes) PostHeader;
    out_.mailbox = in_.mailbox = {slots_[0].bytes, sizeof(Slot), &credit_};
    sender_ = {.rank_control = &rank_control_, .rank = 0};
    receiver_ = {.rank_control = &rank_control_, .rank = 1};
  }
  void send(std::uint64_t message) override {
    out_.send(sender_, 1, sent_++, &message, sizeof(message), 0);
  }
  std::uint64_t receive() override {
    PostHeader* slot = in_.wait(receiver_, 0, received_, 0);
    std::uint64_t message;
    std::memcpy(&message, payload(*slot), sizeof(message));
    in_.release(receiver_, ++received_, false);
    return message;
  }

 private:
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kCacheLine];
  };
  std::array<Slot, kSlots> slots_;
  Counter credit_;
  RankControl rank_control_;
  alignas(kCacheLine) Outbox out_;
  Waiter sender_;
  std::uint32_t sent_ = 0;
  alignas(kCacheLine) Inbox in_;
  Waiter receiver_;
  std::uint32_t received_ = 0;
};

#ifdef RANKINE_HAS_BOOST
class BoostQueue final : public Channel {
 public:
  void send(std::uint64_t message) override {
    while (!queue_.push(message)) pause_cpu();
  }
  std::uint64_t receive() override {
    std::uint64_t message;
    while (!queue_.pop(message)) pause_cpu();
    return message;
  }

 private:
  boost::lockfree::spsc_queue<std::uint64_t, boost::lockfree::capacity<kSlots>> queue_;
};
#endif

class MoodycamelQueue final : public Channel {
 public:
  void send(std::uint64_t message) override {
    while (!queue_.try_enqueue(message)) pause_cpu();
  }
  std::uint64_t receive() override {
    std::uint64_t message;
    while (!queue_.try_dequeue(message)) pause_cpu();
    return message;
  }

 private:
  moodycamel::ReaderWriterQueue<std::uint64_t> queue_{kSlots};
};

struct ChannelKind {
  const char* name;
  std::unique_ptr<Channel> (*make)();
};
template <class T>
std::unique_ptr<Channel> make_channel() {
  return std::make_unique<T>();
}
inline constexpr ChannelKind kChannelKinds[] = {
    {"mailbox", make_channel<OurMailbox>},
#ifdef RANKINE_HAS_BOOST
    {"boost_spsc_queue", make_channel<BoostQueue>},
#endif
    {"moodycamel_rwq", make_channel<MoodycamelQueue>},
};
// Both threads call it at once, as rank 0 and rank 1. Returns the time of `trips` round trips in
// ns, for rank 0.
inline std::int64_t play_ping_pong(int rank, Channel& there, Channel& back, std::uint64_t trips) {
  const std::int64_t begin = now_ns();
  for (std::uint64_t i = 1; i <= trips; ++i) {
    if (rank == 0) {
      there.send(i);
      check(back.receive(), i);
    } else {
      back.send(there.receive());
    }
  }
  return now_ns() - begin;
}

// As play_ping_pong(), for messages one after the other, until the last is answered.
inline std::int64_t play_stream(int rank, Channel& channel, Channel& done, std::uint64_t messages) {
  const std::int64_t begin = now_ns();
  if (rank == 0) {
    for (std::uint64_t i = 1; i <= messages; ++i) channel.send(i);
    check(done.receive(), messages);
  } else {
    for (std::uint64_t i = 1; i <= messages; ++i) check(channel.receive(), i);
    done.send(messages);
  }
  return now_ns() - begin;
}

}  // namespace rankine
