// The simulator: how long a schedule takes on a network, exactly, without data and for any N.
//
// Times are those of the port model (engine/network/port_model.h), of which there is one.
//
// Where messages share links, a message's time is that of fabric.h, with the loads of its round in
// the schedule, under either rule.
//
// A multicast or ALU transfer needs a network that has the ability; lower() turns others into
// messages first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/congestion.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/ticks.h"

namespace rankine {

// What a simulation has to do, counted so that a step is about a nanosecond of it, or a byte that
// it keeps: whoever allows a number of steps bounds time and memory. For what is noted of each
// rank, once; for each rank in each round (or for the one that stands for all); for each link that
// a message crosses; for each transfer, and each run of its blocks beyond the two that it has room
// for (blocks.h); for each value of a block, or of neighbours that are alike, which is read or
// changed, and for finding such neighbours (cells.h); and for each byte where more are kept than
// ever before. Making a schedule, and its rounds, is not counted.
namespace steps {
inline constexpr std::uint64_t kOfNote = 256, kOfRank = 2, kOfLink = 8, kOfTransfer = 128,
                               kOfRun = 128, kOfValue = 4, kOfSearch = 64, kOfByte = 1,
                              kOfPiece = 16;  // of times of all ranks (by_rank.h)
}  // namespace steps

struct SimulateOptions {
  Sync sync = Sync::dataflow;
  bool ideal_blocks = false;  // blocks of exactly M / B bytes, also where that is no whole number
  // Bytes of each natural block (collective.h), in place of what M says; empty: M's equal ones.
  std::vector<std::uint64_t> counts{};
  bool unlimited_ports = false;  // messages wait for data only: the critical path of a schedule
  bool lower = false;  // what the fabric cannot do with one transfer is many messages (lower.h)
  // Where everyone does the same (everyone.h) and the network does not tell ranks apart, one rank's
  // part is gone through; the result is that of going through all. Blocks of M bytes may differ by
  // the one byte by which they do, unless messages share links, the switch permutes, or ranks are
  // turned round the rings of a torus of two dimensions or more.
  bool one_for_all = true;
  // Transfers that are gone through: more are an error, at once where that is known before.
  std::uint64_t most_transfers = std::uint64_t{1} << 34;
  // Whether so many steps may be taken in all: asked as they grow, and before the first for as many
  // as are known then. An error ends the simulation with it. Empty: nobody is asked.
  std::function<Status(std::uint64_t steps)> may_take{};
  // Bytes of notes that a simulation may keep: one that needs more is out_of_memory, before the work
  // as far as the schedule tells, with the estimate. 0: any number.
  std::uint64_t most_bytes = 0;
  bool trace = false;           // also when each message began and ended: Simulation::trace
  std::vector<Ticks> starts{};  // by rank, when it comes to the schedule, not negative; empty: all
                                // at 0. Of what was simulated before: Simulation::rank_end. Not
                                // with ideal blocks, whose unit is another one for each size, nor
                                // with unlimited ports
};

// When a message was on its way, and what it held: where the switch permutes, from when both its
// ports were its own. A multicast or ALU transfer has one of these for
// each of its senders with each of its receivers.
struct TracedMessage {
  int round = 0, transfer = 0;  // the transfers of a round are counted from 0, local ones with them
  Rank from = 0, to = 0;
  std::int64_t weight = 0;  // see Pricing
  Ticks start = 0, end = 0;
  // Below the fabric's ports; -1 without a limit of ports.
  int send_port = -1, receive_port = -1;
};

struct Simulation {
  Ticks end = 0;
  std::vector<Ticks> rank_end;        // when the last message of each rank ended, or it started
  std::vector<Ticks> round_end;       // when the last message of each round ended
  std::vector<RoundTraffic> traffic;  // per round, where messages share links; else empty
  Ticks ticks_per_second = 1;
  double seconds = 0;  // end, rounded once
  int rounds = 0;      // that have a message; others are local work, which takes no time
  std::uint64_t messages = 0;
  // Weights (see Pricing): per rank, sent and received, and reduced into the rank's blocks.
  std::vector<std::int64_t> sent, received, reduced;
  std::int64_t weight_per_byte = 1;
  std::vector<TracedMessage> trace;      // where that was asked for; in the order stated
  int partners_max = 0;                  // distinct ranks that a rank sends to or receives from
  int targets_max = 0, sources_max = 0;  // those that it sends to; those that it receives from
  int send_ports_needed = 0;             // most messages that one rank sends in a round
  int receive_ports_needed = 0;          // likewise that it receives
  int ports_needed() const {
    return send_ports_needed > receive_ports_needed ? send_ports_needed : receive_ports_needed;
  }
};

// What those options make of M: the price of a schedule's messages on a fabric as wired_for() gives
// it. Errors: those of Pricing, and ideal blocks of stated counts.
Result<Pricing> pricing_of(const Fabric& fabric, const Goal& goal, std::uint64_t bytes,
                           const SimulateOptions& options);

// `bytes` is M. What the fabric leaves open is filled in by wired_for(). Errors: a multicast or ALU
// transfer on a network without it, bad fabric, times that leave 128 bits, out_of_memory.
// Deterministic; may be called from any number of threads at once.
Result<Simulation> simulate(const Schedule& schedule, const Goal& goal, const Fabric& fabric,
                            std::uint64_t bytes, const SimulateOptions& options = {});

}  // namespace rankine
