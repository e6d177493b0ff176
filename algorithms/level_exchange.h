// Direct exchanges level by level of a machine: among the ranks that stand alike in the groups of a
// level, one round for each. All-gathers begin with the outermost level, so that every byte crosses
// into a group once and what crosses is smallest; reduce-scatters, their duals, end with it.
// All-to-alls begin with the innermost: between two groups each member sends one message to its
// like, with what all of its group's members have for it.
// Traff & Rougier, "MPI collectives and datatypes for hierarchical all-to-all communication",
// EuroMPI/ASIA 2014; NCCL's PXN does the all-to-all of two levels. Groups divide the ranks.
//   p ranks    r rank    k level, the innermost first    u ranks of a group below it    a groups
//   below u * a ranks of a group of it
#pragma once

#include <vector>

#include "algorithms/all_to_all.h"
#include "algorithms/schedule/combine.h"

namespace rankine {

// Sizes of groups, innermost first: 1, those of `levels` between, p. Each divides the next.
inline std::vector<int> nested_sizes(int p, const std::vector<int>& levels) {
  std::vector<int> sizes = {1};
  for (const int size : levels) {
    if (size > sizes.back() && size < p) sizes.push_back(size);
  }
  if (p > 1) sizes.push_back(p);
  return sizes;
}

// visit(r, like) for all ranks in groups of u * a that stand alike in its groups of u, by distance.
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

// Rank r has the blocks of all members of its group of u for everyone who stands there as it does.
inline Schedule level_exchange_all_to_all(int p, const std::vector<int>& levels) {
  const std::vector<int> sizes = nested_sizes(p, levels);
  return {p, p * p, static_cast<int>(sizes.size()) - 1, [p, sizes](int k, Send send) {
            const int u = sizes[static_cast<std::size_t>(k)];
            const int ua = sizes[static_cast<std::size_t>(k) + 1];
            for_each_like(p, u, ua, [&](Rank r, Rank like) {
              BlockSet moving;
              for (Rank s = r / u * u; s < r / u * u + u; ++s) {
                moving.list.append(Run{pair_of(p, s, like % ua), p / ua, ua});
              }
              send(r, like, moving, copy);
            });
          }};
}

}  // namespace rankine
