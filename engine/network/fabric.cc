#include "engine/network/fabric.h"

#include <string>
#include <utility>

#include "algorithms/torus.h"
#include "engine/base/names.h"

namespace rankine {
namespace {

Rational ns(std::int64_t n) { return {n, 1'000'000'000}; }
Rational gigabytes_per_second(std::int64_t g) { return {1, g * Int128{1'000'000'000}}; }

Fabric ports_of(int ports, std::int64_t latency_ns, std::int64_t gigabytes) {
  return {.ports = ports, .link = {ns(latency_ns), gigabytes_per_second(gigabytes)}};
}
// A switch that multicasts and adds.
Fabric adding_switch(std::int64_t hop_ns) {
  Fabric fabric = ports_of(1, 500, 900);
  fabric.multicast = fabric.alu = true;
  fabric.alpha_switch = ns(hop_ns);
  return fabric;
}
// A port per link.
Fabric wired(WiringKind kind) {
  Fabric fabric = ports_of(0, 1500, 100);
  fabric.wiring = {.kind = kind};
  fabric.alpha_hop = ns(200);
  return fabric;
}
Fabric nodes_of_eight(const Fabric& inside, const Fabric& between, const Wiring& wiring = {}) {
  Fabric fabric = inside;
  fabric.group = 8;
  fabric.between = between.link;
  fabric.wiring = wiring;
  return fabric;
}

const std::vector<Regime>& all() {
  static const std::vector<Regime> kRegimes = [] {
    const Fabric nvlink = ports_of(1, 500, 450), infiniband = ports_of(1, 1500, 50);
    std::vector<Regime> all = {
        {"plain", ports_of(1, 1000, 100),
         "1 us, 100 GB/s: the worked example of the ring and tree chapter (crossover point)"},
        {"scale_up", ports_of(1, 500, 900),
         "NVLink 5 class, 0.5 us and 900 GB/s (Lu, Collective Algorithms, 5.3 and B.3)"},
        {"nvl72", adding_switch(100),
         "72 ranks on one NVSwitch layer that multicasts and adds: scale_up with hops of 100 ns, "
         "the lower end of 100 to 200 ns (Lu, 3.3, 4.3 and 5.3)"},
        {"switch", adding_switch(150), "nvl72 with hops of 150 ns, the middle of that range"},
        {"pcie", ports_of(1, 1000, 63),
         "PCIe 5.0 x16: 16 lanes of 32 GT/s in 128b/130b code are 63 GB/s; 1 us is an assumption"},
        {"scale_out", infiniband,
         "InfiniBand: 1 to 2 us (Lu, appendix A), one port of 50 GB/s (collectives lesson)"},
        {"scale_out_2", ports_of(2, 1500, 50),
         "scale_out with two rails; 2 to 8 are common (Lu, C.4)"},
        {"torus_link", ports_of(2, 1700, 100),
         "neighbours on a ring of 800 Gb/s links: 1.5 us per step, 100 ns of link and 100 ns of "
         "hop (Trivance, section 6)"},
        {"ring", wired(WiringKind::ring),
         "a ring of 800 Gb/s links that messages share: 1.5 us per message, and 100 ns of link and "
         "100 ns of processing per hop (Trivance, section 6); a port per link"},
        {"torus", wired(WiringKind::torus),
         "the links of ring as a torus: --dims, or two dimensions as nearly equal as possible"},
        {"mesh", wired(WiringKind::mesh), "torus without the wires that close its rings"},
        {"hypercube", wired(WiringKind::hypercube),
         "the links of ring as a hypercube, for a power of two of ranks"},
        {"two_level", nodes_of_eight(nvlink, infiniband),
         "8 GPUs per node, InfiniBand between nodes (collectives lesson; its 900 GB/s of NVLink "
         "count both directions, its 50 GB/s one)"},
        {"two_level_shared", nodes_of_eight(nvlink, infiniband, {.kind = WiringKind::two_level}),
         "two_level with one link of 50 GB/s up and one down per node, which its GPUs share"},
        {"fat_tree",
         nodes_of_eight(infiniband, infiniband, {.kind = WiringKind::fat_tree, .spines = 8}),
         "scale_out's ports and links, 8 ranks to a leaf switch under 8 spines: as many links up "
         "as down; hops are within its 1.5 us"},
        {"two_level_chapter", nodes_of_eight(ports_of(1, 1000, 600), ports_of(1, 5000, 100)),
         "8 GPUs per node, 1 us and 600 GB/s; 5 us and 100 GB/s between nodes (ring and tree "
         "chapter, exercise 3)"},
    };
    for (Regime& regime : all) regime.fabric.name = regime.name;
    return all;
  }();
  return kRegimes;
}

Status not_negative(std::string_view member, Rational value) {
  if (!(value < 0)) return {};
  return invalid_argument(std::string(member) + " is " + value.to_string() +
                          "; allowed are 0 and more");
}

}  // namespace

std::span<const Regime> regimes() { return all(); }

const Regime* find_regime(std::string_view name) {
  for (const Regime& regime : all()) {
    if (regime.name == name) return &regime;
  }
  return nullptr;
}

const Regime& plain_regime() { return all().front(); }

std::string regime_names() {
  std::string names;
  for (const Regime& regime : all()) {
    if (!names.empty()) names += ", ";
    names += regime.name;
  }
  return names;
}

namespace {

// Rejects members that belong to another wiring.
Status check_wiring(const Fabric& fabric) {
  const Wiring& wiring = fabric.wiring;
  const std::string kind(name_of(wiring.kind));
  if (!wiring.dims.empty() && !wiring.has_dims()) {
    return invalid_argument("dims is " + dims_text(wiring.dims) + " and wiring is " + kind +
                            "; dims need torus or mesh wiring");
  }
  if (wiring.spines != 0 && wiring.kind != WiringKind::fat_tree) {
    return invalid_argument("spines is " + std::to_string(wiring.spines) + " and wiring is " +
                            kind + "; spines need fat_tree wiring");
  }
  if (wiring.routing != Routing::minimal && !wiring.has_rings()) {
    return invalid_argument("routing is " + std::string(name_of(wiring.routing)) +
                            " and wiring is " + kind + "; allowed is minimal");
  }
  if (fabric.group > 0 && wiring.is_grid()) {
    return invalid_argument("group is " + std::to_string(fabric.group) + " and wiring is " + kind +
                            "; groups need full, two_level or fat_tree wiring");
  }
  if (wiring.has_leaves()) {
    if (Status status = check_leaves(wiring, fabric.group); !status.ok()) return status;
  }
  const int wired = wiring.has_leaves() ? fabric.group : 0;
  if (wiring.group != 0 && wiring.group != wired) {
    return invalid_argument("the wiring's group is " + std::to_string(wiring.group) +
                            "; allowed are 0 and the fabric's, which is " + std::to_string(wired));
  }
  if (wiring.shares_links() && (fabric.multicast || fabric.alu || fabric.permute)) {
    return invalid_argument("the network has " +
                            std::string(fabric.multicast ? "multicast"
                                        : fabric.alu     ? "ALU"
                                                         : "permute") +
                            " and wiring is " + kind +
                            "; a switch that copies, reduces or permutes needs full wiring");
  }
  return {};
}

}  // namespace

Link Fabric::link_of_kind(int kind) const {
  Link out = kind % 2 == 0 ? link : between;
  if (kind < 2) return out;
  const OddLink& one = odd[static_cast<std::size_t>(kind / 2 - 1)];
  if (one.alpha) out.alpha = *one.alpha;
  if (one.beta) out.beta = *one.beta;
  return out;
}

Rational Fabric::least_latency() const {
  Rational least = link.latency();
  for (int kind = 1; kind < link_kinds(); ++kind) {
    const bool exists = kind % 2 == 0 || two_level();
    if (exists) least = std::min(least, link_of_kind(kind).latency());
  }
  return least;
}

int Fabric::odd_between(int from, int to) const {
  for (std::size_t i = 0; i < odd.size(); ++i) {
    const bool wire = wiring.shares_links() && !odd[i].is_place();
    if (!wire && odd[i].joins(from, to)) return static_cast<int>(i) + 1;
  }
  return 0;
}

namespace {

Status check_link(const std::string& owner, const Link& link) {
  Status status = not_negative(owner + "alpha", link.alpha);
  if (status.ok()) status = not_negative(owner + "beta", link.beta);
  if (!status.ok()) return status;
  if (link.eta_alpha < 1) {
    return invalid_argument(owner + "eta_alpha is " + link.eta_alpha.to_string() +
                            "; allowed are 1 and more");
  }
  if (!(Rational(0) < link.eta_beta) || Rational(1) < link.eta_beta) {
    return invalid_argument(owner + "eta_beta is " + link.eta_beta.to_string() +
                            "; allowed are numbers above 0 and up to 1");
  }
  return {};
}

std::string name_of(const OddLink& odd) {
  return odd.is_place()
             ? "odd place " + std::to_string(odd.at)
             : "odd link from " + std::to_string(odd.from) + " to " + std::to_string(odd.to);
}

// Checks independent of the wiring; wired_for() does the rest.
Status check_odd(const OddLink& odd) {
  if (odd.is_place() ? odd.from >= 0 || odd.to >= 0
                     : odd.from < 0 || odd.to < 0 || odd.from == odd.to) {
    std::string where;
    for (const auto& [name, place] :
         {std::pair("at", odd.at), std::pair("from", odd.from), std::pair("to", odd.to)}) {
      if (place >= 0)
        where += std::string(where.empty() ? "" : ", ") + name + " " + std::to_string(place);
    }
    return invalid_argument("odd has a link with " + (where.empty() ? "no place" : where) +
                            "; allowed are at, or from and to that differ");
  }
  if (!odd.alpha && !odd.beta) {
    return invalid_argument(name_of(odd) +
                            " has neither alpha nor bandwidth; it needs one of them");
  }
  Status status = odd.alpha ? not_negative(name_of(odd) + ": alpha", *odd.alpha) : Status();
  if (status.ok() && odd.beta) status = not_negative(name_of(odd) + ": beta", *odd.beta);
  return status;
}

// Checks the places of ranks and of odd links.
Status check_places(const Fabric& fabric, int ranks) {
  const int size = fabric.places_among(ranks);
  if (fabric.places.empty() && size < ranks) {
    return invalid_argument("size is " + std::to_string(size) + "; allowed for " +
                            std::to_string(ranks) + " ranks are " + std::to_string(ranks) +
                            " and more");
  }
  if (!fabric.places.empty() && fabric.places.size() != static_cast<std::size_t>(ranks)) {
    return invalid_argument("places has " + std::to_string(fabric.places.size()) +
                            " entries; allowed are none and " + std::to_string(ranks) +
                            ", one per rank");
  }
  std::vector<bool> taken(static_cast<std::size_t>(size), false);
  for (const int place : fabric.places) {
    if (place < 0 || place >= size || taken[static_cast<std::size_t>(place)]) {
      return invalid_argument("places has " + std::to_string(place) + "; allowed are 0 to " +
                              std::to_string(size - 1) + ", each once");
    }
    taken[static_cast<std::size_t>(place)] = true;
  }
  for (const OddLink& odd : fabric.odd) {
    if (std::max({odd.at, odd.from, odd.to}) >= size) {
      return invalid_argument("the network has an " + name_of(odd) + "; its places are 0 to " +
                              std::to_string(size - 1));
    }
  }
  return {};
}

// Checks odd links that are wires.
Status check_wires(const Fabric& fabric, const Routes& routes) {
  for (const OddLink& odd : fabric.odd) {
    if (odd.is_place()) continue;
    if (!fabric.wiring.is_grid() || routes.hops(odd.from, odd.to) != 1) {
      return invalid_argument("the network has an " + name_of(odd) + " and wiring is " +
                              std::string(name_of(fabric.wiring.kind)) +
                              "; allowed are neighbours on a grid");
    }
    if (odd.alpha) {
      return invalid_argument("the network has an " + name_of(odd) +
                              " with alpha; a wire that messages share has a beta only");
    }
  }
  return {};
}

}  // namespace

Status check_fabric(const Fabric& fabric) {
  const bool open = fabric.ports == 0 && fabric.wiring.is_grid();
  if (!open && (fabric.ports < 1 || fabric.ports > Fabric::kMostPorts)) {
    return invalid_argument("ports is " + std::to_string(fabric.ports) + "; allowed are 1 to " +
                            std::to_string(Fabric::kMostPorts));
  }
  if (fabric.mtu < 1 || fabric.mtu > Fabric::kMostMtu) {
    return invalid_argument("mtu is " + std::to_string(fabric.mtu) + "; allowed are 1 to " +
                            std::to_string(Fabric::kMostMtu));
  }
  if (fabric.group < 0) {
    return invalid_argument("group is " + std::to_string(fabric.group) +
                            "; allowed are 0 (none) and more");
  }
  if (fabric.size < 0) {
    return invalid_argument("size is " + std::to_string(fabric.size) +
                            "; allowed are 0 (as many places as ranks) and more");
  }
  Status status = check_link("", fabric.link);
  if (status.ok()) status = check_link("between.", fabric.between);
  if (status.ok()) status = not_negative("gamma", fabric.gamma);
  for (const OddLink& odd : fabric.odd) {
    if (status.ok()) status = check_odd(odd);
  }
  if (status.ok()) status = not_negative("alpha_switch", fabric.alpha_switch);
  if (status.ok()) status = not_negative("hop", fabric.alpha_hop);
  if (status.ok()) status = check_wiring(fabric);
  return status;
}

Result<Fabric> wired_for(const Fabric& fabric, int ranks, const std::vector<int>& dims) {
  Status status = check_fabric(fabric);
  if (!status.ok()) return status;
  if (status = check_places(fabric, ranks); !status.ok()) return status;
  Fabric wired = fabric;
  const int places = fabric.places_among(ranks);
  Wiring& wiring = wired.wiring;
  if (!wiring.shares_links()) return wired;
  if (wiring.has_leaves()) wiring.group = fabric.group;
  if (wiring.has_dims() && wiring.dims.empty()) {
    wiring.dims = dims.empty() ? balanced_dims(places, 2) : dims;
    if (wiring.dims.empty()) wiring.dims = {places};  // a prime
  }
  const auto routes = Routes::make(wiring, places);
  if (!routes.ok()) return routes.status();
  if (status = check_wires(fabric, *routes); !status.ok()) return status;
  if (wired.ports == 0) wired.ports = routes->degree();
  return wired;
}

Fabric slowed(Fabric fabric, const Rational& times) {
  for (Rational* beta : {&fabric.link.beta, &fabric.between.beta, &fabric.gamma}) {
    *beta = *beta * times;
  }
  for (OddLink& odd : fabric.odd) {
    if (odd.beta) odd.beta = *odd.beta * times;
  }
  return fabric;
}

void open_ports(Fabric& fabric) {
  if (fabric.wiring.is_grid()) fabric.ports = 0;
}

namespace {

constexpr std::string_view kSyncs[] = {"dataflow", "rounds"};
constexpr std::string_view kClockModes[] = {"none", "wall", "virtual"};

}  // namespace

std::string_view name_of(Sync sync) { return kSyncs[static_cast<std::size_t>(sync)]; }
std::optional<Sync> parse_sync(std::string_view text) { return enumerator_of<Sync>(kSyncs, text); }

std::string_view name_of(ClockMode mode) { return kClockModes[static_cast<std::size_t>(mode)]; }
std::optional<ClockMode> parse_clock_mode(std::string_view text) {
  return enumerator_of<ClockMode>(kClockModes, text);
}

}  // namespace rankine
