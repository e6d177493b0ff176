// A Fabric describes a network for every clock: its ports, links, wiring and abilities. DESIGN.md
// describes the port model. Presets (Regime) and the settings and statistics of clocks follow
// below.
//
// A rank has `ports` send ports and as many receive ports, full duplex. A message of m bytes
// occupies one of each for alpha + m * beta. Ranks of one group reach each other over `link`, and
// ranks of different groups over `between`; without groups all ranks are one group.
//
// A switch that permutes carries all messages of a round in one operation: each port pays the
// greatest alpha of its messages once a round and direction, and for each of them m * beta
// (port_model.h).
//
// In every wiring but full, messages share links (wiring.h). Then a message of m bytes takes
//
//   alpha + hops * alpha_hop + beta * load
//
// hops is the number of links on its route. load is the number of bytes that the busiest of these
// links carries in the round, over all messages of the round; half a message counts half. This is
// Eq. (1) of Trivance (section 2.1), with a separate m_k c_k for each message instead of a common
// one. Messages that wait for each other at a rank's ports do not meet on a group's link: it
// carries only as many of them at once as there are ports (Congestion in prices.h). Loads are those
// of the schedule's round, independent of the ranks' start times, so every clock can compute them
// exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/rational.h"
#include "algorithms/schedule/blocks.h"
#include "engine/base/status.h"
#include "engine/network/wiring.h"

namespace rankine {

struct Link {
  Rational alpha;  // seconds per message
  Rational beta;   // seconds per byte
  // Contention on the link (Lu, Collective Algorithms): a message takes eta_alpha >= 1 times alpha,
  // and its bytes get the fraction eta_beta <= 1 of the bandwidth.
  Rational eta_alpha{1}, eta_beta{1};

  Rational latency() const { return alpha * eta_alpha; }
  Rational per_byte() const { return beta / eta_beta; }
  bool operator==(const Link&) const = default;
};

// An exception to the network's links: all messages sent and received at one place, or the messages
// from one place to another. In wirings that share links, a pair of places names the wire between
// two neighbours of a grid, and the exception has a beta only.
struct OddLink {
  int at = -1;             // the place, or -1
  int from = -1, to = -1;  // the pair of places, or -1
  // Replace those of the ordinary link; nullopt keeps its value.
  std::optional<Rational> alpha{}, beta{};

  bool is_place() const { return at >= 0; }
  bool joins(int a, int b) const { return is_place() ? a == at || b == at : a == from && b == to; }
  bool operator==(const OddLink&) const = default;
};

struct Fabric {
  std::string name = "custom";
  int ports = 1;  // 0, only on a grid: one port per link of a rank, set by wired_for()
  Link link{};
  int group = 0;            // ranks per group; 0: one group
  Link between{};           // among groups
  bool multicast = false;   // one -> many in one transfer
  bool alu = false;         // many -> one, reduced on the way
  bool permute = false;     // all messages of a round in one operation
  Rational alpha_switch{};  // seconds per hop through the switch; multicast and ALU cost two
  Wiring wiring{};
  // seconds per link that a message crosses, including the processing at its end; a message in full
  // wiring crosses one link
  Rational alpha_hop{};
  // seconds per byte that a rank adds to its data; the message's ports stay busy meanwhile
  Rational gamma{};
  int mtu =
      // bytes of the largest packet, for messages sent as packets (packets.cc of engine/read)
      kUsualMtu;
  std::vector<OddLink> odd{};  // the first one that matches a message applies
  // Placement: rank r sits at places[r] of `size` places; wiring and groups are about places. If
  // `places` is empty, rank r sits at place r; if `size` is 0, there are as many places as ranks.
  int size = 0;
  std::vector<int> places{};

  static constexpr int kMostPorts = 1 << 14;  // no schedule can use more ports per rank
  static constexpr int kUsualMtu = 4096, kMostMtu = 1 << 24;  // InfiniBand's largest; 16 MiB

  bool two_level() const { return group > 0; }
  Abilities abilities() const { return {multicast, alu, permute}; }
  bool operator==(const Fabric&) const = default;

  int place_of(Rank r) const { return places.empty() ? r : places[static_cast<std::size_t>(r)]; }
  int places_among(int ranks) const { return size > 0 ? size : ranks; }

  // Links of one kind cost the same. The kinds are: inside a group and between groups, for ordinary
  // links and for each odd link.
  int link_kinds() const { return 2 * (1 + static_cast<int>(odd.size())); }
  Link link_of_kind(int kind) const;
  Rational least_latency() const;  // of any message
  int kind_between(Rank a, Rank b) const {
    const int from = place_of(a), to = place_of(b);
    const int far = group > 0 && from / group != to / group ? 1 : 0;
    return odd.empty() ? far : 2 * odd_between(from, to) + far;
  }
  // The index plus one of the odd link that applies to a message between two places; 0: no odd
  // link. Odd wires of a grid are handled by RoundPrices.
  int odd_between(int from, int to) const;
};

// A named network with its source. Bandwidths are per direction, as in the port model.
struct Regime {
  std::string_view name;
  Fabric fabric;
  std::string_view source;
};

std::span<const Regime> regimes();
const Regime* find_regime(std::string_view name);
std::string regime_names();

// The default network of the tools: one port, 1 us, 100 GB/s.
const Regime& plain_regime();

// Checks ports 1 .. kMostPorts (or open, on a grid), times >= 0, groups >= 0 and mtu 1 .. kMostMtu,
// and rejects members that belong to another wiring: dims, one-way routing, groups, spines,
// abilities of a switch. The error names the member.
Status check_fabric(const Fabric& fabric);

// Returns the fabric for `ranks` ranks, with every open member filled in. A torus or mesh without
// dims gets `dims`; if these are empty too, it gets the two factors of `ranks` nearest to each
// other (for a prime, the one factor). A grid with open ports gets Routes::degree() ports.
// two_level and fat_tree wiring get the fabric's group. Every function that reads a fabric for a
// number of ranks calls this first; a second call changes nothing. Errors: those of check_fabric()
// and Routes::make(), which name the allowed values.
Result<Fabric> wired_for(const Fabric& fabric, int ranks, const std::vector<int>& dims = {});

// The network on which a byte takes `times` as long, and M / times bytes the time of M bytes.
Fabric slowed(Fabric fabric, const Rational& times);

// Opens the ports of a grid, for a caller that has changed the wiring without a number of ports.
void open_ports(Fabric& fabric);

// Ticks is a time as a whole number of a unit in which all times of a network are whole (prices.h).
//
// Sync and ClockMode are the two settings of a network's clock:
//
//   sync    dataflow: a message waits for its ports and its data; rounds: also for the end of the
//           round before (port_model.h)
//   clock   virtual: ranks never wait for the times; wall: ranks keep the times in real time,
//           stretched (network_clock.h); none: there is no network
using Ticks = Int128;

enum class Sync : std::uint8_t { dataflow, rounds };
std::string_view name_of(Sync sync);
std::optional<Sync> parse_sync(std::string_view text);

enum class ClockMode : std::uint8_t { none, wall, virtual_time };
std::string_view name_of(ClockMode mode);
std::optional<ClockMode> parse_clock_mode(std::string_view text);  // none, wall, virtual

// How punctually the machine met the deadlines of a wall clock (network_clock.h), over all ranks.
struct Lateness {
  std::int64_t deadlines = 0;  // deadlines that ranks slept for
  std::int64_t missed = 0;     // deadlines missed by more than the tolerance
  // from a deadline to the moment the rank went on, over the last deadlines
  std::int64_t median_ns = 0;
  std::int64_t worst_ns = 0;      // over all deadlines
  std::int64_t passed_on_ns = 0;  // the greatest distance of a rank from the plan
};

}  // namespace rankine
