// Fibers are threads of control that take turns on one thread of the system. Address and thread
// sanitizers are told of every change of stacks. All fibers share the thread's own state
// (thread_local variables, the exception being handled): a fiber must not switch inside a catch
// block.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace rankine {

// Fibers are numbered from 0 in the order given. Used by one thread; a body must not throw.
class Fibers {
 public:
  static constexpr std::size_t kStackBytes = std::size_t{128} << 10;

  // Each fiber has a stack of stack_bytes, which takes memory only as far as it is used.
  explicit Fibers(std::size_t stack_bytes = kStackBytes) : stack_bytes_(stack_bytes) {}
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Called from outside: starts with fiber `first` and returns when a fiber has called leave(), or
  // when a fiber has ended and `next_after_end` returns -1.
  void run(std::vector<std::function<void()>> bodies, int first,
           std::function<int()> next_after_end);
  // Called from inside: switches to another fiber; returns when a fiber switches back to this one.
  void go_to(int fiber);

  int current() const { return current_; }

 private:
  // The point where a fiber continues: its beginning, or its last switch.
  struct Place {
    ucontext_t beginning{};
    jmp_buf left{};
    bool has_left = false;
  };
  struct Fiber {
    Place place;
    bool has_ended = false;  // and waits for another body
    std::unique_ptr<std::byte[]> stack;
    std::function<void()> body;
    void* fake_stack = nullptr;   // the address sanitizer's
    void* thread_like = nullptr;  // the thread sanitizer's
  };
  static void enter(unsigned low, unsigned high);
  static void change(Place& from, Place& to);
  void switch_between(Place& from, void** fake_stack_of_from, int to);

  const std::size_t stack_bytes_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::function<int()> next_after_end_;
  Place outside_;
  void* outside_fake_stack_ = nullptr;
  void* outside_thread_like_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
  int current_ = -1;
};

}  // namespace rankine
