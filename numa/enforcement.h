// What came of a wish that the machine may refuse: pinning, memory binding, huge pages.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

namespace rankine {

// Plain data without heap memory, so that it can be filled in when memory is what is missing.
struct Enforcement {
  enum class State { not_asked, enforced, refused };

  State state = State::not_asked;
  int error = 0;                   // errno of the refusal; 0 where no system call was the reason
  std::array<char, 160> reason{};  // why it was refused, one line, cut where too long; else empty

  bool enforced() const { return state == State::enforced; }
  bool refused() const { return state == State::refused; }
  std::string_view why() const { return reason.data(); }

  // One wish over several ranges: a refusal stays, since one range out of place is memory out of
  // place.
  void add(const Enforcement& one) {
    if (!refused() && one.state != State::not_asked) *this = one;
  }

  static Enforcement done() {
    Enforcement result;
    result.state = State::enforced;
    return result;
  }

  static Enforcement refusal(int error, std::string_view why) {
    Enforcement result;
    result.state = State::refused;
    result.error = error;
    const std::size_t length = std::min(why.size(), result.reason.size() - 1);
    std::copy_n(why.data(), length, result.reason.data());
    return result;
  }
};

static_assert(std::is_trivially_copyable_v<Enforcement>);

}  // namespace rankine
