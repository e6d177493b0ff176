#include "engine/network/wiring.h"

#include <algorithm>
#include <array>

#include "algorithms/torus.h"

namespace rankine {
namespace {

constexpr std::array kKinds = {WiringKind::full, WiringKind::ring, WiringKind::torus,
                               WiringKind::two_level};
constexpr std::array kRoutings = {Routing::minimal, Routing::one_way};

}  // namespace

std::string_view name_of(WiringKind kind) {
  switch (kind) {
    case WiringKind::full:
      return "full";
    case WiringKind::ring:
      return "ring";
    case WiringKind::torus:
      return "torus";
    case WiringKind::two_level:
      return "two_level";
  }
  return "full";
}

std::optional<WiringKind> parse_wiring(std::string_view text) {
  for (const WiringKind kind : kKinds) {
    if (name_of(kind) == text) return kind;
  }
  return std::nullopt;
}

std::string_view name_of(Routing routing) {
  return routing == Routing::one_way ? "one_way" : "minimal";
}

std::optional<Routing> parse_routing(std::string_view text) {
  for (const Routing routing : kRoutings) {
    if (name_of(routing) == text) return routing;
  }
  return std::nullopt;
}

Result<std::vector<int>> parse_dims(std::string_view argument, std::string_view text) {
  if (auto dims = read_dims(text)) return std::move(*dims);
  return invalid_argument(std::string(argument) + " is '" + std::string(text) +
                          "'; allowed are up to " + std::to_string(kMostDims) +
                          " sizes of 1 and more, such as 4x4 and 3x3x3");
}

Result<Routes> Routes::make(const Wiring& wiring, int ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    return invalid_argument("ranks is " + std::to_string(ranks) + "; a network has 1 to " +
                            std::to_string(kMostRanks));
  }
  Routes routes;
  routes.kind_ = wiring.kind;
  routes.routing_ = wiring.routing;
  routes.ranks_ = ranks;
  switch (wiring.kind) {
    case WiringKind::full:
      break;
    case WiringKind::ring:
      routes.dims_ = {ranks};
      break;
    case WiringKind::torus:
      if (wiring.dims.empty() || wiring.dims.size() > kMostDims) {
        return invalid_argument("dims has " + std::to_string(wiring.dims.size()) +
                                " sizes; a torus has 1 to " + std::to_string(kMostDims));
      }
      if (const auto why = dims_refusal(wiring.dims, ranks)) return invalid_argument(*why);
      routes.dims_ = wiring.dims;
      break;
    case WiringKind::two_level:
      if (wiring.group < 1) {
        return invalid_argument("group is " + std::to_string(wiring.group) +
                                "; two_level wiring needs 1 or more ranks per group");
      }
      routes.group_ = wiring.group;
      routes.links_ = 2 * ((ranks - 1) / wiring.group + 1);
      break;
  }
  if (!routes.dims_.empty()) routes.number_rings();
  return routes;
}

void Routes::number_rings() {
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

int Routes::hops(Rank from, Rank to) const {
  if (from == to) return 0;
  if (kind_ == WiringKind::full) return 1;
  if (kind_ == WiringKind::two_level) return from / group_ == to / group_ ? 1 : 2;
  int total = 0;
  for (std::size_t d = 0; d < dims_.size(); ++d) {
    const int here = coordinate(from, d), there = coordinate(to, d);
    if (here == there) continue;
    const Arc arc = arc_of(here, there, dims_[d]);
    total += std::max(arc.up, arc.down);  // equal where both ways are taken
  }
  return total;
}

}  // namespace rankine
