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

}  // namespace rankine
