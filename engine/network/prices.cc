#include "engine/network/prices.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"

namespace rankine {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 52;

Ticks product(Ticks a, Ticks b) {
  Ticks out = 0;
  if (__builtin_mul_overflow(a, b, &out) || out > Pricing::kMost) {
    throw std::overflow_error("ticks beyond 128 bits");
  }
  return out;
}

Ticks least_common_multiple(Ticks a, Ticks b) {
  Ticks x = a, y = b;
  while (y != 0) {
    x %= y;
    std::swap(x, y);
  }
  return product(a / x, b);
}

}  // namespace

Status check_counts(Collective collective, int ranks, std::span<const std::uint64_t> counts) {
  const auto blocks = static_cast<std::size_t>(natural_blocks(collective, ranks));
  if (counts.size() != blocks) {
    return invalid_argument("counts has " + std::to_string(counts.size()) +
                            " entries; allowed for " + std::string(name_of(collective)) +
                            " among " + std::to_string(ranks) + " ranks are " +
                            std::to_string(blocks));
  }
  std::uint64_t left = kMostBytes;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > left) {
      return invalid_argument("counts[" + std::to_string(i) + "] is " + std::to_string(counts[i]) +
                              "; allowed are " + std::to_string(kMostBytes) +
                              " bytes in all counts");
    }
    left -= counts[i];
  }
  return {};
}

Result<Pricing> Pricing::make(const Fabric& fabric, const CollectiveSpec& goal, std::uint64_t bytes,
                              bool ideal) {
  Pricing out;
  if (bytes > kMostBytes) {
    return invalid_argument("bytes is " + std::to_string(bytes) + "; allowed are 0 to " +
                            std::to_string(kMostBytes));
  }
  const auto per_m = static_cast<std::uint64_t>(blocks_per_m(goal));
  // Ideal: M / B is `share` / `parts` in lowest terms, and 1 / `parts` of a byte has weight 1.
  const std::uint64_t common = std::gcd(bytes, per_m);
  const std::uint64_t share = common == 0 ? 0 : bytes / common;
  const std::uint64_t parts = common == 0 ? 1 : per_m / common;
  out.weight_per_byte_ = ideal ? static_cast<std::int64_t>(parts) : 1;
  out.upto_.reserve(static_cast<std::size_t>(goal.blocks) + 1);
  out.upto_.push_back(0);
  constexpr auto kMostWeight = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t greatest = ideal ? share : bytes / std::max<std::uint64_t>(1, per_m) + 1;
  if (greatest > kMostWeight / static_cast<std::uint64_t>(std::max(1, goal.blocks))) {
    return invalid_argument("bytes is " + std::to_string(bytes) + ", in " +
                            std::to_string(goal.blocks) +
                            " blocks; their weights exceed 63 bits; use fewer bytes");
  }
  for (int b = 0; b < goal.blocks; ++b) {
    const std::uint64_t i = static_cast<std::uint64_t>(b) % per_m;
    const std::uint64_t weight = ideal ? share : bytes / per_m + (i < bytes % per_m ? 1 : 0);
    out.upto_.push_back(out.upto_.back() + static_cast<std::int64_t>(weight));
  }
  Status status = out.settle(fabric);
  if (!status.ok()) return status;
  return out;
}

Result<Pricing> Pricing::of_counts(const Fabric& fabric, const CollectiveSpec& goal,
                                   std::span<const std::uint64_t> counts) {
  if (Status status = check_counts(goal.collective, goal.ranks, counts); !status.ok()) {
    return status;
  }
  const auto parts = static_cast<std::uint64_t>(goal.blocks) / counts.size();
  std::vector<std::uint64_t> blocks;
  blocks.reserve(counts.size() * parts);
  for (const std::uint64_t count : counts) {
    for (std::uint64_t part = 0; part < parts; ++part) {
      blocks.push_back(count / parts + (part < count % parts ? 1 : 0));
    }
  }
  return of_blocks(fabric, blocks);
}

Result<Pricing> Pricing::of_blocks(const Fabric& fabric, std::span<const std::uint64_t> bytes) {
  Pricing out;
  out.upto_.push_back(0);
  for (const std::uint64_t block : bytes) {
    out.upto_.push_back(out.upto_.back() + static_cast<std::int64_t>(block));
  }
  Status status = out.settle(fabric);
  if (!status.ok()) return status;
  return out;
}

Status Pricing::settle(const Fabric& fabric) {
  try {
    const Rational weight(1, weight_per_byte_);
    const bool shared = fabric.wiring.shares_links();
    const Rational own_hop = shared ? Rational(0) : fabric.alpha_hop;
    std::vector<Link> links;  // beta is the time of a unit of weight
    for (int kind = 0; kind < fabric.link_kinds(); ++kind) {
      const Link link = fabric.link_of_kind(kind);
      links.push_back({link.latency() + own_hop, link.per_byte() * weight});
    }
    const Rational gamma = fabric.gamma * weight;
    // One tick divides every alpha, and the beta of one unit of weight, or of half a unit.
    const Rational least(1, shared ? 2 : 1);
    Ticks unit = 1;
    const auto divide = [&unit](Rational time) {
      unit = least_common_multiple(unit, time.bottom());
    };
    for (const Link& link : links) {
      divide(link.alpha);
      divide(link.beta * least);
    }
    divide(fabric.alpha_switch);
    divide(fabric.alpha_hop);
    divide(gamma);
    const auto ticks = [unit](Rational seconds) {
      return product(unit / seconds.bottom(), seconds.top());
    };
    per_second_ = unit;
    rates_ = {{}, ticks(fabric.alpha_switch), ticks(fabric.alpha_hop), ticks(gamma)};
    Ticks most_alpha = product(rates_.switch_alpha, 2), most_beta = 0;
    for (const Link& link : links) {
      rates_.links.push_back({ticks(link.alpha), ticks(link.beta)});
      most_alpha = std::max(most_alpha, rates_.links.back().alpha);
      most_beta = std::max(most_beta, rates_.links.back().beta);
    }
    most_ = most_alpha + product(product(most_beta, 1) + rates_.gamma, upto_.back());
    product(most_, 1);
  } catch (const std::overflow_error&) {
    return invalid_argument("alpha and beta have no common unit within 128 bits for " +
                            std::to_string(upto_.back() / weight_per_byte_) +
                            " bytes; fewer digits are needed");
  }
  return {};
}

bool Pricing::blocks_alike() const {
  for (std::size_t b = 1; b + 1 < upto_.size(); ++b) {
    if (upto_[b + 1] - upto_[b] != upto_[1]) return false;
  }
  return true;
}

std::int64_t Pricing::weight_of_strided(const Run& run) const {
  std::int64_t total = 0;
  for (int j = 0, b = run.first; j < run.count; ++j, b += run.stride) {
    total += upto_[static_cast<std::size_t>(b) + 1] - upto_[static_cast<std::size_t>(b)];
  }
  return total;
}

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
      "the time of the schedule exceeds 128 bits in the exact unit of alpha and beta; fewer digits "
      "are needed");
}

Status check_ability(const Transfer& transfer, const Fabric& fabric) {
  const bool needs_alu = transfer.from.size() > 1 && !fabric.alu;
  const bool needs_multicast = transfer.to.size() > 1 && !fabric.multicast;
  if (!needs_alu && !needs_multicast) return {};
  return invalid_argument(std::string("the schedule has a ") +
                          (needs_alu ? "many -> one" : "one -> many") + " transfer; network '" +
                          fabric.name + "' has no " + (needs_alu ? "ALU" : "multicast") +
                          " (lower the schedule, or choose a network that has it)");
}

}  // namespace rankine
