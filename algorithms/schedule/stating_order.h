// The order in which a round states its messages, where a rank has several of them. Ports take
// messages as stated and never look ahead (engine/network/port_model.h), so an order that goes
// through the ranks one by one can have everybody wait for everybody.
//
// The messages of a round are the edges of a bipartite multigraph, senders on one side and
// receivers on the other. Konig: if no rank sends or receives more than D, they can be had in D
// colours, so that nobody sends or receives twice in one of them. Stated colour by colour, equally
// long ones end after ceil(D / k) times the length of one, on any number k of ports: the least
// that the busiest rank needs. (By induction: before a message of colour c, counted from 0, fewer
// than k of those of its sender, or of its receiver, have not ended at floor(c / k).)
// Konig, "Ueber Graphen und ihre Anwendung auf Determinantentheorie und Mengenlehre",
// Mathematische Annalen 77, 1916.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

struct Edge {
  Rank from, to;
};

// A colour per edge, 0 ... D - 1, of which no two that meet at a sender or at a receiver have the
// same; the least that is free at both ends where there is one. D: most edges at one end of a rank.
std::vector<int> edge_colours(int ranks, const std::vector<Edge>& edges);

// The same schedule with every round stated longest messages first (in blocks), and those of one
// length colour by colour. Rounds with transfers of a switch or with
// local work stay as they are.
Schedule coloured(Schedule a);

// The order in which a round states messages of several lengths. Ports take them as stated and
// never look ahead (engine/network/port_model.h), so a long one that comes last can keep everybody
// waiting: 2, 2 and 3 blocks end on two ports after 5, stated 2, 3, 2 after 4.
//
// Nobody can say at once which order does: to share such messages among ports is bin packing. But
// a round of the catalogue is a few matchings, in which nobody sends or receives twice (one of each
// collective that runs side by side, say, or of each segment), so the orders of those can be gone
// through; then those of their parts of one length, and last of such of one length whose senders
// send as much in the whole round. Since without barriers the order stated is a good one, from that
// on.

// The least time in which so many ports can carry messages that take `falling` long, the longest
// first, each on one port.
std::int64_t least_time(const std::vector<std::int64_t>& falling, int ports);

// The same schedule with every round in time: it lasts no longer than the busiest port of any rank
// needs, on any number of ports, whether a message costs its blocks, one more, or 1. A round that
// is not becomes the first of the orders of its matchings that is, in lexicographic order from the
// one stated, or of their parts; or one that is but on one number of ports and at one price, and
// not later there than as stated. It stays as it is where none is found in so many steps of each
// search, or where a switch takes part. Everyone does the same as before.
Schedule in_time(Schedule a);

}  // namespace rankine
