#include "algorithms/circulant_rounds.h"

#include <algorithm>

#include "algorithms/list_text.h"

namespace rankine {
namespace {

constexpr int kNever = -1;
// The round in which each R[i] is sent: after the last one for i = 0, kNever for no sum of skips.
std::vector<int> rounds_of(const std::vector<int>& skips, int p) {
  const int rounds = static_cast<int>(skips.size());
  std::vector<int> sent_in(static_cast<std::size_t>(p), kNever);
  sent_in[0] = rounds;
  const bool windows = are_windows(skips, p);
  for (int k = rounds - 1; k >= 0; --k) {
    const int s = at(skips, k), end = windows && k > 0 ? at(skips, k - 1) : p;
    for (int i = s; i < end; ++i) {
      if (windows || (at(sent_in, i) == kNever && at(sent_in, i - s) > k)) at(sent_in, i) = k;
    }
  }
  return sent_in;
}

}  // namespace

bool are_windows(const std::vector<int>& skips, int p) {
  for (const int s : skips) {
    if (s < 1 || s >= p || p > 2 * s) return false;
    p = s;
  }
  return p == 1;
}

std::optional<std::string> skips_refusal(const std::vector<int>& skips, int p) {
  const std::string who = "skips is " + (skips.empty() ? "empty" : list_text(skips, ',')) + ": ";
  std::vector<bool> seen(static_cast<std::size_t>(p), false), carries(skips.size(), false);
  if (p == 1 && !skips.empty()) return who + "one rank has nobody to skip to; none are allowed";
  for (const int s : skips) {
    if (s < 1 || s >= p) {
      return who + std::to_string(s) + " is not allowed; among " + std::to_string(p) +
             " ranks skips are from 1 to " + std::to_string(p - 1);
    }
    if (at(seen, s)) return who + std::to_string(s) + " is there twice; skips must be different";
    at(seen, s) = true;
  }
  const std::vector<int> sent_in = rounds_of(skips, p);
  for (int i = 1; i < p; ++i) {
    if (at(sent_in, i) == kNever) {
      return who + "rank 0's part of block " + std::to_string(i) +
             " would be lost; every distance below " + std::to_string(p) +
             " must be a sum of different skips";
    }
    at(carries, at(sent_in, i)) = true;
  }
  const auto idle = std::find(carries.begin(), carries.end(), false);
  if (idle == carries.end()) return std::nullopt;
  const int k = static_cast<int>(idle - carries.begin());
  return who + "nothing would be left for the skip " + std::to_string(at(skips, k)) + " in round " +
         std::to_string(k) + "; what it could bring, later ones bring without it";
}

CirculantRounds::CirculantRounds(int p, std::vector<int> skips)
    : ranks_(p), skips_(std::move(skips)), sent_in_(rounds_of(skips_, p)), sent_(skips_.size()) {
  for (int i = 1; i < p; ++i) at(sent_, sent_in(i)).append(i);
}

std::vector<std::vector<CirculantRounds::OnItsWay>> CirculantRounds::ways() const {
  std::vector<std::vector<OnItsWay>> out(skips_.size());
  for (int way = 1; way < ranks_; ++way) {
    for (int left = way; left > 0; left = next(left)) {
      at(out, sent_in(left)).push_back({way - left, left});
    }
  }
  return out;
}

}  // namespace rankine
