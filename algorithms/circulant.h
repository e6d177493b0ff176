// Skips of a circulant graph: in round k rank r sends to r + skips[k]. The rules that make them,
// and how people write them.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025, section 2.
//   p ranks    s skip    k round
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/one_block.h"
#include "algorithms/parameters.h"
#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/everyone.h"

namespace rankine {

// Repeated halving of p with rounding up, until 1: 22 gives 11, 6, 3, 2, 1.
std::vector<int> halving_skips(int p);

// A rule that makes skips for any p.
struct SkipScheme {
  std::string_view name;
  std::vector<int> (*skips)(int p);
  std::string_view summary;
};

//   halving        halving_skips(), the paper's
//   powers_of_two  the largest power of two below p, then below the skip before: Bruck's
//   linear         p - 1, p - 2, ... 1: everyone to everyone directly
//   square_root    p - k ceil(sqrt p) while greater than ceil(sqrt p), then halving
//   halving_near   halving, nearest first: 1, 2, 3, 6, 11
std::span<const SkipScheme> skip_schemes();
const SkipScheme* find_skip_scheme(std::string_view name);  // or nullptr
std::string skip_scheme_names();                            // "halving, powers_of_two, ..."

// "halving" for p ranks, or "11,6,3,2,1" for any; nullopt where it is neither a scheme nor whole
// numbers with commas. skips_refusal() (circulant_rounds.h) says whether p ranks can use them.
std::optional<std::vector<int>> read_skips(std::string_view text, int p);
// "11,6,3,2,1"
inline std::string skips_text(const std::vector<int>& skips) { return list_text(skips, ','); }

// Which partial results travel in which round of a circulant graph, where in round k rank r sends
// to r + skips[k].
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025, section 2 and
// corollary 2.
//   p ranks    s skip    k round    i distance from a rank to one after it, modulo p

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

// Circulant: in round k everyone sends to the rank skip(k) further on, for any p.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025.
//   p ranks    k round    i distance: R[i] of rank 0, whose part is stated, is about block i
//   c: skips, and which R[i] travel in which round (circulant_rounds.h)
// The paper copies blocks into R, rotated by its rank r, and back. Here R[i] is block r + i.

using SharedRounds = std::shared_ptr<const CirculantRounds>;

// Algorithm 1.
inline Schedule circulant_reduce_scatter(const SharedRounds& c) {
  return everyone({c->ranks(), c->ranks(), c->rounds(),
                   [c](int k, Send send) { send(0, c->skip(k), BlockSet{c->sent(k)}, reduce); }},
                  Moves::with_rank);
}

// The second half of Algorithm 2: the skips in reverse.
inline Schedule circulant_all_gather(const SharedRounds& c) {
  return dual(circulant_reduce_scatter(c));
}

// Algorithm 2.
inline Schedule circulant_all_reduce(const SharedRounds& c) {
  return reduce_scatter_then(circulant_all_gather(c));
}

// Algorithm 1 with concatenation for the sum: R[i] is all the blocks for rank i that have come this
// far, each from where it has `gone` from.
inline Schedule circulant_all_to_all(const SharedRounds& c) {
  const int p = c->ranks();
  return everyone({p, p * p, c->rounds(),
                   [c, p, ways = c->ways()](int k, Send send) {
                     BlockSet moving;
                     for (const auto& [gone, left] : at(ways, k)) {
                       moving.list.append(pair_of(p, -gone, left));
                     }
                     send(0, c->skip(k), moving, copy);
                   }},
                  Moves::with_pair);
}

// What the all-to-all does with the blocks of one rank, the root.
inline Schedule circulant_scatter(const SharedRounds& c, Rank root) {
  const auto round = [c, ways = c->ways()](int k, Send send) {
    std::map<Rank, BlockSet> moving;
    for (const auto& [gone, left] : at(ways, k)) moving[gone].list.append(gone + left);
    for (const auto& [r, below] : moving) send(r, r + c->skip(k), below, copy);
  };
  return turned(root, {c->ranks(), c->ranks(), c->rounds(), round});
}

inline Schedule circulant_gather(const SharedRounds& c, Rank root) {
  return dual(circulant_scatter(c, root));
}

// The extreme case of irregular blocks (corollary 3): all of the vector is the root's block.
inline Schedule circulant_broadcast(const SharedRounds& c, Rank root) {
  return broadcast_of(circulant_all_gather(c), root);
}

inline Schedule circulant_reduce(const SharedRounds& c, Rank root) {
  return reduce_of(circulant_all_gather(c), root);
}

}  // namespace rankine
