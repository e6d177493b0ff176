// SimGrid as an independent judge of flows: it simulates the messages on a grid or fat
// tree. Routes and links are stated here again, independently of engine/network/wiring.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace rankine {

// Either ranks on a grid of these sizes, the last dimension varying fastest, with one wire per
// direction between neighbours. Routes are minimal, the first dimension first; if both ways round
// are equally long, half of the message takes each. Or leaves of `leaf` ranks below spines: a
// private link for each message inside a leaf, else two hops over the spine with the number of the
// destination modulo the spines. A message waits alpha + hops * alpha_hop, then flows. Times in
// seconds.
struct JudgedNetwork {
  std::vector<int> dims{};  // for a tree: all ranks
  bool closed = true;       // lines of the grid are rings
  int leaf = 0, spines = 0;
  double alpha = 0, alpha_hop = 0;
  double bandwidth = 1;  // bytes per second and link
};

struct JudgedMessage {
  int from = 0, to = 0;
  long bytes = 0;
};

// The reason and the remedy if the judge is missing; nullopt if it is available.
std::optional<std::string> simgrid_is_missing();

// The time in seconds at which the last round ends. All messages of a round start when the last one
// of the round before has ended. Needs the judge. Runs in a child process, because SimGrid allows
// one simulation per process.
double simgrid_seconds(const JudgedNetwork& network,
                       const std::vector<std::vector<JudgedMessage>>& rounds);

}  // namespace rankine
