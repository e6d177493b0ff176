// SimGrid as an independent judge of flows and packets: the same messages on a grid or fat tree
// that it simulates itself. Routes and links are stated here once more, not taken from
// engine/network/wiring.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankine {

// Ranks on a grid of these sizes, the last dimension varying fastest, and one wire per direction
// between neighbours. Routes are minimal, the first dimension first; where both ways round are as
// long, half of the message takes each. Or leaves of so many ranks below spines: a link of its own
// to any rank of the leaf, else two hops over the spine that is the destination modulo the spines.
// A message waits alpha + hops * alpha_hop, then flows.
struct JudgedNetwork {
  std::vector<int> dims{};  // of a tree: all ranks
  bool closed = true;       // lines of the grid are rings
  int leaf = 0, spines = 0;
  double alpha = 0, alpha_hop = 0;
  double bandwidth = 1;  // bytes per second and link
};

struct JudgedMessage {
  int from = 0, to = 0;
  long bytes = 0;
};

// Why there is no judge, as text that says what would help; nothing where there is one.
std::optional<std::string> simgrid_is_missing();

// When the last round ends. All messages of a round start when the last one of the round before has
// ended. Runs in a process of its own, since SimGrid allows one simulation per process. Needs the
// judge.
double simgrid_seconds(const JudgedNetwork& network,
                       const std::vector<std::vector<JudgedMessage>>& rounds);

// The same of packets of up to so many half bytes, on a grid: each is a flow of its own over one
// wire after the other, which actors of the wires' take there, one at a time, and hand on alpha_hop
// later.
double simgrid_packet_seconds(const JudgedNetwork& network,
                              const std::vector<std::vector<JudgedMessage>>& rounds, long halves);

}  // namespace rankine
