// The second fidelity of the model: messages as fluid flows in continuous time.
//
// A message may start when message_order.h says so. It waits for alpha, and alpha_hop per hop of
// its route (wiring.h); then its bytes flow. Links are shared max-min fairly (max_min.h) by the
// messages that flow at that moment, whatever their rounds: a link passes 1 / beta bytes per
// second, and a message that is alone on its route needs m * beta. Where half of a message goes
// each way round a ring, these are two flows of half the bytes and half the weight, and the message
// ends with the later one. Full wiring has a link per message, so times are simulate()'s. What is
// odd (fabric.h) is a part of the rest's bandwidth: of a wire for all that cross it, of a place for
// each message of its. Adding up (gamma) comes after the bytes, before the ports are free.
//
// Eq. (1), which simulate() charges where links are shared, lets a message pay for all bytes that
// cross its busiest link in its round. In rounds whose messages have equal sizes no message ends
// later here: its rate never falls below the busiest link's equal share. With unequal sizes it may,
// and a round may take longer than its busiest link is busy: a long message can be slowed down on
// one link first and on another one later, while each stands idle for part of the time.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/read/skeleton.h"

namespace rankine {

struct FlowTimes {
  double seconds = 0;
  std::vector<double> round_end{};  // when the last message of each round ended; 0 without any
  std::uint64_t messages = 0;
};

// `bytes` is M; sizes of blocks and errors are simulate()'s. Times are doubles, correct to some
// 1e-11 of the whole; the same on every machine that rounds as IEEE 754 says. May be called from
// any number of threads at once.
Result<FlowTimes> simulate_flow(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                                std::uint64_t bytes, const SimulateOptions& options = {});

// Of a skeleton, on its torus with the links and ports of `fabric`; blocks are M / B bytes. The
// result is that of all ranks; `messages` are those gone through.
Result<FlowTimes> simulate_flow(const Skeleton& skeleton, const Fabric& fabric,
                                std::uint64_t bytes);

}  // namespace rankine
