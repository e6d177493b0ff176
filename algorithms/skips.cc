#include "algorithms/skips.h"

#include <algorithm>

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

}  // namespace rankine
