// How closely messages that share links are looked at.
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
  eq1,     // each pays for its busiest link's load of the round: simulate()
  flow,    // their share of each link at each moment: flow.h
  packet,  // links send one packet after the other: packets.h
};
std::string_view name_of(Fidelity fidelity);
std::optional<Fidelity> parse_fidelity(std::string_view text);
const std::vector<std::string_view>& fidelity_names();  // of all, in that order

// Max-min fair shares: how flows divide the links that they cross.
//
// A flow crosses a set of links and has a weight; its level is its rate per unit of weight. The
// allocation is max-min fair when every flow has a bottleneck: a link that is full and on which
// nobody has a higher level. It is unique, and found by progressive filling: raise all levels
// together, freeze the flows of each link that fills up, go on with the others.
//   Bertsekas & Gallager, Data Networks, 2nd edition, section 6.5.2
//
// Flows come and go; only those that share links with them, directly or through others, are looked
// at again. One object belongs to one thread.

class MaxMin {
 public:
  // Links 0 .. links - 1, each of capacity 1.
  explicit MaxMin(int links);
  int add_link();  // one more, of capacity 1: its number
  // More than 0; while nobody crosses the link.
  void set_capacity(int link, double capacity) { this->link(link).capacity = capacity; }

  // A flow that crosses these links, at least one, each once. Its rate is 0 until settle(). Returns
  // its number; numbers of flows that have stopped are used again.
  int start(int weight, std::span<const int> links);
  void stop(int flow);

  // Shares the links anew after flows have started or stopped. Returns the flows whose rates have
  // changed, each once; valid until the next call of any member.
  std::span<const int> settle();

  double rate(int flow) const { return flows_[static_cast<std::size_t>(flow)].rate; }

 private:
  struct Hop {
    int link = 0;
    int at = 0;  // where the flow stands among the link's
  };
  struct Flow {
    int weight = 0;
    double rate = 0;
    std::uint64_t seen = 0, frozen = 0;  // turns of settle()
    std::vector<Hop> hops{};
  };
  struct Passage {
    int flow = 0;
    int hop = 0;  // which of the flow's
  };
  struct Link {
    std::vector<Passage> passages{};
    double capacity = 1;
    double left = 1;  // capacity that frozen flows leave
    int open = 0;     // weight of the others
    std::uint64_t seen = 0;
  };

  Flow& flow(int f) { return flows_[static_cast<std::size_t>(f)]; }
  Link& link(int l) { return links_[static_cast<std::size_t>(l)]; }
  void touch(int l);
  void gather();
  void freeze(Flow& flow, int f, double level);

  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<int> unused_;  // numbers of flows that have stopped
  std::uint64_t turn_ = 1;
  std::vector<int> touched_;  // links that changed, then all that these may affect
  std::vector<int> changed_;
  std::vector<std::pair<double, int>> fullest_;  // a heap: the level at which a link is full
};

// The messages of a schedule on a torus without what they carry, and of ranks that nobody can tell
// apart those of one.
//
// Who sends how many blocks to whom in which round is all that is left. A rank goes on to a round
// when all is there that was sent to it in the rounds before: so does a process that posts the
// receives and sends of a round and waits for all of them (MPI_Waitall), with no barrier between
// processes. What a message waits for then needs no blocks.
//
// A turn of the torus (every coordinate of a dimension more by so many, or its mirror image) that
// turns each round's messages into themselves turns times into themselves as well. So of ranks that
// such turns bring to each other one stands for all, and of their links one. The messages of 512
// ranks are what recursive doubling has on 16 x 16 x 16, those of one what Trivance has.

// Which ranks of a torus are alike, and which of its links. Immutable.
class Alike {
 public:
  // Of one dimension: coordinates that differ by `step`, which divides its size; and, where
  // `mirrored`, x and -1 - x as well. Mirrored only with an even step: nobody is its own image.
  struct Line {
    int step = 1;
    bool mirrored = false;
    bool operator==(const Line&) const = default;
  };
  Alike(const std::vector<int>& dims, std::vector<Line> lines);

  const std::vector<Line>& lines() const { return lines_; }
  int classes() const { return classes_; }
  int class_of(Rank r) const { return class_of_[static_cast<std::size_t>(r)]; }
  // Of a class the rank of the least coordinates, whose messages a skeleton has.
  bool stands_for_others(Rank r) const { return stands_[static_cast<std::size_t>(r)]; }

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
  std::vector<bool> turned_;  // by rank and dimension: it is a mirror image there
};

// A message, by what it weighs.
struct Sent {
  Rank from = 0, to = 0;
  int blocks = 0;
  auto operator<=>(const Sent&) const = default;
};
using SentByRound = std::vector<std::vector<Sent>>;

struct Skeleton {
  std::vector<int> dims;
  Alike alike;
  Goal goal;             // of the schedule that it is of
  SentByRound messages;  // of the ranks that stand for others, in the order stated

  // The same as a schedule for readers: a message brings its first blocks, as many as it has.
  Schedule schedule() const;
};

// On a torus of these sizes (one: a ring). Errors: sizes that are not those of so many ranks, a
// multicast or ALU transfer.
Result<Skeleton> skeleton_of(const Schedule& schedule, const Goal& goal,
                             const std::vector<int>& dims);
// Of all messages of a schedule, by those who have gone through it anyway.
Skeleton skeleton_of(const SentByRound& all, const Goal& goal, const std::vector<int>& dims);

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
