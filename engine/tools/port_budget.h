// The ports that a schedule wants and those that a network has, in words: case A and case B of Lu,
// "Collective Algorithms", 2026, C.4. Where a rank has fewer ports than it has messages in a round,
// these queue, and what was to overlap becomes serial.
#pragma once

#include <string>

namespace rankine::tools {

// "needs 3 ports per rank, the network has 1: rounds serialise (case B of the survey's C.4)".
// needed: most messages that one rank sends, or receives, in a round; the greater of the two.
std::string port_budget(int needed, int ports);
// "needs 3 ports per rank", where no network is given.
std::string port_need(int needed);
inline bool rounds_serialise(int needed, int ports) { return needed > ports; }

}  // namespace rankine::tools
