#include "engine/compile/brackets.h"

#include <bit>

namespace rankine {
namespace {

// Of a version that is made of more than one: of how many, and of which two where they are two.
struct Sum {
  int sources = 0;
  bool of_single_ranks = true;
  const Version* low = nullptr;
  const Version* high = nullptr;
};

Sum sum_of(const Versions& versions, const Version& v) {
  Sum sum;
  versions.for_each_source(v, [&](int source) {
    const Version& s = versions[source];
    ++sum.sources;
    sum.of_single_ranks &= s.contributions == 1;
    (s.lowest == v.lowest && sum.low == nullptr ? sum.low : sum.high) = &s;
  });
  return sum;
}

// Both halves of a node are nodes or single ranks, by induction: only how it is cut is looked at.
bool is_node(const Version& v, const Sum& sum, int ranks) {
  if (sum.sources != 2 || sum.low == nullptr || sum.high == nullptr) return false;
  const auto width = std::bit_ceil(static_cast<unsigned>(v.contributions));
  const auto first = static_cast<unsigned>(v.lowest);
  const bool whole = static_cast<unsigned>(v.contributions) == width;
  const bool cut_short = v.lowest + v.contributions == ranks;
  return first % width == 0 && (whole || cut_short) &&
         static_cast<unsigned>(sum.low->contributions) == width / 2 &&
         sum.high->lowest == v.lowest + sum.low->contributions;
}

}  // namespace

std::string_view in_words(Bracket bracket) {
  return bracket == Bracket::flat ? "one fold in the order of the ranks"
                                  : "the binary tree over the ranks";
}

Brackets brackets_of(const Versions& versions) {
  Brackets out;
  const int ranks = versions.ranks();
  for (int i = 0; i < versions.size() && (out.flat || out.canonical); ++i) {
    const Version& v = versions[i];
    if (v.contributions < 2) continue;
    const Sum sum = sum_of(versions, v);
    if (sum.sources < 2) continue;  // a copy of one that has been looked at
    // A sum of some that is no result (scans have such results) is added to something, and that is
    // not of single ranks.
    out.flat &= sum.of_single_ranks;
    out.canonical &= is_node(v, sum, ranks);
  }
  return out;
}

}  // namespace rankine
