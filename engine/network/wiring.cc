#include "engine/network/wiring.h"

#include <algorithm>
#include <bit>

#include "algorithms/torus.h"
#include "engine/base/names.h"

namespace rankine {

const std::vector<std::string_view>& wiring_names() {
  static const std::vector<std::string_view> kNames = {"full",      "ring",      "torus",   "mesh",
                                                       "hypercube", "two_level", "fat_tree"};
  return kNames;
}
std::string_view name_of(WiringKind kind) { return wiring_names()[static_cast<std::size_t>(kind)]; }
std::optional<WiringKind> parse_wiring(std::string_view text) {
  return enumerator_of<WiringKind>(wiring_names(), text);
}

const std::vector<std::string_view>& routing_names() {
  static const std::vector<std::string_view> kNames = {"minimal", "one_way"};
  return kNames;
}
std::string_view name_of(Routing routing) {
  return routing_names()[static_cast<std::size_t>(routing)];
}
std::optional<Routing> parse_routing(std::string_view text) {
  return enumerator_of<Routing>(routing_names(), text);
}

Result<std::vector<int>> parse_dims(std::string_view argument, std::string_view text) {
  if (auto dims = read_dims(text)) return std::move(*dims);
  return invalid_argument(std::string(argument) + " is '" + std::string(text) +
                          "'; allowed are up to " + std::to_string(kMostDims) +
                          " sizes of 1 and more, such as 4x4 and 3x3x3");
}

Status check_leaves(const Wiring& wiring, int group) {
  const std::string needs =
      "; allowed with " + std::string(name_of(wiring.kind)) + " wiring are 1 ";
  if (group < 1) {
    return invalid_argument("group is " + std::to_string(group) + needs +
                            "and more ranks per group");
  }
  const bool has_spines = wiring.kind == WiringKind::fat_tree;
  if (has_spines && (wiring.spines < 1 || wiring.spines > Wiring::kMostSpines)) {
    return invalid_argument("spines is " + std::to_string(wiring.spines) + needs + "to " +
                            std::to_string(Wiring::kMostSpines));
  }
  return {};
}

Result<Routes> Routes::make(const Wiring& wiring, int ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    return invalid_argument("ranks is " + std::to_string(ranks) + "; allowed are 1 to " +
                            std::to_string(kMostRanks));
  }
  Routes routes;
  routes.kind_ = wiring.kind;
  routes.routing_ = wiring.routing;
  routes.ranks_ = ranks;
  routes.closed_ = wiring.has_rings();
  switch (wiring.kind) {
    case WiringKind::full:
      break;
    case WiringKind::ring:
      routes.dims_ = {ranks};
      break;
    case WiringKind::torus:
    case WiringKind::mesh:
      if (wiring.dims.empty() || wiring.dims.size() > kMostDims) {
        return invalid_argument("dims has " + std::to_string(wiring.dims.size()) +
                                " sizes; allowed for a " + std::string(name_of(wiring.kind)) +
                                " are 1 to " + std::to_string(kMostDims));
      }
      if (const auto why = dims_refusal(wiring.dims, ranks)) return invalid_argument(*why);
      routes.dims_ = wiring.dims;
      break;
    case WiringKind::hypercube: {
      const auto n = static_cast<unsigned>(ranks);
      if (!std::has_single_bit(n)) {
        return invalid_argument("ranks is " + std::to_string(ranks) +
                                "; allowed with hypercube wiring are powers of two");
      }
      routes.dims_.assign(static_cast<std::size_t>(std::countr_zero(n)), 2);
      break;
    }
    case WiringKind::two_level:
    case WiringKind::fat_tree:
      if (Status status = check_leaves(wiring, wiring.group); !status.ok()) return status;
      routes.group_ = wiring.group;
      if (wiring.kind == WiringKind::fat_tree) routes.spines_ = wiring.spines;
      routes.links_ = 2 * ((ranks - 1) / wiring.group + 1) * routes.spines_;
      break;
  }
  if (!routes.dims_.empty()) routes.number_wires();
  return routes;
}

void Routes::number_wires() {
  const std::size_t dimensions = dims_.size();
  links_ = 2 * ranks_ * static_cast<int>(dimensions);
  strides_.assign(dimensions, 1);
  for (std::size_t d = dimensions - 1; d > 0; --d) strides_[d - 1] = strides_[d] * dims_[d];
  coordinates_.reserve(static_cast<std::size_t>(ranks_) * dimensions);
  for (Rank r = 0; r < ranks_; ++r) {
    for (std::size_t d = 0; d < dimensions; ++d) {
      coordinates_.push_back(r / strides_[d] % dims_[d]);
    }
  }
}

int Routes::degree() const {
  if (!Wiring{.kind = kind_}.is_grid()) return 0;
  int links = 0;
  for (const int size : dims_) links += closed_ ? 2 : std::min(2, size - 1);
  return std::max(1, links);
}

int Routes::hops(Rank from, Rank to) const {
  if (from == to) return 0;
  if (kind_ == WiringKind::full) return 1;
  if (dims_.empty()) return from / group_ == to / group_ ? 1 : 2;
  int total = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const int here = coordinate(from, d), there = coordinate(to, d);
    if (here == there) continue;
    const Arc arc = arc_of(here, there, dims_[d]);
    total += std::max(arc.up, arc.down);  // equal if the message goes both ways
  }
  return total;
}

}  // namespace rankine
