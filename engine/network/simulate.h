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

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/everyone.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"

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

// Who sends to whom in a schedule: how many distinct ranks each has to do with.

// Each rank has a list of those it sends to; where that gets long a bit for every rank is smaller.
// So memory grows with the pairs that meet, and is never more than a bit for each that could. For
// one thread.
class Meetings {
 public:
  explicit Meetings(int ranks) : ranks_(static_cast<std::size_t>(ranks)), of_(ranks_) {}

  std::size_t ranks() const { return ranks_; }

  // A message, as often as there is one; from != to. One that stands for all (`one`; nullptr: it is
  // a message of its own) sends as far as its sender does and hears from as far, as rank 0 then,
  // whose numbers are everybody's.
  void add(Rank from, Rank to, const Everyone* one) {
    if (one == nullptr) return add(from, to);
    const Rank target = one->rotation().rotated(to, one->rotation().back(from));
    add(0, target);
    add(one->rotation().back(target), 0);
  }

  // By rank, of all that was added: distinct ranks that it sends to; that it receives from; either.
  struct Numbers {
    std::vector<int> targets, sources, partners;
  };
  Numbers numbers() {
    for (Targets& targets : of_) sort(targets.list);
    Numbers out{std::vector<int>(ranks_), std::vector<int>(ranks_), std::vector<int>(ranks_)};
    for (Rank a = 0; a < static_cast<Rank>(ranks_); ++a) {
      for_each_target(a, [&](Rank b) {
        ++out.targets[static_cast<std::size_t>(a)];
        ++out.sources[static_cast<std::size_t>(b)];
        ++out.partners[static_cast<std::size_t>(a)];
        if (!sends(b, a)) ++out.partners[static_cast<std::size_t>(b)];
      });
    }
    return out;
  }

 private:
  static constexpr std::size_t kBitsPerRank = 8 * sizeof(Rank);
  static constexpr std::size_t kShort = 16;
  struct Targets {
    std::vector<Rank> list;  // ascending up to where it was last sorted
    std::vector<bool> bits;  // in its place, where there are many
    std::size_t look_at = kShort;
    Rank last = -1;  // rings meet the same one in each round
  };

  void add(Rank from, Rank to) {
    Targets& targets = of_[static_cast<std::size_t>(from)];
    if (to == targets.last) return;
    targets.last = to;
    if (!targets.bits.empty()) {
      targets.bits[static_cast<std::size_t>(to)] = true;
      return;
    }
    targets.list.push_back(to);
    if (targets.list.size() < targets.look_at) return;
    sort(targets.list);
    targets.look_at = std::max(kShort, 2 * targets.list.size());
    if (targets.list.size() * kBitsPerRank <= ranks_) return;
    targets.bits.resize(ranks_);
    for (const Rank r : targets.list) targets.bits[static_cast<std::size_t>(r)] = true;
    std::vector<Rank>().swap(targets.list);
  }

  static void sort(std::vector<Rank>& list) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  bool sends(Rank from, Rank to) const {
    const Targets& targets = of_[static_cast<std::size_t>(from)];
    if (!targets.bits.empty()) return targets.bits[static_cast<std::size_t>(to)];
    return std::binary_search(targets.list.begin(), targets.list.end(), to);
  }
  template <class Visit>
  void for_each_target(Rank from, const Visit& visit) const {
    const Targets& targets = of_[static_cast<std::size_t>(from)];
    for (const Rank to : targets.list) visit(to);
    for (std::size_t to = 0; to < targets.bits.size(); ++to) {
      if (targets.bits[to]) visit(static_cast<Rank>(to));
    }
  }

  std::size_t ranks_;
  std::vector<Targets> of_;
};

}  // namespace rankine
