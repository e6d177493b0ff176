// Which partial results travel in which round of a circulant graph, where in round k rank r sends
// to r + skips[k].
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025, section 2 and
// corollary 2.
//   p ranks    s skip    k round    i distance from a rank to one after it, modulo p
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/blocks.h"

namespace rankine {

// Whether these are skips for Algorithm 1 as it stands: p, s_0, s_1, ... 1 falls, and never to less
// than half.
bool are_windows(const std::vector<int>& skips, int p);

// Why these skips are none for p ranks, as text that says what is needed: skips are different, from
// 1 to p - 1, and every distance below p is a sum of different ones; else the text names the first
// rank and block that would be lost. A skip that would have nothing to carry is refused too.
std::optional<std::string> skips_refusal(const std::vector<int>& skips, int p);

// When each rank sends what. R[i] of rank r is its partial result for the block of rank r + i; it
// goes once, in round sent_in(i), to rank r + s, where it is added to R[i - s]. That one is sent
// later, and R[0] never: so every contribution arrives at its block's rank.
//
// Algorithm 1 sends the window s <= i < s', where s' is the skip before (or p): what the largest
// skip up to i brings closest. It needs windows (are_windows); for all other skips, in any order,
// R[i] goes in the last round in which i is a sum of different skips of that round and later ones.
class CirculantRounds {
 public:
  CirculantRounds(int p, std::vector<int> skips);  // that skips_refusal() accepts
  int ranks() const { return ranks_; }
  int rounds() const { return static_cast<int>(skips_.size()); }
  int skip(int k) const { return at(skips_, k); }
  int sent_in(int i) const { return at(sent_in_, i); }         // of 0: rounds()
  int next(int i) const { return i - skip(sent_in(i)); }       // of i > 0
  const IndexList& sent(int k) const { return at(sent_, k); }  // ascending i

  // A block of an all-to-all that is `gone` ranks from its source and has `left` to go.
  struct OnItsWay {
    int gone, left;
  };
  // Those that every rank sends on in round k, by their ways gone + left, ascending.
  std::vector<std::vector<OnItsWay>> ways() const;

 private:
  int ranks_;
  std::vector<int> skips_, sent_in_;
  std::vector<IndexList> sent_;
};

}  // namespace rankine
