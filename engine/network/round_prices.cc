#include "engine/network/round_prices.h"

namespace rankine {

Result<RoundPrices> RoundPrices::make(const Fabric& fabric, const Pricing& pricing, int ranks) {
  auto routes = Routes::make(fabric.wiring, ranks);
  if (!routes.ok()) return routes.status();
  return RoundPrices(fabric, pricing, std::move(*routes));
}

void RoundPrices::begin_round(const Schedule& schedule, int k) {
  if (!shares_links()) return;
  congestion_.clear();
  for_each_transfer(schedule, k, [this](const Transfer& t) {
    if (t.from.size() != 1 || t.to.size() != 1) return;
    congestion_.add(t.from.front(), t.to.front(), pricing_->weight(t.what.list));
  });
}

Ticks RoundPrices::latency(Rank from, Rank to) const {
  const Ticks alpha = pricing_->message(*fabric_, from, to, 0);
  if (!shares_links()) return alpha;
  return alpha + pricing_->rates().hop * congestion_.routes().hops(from, to);
}

std::optional<Ticks> RoundPrices::message(Rank from, Rank to, std::int64_t weight) const {
  if (!shares_links()) return pricing_->message(*fabric_, from, to, weight);
  const Ticks beta = pricing_->beta(*fabric_, from, to) / 2;  // per half weight; see Pricing
  Ticks total = 0;
  if (__builtin_mul_overflow(beta, congestion_.busiest(from, to, weight), &total) ||
      __builtin_add_overflow(total, latency(from, to), &total) || total > Pricing::kMost) {
    return std::nullopt;
  }
  return total;
}

Status beyond_128_bits() {
  return invalid_argument(
      "the time of the schedule leaves 128 bits at the exact unit of alpha and beta; fewer digits "
      "are needed");
}

}  // namespace rankine
