#include "engine/api/tuning/machine_model.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

namespace rankine {
namespace {

constexpr double kAttoseconds = 1e18;  // of a second

Rational exact(double seconds) {
  return {static_cast<Int128>(std::llround(seconds * kAttoseconds)),
          static_cast<Int128>(kAttoseconds)};
}

}  // namespace

Result<Fabric> machine_fabric(const CostModel& model) {
  const struct {
    std::string_view name;
    double seconds;
    bool may_be_zero;
  } kMembers[] = {
      {"alpha", model.alpha, false}, {"beta", model.beta, false}, {"gamma", model.gamma, true}};
  for (const auto& [name, seconds, may_be_zero] : kMembers) {
    const bool fits = (may_be_zero ? seconds >= 0 : seconds * kAttoseconds >= 1);
    if (fits && seconds <= kMostSeconds) continue;
    return invalid_argument(fmt::format("model.{} is {}; allowed are numbers {} to {}", name,
                                        seconds, may_be_zero ? "from 0" : "above 0", kMostSeconds));
  }
  Fabric fabric;
  fabric.name = "this machine";
  fabric.link = {exact(model.alpha), exact(model.beta)};
  fabric.gamma = exact(model.gamma);
  return fabric;
}

}  // namespace rankine
