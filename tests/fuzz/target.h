// One parser under test: an input of any bytes goes in; what must hold of every input is checked.
//
// A target neither reads nor writes anything outside itself but throw-away folders, takes a bounded
// time, and lets nothing escape but Broken. Two readers: replay_test runs the seeds through all
// targets in every CI run, and fuzzer.cc gives one of them to libFuzzer.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankine::fuzz {

struct Target {
  std::string_view name;  // its key in seeds.json
  void (*run)(std::string_view input);
};

// All of them, by name.
std::span<const Target> targets();

// What a parser promises does not hold of this input.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void require(bool holds, const std::string& promise) {
  if (!holds) throw Broken(promise);
}

}  // namespace rankine::fuzz
