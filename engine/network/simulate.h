// simulate() computes exactly how long a schedule takes on a network, without data and for any N.
//
// Times are those of the port model (engine/network/port_model.h). If messages share links, a
// message takes the time given in fabric.h, with the loads of its round in the schedule, in rounds
// and in dataflow alike. A multicast or ALU transfer needs a network with that ability; lower()
// (combine.h) turns other transfers into messages first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/rotation_symmetric.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/port_model.h"
#include "engine/network/prices.h"

namespace rankine {

// The work of a simulation in steps: a step is about one nanosecond, or one byte kept, so a limit
// on steps bounds time and memory. Counted are: the note of each rank, once; each rank in each
// round (or the one rank that stands for all); each link that a message crosses; each transfer, and
// each run of its blocks beyond the two that it has room for (blocks.h); each value, of a block or
// of a stretch of equal neighbours, that is read or changed, and each search for a stretch
// (cells.h); and each byte when more are kept than ever before. Making a schedule and its rounds is
// not counted.
namespace steps {
inline constexpr std::uint64_t kOfNote = 256, kOfRank = 2, kOfLink = 8, kOfTransfer = 128,
                               kOfRun = 128, kOfValue = 4, kOfSearch = 64, kOfByte = 1,
                               kOfPiece = 16;  // a piece of a function over ranks (ByRank)
}  // namespace steps

struct SimulateOptions {
  Sync sync = Sync::dataflow;
  bool ideal_blocks = false;  // blocks of exactly M / B bytes, even if that is no whole number
  // Bytes of each natural block (collective.h); replaces M. Empty: equal blocks of M.
  std::vector<std::uint64_t> counts{};
  bool unlimited_ports = false;  // messages wait for data only: the critical path of a schedule
  bool lower = false;  // replaces transfers that the fabric cannot do by messages (combine.h)
  // If every rank does the same work (rotation_symmetric.h) and the network treats ranks alike,
  // only one rank's part is simulated; the result is that of simulating all. The blocks of M may
  // then differ by one byte, unless messages share links, the switch permutes, or the ranks are
  // rotated round the rings of a torus of two dimensions or more.
  bool one_for_all = true;
  // The greatest number of transfers to simulate; more are an error, before the work if the number
  // is known by then.
  std::uint64_t most_transfers = std::uint64_t{1} << 34;
  // Called with the total number of steps as it grows, and before the first step with the number
  // known by then. An error ends the simulation. Empty: no limit.
  std::function<Status(std::uint64_t steps)> may_take{};
  // The greatest number of bytes of notes. A simulation that needs more fails with out_of_memory
  // and the estimate, before the work if the schedule allows an estimate. 0: unlimited.
  std::uint64_t most_bytes = 0;
  bool trace = false;  // also record each message's begin and end: Simulation::trace
  // By rank: the time at which it begins the schedule, not negative; empty: all at 0. Pass
  // Simulation::rank_end of an earlier simulation to continue it. Not allowed with ideal blocks,
  // because their unit differs by size, nor with unlimited ports.
  std::vector<Ticks> starts{};
};

// The time of a message on its way, and its content. If the switch permutes, the time starts when
// the message holds both its ports. A multicast or ALU transfer has one TracedMessage for each pair
// of a sender and a receiver.
struct TracedMessage {
  int round = 0, transfer = 0;  // the index of the transfer in its round, local ones included
  Rank from = 0, to = 0;
  std::int64_t weight = 0;  // see Pricing
  Ticks start = 0, end = 0;
  // Less than the fabric's ports; -1 if ports are unlimited.
  int send_port = -1, receive_port = -1;
};

struct Simulation {
  Ticks end = 0;
  std::vector<Ticks> rank_end;        // the end of each rank's last message, or the rank's start
  std::vector<Ticks> round_end;       // the end of each round's last message
  std::vector<RoundTraffic> traffic;  // per round, if messages share links; else empty
  Ticks ticks_per_second = 1;
  double seconds = 0;  // end, rounded once
  int rounds = 0;      // rounds with a message; other rounds are local work, which takes no time
  std::uint64_t messages = 0;
  // Weights (see Pricing): per rank, sent and received, and reduced into the rank's blocks.
  std::vector<std::int64_t> sent, received, reduced;
  std::int64_t weight_per_byte = 1;
  std::vector<TracedMessage> trace;  // if requested; in the order stated
  int partners_max = 0;              // distinct ranks that a rank sends to or receives from
  // distinct ranks that a rank sends to, and that a rank receives from
  int targets_max = 0, sources_max = 0;
  int send_ports_needed = 0;     // most messages that one rank sends in a round
  int receive_ports_needed = 0;  // most messages that one rank receives in a round
  int ports_needed() const {
    return send_ports_needed > receive_ports_needed ? send_ports_needed : receive_ports_needed;
  }
};

// The price of a schedule's messages for M under these options, on a fabric from wired_for().
// Errors: those of Pricing, and ideal blocks together with counts.
Result<Pricing> pricing_of(const Fabric& fabric, const CollectiveSpec& goal, std::uint64_t bytes,
                           const SimulateOptions& options);

// Simulates the schedule; `bytes` is M. wired_for() fills in the fabric's open members. Errors: a
// multicast or ALU transfer on a network without it, a bad fabric, times beyond 128 bits,
// out_of_memory. Deterministic; safe to call from several threads at once.
Result<Simulation> simulate(const Schedule& schedule, const CollectiveSpec& goal,
                            const Fabric& fabric, std::uint64_t bytes,
                            const SimulateOptions& options = {});

// Counts the distinct ranks that each rank exchanges messages with. Each rank has a list of its
// targets; a long list is replaced by a bit for every rank, which is smaller. So memory grows with
// the pairs that meet, and is at most a bit for each possible pair. For one thread.
class Meetings {
 public:
  explicit Meetings(int ranks) : ranks_(static_cast<std::size_t>(ranks)), of_(ranks_) {}

  std::size_t ranks() const { return ranks_; }

  // Adds a message, once per occurrence; from != to. With `one` the message stands for every
  // rank's: it is added as a message of rank 0, which sends over the distance of the sender and
  // receives over that distance, and the numbers of rank 0 hold for all ranks. nullptr: an ordinary
  // message.
  void add(Rank from, Rank to, const RotationSymmetric* one) {
    if (one == nullptr) return add(from, to);
    const Rank target = one->rotation().rotated(to, one->rotation().back(from));
    add(0, target);
    add(one->rotation().back(target), 0);
  }

  // By rank: the numbers of distinct ranks that it sends to, that it receives from, and of both
  // together.
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
    std::vector<Rank> list;  // ascending up to the length at the last sort
    std::vector<bool> bits;  // replaces a long list
    std::size_t look_at = kShort;
    Rank last = -1;  // in a ring the target is the same in each round
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
