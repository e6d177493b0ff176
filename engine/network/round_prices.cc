#include "engine/network/round_prices.h"

#include <algorithm>

namespace rankine {

Result<RoundPrices> RoundPrices::make(const Fabric& fabric, const Pricing& pricing, int ranks,
                                      bool one_for_all) {
  auto routes = Routes::make(fabric.wiring, fabric.places_among(ranks));
  if (!routes.ok()) return routes.status();
  return RoundPrices(fabric, pricing, std::move(*routes), one_for_all);
}

RoundPrices::RoundPrices(const Fabric& fabric, const Pricing& pricing, Routes routes,
                         bool one_for_all)
    : fabric_(&fabric),
      pricing_(&pricing),
      congestion_(std::move(routes), one_for_all, fabric.ports) {
  if (!shares_links()) return;
  for (std::size_t i = 0; i < fabric.odd.size(); ++i) {
    const OddLink& odd = fabric.odd[i];
    if (odd.is_place()) continue;
    odd_beta_.resize(static_cast<std::size_t>(congestion_.routes().links()), 0);
    congestion_.routes().for_each_link(odd.from, odd.to, [&](int link, int) {
      Ticks& beta = odd_beta_[static_cast<std::size_t>(link)];
      if (beta == 0) beta = pricing.rates().links[2 * (i + 1)].beta;
    });
  }
}

void RoundPrices::begin_round(const Schedule& schedule, int k,
                              const std::function<void(int links)>& crosses) {
  if (!shares_links()) return;
  congestion_.clear();
  for_each_transfer(schedule, k, [&](const Transfer& t) {
    if (t.from.size() != 1 || t.to.size() != 1) return;
    const int from = fabric_->place_of(t.from.front()), to = fabric_->place_of(t.to.front());
    if (crosses) crosses(congestion_.routes().hops(from, to));
    congestion_.add(from, to, pricing_->weight(t.what.list));
  });
  congestion_.settle();
}

Ticks RoundPrices::latency(Rank from, Rank to) const {
  const Ticks alpha = pricing_->link(*fabric_, from, to).alpha;
  if (!shares_links()) return alpha;
  return alpha + pricing_->rates().hop *
                     congestion_.routes().hops(fabric_->place_of(from), fabric_->place_of(to));
}

std::optional<Ticks> RoundPrices::message(Rank from, Rank to, std::int64_t weight) const {
  if (!shares_links()) return pricing_->message(*fabric_, from, to, weight);
  const Ticks beta = pricing_->link(*fabric_, from, to).beta;
  const int a = fabric_->place_of(from), b = fabric_->place_of(to);
  Ticks passage = 0;
  bool fits = true;
  const auto passes = [&](Ticks per_weight, Int128 load) {  // half weights; betas are even
    Ticks time = 0;
    fits = fits && !__builtin_mul_overflow(per_weight / 2, load, &time);
    passage = std::max(passage, time);
  };
  if (odd_beta_.empty()) {
    passes(beta, congestion_.busiest(a, b, weight));
  } else {
    congestion_.for_each_load(a, b, weight, [&](int link, Int128 load) {
      const Ticks odd = link < 0 ? 0 : odd_beta_[static_cast<std::size_t>(link)];
      passes(odd != 0 ? odd : beta, load);
    });
  }
  Ticks total = 0;
  if (!fits || __builtin_add_overflow(passage, latency(from, to), &total) ||
      total > Pricing::kMost) {
    return std::nullopt;
  }
  return total;
}

std::optional<Ticks> RoundPrices::price(const Transfer& t, std::int64_t weight) const {
  const Ticks adding = pricing_->adding(t, weight);
  if (t.from.size() != 1 || t.to.size() != 1) return pricing_->through_switch(weight) + adding;
  if (t.from.front() == t.to.front()) return adding;
  auto total = message(t.from.front(), t.to.front(), weight);
  if (total) *total += adding;
  return total && *total <= Pricing::kMost ? total : std::nullopt;
}

Ticks RoundPrices::once(const Transfer& t) const {
  if (!fabric_->permute || t.from.size() != 1 || t.to.size() != 1) return 0;
  return t.from.front() == t.to.front() ? 0 : latency(t.from.front(), t.to.front());
}

Status beyond_128_bits() {
  return invalid_argument(
      "the time of the schedule leaves 128 bits at the exact unit of alpha and beta; fewer digits "
      "are needed");
}

}  // namespace rankine
