// Without this, the C library refuses a longjmp to a place further up the stack, which is correct
// only within one stack.
#undef _FORTIFY_SOURCE

#include "engine/base/fibers.h"

#include <cstdint>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace rankine {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// The address sanitizer must know of every change of stacks.
void before_switch([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                   [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
}
void after_switch([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] std::size_t* bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
#endif
}

// The thread sanitizer treats a fiber as a thread; a switch orders all earlier actions before the
// next fiber.
void* new_thread_like() {
#if defined(__SANITIZE_THREAD__)
  return __tsan_create_fiber(0);
#else
  return nullptr;
#endif
}
void end_thread_like([[maybe_unused]] void* thread_like) {
#if defined(__SANITIZE_THREAD__)
  if (thread_like != nullptr) __tsan_destroy_fiber(thread_like);
#endif
}
void* current_thread_like() {
#if defined(__SANITIZE_THREAD__)
  return __tsan_get_current_fiber();
#else
  return nullptr;
#endif
}
void switch_thread_like([[maybe_unused]] void* to) {
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to, 0);
#endif
}

}  // namespace

Fibers::~Fibers() {
  for (const auto& fiber : fibers_) end_thread_like(fiber->thread_like);
}

void Fibers::enter(unsigned low, unsigned high) {
  const auto bits = static_cast<std::uint64_t>(high) << 32 | low;
  auto* self = reinterpret_cast<Fibers*>(static_cast<std::uintptr_t>(bits));
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  after_switch(nullptr, &bottom, &bytes);
  if (self->outside_bottom_ == nullptr) {  // the first switch comes from outside
    self->outside_bottom_ = bottom;
    self->outside_bytes_ = bytes;
  }
  for (;;) {
    Fiber& fiber = *self->fibers_[static_cast<std::size_t>(self->current_)];
    fiber.body();
    const int next = self->next_after_end_();
    fiber.has_ended = true;
    // A fiber that ends needs no fake stack.
    self->switch_between(fiber.place, nullptr, next);
  }
}

// Returns when a fiber changes to `from`. swapcontext() asks the kernel for the signal mask each
// time, which is common to all fibers and most of a switch's cost; so each fiber only starts with
// it. As in QEMU's coroutines (util/coroutine-ucontext.c). Sanitizers know only swapcontext().
void Fibers::change(Place& from, Place& to) {
  if constexpr (kSanitized) {
    swapcontext(&from.beginning, &to.beginning);
  } else {
    if (_setjmp(from.left) != 0) return;
    from.has_left = true;
    if (to.has_left) _longjmp(to.left, 1);
    setcontext(&to.beginning);
  }
}

void Fibers::switch_between(Place& from, void** fake_stack_of_from, int to) {
  current_ = to;
  if (to < 0) {
    before_switch(fake_stack_of_from, outside_bottom_, outside_bytes_);
    switch_thread_like(outside_thread_like_);
    change(from, outside_);
  } else {
    Fiber& fiber = *fibers_[static_cast<std::size_t>(to)];
    before_switch(fake_stack_of_from, fiber.stack.get(), stack_bytes_);
    switch_thread_like(fiber.thread_like);
    change(from, fiber.place);
  }
}

void Fibers::run(std::vector<std::function<void()>> bodies, int first,
                 std::function<int()> next_after_end) {
  next_after_end_ = std::move(next_after_end);
  outside_bottom_ = nullptr;
  outside_thread_like_ = current_thread_like();
  for (std::size_t i = 0; i < bodies.size(); ++i) {
    if (i == fibers_.size()) {
      fibers_.push_back(std::make_unique<Fiber>());
      fibers_.back()->stack = std::make_unique_for_overwrite<std::byte[]>(stack_bytes_);
    }
    Fiber& fiber = *fibers_[i];
    fiber.body = std::move(bodies[i]);
    end_thread_like(std::exchange(fiber.thread_like, new_thread_like()));
    if (std::exchange(fiber.has_ended, false) && !kSanitized) continue;  // its loop goes on
    fiber.place.has_left = false;
    ucontext_t& beginning = fiber.place.beginning;
    getcontext(&beginning);
    beginning.uc_stack.ss_sp = fiber.stack.get();
    beginning.uc_stack.ss_size = stack_bytes_;
    beginning.uc_link = nullptr;
    const auto bits = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&beginning, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
                static_cast<unsigned>(bits), static_cast<unsigned>(bits >> 32));
  }
  switch_between(outside_, &outside_fake_stack_, first);
  after_switch(outside_fake_stack_, nullptr, nullptr);
}

void Fibers::go_to(int fiber) {
  if (fiber == current_) return;
  Fiber& self = *fibers_[static_cast<std::size_t>(current_)];
  switch_between(self.place, &self.fake_stack, fiber);
  after_switch(self.fake_stack, nullptr, nullptr);
}

}  // namespace rankine
