#include "engine/fabric/ticks.h"

#include <limits>
#include <numeric>
#include <string>

#include "algorithms/catalogue.h"

namespace rankine {
namespace {

// lcm, or 0 where it leaves 64 bits.
std::int64_t common(std::int64_t a, std::int64_t b) {
  const Ticks both = static_cast<Ticks>(a / std::gcd(a, b)) * b;
  return both > std::numeric_limits<std::int64_t>::max() ? 0 : static_cast<std::int64_t>(both);
}

}  // namespace

Result<Pricing> Pricing::make(const Fabric& fabric, const Goal& goal, std::uint64_t bytes,
                              bool ideal) {
  Pricing out;
  const auto per_m = static_cast<std::uint64_t>(blocks_per_m(goal));
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 52;
  if (bytes > kMostBytes) {
    return invalid_argument("bytes is " + std::to_string(bytes) + "; allowed are 0 to " +
                            std::to_string(kMostBytes));
  }
  out.weight_per_byte_ = ideal ? static_cast<std::int64_t>(per_m) : 1;
  out.upto_.reserve(static_cast<std::size_t>(goal.blocks) + 1);
  out.upto_.push_back(0);
  for (int b = 0; b < goal.blocks; ++b) {
    const std::uint64_t i = static_cast<std::uint64_t>(b) % per_m;
    const std::uint64_t weight = ideal ? bytes : bytes / per_m + (i < bytes % per_m ? 1 : 0);
    out.upto_.push_back(out.upto_.back() + static_cast<std::int64_t>(weight));
  }
  // One tick divides every alpha, and the beta of one unit of weight.
  std::int64_t unit = 1;
  for (const Fraction alpha : {fabric.link.alpha, fabric.between.alpha, fabric.alpha_switch}) {
    if (unit != 0) unit = common(unit, alpha.bottom());
  }
  const Fraction near = fabric.link.beta / Fraction(out.weight_per_byte_);
  const Fraction far = fabric.between.beta / Fraction(out.weight_per_byte_);
  for (const Fraction beta : {near, far}) {
    if (unit != 0) unit = common(unit, beta.bottom());
  }
  if (unit == 0) {
    return invalid_argument(
        "alpha and beta have no common unit within 64 bits; fewer digits are "
        "needed");
  }
  const auto ticks = [unit](Fraction seconds) {
    return static_cast<Ticks>(unit / seconds.bottom()) * seconds.top();
  };
  out.per_second_ = unit;
  out.near_alpha_ = ticks(fabric.link.alpha);
  out.far_alpha_ = ticks(fabric.between.alpha);
  out.switch_alpha_ = ticks(fabric.alpha_switch);
  out.near_beta_ = ticks(near);
  out.far_beta_ = ticks(far);
  return out;
}

std::int64_t Pricing::weight(const IndexList& blocks) const {
  std::int64_t total = 0;
  for (int i = 0; i < blocks.runs(); ++i) {
    const Run& run = blocks.run(i);
    if (run.stride == 1) {
      total += upto_[static_cast<std::size_t>(run.first + run.count)] -
               upto_[static_cast<std::size_t>(run.first)];
      continue;
    }
    for (int j = 0, b = run.first; j < run.count; ++j, b += run.stride) {
      total += upto_[static_cast<std::size_t>(b) + 1] - upto_[static_cast<std::size_t>(b)];
    }
  }
  return total;
}

double Pricing::seconds(Ticks ticks) const {
  // One correctly rounded division where both fit into a long double's 64 bits, as they do in
  // practice.
  return static_cast<double>(static_cast<long double>(ticks) /
                             static_cast<long double>(per_second_));
}

}  // namespace rankine
