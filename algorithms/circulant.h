// In a circulant algorithm every rank sends to the rank skips[k] further on in round k. This header
// has the skips, the rounds in which partial results travel (CirculantRounds), and the schedules.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025, section 2.
//   p ranks    s skip    k round
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/direct.h"
#include "algorithms/parameters.h"
#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"

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
//   linear         p - 1, p - 2, ... 1: all ranks to all ranks directly
//   square_root    p - k ceil(sqrt p) while greater than ceil(sqrt p), then halving
//   halving_near   halving, nearest first: 1, 2, 3, 6, 11
std::span<const SkipScheme> skip_schemes();
const SkipScheme* find_skip_scheme(std::string_view name);  // or nullptr
std::string skip_scheme_names();                            // "halving, powers_of_two, ..."

// "halving" for p ranks, or "11,6,3,2,1" for any; nullopt if the text is neither a scheme nor whole
// numbers with commas. skips_refusal() says whether p ranks can use them.
std::optional<std::vector<int>> read_skips(std::string_view text, int p);
// "11,6,3,2,1"
inline std::string skips_text(const std::vector<int>& skips) { return list_text(skips, ','); }

// Which partial results travel in which round, if in round k rank r sends to r + skips[k]. Traff,
// "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025, section 2 and
// corollary 2.
//   p ranks    s skip    k round    i distance from a rank to one after it, modulo p

// True if Algorithm 1 works with these skips as stated: p, s_0, s_1, ... 1 falls, and never to less
// than half.
bool are_windows(const std::vector<int>& skips, int p);

// The reason why p ranks cannot use these skips, as an error text; nullopt if they can. Skips must
// be different, from 1 to p - 1, and every distance below p must be a sum of different ones;
// otherwise the text names the first rank and block that would be lost. A skip that would carry
// nothing is refused too.
std::optional<std::string> skips_refusal(const std::vector<int>& skips, int p);

// When each rank sends which data. R[i] of rank r is its partial result for the block of rank r +
// i; it is sent once, in round sent_in(i), to rank r + s, which adds it to R[i - s]. That one is
// sent later, and R[0] never: so every contribution arrives at its block's rank.
//
// Algorithm 1 sends the window s <= i < s', with s' the skip before (or p), so R[i] goes with the
// largest skip up to i. It needs windows (are_windows); for all other skips, in any order, R[i] is
// sent in the last round in which i is a sum of different skips of that round and later ones.
class CirculantRounds {
 public:
  CirculantRounds(int p, std::vector<int> skips);  // accepted by skips_refusal()
  int ranks() const { return ranks_; }
  int rounds() const { return static_cast<int>(skips_.size()); }
  int skip(int k) const { return at(skips_, k); }
  int sent_in(int i) const { return at(sent_in_, i); }         // for i = 0: rounds()
  int next(int i) const { return i - skip(sent_in(i)); }       // for i > 0
  const IndexList& sent(int k) const { return at(sent_, k); }  // ascending i

  // A block of an all-to-all that is `gone` ranks from its source and has `left` to go.
  struct OnItsWay {
    int gone, left;
  };
  // The blocks that every rank sends on in round k, by their ways gone + left, ascending.
  std::vector<std::vector<OnItsWay>> ways() const;

 private:
  int ranks_;
  std::vector<int> skips_, sent_in_;
  std::vector<IndexList> sent_;
};

// The schedules: in round k every rank sends to the rank skip(k) further on, for any p. Traff,
// "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025.
//   p ranks    k round    i distance: the code states rank 0's part, and R[i] is for block i
//   c: skips, and which R[i] travel in which round
// The paper copies blocks into R, rotated by its rank r, and back. Here R[i] is block r + i.

using SharedRounds = std::shared_ptr<const CirculantRounds>;

// Algorithm 1.
inline Schedule circulant_reduce_scatter(const SharedRounds& c) {
  return rotation_symmetric(
      {c->ranks(), c->ranks(), c->rounds(),
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

// Algorithm 1 with concatenation instead of the sum: R[i] is all blocks for rank i that have come
// this far, each from the rank `gone` before.
inline Schedule circulant_all_to_all(const SharedRounds& c) {
  const int p = c->ranks();
  return rotation_symmetric({p, p * p, c->rounds(),
                             [c, p, ways = c->ways()](int k, Send send) {
                               BlockSet moving;
                               for (const auto& [gone, left] : at(ways, k)) {
                                 moving.list.append(pair_of(p, -gone, left));
                               }
                               send(0, c->skip(k), moving, copy);
                             }},
                            Moves::with_pair);
}

// The transfers of the all-to-all that carry the blocks of one rank, the root.
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

// The extreme case of irregular blocks (corollary 3): the whole vector is the root's block.
inline Schedule circulant_broadcast(const SharedRounds& c, Rank root) {
  return broadcast_of(circulant_all_gather(c), root);
}

inline Schedule circulant_reduce(const SharedRounds& c, Rank root) {
  return reduce_of(circulant_all_gather(c), root);
}

// The n-block algorithms: n - 1 + q rounds, the least on one port, and every rank gets every block
// of every root once. Traff, "Optimal Broadcast Schedules in Logarithmic Time with Applications to
// Broadcast, Reduction, All-broadcast and All-reduction", ACM TOPC 2025 (arXiv:2407.18004);
// MPICH 5.
//   q = ceil(log2 p)    k round    skips: halving, the nearest first, in turn; s[q] = p
//   i distance of a rank from the root
// The paper's send schedules are the receive schedules of the receivers: a transfer states both.

// In round k the rank i further on than the root receives block(i, k), from the rank skip(k)
// before; nothing if that is negative.
class BlockRounds {
 public:
  BlockRounds(int p, int n);
  int rounds() const { return q_ == 0 ? 0 : n_ - 1 + q_; }
  int skip(int k) const { return at(skips_, (k + idle_) % q_); }
  int block(int i, int k) const {
    const int turn = (k + idle_) / q_;
    return std::min(n_ - 1, at(at(received_, i), (k + idle_) % q_) + turn * q_ - idle_);
  }

 private:
  int n_, q_, idle_;  // the last turn ends with the last round, so the first one begins later
  std::vector<int> skips_;
  std::vector<std::vector<signed char>> received_;  // the blocks of turn 0, by distance and round
};

// Every rank is the root of a broadcast at once: rank 0 sends what the rank skip(k) further on
// lacks of all roots.
inline Schedule circulant_pipelined_all_gather(int p, int n) {
  const auto c = std::make_shared<const BlockRounds>(p, n);
  return rotation_symmetric({p, n * p, c->rounds(),
                             [c, p, n](int k, Send send) {
                               BlockSet moving;
                               for (int i = p - 1; i > 0; --i) {
                                 const int b = c->block(i, k);
                                 if (b >= 0) moving.list.append(n * (c->skip(k) - i) + b);
                               }
                               send(0, c->skip(k), moving, copy);
                             }},
                            Moves::with_rank);
}

}  // namespace rankine
