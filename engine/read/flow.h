// simulate_flow() simulates a schedule over shared links in continuous time as fluid flows (MaxMin
// divides the links), and simulate_packets() as packets. A Skeleton reduces a schedule on a torus
// to ranks that stand for others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/prices.h"
#include "engine/network/simulate.h"

namespace rankine {

enum class Fidelity : std::uint8_t {
  eq1,     // a message pays for the load of its busiest link in the round: simulate()
  flow,    // messages have shares of each link at each moment: simulate_flow()
  packet,  // links send one packet after the other: simulate_packets()
};
std::string_view name_of(Fidelity fidelity);
std::optional<Fidelity> parse_fidelity(std::string_view text);
const std::vector<std::string_view>& fidelity_names();  // in that order

// MaxMin divides links among flows by max-min fair shares.
//
// A flow crosses a set of links and has a weight; its level is its rate per unit of weight. The
// allocation is max-min fair if every flow has a bottleneck: a full link on which no flow has a
// higher level. It is unique, and found by progressive filling: raise all levels together, freeze
// the flows of each link that fills up, go on with the others.
//   Bertsekas & Gallager, Data Networks, 2nd edition, section 6.5.2
//
// When flows start or stop, only flows that share links with them, directly or through others, are
// recomputed. One object belongs to one thread.
class MaxMin {
 public:
  // Links 0 .. links - 1, each of capacity 1.
  explicit MaxMin(int links);
  int add_link();  // adds a link of capacity 1 and returns its number
  // More than 0; call only while no flow crosses the link.
  void set_capacity(int link, double capacity) { this->link(link).capacity = capacity; }

  // Starts a flow over these links, at least one, each once. Its rate is 0 until settle(). Returns
  // its number; numbers of stopped flows are used again.
  int start(int weight, std::span<const int> links);
  void stop(int flow);

  // Recomputes the shares after flows have started or stopped. Returns the flows with a changed
  // rate, each once; valid until the next call of any member.
  std::span<const int> settle();

  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }

 private:
  struct Hop {
    int link = 0;
    int at = 0;  // the flow's index in the link's passages
  };
  struct Flow {
    int weight = 0;
    double rate = 0;
    std::uint64_t seen = 0, frozen = 0;  // turns of settle()
    std::vector<Hop> hops{};
  };
  struct Passage {
    int flow = 0;
    int hop = 0;  // index in the flow's hops
  };
  struct Link {
    std::vector<Passage> passages{};
    double capacity = 1;
    double left = 1;  // capacity that frozen flows leave
    int open = 0;     // weight of the other flows
    std::uint64_t seen = 0;
  };

  Flow& flow(int f) { return flows_[static_cast<std::size_t>(f)]; }
  Link& link(int l) { return links_[static_cast<std::size_t>(l)]; }
  void touch(int l);
  void gather();
  void freeze(Flow& flow, int f, double level);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<int> unused_;  // numbers of stopped flows
  std::uint64_t turn_ = 1;
  std::vector<int> touched_;  // links that changed, then all links that may be affected
  std::vector<int> changed_;
  std::vector<std::pair<double, int>> fullest_;  // a heap: the level at which a link is full
};

// A skeleton is a schedule on a torus reduced to weights of messages: it has no blocks, and of
// indistinguishable ranks only one.
//
// It has the sender, receiver and number of blocks of each message by round. A rank goes on to a
// round when all messages to it in earlier rounds have arrived: so does a process that posts the
// receives and sends of a round and waits for all of them (MPI_Waitall), without a barrier between
// processes. The waits of a message then need no blocks.
//
// A symmetry of the torus (a shift of all coordinates of a dimension, or a mirror image) that maps
// each round's messages to themselves maps times to themselves as well. So one rank stands for all
// ranks that such symmetries map to it, and so do its links. On 16 x 16 x 16, recursive doubling
// needs the messages of 512 ranks, and Trivance those of one.

// The classes of equivalent ranks of a torus, and of its links. Immutable.
class Alike {
 public:
  // The symmetry of one dimension: coordinates that differ by `step`, a divisor of its size, are
  // alike; with `mirrored`, x and -1 - x too. Mirrored only with an even step: then no coordinate
  // is its own image.
  struct Line {
    int step = 1;
    bool mirrored = false;
    bool operator==(const Line&) const = default;
  };
  Alike(const std::vector<int>& dims, std::vector<Line> lines);

  const std::vector<Line>& lines() const { return lines_; }
  int classes() const { return classes_; }
  int class_of(Rank r) const { return class_of_[static_cast<std::size_t>(r)]; }
  // True for the rank with the least coordinates of its class; a skeleton has the messages of these
  // ranks.
  bool represents_others(Rank r) const { return stands_[static_cast<std::size_t>(r)]; }

  // Links as Routes (engine/network/wiring.h) numbers those of a torus: by rank, dimension, way.
  int links() const { return classes_ * ways_; }
  int class_of_link(int link) const {
    const auto of_rank = static_cast<std::size_t>(link / 2);
    const Rank r = link / ways_;
    return class_of(r) * ways_ + (link % ways_ ^ (turned_[of_rank] ? 1 : 0));
  }

 private:
  std::vector<Line> lines_;
  int classes_ = 1, ways_ = 2;  // ways out of a rank
  std::vector<int> class_of_;
  std::vector<bool> stands_;
  std::vector<bool> turned_;  // by rank and dimension: true if mirrored there
};

// A message with its number of blocks.
struct Sent {
  Rank from = 0, to = 0;
  int blocks = 0;
  auto operator<=>(const Sent&) const = default;
};
using SentByRound = std::vector<std::vector<Sent>>;

struct Skeleton {
  std::vector<int> dims;
  Alike alike;
  CollectiveSpec goal;   // the goal of the original schedule
  SentByRound messages;  // of the ranks that stand for others, in the order stated

  // The skeleton as a schedule for readers: a message carries the first blocks, as many as it has.
  Schedule schedule() const;
};

// `dims` are the sizes of the torus (one size: a ring). Errors: a product of sizes other than the
// number of ranks, a multicast or ALU transfer.
Result<Skeleton> skeleton_of(const Schedule& schedule, const CollectiveSpec& goal,
                             const std::vector<int>& dims);
// From all messages of a schedule, for callers that have collected them already.
Skeleton skeleton_of(const SentByRound& all, const CollectiveSpec& goal,
                     const std::vector<int>& dims);

// The second fidelity of the model: messages as fluid flows in continuous time.
//
// MessagesInOrder (carried_schedule.h) decides when a message may start. The message waits for
// alpha, and alpha_hop per hop of its route (wiring.h); then its bytes flow. Links are shared
// max-min fairly (MaxMin) by the messages that flow at that moment, in any round: a link passes 1 /
// beta bytes per second, and a message that is alone on its route needs m * beta. If half of a
// message goes each way round a ring, the halves are two flows with half the bytes and half the
// weight, and the message ends with the later one. Full wiring has a link per message, so times are
// simulate()'s. An odd link (fabric.h) has a fraction of the others' bandwidth: a wire for all
// messages that cross it, a place for each of its messages. The receiver adds (gamma) after the
// bytes, before the ports become free.
//
// Eq. (1), which simulate() charges for shared links, lets a message pay for all bytes that cross
// its busiest link in its round. In rounds with messages of equal size no message ends later here:
// its rate never falls below the busiest link's equal share. With unequal sizes it may, and a round
// may take longer than its busiest link is busy: a long message can be slowed down on one link
// first and on another one later, while each is idle for part of the time.

struct FlowTimes {
  double seconds = 0;
  std::vector<double> round_end{};  // the end of each round's last message; 0 without messages
  std::uint64_t messages = 0;
};

// `bytes` is M; sizes of blocks and errors are simulate()'s. Times are doubles, correct to some
// 1e-11 of the whole; equal on all machines with IEEE 754 rounding. Safe to call from several
// threads at once.
Result<FlowTimes> simulate_flow(const Schedule& schedule, const CollectiveSpec& goal,
                                const Fabric& fabric, std::uint64_t bytes,
                                const SimulateOptions& options = {});

// For a skeleton, on its torus with the links and ports of `fabric`; blocks are M / B bytes. The
// result is that of all ranks; `messages` counts the simulated ones.
Result<FlowTimes> simulate_flow(const Skeleton& skeleton, const Fabric& fabric,
                                std::uint64_t bytes);

// The third fidelity of the model: messages as packets that every link stores and forwards.
//
// MessagesInOrder (carried_schedule.h) decides when a message may start. After alpha its bytes are
// packets of `mtu` bytes (Fabric) and one smaller packet with the rest (an empty message is one
// empty packet); they join the queue of the first link of its route (wiring.h) together, one behind
// the other. A link sends one packet after the other, first come, first served, and takes beta per
// byte. A packet is at the link's end alpha_hop after it was sent and joins the queue of the next
// link. The message has ended when its last packet has arrived. So alone on its route, with n
// packets, it takes
//
//   alpha + hops * alpha_hop + m * beta + (hops - 1) * (the largest packet) * beta, if the last one
//
// is no smaller than the others: Eq. (1) plus the time of storing. Among packets that arrive at
// once, those go first that have come farther, then those of the message stated first. If half of a
// message goes each way round a ring, each half has separate packets. Private links (full wiring,
// inside a group) are one hop: times are simulate()'s. An odd wire (fabric.h) has its own beta. The
// receiver adds (gamma) after the last packet, before the ports become free.
//
// Packets of one message that follow each other evenly are handled as one train; packets between
// them split the train, down to single packets if two streams alternate. Results equal those of
// packet by packet, to the last tick (packets_test has that simulation too).
//
// No product works in this way: there are no credits, virtual channels or adaptive routes, a queue
// is as long as necessary, and a rank's next message waits behind its last one. But no message pays
// for bytes that have not come yet, as in Eq. (1), and no message gets a share of a link before it
// is free, as in flows.

struct PacketTimes {
  Ticks end = 0;
  std::vector<Ticks> round_end{};  // the end of each round's last message; 0 without messages
  Ticks ticks_per_second = 1;
  double seconds = 0;  // end, rounded once
  std::uint64_t messages = 0;
  std::uint64_t packets = 0;  // packets of messages on shared links
};

// `bytes` is M; sizes of blocks and errors are simulate()'s; also an error: odd places together
// with shared links, because places have no queue. Exact, and equal on all machines. Safe to call
// from several threads at once.
Result<PacketTimes> simulate_packets(const Schedule& schedule, const CollectiveSpec& goal,
                                     const Fabric& fabric, std::uint64_t bytes,
                                     const SimulateOptions& options = {});

// For a skeleton, on its torus with the links and ports of `fabric`; blocks are M / B bytes. The
// times are those of all ranks; messages and packets are the simulated ones.
Result<PacketTimes> simulate_packets(const Skeleton& skeleton, const Fabric& fabric,
                                     std::uint64_t bytes);

}  // namespace rankine
