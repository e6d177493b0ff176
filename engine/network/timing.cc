#include "engine/network/timing.h"

namespace rankine {

std::string_view name_of(Sync sync) { return sync == Sync::rounds ? "rounds" : "dataflow"; }

std::optional<Sync> parse_sync(std::string_view text) {
  for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
    if (name_of(sync) == text) return sync;
  }
  return std::nullopt;
}

std::string_view name_of(ClockMode mode) {
  switch (mode) {
    case ClockMode::none:
      return "none";
    case ClockMode::wall:
      return "wall";
    case ClockMode::virtual_time:
      return "virtual";
  }
  return "none";
}

std::optional<ClockMode> parse_clock_mode(std::string_view text) {
  for (const ClockMode mode : {ClockMode::none, ClockMode::wall, ClockMode::virtual_time}) {
    if (name_of(mode) == text) return mode;
  }
  return std::nullopt;
}

}  // namespace rankine
