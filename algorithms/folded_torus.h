// TorusFold folds a torus (Fold in recursive_doubling.h): one dimension after the other folds its
// lines, and the core members of all lines form a smaller torus.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/recursive_doubling.h"
#include "algorithms/torus.h"

namespace rankine {

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

}  // namespace rankine
