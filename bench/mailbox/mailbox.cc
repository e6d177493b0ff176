// The mailbox against a bare cache line and two well-known SPSC queues: one-way latency of a
// ping-pong and throughput of 8-byte messages between two pinned threads.
//
//   third_party/bazel run //bench/mailbox
//
// Manual time: half a round trip (latency) or a message (throughput), so real_time is what counts.
#include <benchmark/benchmark.h>
#include <readerwriterqueue/readerwriterqueue.h>

#include <array>
#include <atomic>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdint>
#include <memory>
#include <thread>

#include "engine/exec/crossbar.h"
#include "engine/exec/mailbox.h"
#include "engine/exec/wait.h"
#include "numa/pin.h"
#include "numa/placement.h"
#include "numa/topology.h"

namespace rankine {
namespace {

// A one-way channel of 8-byte messages; each of the two sides is used by one thread.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual void send(std::uint64_t message) = 0;
  virtual std::uint64_t receive() = 0;
};

// Nothing but the line: what no queue can beat.
class BareLine final : public Channel {
 public:
  void send(std::uint64_t message) override {
    while (word_.load(std::memory_order_acquire) != 0) pause_cpu();
    word_.store(message, std::memory_order_release);  // pairs with receive()
  }
  std::uint64_t receive() override {
    std::uint64_t message;
    while ((message = word_.load(std::memory_order_acquire)) == 0) pause_cpu();
    word_.store(0, std::memory_order_release);  // pairs with send()
    return message;
  }

 private:
  alignas(kCacheLine) std::atomic<std::uint64_t> word_{0};
};

class OurMailbox final : public Channel {
 public:
  OurMailbox() : crossbar_(2, WaitPolicy{}, 30'000'000'000) {
    for (std::uint32_t i = 0; i < kSlots; ++i) new (slots_[i].bytes) SlotHeader;
    out_.mailbox = in_.mailbox = {slots_[0].bytes, sizeof(Slot), &credit_};
    sender_ = {.crossbar = &crossbar_, .rank = 0};
    receiver_ = {.crossbar = &crossbar_, .rank = 1};
  }
  void send(std::uint64_t message) override {
    out_.send(sender_, 1, sent_++, &message, sizeof(message), 0, 0);
  }
  std::uint64_t receive() override {
    SlotHeader* slot = in_.wait(receiver_, 0, received_, 0);
    std::uint64_t message;
    std::memcpy(&message, payload(*slot, sizeof(message)), sizeof(message));
    in_.release(receiver_, ++received_, false);
    return message;
  }

 private:
  struct alignas(kCacheLine) Slot {
    std::byte bytes[kCacheLine];
  };
  std::array<Slot, kSlots> slots_;
  Counter credit_;
  Crossbar crossbar_;
  alignas(kCacheLine) Outbox out_;
  Waiter sender_;
  std::uint32_t sent_ = 0;
  alignas(kCacheLine) Inbox in_;
  Waiter receiver_;
  std::uint32_t received_ = 0;
};

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

// The peer's thread, on the second core.
void pin_to(int rank) {
  static const Topology topology = Topology::detect();
  static const Placement placement = place_ranks(topology, 2);
  pin_calling_thread(topology, placement.ranks[static_cast<std::size_t>(rank)]);
}

constexpr int kBatch = 20'000;

template <class T>
void latency(benchmark::State& state) {
  const auto there = std::make_unique<T>(), back = std::make_unique<T>();
  pin_to(0);
  std::thread peer([&] {
    pin_to(1);
    for (std::uint64_t message; (message = there->receive()) != ~std::uint64_t{0};) {
      back->send(message);
    }
  });
  for (auto _ : state) {
    const std::int64_t begin = now_ns();
    for (std::uint64_t i = 1; i <= kBatch; ++i) {
      there->send(i);
      benchmark::DoNotOptimize(back->receive());
    }
    state.SetIterationTime(static_cast<double>(now_ns() - begin) * 1e-9 / (2.0 * kBatch));
  }
  there->send(~std::uint64_t{0});
  peer.join();
}

template <class T>
void throughput(benchmark::State& state) {
  const auto channel = std::make_unique<T>(), done = std::make_unique<T>();
  pin_to(0);
  std::thread peer([&] {
    pin_to(1);
    for (;;) {
      std::uint64_t message = 0;
      for (int i = 0; i < kBatch; ++i) message = channel->receive();
      if (message == ~std::uint64_t{0}) return;
      done->send(message);
    }
  });
  for (auto _ : state) {
    const std::int64_t begin = now_ns();
    for (std::uint64_t i = 1; i <= kBatch; ++i) channel->send(i);
    benchmark::DoNotOptimize(done->receive());
    state.SetIterationTime(static_cast<double>(now_ns() - begin) * 1e-9 / kBatch);
  }
  for (int i = 0; i < kBatch; ++i) channel->send(~std::uint64_t{0});
  peer.join();
}

#define RANKINE_MAILBOX_BENCHMARK(Kind) \
  BENCHMARK(latency<Kind>)              \
      ->UseManualTime()                 \
      ->Iterations(30)                  \
      ->Repetitions(5)                  \
      ->ReportAggregatesOnly();         \
  BENCHMARK(throughput<Kind>)           \
      ->UseManualTime()                 \
      ->Iterations(30)                  \
      ->Repetitions(5)                  \
      ->ReportAggregatesOnly()

RANKINE_MAILBOX_BENCHMARK(BareLine);
RANKINE_MAILBOX_BENCHMARK(OurMailbox);
RANKINE_MAILBOX_BENCHMARK(BoostQueue);
RANKINE_MAILBOX_BENCHMARK(MoodycamelQueue);

}  // namespace
}  // namespace rankine

BENCHMARK_MAIN();
