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
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

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
