// CallNetwork is a modelled network that carries the calls of a communicator:
// CommunicatorOptions::network, TeamOptions::network and RANKINE_NETWORK.
//
//   auto network = rankine::find_call_network("scale_out");
//   auto team = rankine::Team::create({.ranks = 8, .network = *network});
//   (*team)->run([](rankine::Member& me) {
//     me.all_reduce(std::span(data), rankine::ReduceOp::sum, {.algorithm = "ring"})
//         .throw_if_error();
//     std::printf("%g\n", me.model_time());
//   });
//
// Calls move their data as always. In addition the ranks compute the begin and end of each message
// on the network; the times equal those of `rankine simulate`, to the last tick. On a virtual clock
// ranks do not wait for these times. On a wall clock they do, in real time, stretched as far as the
// machine needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

class RankClocks;

struct CallNetwork {
  Fabric fabric;
  Sync sync = Sync::dataflow;
  // If true, a transfer that the network cannot do becomes many messages; if false, the engine
  // refuses such an algorithm.
  bool lower = false;
  ClockMode clock = ClockMode::virtual_time;  // or wall
  // Wall: real seconds per modelled second; 0: chosen when the communicator is made.
  double dilate = 0;
  // Wall: a rank that is late by at most this is on time; 0: half of the least cost of a message.
  std::int64_t tolerance_ns = 0;
  // Seats (engine/network/network_clock.h) let the ranks of several communicators share their ports
  // and their time: give all of them the same seats. None: seats of this communicator only.
  std::shared_ptr<RankClocks> seats{};
};

// Finds a network by the name of a preset ("scale_out"), by the path of a network file, or from the
// content of such a file: text that begins with a brace. A name or path may have options:
// ",sync=rounds" (rounds wait for one another), ",lower=yes", ",clock=wall", and for a wall clock
// ",dilate=500" or ",dilate=auto". A communicator with a wall clock from RANKINE_NETWORK reports on
// stderr, at its end, how late its messages were. Errors name the wrong part and the allowed
// values; `argument` is the name of the whole.
Result<std::shared_ptr<const CallNetwork>> find_call_network(std::string_view text,
                                                             std::string_view argument = "network");

// NetworkReport describes the calls of one communicator on its network.
struct NetworkReport {
  double seconds = 0;  // of the model: the latest of the ranks' times
  // When the last message of each round of the latest call ended, seconds from the beginning.
  std::vector<double> rounds;
  // The most messages that each rank ever sent at once, and received: never more than its ports.
  std::vector<int> most_sent, most_received;

  // Wall.
  double dilate = 1;
  double elapsed = 0;  // real seconds until the last rank had finished its latest call
  // until the last rank had received each round's data; 0: no data
  std::vector<double> rounds_elapsed;
  Lateness lateness;
};

}  // namespace rankine
