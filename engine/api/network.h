// A modelled network that calls are put on: CommunicatorOptions::network, TeamOptions::network and
// RANKINE_NETWORK.
//
//   auto network = rankine::find_call_network("scale_out");
//   auto team = rankine::Team::create({.ranks = 8, .network = *network});
//   (*team)->run([](rankine::Member& me) {
//     me.all_reduce(std::span(data), rankine::ReduceOp::sum, {.algorithm =
//     "ring"}).throw_if_error(); std::printf("%g\n", me.model_time());
//   });
//
// Calls move their data as ever, and beside them the ranks agree on when each message would have
// begun and ended on the network: nobody waits for that (a virtual clock), and it is what `rankine
// simulate` says, to the last tick.
#pragma once

#include <memory>
#include <string_view>

#include "engine/base/status.h"

namespace rankine {

struct CallNetwork;  // call_network.h

// "scale_out": a preset's name, or the path of a network file; with ",sync=rounds" where rounds
// wait for one another, and ",clock=virtual", which is the only clock of calls. Or the content of a
// network file: text that begins with a brace. Errors name the part that is wrong and what is
// allowed.
Result<std::shared_ptr<const CallNetwork>> find_call_network(std::string_view text);

}  // namespace rankine
