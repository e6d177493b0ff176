// Routes says how ranks are wired, and which links a message shares with others.
//
//   full       a separate link between any two ranks: messages share nothing but ports
//   ring       neighbours r and r + 1, one link per direction
//   torus      a ring in every dimension; ranks are numbered as in algorithms/torus.h: the last
//              dimension varies fastest. 2D links out of a rank and 2D into it
//   mesh       a torus without the wires that close its rings
//   hypercube  a mesh of log2 N dimensions of two ranks: neighbours differ in one bit
//   fat_tree   leaves of `group` neighbours, fully wired inside; every leaf has one link up to, and
//              one down from, each of `spines` switches, for all its traffic with other leaves
//   two_level  a fat tree of one spine: a group shares one link up, and one down
//
// Routes are minimal. On a grid (ring, torus, mesh or hypercube) they go dimension by dimension,
// the first one first; if both ways round a ring have equal length, half of the message takes each.
// `one_way` routing sends every message in the positive direction of its ring, as a network without
// a negative direction does. A ring of two has two wires between the two ranks, and both ways have
// equal length. A message to another leaf goes over the spine numbered destination modulo spines,
// so that neighbours in one leaf are reached over different spines.
//
// Sources: the model of Trivance, section 2.1, which leaves ties and the order of dimensions open;
// for the choice of spines Zahavi, D-Mod-K Routing Providing Non-Blocking Traffic for Shift
// Permutations on Real Life Fat Trees (2010).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/base/status.h"

namespace rankine {

enum class WiringKind : std::uint8_t { full, ring, torus, mesh, hypercube, two_level, fat_tree };
// Ranks are attached to switches, several ranks to each.
constexpr bool has_leaves(WiringKind kind) {
  return kind == WiringKind::two_level || kind == WiringKind::fat_tree;
}
std::string_view name_of(WiringKind kind);
std::optional<WiringKind> parse_wiring(std::string_view text);
const std::vector<std::string_view>& wiring_names();  // of all kinds

enum class Routing : std::uint8_t { minimal, one_way };
std::string_view name_of(Routing routing);
std::optional<Routing> parse_routing(std::string_view text);
const std::vector<std::string_view>& routing_names();

// Parses the sizes of a torus or mesh: "4x4", "3x3x3". Does not check their product.
Result<std::vector<int>> parse_dims(std::string_view argument, std::string_view text);

struct Wiring {
  WiringKind kind = WiringKind::full;
  std::vector<int> dims{};  // sizes of a torus or mesh; their product is the number of ranks
  int group = 0;            // ranks per group (a leaf), in two_level and fat_tree wiring
  int spines = 0;           // in fat_tree wiring
  Routing routing = Routing::minimal;

  static constexpr int kMostSpines = 512;  // switches have no more ports

  bool shares_links() const { return kind != WiringKind::full; }
  bool has_rings() const { return kind == WiringKind::ring || kind == WiringKind::torus; }
  bool has_dims() const { return kind == WiringKind::torus || kind == WiringKind::mesh; }
  bool has_leaves() const { return rankine::has_leaves(kind); }
  // Ranks are wired to ranks, so a rank may have a port for each of its links.
  bool is_grid() const { return shares_links() && !has_leaves(); }
  bool operator==(const Wiring&) const = default;
};

// Checks group >= 1 and spines 1 .. kMostSpines of two_level and fat_tree wiring. The error names
// the allowed values.
Status check_leaves(const Wiring& wiring, int group);

// The routes of a wiring for a number of ranks. Immutable; safe to use from several threads at
// once.
class Routes {
 public:
  static constexpr int kMostRanks = 1 << 20;

  // Errors: ranks outside 1 .. kMostRanks, dims with another product, no dims or more than
  // kMostDims of them, a hypercube with a number of ranks that is no power of two, a group below 1,
  // spines outside 1 .. kMostSpines. The text names the allowed values.
  static Result<Routes> make(const Wiring& wiring, int ranks);

  int ranks() const { return ranks_; }
  bool has_leaves() const { return rankine::has_leaves(kind_); }
  int links() const {
    return links_;
    // Links are numbered from 0; each is one direction of a wire, or is unused at the edges of a
    // mesh.
  }
  // On a grid, the greatest number of links out of a rank: 2 per dimension, or 1 in a dimension of
  // a mesh with two ranks; at least 1. In other wirings 0.
  int degree() const;
  // The number of links that a message crosses, shared or private; the message pays the latency of
  // each. 1 for a private link, 2 between groups (up and down), 0 from a rank to itself; on a grid
  // the length of its route.
  int hops(Rank from, Rank to) const;
  // The direction of a link round its ring. If a message goes both ways, one half takes the links
  // that lead up and the other half the links that lead down, in all dimensions with such a tie.
  static bool leads_up(int link) { return link % 2 == 0; }

  // Calls visit(int link, int halves) for every shared link on the route of a message: halves is 2
  // if the whole message takes the link, 1 if half of it does. Private links, in full wiring and
  // inside a group, are not visited; a message from a rank to itself visits none.
  template <class Visit>
  void for_each_link(Rank from, Rank to, const Visit& visit) const {
    switch (kind_) {
      case WiringKind::full:
        return;
      case WiringKind::two_level:
      case WiringKind::fat_tree: {
        const int leaf = from / group_, other = to / group_;
        if (leaf == other) return;
        const int spine = to % spines_;
        visit(2 * (leaf * spines_ + spine), 2);
        visit(2 * (other * spines_ + spine) + 1, 2);
        return;
      }
      case WiringKind::ring:
      case WiringKind::torus:
      case WiringKind::mesh:
      case WiringKind::hypercube:
        break;
    }
    // Dimension by dimension: `at` moves from `from` towards `to`.
    Rank at = from;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      const int here = coordinate(from, d), there = coordinate(to, d);
      if (here == there) continue;
      const Arc arc = arc_of(here, there, dims_[d]);
      along(at, here, d, true, arc.up, arc.halves, visit);
      along(at, here, d, false, arc.down, arc.halves, visit);
      at += (there - here) * strides_[d];
    }
  }

 private:
  void number_wires();

  // How many links a message goes each way along one line; both ways if they have equal length.
  struct Arc {
    int up = 0, down = 0, halves = 2;
  };
  Arc arc_of(int here, int there, int size) const {
    if (!closed_) return here < there ? Arc{there - here, 0, 2} : Arc{0, here - there, 2};
    const int up = there - here + (there < here ? size : 0), down = size - up;
    if (routing_ == Routing::one_way || up < down) return {up, 0, 2};
    if (down < up) return {0, down, 2};
    return {up, down, 1};
  }
  int coordinate(Rank r, std::size_t d) const {
    return coordinates_[static_cast<std::size_t>(r) * dims_.size() + d];
  }
  // The link from rank r to its neighbour up or down dimension d.
  int link_of(Rank r, std::size_t d, bool up) const {
    return 2 * (r * static_cast<int>(dims_.size()) + static_cast<int>(d)) + (up ? 0 : 1);
  }
  // Visits `count` links in one direction along the line of dimension d, from rank `at`, which has
  // the given coordinate in d.
  template <class Visit>
  void along(Rank at, int coordinate, std::size_t d, bool up, int count, int halves,
             const Visit& visit) const {
    const int size = dims_[d], stride = strides_[d];
    for (; count > 0; --count) {
      visit(link_of(at, d, up), halves);
      const bool wraps = coordinate == (up ? size - 1 : 0);
      const int next = up ? (wraps ? 0 : coordinate + 1) : (wraps ? size - 1 : coordinate - 1);
      at += (next - coordinate) * stride;
      coordinate = next;
    }
  }

  WiringKind kind_ = WiringKind::full;
  Routing routing_ = Routing::minimal;
  int ranks_ = 1, links_ = 0, group_ = 1, spines_ = 1;
  bool closed_ = false;  // lines are closed to rings
  std::vector<int> dims_, strides_;
  std::vector<int> coordinates_;  // by rank and dimension
};

}  // namespace rankine
