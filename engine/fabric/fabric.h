// What a network is, for every clock: ports, links and abilities. See DESIGN.md for the port model.
//
// A rank has `ports` send ports and as many receive ports, full duplex. A message of m bytes
// occupies one of each for alpha + m * beta. Ranks of one group reach each other over `link`,
// others over `between`; without groups all are one group.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "algorithms/schedule/lower.h"
#include "engine/exec/status.h"
#include "engine/fabric/rational.h"

namespace rankine {

struct Link {
  Rational alpha;  // seconds per message
  Rational beta;   // seconds per byte
};

struct Fabric {
  std::string name = "custom";
  int ports = 1;
  Link link{};
  int group = 0;            // ranks per group; 0: one group
  Link between{};           // among groups
  bool multicast = false;   // one -> many in one transfer
  bool alu = false;         // many -> one, reduced on the way
  Rational alpha_switch{};  // seconds per hop through the switch; multicast and ALU cost two

  static constexpr int kMostPorts = 1 << 14;  // more than that no rank of any schedule can use

  bool two_level() const { return group > 0; }
  Abilities abilities() const { return {multicast, alu}; }
  const Link& between_ranks(Rank a, Rank b) const {
    return group > 0 && a / group != b / group ? between : link;
  }
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

// Ports 1 .. kMostPorts, times not negative, no group below 0; the error names the member.
Status check_fabric(const Fabric& fabric);

}  // namespace rankine
