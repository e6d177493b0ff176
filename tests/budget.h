// The budget of sweeps. By default a sweep runs a sample of its cases; `third_party/test --all`
// runs all of them.
//
// RANKINE_TEST_BUDGET is "all" or a factor: 10 takes ten times as many cases. RANKINE_TEST_SAMPLE
// is the seed of the choice.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace rankine {

inline bool budget_is_all() {
  const char* text = std::getenv("RANKINE_TEST_BUDGET");
  return text != nullptr && std::strcmp(text, "all") == 0;
}

inline std::uint64_t budget_number(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? 1 : std::max<std::uint64_t>(1, std::strtoull(text, nullptr, 10));
}

// The number of random runs: `usual` by default, `all` at most.
inline std::uint64_t budgeted(std::uint64_t usual, std::uint64_t all) {
  return budget_is_all() ? all : std::min(all, usual * budget_number("RANKINE_TEST_BUDGET"));
}

// One case of each `of` successive cases, chosen at random. A sample with a name is printed.
class Sample {
 public:
  Sample(const char* sweep, std::uint64_t of)
      : of_(budget_is_all()
                ? 1
                : std::max<std::uint64_t>(1, of / budget_number("RANKINE_TEST_BUDGET"))),
        seed_(budget_number("RANKINE_TEST_SAMPLE")) {
    if (of_ == 1 || sweep == nullptr) return;
    std::printf("%s: 1 of %llu cases, RANKINE_TEST_SAMPLE=%llu; RANKINE_TEST_BUDGET=all runs all\n",
                sweep, static_cast<unsigned long long>(of_),
                static_cast<unsigned long long>(seed_));
  }

  bool has(std::uint64_t number) const { return number % of_ == hash(number / of_) % of_; }

 private:
  std::uint64_t hash(std::uint64_t row) const {
    std::uint64_t z = (seed_ << 32) + (row + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  std::uint64_t of_, seed_;
};

}  // namespace rankine
