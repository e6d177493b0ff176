#include "engine/network/ticks.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/base/counted.h"

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
    return invalid_argument("counts has " + std::to_string(counts.size()) + " entries; " +
                            std::string(name_of(collective)) + " among " + std::to_string(ranks) +
                            " ranks has " + counted(blocks, "block"));
  }
  std::uint64_t left = kMostBytes;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > left) {
      return invalid_argument("counts[" + std::to_string(i) + "] is " + std::to_string(counts[i]) +
                              "; all together may be at most " + std::to_string(kMostBytes));
    }
    left -= counts[i];
  }
  return {};
}

Result<Pricing> Pricing::make(const Fabric& fabric, const Goal& goal, std::uint64_t bytes,
                              bool ideal) {
  Pricing out;
  if (bytes > kMostBytes) {
    return invalid_argument("bytes is " + std::to_string(bytes) + "; allowed are 0 to " +
                            std::to_string(kMostBytes));
  }
  const auto per_m = static_cast<std::uint64_t>(blocks_per_m(goal));
  // Ideal: M / B is `share` / `parts` in lowest terms, and 1 / `parts` of a byte weighs one.
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
                            " blocks; together they leave 63 bits: fewer are needed");
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

Result<Pricing> Pricing::of_counts(const Fabric& fabric, const Goal& goal,
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
    std::vector<Link> links;  // with what a unit of weight takes
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

}  // namespace rankine
