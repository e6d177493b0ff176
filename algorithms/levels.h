// The levels of a machine are groups of neighbouring ranks within groups, such as those of an L3, a
// memory node or a package. level_tree() is a tree that follows them, and the level exchanges are
// direct exchanges level by level. Trees by the levels of the caches: Jain et al., "Framework for
// scalable intra-node collective operations using shared memory", SC 2018.
//   n ranks    r rank    levels: sizes of groups, innermost first; rank r is in group r / size, and
//   the last group may have fewer
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/combine.h"
#include "algorithms/shapes.h"
#include "algorithms/torus_all_to_all.h"

namespace rankine {

// The tree of a machine's levels. `levels` are sizes of groups, innermost first, such as the ranks
// of an L3, a node, a package; rank r is in group r / size, and the last group may have fewer. The
// leader of a group is its first rank, or the root if the root is a member. A leader receives from
// the leader of the next larger group around it, outermost first, all leaders of one level in one
// round: data enter every group exactly once. Without levels the root sends to all ranks at once.
Tree level_tree(int n, Rank root, const std::vector<int>& levels);
// The reason why n ranks cannot have these levels: sizes are from 1 to n, each a multiple of the
// one before. nullopt if they can.
std::optional<std::string> levels_refusal(const std::vector<int>& levels, int n);

// The divisor of n nearest to its square root: the default group of hierarchical algorithms.
int middle_divisor(int n);

// Direct exchanges level by level: the ranks at one position in the groups of a level exchange in
// one round per level. All-gathers begin with the outermost level, so that every byte crosses into
// a group once and the crossing messages are smallest; reduce-scatters, their duals, end with it.
// All-to-alls begin with the innermost: between two groups each member sends one message to the
// member at its position, with the blocks of all of its group's members for that one. Traff &
// Rougier, "MPI collectives and datatypes for hierarchical all-to-all communication", EuroMPI/ASIA
// 2014; NCCL's PXN does the all-to-all of two levels. Groups divide the ranks.
//   p ranks    r rank    k level, the innermost first    u ranks of a group below it    a groups
//   below u * a ranks of a group of it

// Sizes of groups, innermost first: 1, the sizes of `levels` between, p. Each divides the next.
inline std::vector<int> nested_sizes(int p, const std::vector<int>& levels) {
  std::vector<int> sizes = {1};
  for (const int size : levels) {
    if (size > sizes.back() && size < p) sizes.push_back(size);
  }
  if (p > 1) sizes.push_back(p);
  return sizes;
}

// visit(r, like) for all pairs of ranks in a group of u * a with one position in its groups of u,
// by distance.
template <class Visit>
void for_each_like(int p, int u, int ua, const Visit& visit) {
  for (int w = u; w < ua; w += u) {
    for (Rank r : ranks(p)) visit(r, r / ua * ua + (r + w) % ua);
  }
}

inline Schedule level_exchange_all_gather(int p, const std::vector<int>& levels) {
  const std::vector<int> sizes = nested_sizes(p, levels);
  const int rounds = static_cast<int>(sizes.size()) - 1;
  return {p, p, rounds, [p, sizes, rounds](int k, Send send) {
            const auto at = static_cast<std::size_t>(rounds - 1 - k);
            const int u = sizes[at], ua = sizes[at + 1];
            for_each_like(p, u, ua, [&](Rank r, Rank like) {
              send(r, like, blocks(r % ua, p / ua, ua), copy);
            });
          }};
}

inline Schedule level_exchange_reduce_scatter(int p, const std::vector<int>& levels) {
  return dual(level_exchange_all_gather(p, levels));
}

inline Schedule level_exchange_all_reduce(int p, const std::vector<int>& levels) {
  return reduce_scatter_then(level_exchange_all_gather(p, levels));
}

// Recursive multiplying with a radix per level: whole sums of the groups below, innermost first.
// Ruefenacht, Bull & Booth, "Generalisation of recursive doubling for AllReduce", Parallel
// Computing 69, 2017.
inline Schedule recursive_multiplying_all_reduce(int p, const std::vector<int>& levels) {
  const std::vector<int> sizes = nested_sizes(p, levels);
  return {p, 1, static_cast<int>(sizes.size()) - 1, [p, sizes](int k, Send send) {
            for_each_like(p, at(sizes, k), at(sizes, k + 1),
                          [&](Rank r, Rank like) { send(r, like, block(0), reduce); });
          }};
}

inline Schedule level_exchange_all_to_all(int p, const std::vector<int>& levels) {
  const std::vector<int> sizes = nested_sizes(p, levels);
  std::vector<int> dims;
  std::vector<Schedule> lines;
  for (std::size_t i = sizes.size() - 1; i > 0; --i) dims.push_back(sizes[i] / sizes[i - 1]);
  if (dims.empty()) dims = {1};
  for (const int a : dims) lines.push_back(direct_all_to_all(a));
  return all_to_all_in_phases(dims, lines, static_cast<int>(dims.size()) - 1);
}

}  // namespace rankine
