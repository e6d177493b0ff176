// coloured() and in_time() choose the order in which a round states its messages: coloured() for
// messages of equal length, in_time() for several lengths. Ports take messages as stated and never
// look ahead (engine/network/port_model.h), so an order that goes through the ranks one by one can
// make all ranks wait for each other.
//
// The messages of a round are the edges of a bipartite multigraph, senders on one side and
// receivers on the other. Konig: if no rank sends or receives more than D, they can be coloured
// with D colours, so that no rank sends or receives twice in one colour. Stated colour by colour,
// equally long ones end after ceil(D / k) times the length of one, on any number k of ports: the
// least that the busiest rank needs. (By induction: before a message of colour c, counted from 0,
// fewer than k of those of its sender, or of its receiver, have not ended at floor(c / k).) Konig,
// "Ueber Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre", Mathematische
// Annalen 77, 1916.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

struct Edge {
  Rank from, to;
};

// Returns a colour per edge, 0 ... D - 1; two edges that meet at a sender or a receiver differ. An
// edge gets the least colour free at both ends if there is one. D: most edges at one end of a rank.
std::vector<int> edge_colours(int ranks, const std::vector<Edge>& edges);

// Restates every round longest messages first (in blocks), and messages of equal length colour by
// colour. Rounds with transfers of a switch or with local work stay as they are.
Schedule coloured(Schedule a);

// in_time() orders messages of several lengths. Ports take them as stated and never look ahead
// (engine/network/port_model.h), so a long message that comes last can delay all ranks: 2, 2 and 3
// blocks end on two ports after 5, stated 2, 3, 2 after 4.
//
// No formula gives the best order: to share such messages among ports is bin packing. But a round
// of the catalogue is a few matchings, in which no rank sends or receives twice (one of each
// collective that runs side by side, for example, or of each segment), so the search goes through
// the orders of the matchings; then of the matchings' parts of one length, and last of those parts
// split by the senders' load in the whole round. Without barriers the stated order is a good one,
// so the search starts from it.

// The least time in which `ports` ports can carry messages with the times `falling`, the longest
// first, each on one port.
std::int64_t least_time(const std::vector<std::int64_t>& falling, int ports);

// Restates every round in time: then it lasts no longer than the busiest port of any rank needs, on
// any number of ports, at each price of a message: its blocks, its blocks plus one, or 1. A round
// that is not in time becomes the first order of its matchings, or of their parts, that is (in
// lexicographic order from the stated one); or one that is in time except on one number of ports
// and at one price, and not later there than as stated. It stays if no such order is found within
// the limit of steps of each search, or if it has a switch's transfers. Ranks that did equal work
// still do.
Schedule in_time(Schedule a);

}  // namespace rankine
