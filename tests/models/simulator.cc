#include "tests/models/simulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace rankine::model {
namespace {

constexpr std::int64_t kTurnNs = 40;
constexpr std::uint64_t kMostTurns = 50'000'000;

}  // namespace

Simulator::Simulator(const Options& options)
    : options_(options),
      random_(options.seed * 0x9e3779b97f4a7c15u + 1),
      switches_(random_.pick(std::vector<int>{2, 6, 20, 100})) {}

void Simulator::run(std::vector<std::function<void()>> threads) {
  threads_.assign(threads.size(), {});
  for (std::size_t t = 0; t < threads.size(); ++t) {
    threads_[t].clock.assign(threads.size(), 0);
    threads_[t].clock[t] = 1;
  }
  for (std::function<void()>& body : threads) {
    body = [this, inner = std::move(body)] {
      inner();
      self().state = State::ended;
    };
  }
  self_ = random_.below(static_cast<int>(threads_.size()));
  Machine::current = this;
  fibers_.run(std::move(threads), self_, [this] { return self_ = pick(); });
  Machine::current = nullptr;
}

// The next thread to run; -1: all have ended.
int Simulator::pick() {
  for (;;) {
    int able = 0;
    bool all_ended = true;
    std::int64_t soonest = kNever;
    for (Thread& thread : threads_) {
      if (thread.state == State::asleep && thread.until <= now_) thread.state = State::ready;
      if (thread.state == State::asleep) soonest = std::min(soonest, thread.until);
      if (thread.state == State::locking &&
          std::find(locked_.begin(), locked_.end(), thread.word) == locked_.end()) {
        thread.state = State::ready;
      }
      all_ended = all_ended && thread.state == State::ended;
      able += thread.state == State::ready ? 1 : 0;
    }
    if (all_ended) return -1;
    if (able == 0) {
      if (soonest == kNever) {
        std::fprintf(stderr, "simulator: nobody will ever move again\n");
        std::abort();
      }
      now_ = soonest;
      continue;
    }
    int nth = random_.below(able);
    for (std::size_t t = 0; t < threads_.size(); ++t) {
      if (threads_[t].state == State::ready && nth-- == 0) return static_cast<int>(t);
    }
  }
}

void Simulator::pass_on() {
  const int me = self_;
  self_ = pick();
  if (self_ < 0) {
    std::fprintf(stderr, "simulator: the last thread died\n");
    std::abort();
  }
  fibers_.go_to(self_);
  self_ = me;
}

void Simulator::come_to(Act act, const void*) {
  now_ += kTurnNs;
  if (++turns_ == kMostTurns) {
    std::fprintf(stderr, "simulator: no end in sight\n");
    std::abort();
  }
  trace_ = (trace_ ^ (static_cast<std::uint64_t>(self_) * 8 + static_cast<std::uint64_t>(act))) *
           0x100000001b3u;
  if (random_.one_in(switches_)) pass_on();
}

void Simulator::join(Clock& clock, const Clock& other) {
  if (clock.size() < other.size()) clock.resize(other.size());
  for (std::size_t i = 0; i < other.size(); ++i) clock[i] = std::max(clock[i], other[i]);
}

std::memory_order Simulator::effective(std::memory_order order, const Site& site) const {
  if (options_.relaxed_in.empty()) return order;
  const bool weak =
      std::string_view(site.function_name()).find(options_.relaxed_in) != std::string_view::npos;
  return weak ? std::memory_order_relaxed : order;
}

std::uint64_t Simulator::load(const void* word, std::uint64_t newest, std::memory_order order,
                              const Site& site) {
  if (effective(order, site) != std::memory_order_relaxed) {
    const auto found = released_.find(word);
    if (found != released_.end()) join(self().clock, found->second);
  }
  return newest;
}

void Simulator::store(const void* word, std::uint64_t, std::uint64_t, bool reads,
                      std::memory_order asked, const Site& site) {
  const std::memory_order order = effective(asked, site);
  const bool acquires = order != std::memory_order_relaxed && order != std::memory_order_release;
  const bool releases = order != std::memory_order_relaxed && order != std::memory_order_acquire;
  Clock& carried = released_[word];
  Clock& mine = self().clock;
  if (reads && acquires) join(mine, carried);
  if (!reads) carried.clear();  // only read-modify-writes go on with a release sequence
  if (releases) join(carried, mine);
  ++mine[static_cast<std::size_t>(self_)];
}

void Simulator::touch(const void* memory, std::size_t bytes, bool writes) {
  const Clock& mine = self().clock;
  const auto me = static_cast<std::uint8_t>(self_);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  std::array<Byte, 64>* line = nullptr;
  for (std::uintptr_t at = begin; at < begin + bytes; ++at) {
    if (line == nullptr || at % 64 == 0) line = &lines_[at / 64];
    Byte& byte = (*line)[at % 64];
    if (byte.written > mine[byte.writer] || (writes && byte.read > mine[byte.reader])) {
      if (race_.empty()) {
        const bool was_write = byte.written > mine[byte.writer];
        race_ = "rank " + std::to_string(self_) + (writes ? " writes" : " reads") +
                " memory that rank " + std::to_string(was_write ? byte.writer : byte.reader) +
                (was_write ? " may be writing" : " may be reading");
      }
    }
    if (writes) {
      byte.written = mine[me];
      byte.writer = me;
    } else {
      byte.read = mine[me];
      byte.reader = me;
    }
  }
}

void Simulator::lock(const void* mutex) {
  come_to(Act::write, mutex);
  while (std::find(locked_.begin(), locked_.end(), mutex) != locked_.end()) {
    self().state = State::locking;
    self().word = mutex;
    pass_on();
  }
  locked_.push_back(mutex);
  join(self().clock, released_[mutex]);
}

void Simulator::unlock(const void* mutex) {
  locked_.erase(std::find(locked_.begin(), locked_.end(), mutex));
  released_[mutex] = self().clock;
  ++self().clock[static_cast<std::size_t>(self_)];
}

void Simulator::futex_wait(const void* word, const std::uint32_t& newest, std::uint32_t seen,
                           std::int64_t until_ns) {
  come_to(Act::write, word);
  if (newest != seen || random_.one_in(50)) return;
  self().state = State::asleep;
  self().word = word;
  self().until = until_ns;
  pass_on();
}

void Simulator::futex_wake_all(const void* word) {
  come_to(Act::write, word);
  if (!options_.wakes) return;
  for (Thread& thread : threads_) {
    if (thread.state == State::asleep && thread.word == word) thread.state = State::ready;
  }
}

void Simulator::yield() {
  now_ += kTurnNs;
  pass_on();
}

void Simulator::sleep(std::int64_t ns) {
  self().state = State::asleep;
  self().word = nullptr;
  self().until = now_ + ns;
  pass_on();
}

std::int64_t Simulator::look_about() {
  return options_.looks_about ? 50'000'000 : std::int64_t{1} << 60;
}

bool Simulator::has_ended(int thread) {
  return threads_[static_cast<std::size_t>(thread - 1)].state == State::ended;
}

void Simulator::fault_point() {
  const std::uint64_t at = self().fault_points++;
  for (const Fault& fault : options_.faults) {
    if (fault.thread != static_cast<std::size_t>(self_) || fault.at != at) continue;
    switch (fault.kind) {
      case Fault::Kind::stall:
        sleep(fault.ns);
        break;
      case Fault::Kind::die:
        self().state = State::ended;
        self_ = pick();
        fibers_.go_to(self_);  // does not return
        break;
      case Fault::Kind::act:
        fault.act();
        break;
    }
  }
}

}  // namespace rankine::model
