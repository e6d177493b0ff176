// Spanning trees that move a collective's data in the least time that a network's links allow.
// Zhao, Maleki, Yang, Pourreza, Shah, Hwang & Krishnamurthy, "ForestColl: Efficient Collective
// Communications on Heterogeneous Network Fabrics", arXiv:2402.06787, 2024.
//
// Rank v's vector goes down k trees with root v, a k-th of it down each. A set S of nodes that
// lacks a rank sends all vectors of its ranks out of it, over links of B+(S) in sum, so no schedule
// takes less than 1/x = max |S and ranks| / B+(S) per vector: the tightest cut. The trees reach it:
//   1. tightest_cut() is exact: a cut that is tighter than a guess gives the next guess
//      (Dinkelbach, in place of the paper's binary search).
//   2. Every link gets the whole number of trees that it may carry. Switches are removed: a link to
//      a switch and a link from it become one between their ends, unless a cut would become too
//      tight (edge splitting).
//   3. Trees grow from their roots, link by link, as long as the other trees still fit (Tarjan;
//      Berczi & Frank).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "algorithms/rational.h"
#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine::tools {

// A network as a directed graph. Nodes are the ranks, from 0, and then the switches.
struct LinkGraph {
  using Links = std::map<std::pair<int, int>, std::int64_t>;  // by the nodes from and to

  int ranks = 1, nodes = 1;
  Links links{};              // bandwidths, in whole units with no common divisor
  Rational seconds_per_byte;  // of one unit

  LinkGraph reversed() const;
};

// The links of a fabric from wired_for(). On a grid these are its wires; else ranks are linked to a
// switch (their group's, if there are groups) by all their ports, and groups to one switch: fat
// trees have one in place of their spines. Ports that carry messages inside and between groups have
// both bandwidths at once. So the time of a cut is a lower bound for messages on any routes.
// Errors: links without a limit; a grid with empty places, or with other ports than one per wire;
// odd links between pairs of ranks in full wiring; bandwidths without a common unit.
Result<LinkGraph> link_graph(const Fabric& fabric, int ranks);

struct Cut {
  Rational time;             // vectors out of `side` per unit of its links
  std::vector<bool> side{};  // by node: S
  std::int64_t vectors = 0, bandwidth = 0;
};

// `vectors` has the number of vectors that each rank sends to all others. Errors: a rank that
// others cannot reach.
Result<Cut> tightest_cut(const LinkGraph& graph, const std::vector<int>& vectors);

// `count` equal trees. An edge comes after the edge to its parent.
struct SpanningTree {
  struct Edge {
    Rank from, to;
    int depth;  // 1 for an edge from the root
  };
  Rank root = 0;
  std::int64_t count = 0;
  std::vector<Edge> edges{};
};

struct Forest {
  Cut cut;
  std::int64_t trees = 1;  // k, per vector
  Rational time;           // per vector, of the links' trees; the cut's unless k is too small
  std::vector<SpanningTree> all{};
  int depth() const;
};

// k = `trees`; 0: the least k that reaches the cut's time, or the best k up to kMostTrees. Errors:
// those of tightest_cut().
inline constexpr int kMostTrees = 32;
Result<Forest> forest_of(const LinkGraph& graph, const std::vector<int>& vectors, int trees = 0);

// The trees as a schedule: of an all-gather if every rank sends one vector, else of the one root's
// broadcast. Segment s of a tree's part follows s rounds behind the first. Blocks that go from one
// rank to another in one round go in one message.
Schedule schedule_of(const Forest& forest, int ranks, int segments);

}  // namespace rankine::tools
