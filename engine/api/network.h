// A modelled network that calls are put on: CommunicatorOptions::network, TeamOptions::network and
// RANKINE_NETWORK.
//
//   auto network = rankine::find_call_network("scale_out");
//   auto team = rankine::Team::create({.ranks = 8, .network = *network});
//   (*team)->run([](rankine::Member& me) {
//     me.all_reduce(std::span(data), rankine::ReduceOp::sum, {.algorithm = "ring"})
//         .throw_if_error();
//     std::printf("%g\n", me.model_time());
//   });
//
// Calls move their data as ever, and beside them the ranks agree on when each message would have
// begun and ended on the network: that is what `rankine simulate` says, to the last tick. On a
// virtual clock nobody waits for it; on a wall clock ranks do, in real time stretched as far as the
// machine needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

class NetworkSeats;

struct CallNetwork {
  Fabric fabric;
  Sync sync = Sync::dataflow;
  // What the network cannot do with one transfer is many messages; else such an algorithm is
  // refused.
  bool lower = false;
  ClockMode clock = ClockMode::virtual_time;  // or wall
  // Wall: real seconds per modelled second; 0: chosen when the communicator is made.
  double dilate = 0;
  // Wall: how late a rank may be and still be on time; 0: half of what a message costs at least.
  std::int64_t tolerance_ns = 0;
  // Where the ranks of several communicators have their ports and their time in common, the same
  // seats (seats.h) are given to all of them; none: the communicator's own.
  std::shared_ptr<NetworkSeats> seats{};
};

// "scale_out": a preset's name, or the path of a network file; with ",sync=rounds" where rounds
// wait for one another, ",lower=yes", ",clock=wall" for a wall clock, and ",dilate=500" or
// ",dilate=auto" for that; a communicator that has its wall clock from RANKINE_NETWORK says at its
// end, on stderr, how well it was kept. Or the content of a network file: text that begins with a
// brace. Errors name the part that is wrong and what is allowed.
Result<std::shared_ptr<const CallNetwork>> find_call_network(std::string_view text);

// What became of the calls of one communicator on its network.
struct NetworkReport {
  double seconds = 0;  // of the model: the latest of the ranks' times
  // When the last message of each round of the latest call ended, seconds from the beginning.
  std::vector<double> rounds;
  // The most messages that each rank ever sent at once, and received: never more than its ports.
  std::vector<int> most_sent, most_received;

  // Wall.
  double dilate = 1;
  double elapsed = 0;  // real seconds until the last rank had finished its latest call
  std::vector<double> rounds_elapsed;  // until the last rank had what each round brings; 0: nothing
  Lateness lateness;
};

}  // namespace rankine
