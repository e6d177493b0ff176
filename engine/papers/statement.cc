#include "engine/papers/statement.h"

#include <algorithm>
#include <iterator>

namespace rankine::reproduce {
namespace {

constexpr std::string_view kMeasures[] = {
    "gain",  "greatest_gain", "latency_gain",   "spread", "overtaken", "latest_overtaken",
    "shift", "wins_from",     "change_of_form", "delay"};

}  // namespace

std::string_view name_of(Measure measure) { return kMeasures[static_cast<std::size_t>(measure)]; }

std::optional<Measure> parse_measure(std::string_view text) {
  const auto found = std::find(std::begin(kMeasures), std::end(kMeasures), text);
  if (found == std::end(kMeasures)) return std::nullopt;
  return static_cast<Measure>(found - std::begin(kMeasures));
}

std::string_view name_of(Unit unit) {
  constexpr std::string_view kNames[] = {"percent", "bytes", "factor"};
  return kNames[static_cast<std::size_t>(unit)];
}

Unit unit_of(Measure measure) {
  switch (measure) {
    case Measure::gain:
    case Measure::greatest_gain:
    case Measure::latency_gain:
    case Measure::spread:
      return Unit::percent;
    case Measure::overtaken:
    case Measure::latest_overtaken:
    case Measure::wins_from:
      return Unit::bytes;
    case Measure::shift:
    case Measure::change_of_form:
    case Measure::delay:
      return Unit::factor;
  }
  return Unit::factor;
}

}  // namespace rankine::reproduce
