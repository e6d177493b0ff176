// The fold (fold.h) on a torus: an all-reduce for sizes that are powers of two serves any sizes.
// One dimension after the other folds its lines; what is left, the core members of all lines, is a
// torus of powers of two. Two more rounds for every dimension that is folded.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/fold.h"
#include "algorithms/torus.h"

namespace rankine {

class FoldedTorus {
 public:
  explicit FoldedTorus(const std::vector<int>& dims) : torus_(dims) {
    for (int d = 0; d < torus_.dimensions(); ++d) {
      const Fold& fold = folds_.emplace_back(dims[static_cast<std::size_t>(d)],
                                             core_size(dims[static_cast<std::size_t>(d)]));
      core_dims_.push_back(fold.core);
      if (fold.surplus() > 0) folded_.push_back(d);
    }
  }

  int ranks() const { return torus_.ranks(); }
  const std::vector<int>& core_dims() const { return core_dims_; }
  int folded_dimensions() const { return static_cast<int>(folded_.size()); }

  // The rank that plays rank c of the core.
  Rank rank(const Torus& core, Rank c) const {
    Rank r = 0;
    for (int d = 0; d < torus_.dimensions(); ++d) {
      r += fold(d).rank(core.coordinate(c, d)) * torus_.stride(d);
    }
    return r;
  }

  // From core members to surplus ranks, the dimension that was folded last first.
  template <class Visit>
  void unfold(int round, const Visit& visit) const {
    const int d = folded_[folded_.size() - 1 - static_cast<std::size_t>(round)];
    for_each_surplus(fold(d), [&](int member, int surplus) {
      torus_.for_each_at(d, member, [&](Rank r) {
        if (is_core_before(r, d)) visit(r, r + (surplus - member) * torus_.stride(d));
      });
    });
  }

 private:
  const Fold& fold(int d) const { return folds_[static_cast<std::size_t>(d)]; }
  bool is_core_before(Rank r, int dimension) const {
    for (int d = 0; d < dimension; ++d) {
      if (!fold(d).has(torus_.coordinate(r, d))) return false;
    }
    return true;
  }

  Torus torus_;
  std::vector<Fold> folds_;
  std::vector<int> core_dims_, folded_;
};

// core(sizes): the all-reduce of one block on a torus of powers of two.
inline Schedule folded_torus_all_reduce(
    const std::vector<int>& dims, const std::function<Schedule(const std::vector<int>&)>& core) {
  const FoldedTorus folded(dims);
  const Schedule inner = core(folded.core_dims());
  const Schedule out{
      folded.ranks(), inner.blocks, folded.folded_dimensions(), [folded](int k, Send send) {
        folded.unfold(k, [&](Rank member, Rank surplus) { send(member, surplus, block(0), copy); });
      }};
  const auto place = [folded, of_core = Torus(folded.core_dims())](Rank c) {
    return folded.rank(of_core, c);
  };
  return then(then(dual(out), on({folded.ranks(), inner.blocks, place}, inner)), out);
}

}  // namespace rankine
