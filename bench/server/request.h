// What goes into a server and what comes out of it, as plain bytes.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

namespace rankine::server {

inline constexpr int kMostPrompt = 512, kMostWanted = 512;
inline constexpr int kPositions = kMostPrompt + kMostWanted;

struct Request {
  int id = 0;             // the client's; not negative
  int wanted = 0;         // tokens of the answer: 1 .. kMostWanted
  int prompt_tokens = 0;  // 1 .. kMostPrompt
  int prompt[kMostPrompt] = {};

  std::span<const int> tokens() const { return {prompt, static_cast<std::size_t>(prompt_tokens)}; }
};

// A token of an answer; or, where `request` is kLost, why all requests under way are lost.
struct Event {
  static constexpr int kLost = -1;

  int request = 0;
  int token = 0;
  int left = 0;             // tokens that are still to come
  double step_seconds = 0,  // of rank 0 so far: in steps, and of these in sums of all ranks
      sum_seconds = 0;
  std::array<char, 256> why{};  // ends with a zero
};

inline Event lost(std::string_view why) {
  Event event{.request = Event::kLost};
  why.copy(event.why.data(), event.why.size() - 1);
  return event;
}

}  // namespace rankine::server
