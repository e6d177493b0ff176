// On a torus an all-to-all has a phase per dimension: along every line each block goes to the
// coordinate of its destination, by any all-to-all of one line. Traff, "Effective MPI: User-defined
// datatypes and Cartesian communicators for zero-copy all-to-all communication in multidimensional
// tori", arXiv:2605.29970, 2026. Levels of a machine are a torus too: the ranks at one position in
// its groups are a line.
//   p ranks    d dimension    a size of one    u parts of a block
#pragma once

#include <algorithm>
#include <vector>

#include "algorithms/bruck.h"
#include "algorithms/direct.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/stating_order.h"
#include "algorithms/torus.h"

namespace rankine {

// The phase of dimension d; blocks have their destination's coordinates in the dimensions in which
// `sources` differ, and go on in those of `destinations`. A line's code states rank 0's part.
inline Schedule all_to_all_along(const std::vector<int>& dims, int d, const IndexList& sources,
                                 const IndexList& destinations, const Schedule& line, int u) {
  const int p = Torus(dims).ranks(), stride = Torus(dims).stride(d), a = line.ranks;
  const int of_line = line.blocks / (a * a), blocks = p * p * u;
  const auto round = [=](int k, Send send) {
    for_each_transfer(symmetry_of(line)->part(), k, [&](const Transfer& t) {
      BlockSet what;
      t.what.list.for_each([&](Block b) {
        const Rank from = b / of_line / a * stride, to = b / of_line % a * stride;
        const int first = b % of_line * (u / of_line);
        sources.for_each([&](Rank s) {
          destinations.for_each([&](Rank e) {
            const Block pair = (from + s) * p + to + e;
            what.list.append(Run{u * pair + first, u / of_line, 1});
          });
        });
      });
      send(t.from.front() * stride, t.to.front() * stride, what, t.kind);
    });
  };
  return rotation_symmetric({p, blocks, line.rounds, round},
                            Rotation(dims, blocks, Moves::with_pair));
}

// All phases, by the all-to-all of a line for every dimension: `first`, then the dimension with the
// next larger stride, and so on, round to the one after `first`.
inline Schedule all_to_all_in_phases(const std::vector<int>& dims,
                                     const std::vector<Schedule>& lines, int first) {
  const Torus torus(dims);
  const int p = torus.ranks();
  int u = 1;
  for (const Schedule& line : lines) u = std::max(u, line.blocks / (line.ranks * line.ranks));
  // All ranks that differ from rank 0 only in dimensions for which `free` holds.
  const auto ranks_in = [&](const auto& free) {
    IndexList out;
    for (Rank r : ranks(p)) {
      bool in = true;
      for (int d = 0; d < torus.dimensions(); ++d) in = in && (free(d) || !torus.coordinate(r, d));
      if (in) out.append(r);
    }
    return out;
  };
  Schedule out =
      rotation_symmetric(nothing(p, p * p * u), Rotation(dims, p * p * u, Moves::with_pair));
  for (int i = 0; i < torus.dimensions(); ++i) {
    const auto phase_of = [&](int d) { return wrapped(first - d, torus.dimensions()); };
    const IndexList sources = ranks_in([&](int d) { return phase_of(d) < i; });
    const IndexList destinations = ranks_in([&](int d) { return phase_of(d) > i; });
    const int d = wrapped(first - i, torus.dimensions());
    out = then(out, all_to_all_along(dims, d, sources, destinations, at(lines, d), u));
  }
  return out;
}

// Relayed round the rings of every dimension, the shorter way. As many collectives as dimensions
// run side by side, each on a part of every block and each beginning with another dimension, so
// that all 2D ports are busy.
inline Schedule torus_all_to_all(const std::vector<int>& dims) {
  std::vector<Schedule> lines, parts;
  for (const int a : dims) lines.push_back(ring_all_to_all(a));
  for (int first = 0; first < static_cast<int>(dims.size()); ++first) {
    parts.push_back(all_to_all_in_phases(dims, lines, first));
  }
  return in_time(side_by_side(std::move(parts)));
}

// ParLinNa: ParLogNa (bruck.h) inside groups, then a round per other group, among the ranks at one
// position. Fan, Domke, Ba & Kumar, "Parameterized algorithms for non-uniform all-to-all", HPDC
// 2025; in their preprint TuNA of two levels, coalesced (arXiv:2411.02581).
//   g ranks of a group, which divide p    x radix
inline Schedule parlinna_all_to_all(int p, int g, int x) {
  return all_to_all_in_phases({p / g, g}, {pairwise_all_to_all(p / g), parlogna_all_to_all(g, x)},
                              1);
}

}  // namespace rankine
