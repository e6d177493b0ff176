// The second fidelity of the model: messages as fluid flows in continuous time.
//
// A message may start when the data that it carries has arrived (dataflow) or the round before has
// ended (rounds), and a send port of its sender and a receive port of its receiver are free: taken
// in the order stated, no backfilling, as simulate.h has it. It waits for alpha, and alpha_hop per
// hop of its route (wiring.h); then its bytes flow. Links are shared max-min fairly (max_min.h) by
// the messages that flow at that moment, whatever their rounds: a link passes 1 / beta bytes per
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
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"

namespace rankine {

// What messages that share links pay: Eq. (1), which simulate() charges, or their share at each
// moment.
enum class Fidelity : std::uint8_t { eq1, flow };
std::string_view name_of(Fidelity fidelity);
std::optional<Fidelity> parse_fidelity(std::string_view text);

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

}  // namespace rankine
