// The third fidelity of the model: messages as packets that every link stores and forwards.
//
// A message may start when message_order.h says so. After alpha its bytes are packets of `mtu`
// bytes (Fabric) and one of what is left over (a message of nothing is one packet of nothing); they
// join the queue of the first link of its route (wiring.h) together, one behind the other. A link
// sends one packet after the other, first come, first served, and takes beta per byte. A packet
// that has been sent is at the link's end alpha_hop later and joins the queue of the next one. The
// message has ended when its last packet is there. So alone on its route, with n packets,
//
//   alpha + hops * alpha_hop + m * beta + (hops - 1) * (the largest packet) * beta, if the last one
//
// is no smaller than the others: Eq. (1) and what storing takes. Of packets that come at once those
// go first that have come farther, then those of the message stated first. Where half of a message
// goes each way round a ring, each half is packets of its own. Links of a message's own (full
// wiring, inside a group) are one hop: times are simulate()'s. An odd wire (fabric.h) has its own
// beta. Adding up (gamma) comes after the last packet, before the ports are free.
//
// Packets of one message that follow each other evenly are worked on as one train; what comes
// between them takes the train apart, down to single packets where two streams take turns. Results
// are those of packet by packet, to the last tick (packets_test has that simulation too).
//
// This is not what any product does: there are no credits, no virtual channels and no adaptive
// routes, a queue is as long as it has to be, and a rank's next message waits behind its last one.
// But nobody pays for bytes that have not come yet, as Eq. (1) has it, and nobody gets a share of a
// link before it is free, as flows do.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/network/ticks.h"
#include "engine/read/skeleton.h"

namespace rankine {

struct PacketTimes {
  Ticks end = 0;
  std::vector<Ticks> round_end{};  // when the last message of each round ended; 0 without any
  Ticks ticks_per_second = 1;
  double seconds = 0;  // end, rounded once
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;  // of messages on links that are shared
};

// `bytes` is M; sizes of blocks and errors are simulate()'s, and odd places where links are shared,
// which have no queue. Exact; the same on every machine. May be called from any number of threads.
Result<PacketTimes> simulate_packets(const Schedule& schedule, const Goal& goal,
                                     const Fabric& fabric, std::uint64_t bytes,
                                     const SimulateOptions& options = {});

// Of a skeleton, on its torus with the links and ports of `fabric`; blocks are M / B bytes. The
// times are those of all ranks; messages and packets are those gone through.
Result<PacketTimes> simulate_packets(const Skeleton& skeleton, const Fabric& fabric,
                                     std::uint64_t bytes);

}  // namespace rankine
