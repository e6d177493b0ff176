#include "engine/tools/dilation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/base/units.h"

namespace rankine::tools {

double fitting_dilation(const WallDemands& demands) {
  if (demands.total <= 0 || demands.least <= 0) return 1;
  constexpr double kShareAtEnd = 0.02, kWakeUpsPerMessage = 4, kTimesData = 16;
  constexpr double kShortest =
      20e-3;  // seconds: others' turns on the cores are a part of the whole
  const double needed =
      std::max({1.0, kShortest / demands.total, demands.resolution / (kShareAtEnd * demands.total),
                kWakeUpsPerMessage * demands.resolution / demands.least,
                kTimesData * demands.data / demands.total});
  const double unit = std::pow(10, std::floor(std::log10(needed)) - 1);
  constexpr double kRounding = 1e-9;  // 480 must not become 490 for a trace
  return needed <= 1 ? 1 : std::ceil(needed / unit - kRounding) * unit;
}

std::string dilation_refusal(const WallDemands& demands, double dilate) {
  if (demands.total <= 0 || demands.least <= 0) return {};
  const double least = demands.least * dilate, total = demands.total * dilate;
  const auto refusal = [&](const std::string& why) {
    return fmt::format("--dilate is {:g}: {}; this machine can do --dilate {:g}", dilate, why,
                       fitting_dilation(demands));
  };
  if (least < demands.resolution) {
    return refusal(fmt::format("the cheapest message would take {}, and threads are woken {} late",
                               format_duration(least), format_duration(demands.resolution)));
  }
  if (total < demands.data) {
    return refusal(fmt::format("the whole would take {}, and moving the data takes {}",
                               format_duration(total), format_duration(demands.data)));
  }
  return {};
}

}  // namespace rankine::tools
