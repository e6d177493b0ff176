// Random draws random numbers that are equal on every platform: a test prints its seed, and the
// seed replays the test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <vector>

namespace rankine {

// SplitMix64: Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int below(int n) {
    return static_cast<int>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }
  int between(int low, int high) { return low + below(high - low + 1); }  // both included
  bool one_in(int n) { return below(n) == 0; }

  template <class T>
  const T& pick(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

 private:
  std::uint64_t state_;
};

// The value of an environment variable as a number, if it is set.
inline std::optional<std::uint64_t> number_from_environment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::strtoull(text, nullptr, 0);
}

// The repetitions that a test can afford under the sanitizer in use.
constexpr int affordable(int repetitions) {
#if defined(__SANITIZE_THREAD__)
  return repetitions / 10 + 1;
#elif defined(__SANITIZE_ADDRESS__)
  return repetitions / 8 + 1;
#else
  return repetitions;
#endif
}

}  // namespace rankine
