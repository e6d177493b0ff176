#include "engine/tools/plan/prices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "engine/tools/metrics.h"

namespace rankine::tools {

Result<Price> Prices::of(Collective collective, std::vector<Rank> group, double bytes) {
  const bool to_next = collective == Collective::send_recv;
  if (to_next && group.size() > 2) group.resize(2);
  const std::size_t blocks = counts_per_size(collective, static_cast<int>(group.size()));
  const std::uint64_t whole =
      static_cast<std::uint64_t>(std::ceil(bytes / static_cast<double>(blocks))) * blocks;
  if (group.size() < 2 || whole == 0) return Price{.bytes = whole, .group = std::move(group)};
  const auto key = std::tuple(collective, group, whole);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;

  Fabric fabric = machine_.network;
  fabric.places = group;
  fabric.size = std::max(ranks_, fabric.size);
  Params params;
  params.ranks = static_cast<int>(group.size());
  if (to_next) params.peer = 1;
  params.segments = 0;
  std::optional<Candidate> best;
  std::string refusal;
  for (const Algorithm& line : catalogue()) {
    if (line.collective != collective || !menu_.has(line)) continue;
    auto candidate = predict_one(line, line.only_taken(params), whole, fabric);
    if (!candidate.ok()) return candidate.status();
    if (!candidate->ok()) {
      refusal = candidate->refusal;
    } else if (!best || candidate->seconds < best->seconds) {
      best = std::move(*candidate);
    }
  }
  if (!best) {
    return invalid_argument(fmt::format("no {} of menu {} runs among {} ranks: {}",
                                        name_of(collective), menu_.name, group.size(),
                                        refusal.empty() ? "it has none" : refusal));
  }
  Price price{best->seconds,   static_cast<int>(group.size()), whole, best->algorithm, best->params,
              std::move(group)};
  known_.emplace(key, price);
  return price;
}

}  // namespace rankine::tools
