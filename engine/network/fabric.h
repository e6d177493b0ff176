// What a network is, for every clock: ports, links and abilities. See DESIGN.md for the port model.
//
// A rank has `ports` send ports and as many receive ports, full duplex. A message of m bytes
// occupies one of each for alpha + m * beta. Ranks of one group reach each other over `link`,
// others over `between`; without groups all are one group.
//
// A switch that permutes carries all messages of a round in one operation: each port pays the
// greatest alpha of its messages once a round and direction, and for each of them m * beta
// (port_model.h).
//
// Where ranks are wired otherwise than each to each, messages share links (wiring.h). Then a
// message of m bytes takes
//
//   alpha + hops * alpha_hop + beta * load
//
// where hops are the links of its route, and load is what the busiest of them carries in the round:
// the bytes of all messages of the round on it, halves counted as halves. That is Eq. (1) of
// Trivance (section 2.1), with its m_k c_k per message in place of one for all. Of what must wait
// for each other at a rank's ports, a group's link carries only as much as there are ports
// (congestion.h). Loads are those of the schedule's round, whoever starts when: every clock can
// know them, and they are exact.
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
  // What others on it make of that (Lu, Collective Algorithms): a message takes eta_alpha >= 1
  // times alpha, and its bytes get the part eta_beta <= 1 of the bandwidth.
  Rational eta_alpha{1}, eta_beta{1};

  Rational latency() const { return alpha * eta_alpha; }
  Rational per_byte() const { return beta / eta_beta; }
  bool operator==(const Link&) const = default;
};

// What is not like the rest of the network: all that is sent and received at one place, or what
// goes from one place to another. Where messages share links, the latter is the wire that joins
// two neighbours of a grid, and has a beta only.
struct OddLink {
  int at = -1;             // a place; or
  int from = -1, to = -1;  // two
  // In place of those of the link that would be there; none: as there.
  std::optional<Rational> alpha{}, beta{};

  bool is_place() const { return at >= 0; }
  bool joins(int a, int b) const { return is_place() ? a == at || b == at : a == from && b == to; }
  bool operator==(const OddLink&) const = default;
};

struct Fabric {
  std::string name = "custom";
  int ports = 1;  // 0, on a grid: as many as a rank has links; wired_for() says how many
  Link link{};
  int group = 0;            // ranks per group; 0: one group
  Link between{};           // among groups
  bool multicast = false;   // one -> many in one transfer
  bool alu = false;         // many -> one, reduced on the way
  bool permute = false;     // all messages of a round in one operation
  Rational alpha_switch{};  // seconds per hop through the switch; multicast and ALU cost two
  Wiring wiring{};
  Rational alpha_hop{};  // seconds per link that a message crosses, the processing at its end
                         // included; in full wiring that is one link
  Rational gamma{};  // seconds per byte that a rank adds to what it has; its port waits for that
  int mtu =
      kUsualMtu;  // bytes of the largest packet, where messages travel as packets (read/packets.h)
  std::vector<OddLink> odd{};  // of several that speak of a message the first
  // Where the ranks sit: rank r at places[r] of `size` places, which wiring and groups are about;
  // empty: at place r, and size 0: there are as many places as ranks.
  int size = 0;
  std::vector<int> places{};

  static constexpr int kMostPorts = 1 << 14;  // more than that no rank of any schedule can use
  static constexpr int kUsualMtu = 4096, kMostMtu = 1 << 24;  // InfiniBand's largest; 16 MiB

  bool two_level() const { return group > 0; }
  Abilities abilities() const { return {multicast, alu, permute}; }
  bool operator==(const Fabric&) const = default;

  int place_of(Rank r) const { return places.empty() ? r : places[static_cast<std::size_t>(r)]; }
  int places_among(int ranks) const { return size > 0 ? size : ranks; }

  // Links of a kind cost the same: those inside a group, those between groups, and of each odd one
  // what it makes of either.
  int link_kinds() const { return 2 * (1 + static_cast<int>(odd.size())); }
  Link link_of_kind(int kind) const;
  Rational least_latency() const;  // of any message
  int kind_between(Rank a, Rank b) const {
    const int from = place_of(a), to = place_of(b);
    const int far = group > 0 && from / group != to / group ? 1 : 0;
    return odd.empty() ? far : 2 * odd_between(from, to) + far;
  }
  // 0: none; else one more than the index of the odd link that a message between two places has
  // for itself. Odd wires are RoundPrices'.
  int odd_between(int from, int to) const;
};

// A preset with its source. Bandwidths are per direction, as the port model has it.
struct Regime {
  std::string_view name;
  Fabric fabric;
  std::string_view source;
};

std::span<const Regime> regimes();
const Regime* find_regime(std::string_view name);
std::string regime_names();

// What tools take where nobody names a network: one port, 1 us, 100 GB/s.
const Regime& plain_regime();

// Ports 1 .. kMostPorts (or open, on a grid), times not negative, no group below 0, mtu 1 ..
// kMostMtu; and what
// belongs to another wiring than the fabric's: dims, one-way routing, groups, spines, a switch's
// abilities. The error names the member.
Status check_fabric(const Fabric& fabric);

// The fabric for so many ranks, with nothing left open: a torus or mesh without dims gets `dims`
// or, where these are empty too, the two factors of `ranks` nearest to each other (of a prime, it
// alone); a grid whose ports are open gets Routes::degree(); two_level and fat_tree wiring get the
// fabric's group. Everything that reads a fabric for a number of ranks does this first; doing it
// again changes nothing. Errors: those of check_fabric() and Routes::make(), which say what is
// needed.
Result<Fabric> wired_for(const Fabric& fabric, int ranks, const std::vector<int>& dims = {});

// Leaves the ports of a grid open, for who has changed the wiring and not said how many.
void open_ports(Fabric& fabric);

// The two questions that whoever tells a network's time must answer.
//
//   sync    dataflow: a message waits for its ports and its data; rounds: also for the round before
//           (port_model.h)
//   clock   virtual: nobody waits for the times; wall: ranks keep them in real time, stretched
//           (network_clock.h); none: there is no network

// A time as a whole number of a unit in which a network's times are whole numbers: ticks.h.
using Ticks = Int128;

enum class Sync : std::uint8_t { dataflow, rounds };
std::string_view name_of(Sync sync);
std::optional<Sync> parse_sync(std::string_view text);

enum class ClockMode : std::uint8_t { none, wall, virtual_time };
std::string_view name_of(ClockMode mode);
std::optional<ClockMode> parse_clock_mode(std::string_view text);  // none, wall, virtual

// Of wall clocks (network_clock.h).

// How well the machine kept a wall clock's deadlines, over all ranks.
struct Lateness {
  std::int64_t deadlines = 0;     // that ranks slept for
  std::int64_t missed = 0;        // by more than the tolerance
  std::int64_t median_ns = 0;     // of the last deadlines: how long after it the rank went on
  std::int64_t worst_ns = 0;      // of all
  std::int64_t passed_on_ns = 0;  // the greatest distance from the plan that a rank is at
};

}  // namespace rankine
