// This header makes schedules that exchange with one partner per round along the lines of a torus,
// as recursive doubling and Swing do. Each has two forms. The bandwidth-optimal one halves the
// vector from round to round, nearest partners first, and doubles it again on the way back; 2D of
// them at once, half of them mirrored, use all ports. If partners in distant rounds have heard from
// a common rank, each sends only the blocks that the other lacks. The latency-optimal one exchanges
// the whole vector, on one port, among a power of two. Lines of other sizes are folded
// (TorusFold).
//   a ranks of a line    k round of the reduce-scatter    l = ceil(log2 a)
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "algorithms/recursive_doubling.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/torus.h"

namespace rankine {

// TorusFold folds a torus (Fold in recursive_doubling.h): one dimension after the other folds its
// lines, and the core members of all lines form a smaller torus.

// The number of core ranks of a line with a ranks; 1 for a = 1.
using CoreSize = int (*)(int a);

class TorusFold {
 public:
  TorusFold(const std::vector<int>& dims, CoreSize size) : torus_(dims) {
    for (const int a : dims) {
      core_dims_.push_back(folds_.emplace_back(a, size(a)).core);
      if (folds_.back().surplus() > 0) folded_.push_back(static_cast<int>(folds_.size()) - 1);
    }
  }

  int ranks() const { return torus_.ranks(); }
  const std::vector<int>& core_dims() const { return core_dims_; }
  const std::vector<int>& folded() const { return folded_; }  // dimensions, in their order

  // The rank that is rank c of the core.
  Rank rank(const Torus& core, Rank c) const {
    Rank r = 0;
    for (int d = 0; d < torus_.dimensions(); ++d) {
      r += at(folds_, d).rank(core.coordinate(c, d)) * torus_.stride(d);
    }
    return r;
  }

  // The rank that holds r's part when all dimensions before `dimension` are folded.
  Rank holder_of(Rank r, int dimension) const {
    for (int d = 0; d < dimension; ++d) {
      const int x = torus_.coordinate(r, d);
      r += (at(folds_, d).member_of(x) - x) * torus_.stride(d);
    }
    return r;
  }

  // By rank: the owners of the parts that it holds at that point, ascending.
  std::vector<IndexList> held(int dimension) const {
    std::vector<IndexList> out(static_cast<std::size_t>(ranks()));
    for (Rank r = 0; r < ranks(); ++r) at(out, holder_of(r, dimension)).append(r);
    return out;
  }

  // visit(member, surplus rank) for the pairs that meet when dimension d is folded, or unfolded.
  template <class Visit>
  void for_each_surplus_in(int d, const Visit& visit) const {
    for_each_surplus(at(folds_, d), [&](int member, int surplus) {
      torus_.for_each_at(d, member, [&](Rank r) {
        if (holder_of(r, d) == r) visit(r, r + (surplus - member) * torus_.stride(d));
      });
    });
  }

 private:
  Torus torus_;
  std::vector<Fold> folds_;
  std::vector<int> core_dims_, folded_;
};

// A folded torus lets algorithms for powers of two, or for even sizes, serve any sizes. The price:
// two more rounds for every dimension that is folded, each with the whole vector once more to or
// from each rank with a surplus rank.

inline int largest_power_of_two(int a) { return core_size(a); }
inline int largest_even(int a) { return a == 1 ? 1 : a - a % 2; }

// core(sizes): the all-reduce on a torus of the core's sizes.
using OnTorus = std::function<Schedule(const std::vector<int>& dims)>;
Schedule folded_torus_all_reduce(const std::vector<int>& dims, CoreSize size, const OnTorus& core);

// core(sizes): the all-gather on such a torus, with any number of blocks per rank. A core member's
// blocks are its own and those of the ranks folded into it.
Schedule folded_torus_all_gather(const std::vector<int>& dims, CoreSize size, const OnTorus& core);

// The all-reduce made of that all-gather and its dual, run in the core only: among all ranks, it
// would send the folded data block by block.
inline Schedule folded_torus_halving_all_reduce(const std::vector<int>& dims, CoreSize size,
                                                const OnTorus& core) {
  return folded_torus_all_reduce(
      dims, size, [&core](const auto& sizes) { return reduce_scatter_then(core(sizes)); });
}

// The partner of rank r of a line in round k; an involution.
using Partner = Rank (*)(int a, Rank r, int k);

// Rank r has the blocks of these ranks after the exchanges of rounds l - 1 ... k (in an all-gather,
// the farthest partners first), ascending.
inline std::vector<Rank> heard_of(int a, Rank r, int k, Partner partner) {
  std::vector<Rank> out = {r};
  for (int i = k; i < ceil_log2(a); ++i) {
    // In round i every rank in `out` received all blocks that its partner had before.
    const std::size_t size = out.size();
    for (std::size_t j = 0; j < size; ++j) out.push_back(partner(a, out[j], i));
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
  }
  return out;
}

// The all-gather of one line; its dual halves.
inline Line halving_line(Partner partner) {
  return [partner](int a) -> Schedule {
    return {a, a, ceil_log2(a), [a, partner](int round, Send send) {
              const int k = ceil_log2(a) - 1 - round;
              for (Rank r : ranks(a)) {
                const Rank to = partner(a, r, k);
                const auto known = heard_of(a, to, k + 1, partner);
                BlockSet news;
                for (const Block b : heard_of(a, r, k + 1, partner)) {
                  if (!std::binary_search(known.begin(), known.end(), b)) news.list.append(b);
                }
                send(r, to, news, copy);
              }
            }};
  };
}

// The all-reduce of one line of a power of two, whole vectors in every round.
inline Line whole_line(Partner partner) {
  return [partner](int a) -> Schedule {
    return {a, 1, floor_log2(a), [a, partner](int k, Send send) {
              for (Rank r : ranks(a)) send(r, partner(a, r, k), block(0), reduce);
            }};
  };
}

inline Schedule exchange_all_reduce(const std::vector<int>& dims, Partner partner) {
  return folded_torus_all_reduce(dims, largest_power_of_two, [partner](const auto& sizes) {
    return torus_all_reduce(sizes, whole_line(partner), 1);
  });
}

// The bandwidth-optimal form on a torus of sizes that `partner` supports.
inline OnTorus halving_all_gather(Partner partner) {
  const Line line = halving_line(partner);
  const Line other_way = [line](int a) { return mirrored(line(a)); };
  return [line, other_way](const std::vector<int>& dims) {
    return torus_all_gather(dims, {line, other_way}, Turns::rotating);
  };
}

// Swing: partners at distances 1, -1, 3, -5, 11 ... from the rank, which halves the way of data
// round a ring. De Sensi, Bonato, Saam & Hoefler, "Swing: Short-cutting rings for higher bandwidth
// allreduce", NSDI 2024.
//   a ranks of a line, an even number (one more is folded)    k round of the reduce-scatter

// rho = 1 - 2 + 4 ... +- 2^k to the right of even ranks and to the left of odd ones.
inline Rank swing_partner(int a, Rank r, int k) {
  int rho = 0;
  for (int i = 0, term = 1; i <= k; ++i, term *= -2) rho += term;
  return wrapped(r % 2 == 0 ? r + rho : r - rho, a);
}

inline Schedule swing_all_gather(const std::vector<int>& dims) {
  return folded_torus_all_gather(dims, largest_even, halving_all_gather(swing_partner));
}
inline Schedule swing_reduce_scatter(const std::vector<int>& dims) {
  return dual(swing_all_gather(dims));
}
inline Schedule swing_all_reduce(const std::vector<int>& dims) {
  return folded_torus_halving_all_reduce(dims, largest_even, halving_all_gather(swing_partner));
}
inline Schedule swing_latency_all_reduce(const std::vector<int>& dims) {
  return exchange_all_reduce(dims, swing_partner);
}

// Bine butterflies: Swing's partners, on one port. De Sensi et al., "Bine trees: Enhancing
// collective operations by optimizing communication locality", SC 2025.
//   p ranks, an even number (one more is folded)

inline Schedule bine_line(const std::vector<int>& p) {
  return torus_all_gather(p, {halving_line(swing_partner)}, Turns::rotating);
}
inline Schedule bine_all_gather(int p) {
  return folded_torus_all_gather({p}, largest_even, bine_line);
}
inline Schedule bine_reduce_scatter(int p) { return dual(bine_all_gather(p)); }
inline Schedule bine_all_reduce(int p) {
  return folded_torus_halving_all_reduce({p}, largest_even, bine_line);
}

// Recursive doubling along the lines of a torus: partners at distances 1, 2, 4 ...
// Rabenseifner, "Optimization of collective reduction operations", ICCS 2004; on tori Sack & Gropp,
// "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015.
//   a ranks of a line, a power of two (others are folded)    k round of the reduce-scatter

inline Rank doubling_partner(int, Rank r, int k) { return r ^ (1 << k); }

inline Schedule torus_doubling_all_gather(const std::vector<int>& dims) {
  return folded_torus_all_gather(dims, largest_power_of_two, halving_all_gather(doubling_partner));
}
inline Schedule torus_doubling_reduce_scatter(const std::vector<int>& dims) {
  return dual(torus_doubling_all_gather(dims));
}
inline Schedule torus_doubling_all_reduce(const std::vector<int>& dims) {
  return folded_torus_halving_all_reduce(dims, largest_power_of_two,
                                         halving_all_gather(doubling_partner));
}
inline Schedule torus_doubling_latency_all_reduce(const std::vector<int>& dims) {
  return exchange_all_reduce(dims, doubling_partner);
}

}  // namespace rankine
