#include "algorithms/circulant.h"

#include <algorithm>
#include <bit>

#include "algorithms/parameters.h"

namespace rankine {
namespace {

std::vector<int> powers_of_two(int p) {
  std::vector<int> skips;
  int s = 1;
  while (2 * s < p) s *= 2;
  for (; s >= 1 && s < p; s /= 2) skips.push_back(s);
  return skips;
}

std::vector<int> linear(int p) {
  std::vector<int> skips;
  for (int s = p - 1; s >= 1; --s) skips.push_back(s);
  return skips;
}

std::vector<int> square_root(int p) {
  int root = 1;  // ceil(sqrt p)
  while (root * root < p) ++root;
  std::vector<int> skips;
  int s = p;
  while (s - root > root) skips.push_back(s -= root);
  for (const int below : halving_skips(s)) skips.push_back(below);
  return skips;
}

std::vector<int> halving_near(int p) {
  std::vector<int> skips = halving_skips(p);
  std::reverse(skips.begin(), skips.end());
  return skips;
}

constexpr SkipScheme kSchemes[] = {
    {"halving", halving_skips, "half of the skip before, rounded up"},
    {"powers_of_two", powers_of_two, "the largest power of two below the skip before"},
    {"linear", linear, "p - 1, p - 2, ... 1"},
    {"square_root", square_root, "ceil(sqrt p) less than the skip before, then halving"},
    {"halving_near", halving_near, "halving, nearest first"},
};

}  // namespace

std::vector<int> halving_skips(int p) {
  std::vector<int> skips;
  while (p > 1) skips.push_back(p = (p + 1) / 2);
  return skips;
}

std::span<const SkipScheme> skip_schemes() { return kSchemes; }

const SkipScheme* find_skip_scheme(std::string_view name) {
  for (const SkipScheme& scheme : kSchemes) {
    if (scheme.name == name) return &scheme;
  }
  return nullptr;
}

std::string skip_scheme_names() {
  std::string names;
  for (const SkipScheme& scheme : kSchemes) {
    names += (names.empty() ? "" : ", ") + std::string(scheme.name);
  }
  return names;
}

std::optional<std::vector<int>> read_skips(std::string_view text, int p) {
  if (const SkipScheme* scheme = find_skip_scheme(text)) return scheme->skips(p);
  return read_list(text, ',');
}

namespace {

constexpr int kNever = -1;
// The round in which each R[i] is sent: after the last one for i = 0, kNever if i is no sum of
// skips.
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
  if (p == 1 && !skips.empty()) return who + "allowed with one rank is an empty list";
  for (const int s : skips) {
    if (s < 1 || s >= p) {
      return who + std::to_string(s) + " is no skip; allowed among " + std::to_string(p) +
             " ranks are 1 to " + std::to_string(p - 1);
    }
    if (at(seen, s)) return who + std::to_string(s) + " is given twice; allowed is once";
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
  return who + "the skip " + std::to_string(at(skips, k)) + " in round " + std::to_string(k) +
         " moves no block; remove it, because later skips cover its distances";
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

namespace {

// Finds in O(q) steps the blocks that one rank receives in a turn of q rounds: one that is new, and
// the blocks that others brought up before.
class BlockSearch {
 public:
  // `skips`: s[0] = 1 ... s[q] = p, and a number beyond all sums of skips; i > 0.
  BlockSearch(const std::vector<int>& skips, int i)
      : s_(skips), q_(static_cast<int>(skips.size()) - 2), rank_(i + at(skips, q_)) {
    int way = i, base = q_ - 1;  // base: the first skip of the rank's way, and its new block
    for (; way != at(s_, base); --base) way -= way > at(s_, base) ? at(s_, base) : 0;
    missing_ = (2u << q_) - 1 - (1u << base);
    from(0, 2 * rank_, q_);
    for (auto& block : found_) {
      block = static_cast<signed char>(block == q_ ? base : block - q_);
    }
  }
  const std::vector<signed char>& found() const { return found_; }

 private:
  // Depth first over sums of skips, the largest first: x is the sum so far, `end` the place of the
  // block found last, and e the next skip and block. A block is received in the round in which its
  // place is one skip away.
  void from(int x, int end, int e) {
    for (; e >= 0; e = std::bit_width(missing_ & ((1u << e) - 1)) - 1) {
      const int y = x + at(s_, e);
      if (y > before(0) || y >= end) continue;
      if (y <= before(1)) from(y, end, e);
      if (x > before(1)) return;
      end = y;
      missing_ &= ~(1u << e);
      found_.push_back(static_cast<signed char>(e));
    }
  }
  // The place from which the rank receives in the round after next, or in the next one (j = 0).
  int before(int j) const { return rank_ - at(s_, static_cast<int>(found_.size()) + j); }

  const std::vector<int>& s_;
  int q_, rank_;
  unsigned missing_ = 0;
  std::vector<signed char> found_;
};

}  // namespace

BlockRounds::BlockRounds(int p, int n)
    : n_(n), q_(ceil_log2(p)), idle_(p > 1 ? (q_ - (n - 1) % q_) % q_ : 0), received_(1) {
  skips_ = halving_near(p);
  std::vector<int> all = skips_;
  all.insert(all.end(), {p, 4 * p});
  for (int i = 1; i < p; ++i) received_.push_back(BlockSearch(all, i).found());
}

}  // namespace rankine
