// k-ary tree: rank r tells k r + 1 ... k r + k, all of them at once.
// MPICH 4, src/mpi/coll/algorithms/treealgo/treeutil.c (MPII_Treeutil_tree_kary_init).
//   p ranks    r rank    k children of a rank, at most    s segments
#pragma once

#include <utility>
#include <vector>

#include "algorithms/tree.h"

namespace rankine {

inline Tree k_ary_tree(int p, int k) {
  std::vector<Rank> parents = {kNoParent};
  for (Rank r = 1; r < p; ++r) parents.push_back((r - 1) / k);
  return by_levels(std::move(parents));
}

}  // namespace rankine
