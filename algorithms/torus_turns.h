// This header makes collectives on a torus from schedules for its lines.
//
// An algorithm defines the rounds among the ranks of one line; this file lets the dimensions take
// turns. Collectives run side by side, each on one part of every block and each beginning with
// another dimension, so that no two of them use a link at one time ("multidimensional tori" in Sack
// & Gropp, "Collective algorithms for multiported torus networks", ACM TOPC 1(2), 2015; in Swing
// and in Trivance):
//
//   rotating  one round in every dimension in turn: 0 1 2 0 1 2 ...
//   whole     all rounds of a dimension, then of the next: 0 0 0 1 1 1 ...
//
// If sizes differ, a dimension without remaining rounds skips its turn, so that collectives stay
// out of each other's way; but no collective waits for the largest dimension, in which they meet.
// That takes D - 1 times the rounds of the largest dimension but one, plus the rounds of the
// largest. Loads that meet are those that links would have carried one after the other, so the
// busiest links of all rounds together carry no more. With two dimensions no turn is idle. With
// more, the idle turns could be used only at the price of higher loads: two dimensions cannot keep
// three collectives busy.
#pragma once

#include <functional>
#include <vector>

#include "algorithms/torus.h"

namespace rankine {

// The schedule of one line, given its number of ranks. All-gathers: blocks are the ranks' own.
// All-reduces: one block; if they keep partial sums on further planes, kRoundsPerTurn rounds belong
// together, and the last one of them has the messages.
using Line = std::function<Schedule(int size)>;
inline constexpr int kRoundsPerTurn = 3;

enum class Turns : unsigned char { rotating, whole };

// One all-gather for every line and first dimension, side by side: block b is split into
// lines.size() * D parts that follow each other. The turns are those of the reduce-scatter that is
// its dual: an all-gather takes them from the last to the first.
Schedule torus_all_gather(const std::vector<int>& dims, const std::vector<Line>& lines,
                          Turns turns);

// All-reduces with messages that are sums over the whole vector. `parts`: D, one beginning with
// each dimension; or 1. Rotating; whole if a line keeps partial sums: a sum over half a line cannot
// travel along another one.
Schedule torus_all_reduce(const std::vector<int>& dims, const Line& line, int parts);

}  // namespace rankine
