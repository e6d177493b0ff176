// How ranks are wired where messages share links, and which links a message takes.
//
//   full       a link of its own between any two ranks: messages share nothing but ports
//   ring       neighbours r and r + 1, one link per direction
//   torus      a ring in every dimension; ranks are numbered as in torus.h of the algorithms: the
//              last dimension varies fastest. 2D links out of a rank and 2D into it
//   two_level  groups of neighbours, fully wired inside; every group shares one link up, and one
//              down, for all that it exchanges with others
//
// Routes are minimal. On a torus they go dimension by dimension, the first one first; where both
// ways round a ring are as long, half of the message takes each. `one_way` sends everything in the
// positive direction, as a network does that knows no other. A ring of two has two wires between
// the same ranks: both ways are as long.
//
// Source: the model of Trivance, section 2.1, which leaves ties and the order of dimensions open.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/base/status.h"

namespace rankine {

enum class WiringKind : std::uint8_t { full, ring, torus, two_level };
std::string_view name_of(WiringKind kind);
std::optional<WiringKind> parse_wiring(std::string_view text);

enum class Routing : std::uint8_t { minimal, one_way };
std::string_view name_of(Routing routing);
std::optional<Routing> parse_routing(std::string_view text);

// Sizes of a torus as people write them: "4x4", "3x3x3". Their product is not looked at.
Result<std::vector<int>> parse_dims(std::string_view argument, std::string_view text);

struct Wiring {
  WiringKind kind = WiringKind::full;
  std::vector<int> dims{};  // of a torus; their product is the number of ranks
  int group = 0;            // of two_level: ranks per group
  Routing routing = Routing::minimal;

  bool shares_links() const { return kind != WiringKind::full; }
  bool has_rings() const { return kind == WiringKind::ring || kind == WiringKind::torus; }
};

// The routes of a wiring among so many ranks. Immutable; may be used from many threads at once.
class Routes {
 public:
  static constexpr int kMostRanks = 1 << 14;

  // Errors: ranks outside 1 .. kMostRanks, dims that do not multiply to them, none or more than
  // kMostDims of them, a group below 1; the text says what is needed.
  static Result<Routes> make(const Wiring& wiring, int ranks);

  int ranks() const { return ranks_; }
  int links() const { return links_; }  // numbered from 0; each is one direction of a wire
  // Links that a message crosses, shared or its own: the latency it pays. 1 where a link of its own
  // joins the two, 2 between groups (up and down), 0 from a rank to itself.
  int hops(Rank from, Rank to) const;
  // Which way round its ring a link leads. Of a message that goes both ways, one half takes the
  // links that lead up and the other those that lead down, in all dimensions where it does so.
  static bool leads_up(int link) { return link % 2 == 0; }

  // visit(int link, int halves) for every shared link that a message from `from` to another rank
  // takes part of: halves is 2 where all of it does, 1 where half of it does. Links of its own,
  // in full wiring and inside a group, are not visited, nor is any from a rank to itself.
  template <class Visit>
  void for_each_link(Rank from, Rank to, const Visit& visit) const {
    switch (kind_) {
      case WiringKind::full:
        return;
      case WiringKind::two_level:
        if (from / group_ == to / group_) return;
        visit(2 * (from / group_), 2);
        visit(2 * (to / group_) + 1, 2);
        return;
      case WiringKind::ring:
      case WiringKind::torus:
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
  void number_rings();

  // How far a message goes each way round one ring; both ways where they are as long.
  struct Arc {
    int up = 0, down = 0, halves = 2;
  };
  Arc arc_of(int here, int there, int size) const {
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
  // So many links one way round the ring of dimension d, from rank `at` with that coordinate.
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
  int ranks_ = 1, links_ = 0, group_ = 1;
  std::vector<int> dims_, strides_;
  std::vector<int> coordinates_;  // of every rank, one per dimension
};

}  // namespace rankine
