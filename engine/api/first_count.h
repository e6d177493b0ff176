// Where the counters of a communicator begin: 0, but for tests near their wrap.
#pragma once

#include <cstdint>

namespace rankine {

// For as long as it lives, of the communicators that this thread makes.
class FirstCount {
 public:
  explicit FirstCount(std::uint32_t count) : before_(current_) { current_ = count; }
  ~FirstCount() { current_ = before_; }
  FirstCount(const FirstCount&) = delete;
  FirstCount& operator=(const FirstCount&) = delete;

  static std::uint32_t current() { return current_; }

 private:
  inline static thread_local std::uint32_t current_ = 0;
  const std::uint32_t before_;
};

}  // namespace rankine
