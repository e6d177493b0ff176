// Machine is the model's side of engine/run/machine.h: every operation goes to the current Machine,
// which decides the next thread to run and the value that a load returns. Without a current Machine
// (before threads start and after they have ended) the operations are plain.
//
// An Atomic<T> is as large as T, so layouts equal those of production. A machine keeps the older
// values of a word by its address.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

namespace rankine {
namespace model {

using Site = std::source_location;

// The next action of a thread: the granularity at which threads interleave.
enum class Act : std::uint8_t {
  nothing,    // no operation yet
  read,       // of one word
  read_last,  // of one word, with seq_cst: the value may depend on the time
  write,      // of one word: store, read-modify-write, lock, unlock, wait, wake
  barrier,    // with one thread
  everybody,  // concerns all threads
};

class Machine {
 public:
  virtual ~Machine() = default;

  // Other threads may run before this returns, but none runs between its return and the next call.
  virtual void come_to(Act act, const void* word) = 0;
  // Called after come_to(). `newest` is the word's newest value; returns the value that the load
  // sees.
  virtual std::uint64_t load(const void* word, std::uint64_t newest, std::memory_order order,
                             const Site& site) = 0;
  // Called after come_to(). `reads`: a read-modify-write, which has read `former`.
  virtual void store(const void* word, std::uint64_t former, std::uint64_t value, bool reads,
                     std::memory_order order, const Site& site) = 0;

  virtual void lock(const void* mutex) = 0;
  virtual void unlock(const void* mutex) = 0;
  virtual void compiler_fence() = 0;
  virtual void barrier_everywhere() = 0;
  virtual void futex_wait(const void* word, const std::uint32_t& newest, std::uint32_t seen,
                          std::int64_t until_ns) = 0;
  virtual void futex_wake_all(const void* word) = 0;
  virtual void yield() = 0;
  virtual void sleep(std::int64_t ns) = 0;
  virtual std::int64_t now() = 0;
  virtual std::int64_t look_about() = 0;
  virtual int thread() = 0;  // from 1
  virtual bool has_ended(int thread) = 0;
  virtual void will_read(const void* memory, std::size_t bytes) = 0;
  virtual void will_write(const void* memory, std::size_t bytes) = 0;
  virtual void fault_point() = 0;

  static inline Machine* current = nullptr;  // nullptr: operations are plain
};

}  // namespace model

template <class T>
class Atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  using Site = model::Site;

 public:
  constexpr Atomic() = default;
  constexpr Atomic(T value) : value_(value) {}  // NOLINT: as std::atomic
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst,
         const Site& site = Site::current()) const {
    model::Machine* machine = model::Machine::current;
    if (machine == nullptr) return value_;
    machine->come_to(order == std::memory_order_seq_cst ? model::Act::read_last : model::Act::read,
                     this);
    return value_of(machine->load(this, bits_of(value_), order, site));
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst,
             const Site& site = Site::current()) {
    model::Machine* machine = model::Machine::current;
    if (machine != nullptr) {
      machine->come_to(model::Act::write, this);
      machine->store(this, bits_of(value_), bits_of(value), false, order, site);
    }
    value_ = value;
  }
  T fetch_add(T operand, std::memory_order order = std::memory_order_seq_cst,
              const Site& site = Site::current()) {
    return modify([=](T value) { return static_cast<T>(value + operand); }, order, site);
  }
  T fetch_sub(T operand, std::memory_order order = std::memory_order_seq_cst,
              const Site& site = Site::current()) {
    return modify([=](T value) { return static_cast<T>(value - operand); }, order, site);
  }
  T fetch_or(T operand, std::memory_order order = std::memory_order_seq_cst,
             const Site& site = Site::current()) {
    return modify([=](T value) { return static_cast<T>(value | operand); }, order, site);
  }
  // On failure `expected` is the newest value.
  bool compare_exchange_strong(T& expected, T value,
                               std::memory_order order = std::memory_order_seq_cst,
                               const Site& site = Site::current()) {
    model::Machine* machine = model::Machine::current;
    if (machine != nullptr) machine->come_to(model::Act::write, this);
    const bool same = value_ == expected;
    if (!same) {
      if (machine != nullptr) machine->load(this, bits_of(value_), order, site);
      expected = value_;
      return false;
    }
    if (machine != nullptr) {
      machine->store(this, bits_of(value_), bits_of(value), true, order, site);
    }
    value_ = value;
    return true;
  }

 private:
  static std::uint64_t bits_of(T value) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static T value_of(std::uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  template <class Change>
  T modify(Change change, std::memory_order order, const Site& site) {
    model::Machine* machine = model::Machine::current;
    if (machine != nullptr) machine->come_to(model::Act::write, this);
    const T former = value_;
    const T value = change(former);
    if (machine != nullptr) {
      machine->store(this, bits_of(former), bits_of(value), true, order, site);
    }
    value_ = value;
    return former;
  }

  T value_{};
};

class Mutex {
 public:
  void lock() {
    if (model::Machine::current != nullptr) model::Machine::current->lock(this);
  }
  void unlock() {
    if (model::Machine::current != nullptr) model::Machine::current->unlock(this);
  }

 private:
  char place_ = 0;  // only its address matters
};

inline void compiler_fence() {
  if (model::Machine::current != nullptr) model::Machine::current->compiler_fence();
}
inline void yield_cpu() {
  if (model::Machine::current != nullptr) model::Machine::current->yield();
}
inline void pause_cpu() { yield_cpu(); }
inline void wait_for_stores() {}
inline void sleep_ns(std::int64_t ns) {
  if (model::Machine::current != nullptr) model::Machine::current->sleep(ns);
}
inline std::int64_t now_ns() {
  return model::Machine::current != nullptr ? model::Machine::current->now() : 0;
}
inline std::int64_t look_about_ns() {
  return model::Machine::current != nullptr ? model::Machine::current->look_about() : 0;
}
inline int thread_id() {
  return model::Machine::current != nullptr ? model::Machine::current->thread() : 0;
}
inline bool thread_has_ended(int id, int = 0) {
  return id != 0 && model::Machine::current != nullptr && model::Machine::current->has_ended(id);
}
// All threads are in one process.
enum class Threads : bool { of_this_process, of_all_processes };
inline bool membarrier_available(Threads = Threads::of_this_process) { return true; }
inline void barrier_everywhere(Threads = Threads::of_this_process) {
  if (model::Machine::current != nullptr) model::Machine::current->barrier_everywhere();
}
inline void futex_wait(const Atomic<std::uint32_t>& word, std::uint32_t seen, std::int64_t until_ns,
                       Threads = Threads::of_this_process) {
  if (model::Machine::current == nullptr) return;
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  model::Machine::current->futex_wait(&word, reinterpret_cast<const std::uint32_t&>(word), seen,
                                      until_ns);
}
inline void futex_wake_all(const Atomic<std::uint32_t>& word, Threads = Threads::of_this_process) {
  if (model::Machine::current != nullptr) model::Machine::current->futex_wake_all(&word);
}
inline void will_read(const void* memory, std::size_t bytes) {
  if (model::Machine::current != nullptr) model::Machine::current->will_read(memory, bytes);
}
inline void will_write(const void* memory, std::size_t bytes) {
  if (model::Machine::current != nullptr) model::Machine::current->will_write(memory, bytes);
}
inline void fault_point() {
  if (model::Machine::current != nullptr) model::Machine::current->fault_point();
}

}  // namespace rankine
