// The two questions that whoever tells a network's time must answer.
//
//   sync    dataflow: a message waits for its ports and its data; rounds: also for the round before
//           (port_model.h)
//   clock   virtual: nobody waits for the times; wall: ranks keep them in real time, stretched
//           (network_clock.h); none: there is no network
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "algorithms/rational.h"

namespace rankine {

// A time as a whole number of a unit in which a network's times are whole numbers: ticks.h.
using Ticks = Int128;

enum class Sync : std::uint8_t { dataflow, rounds };
std::string_view name_of(Sync sync);
std::optional<Sync> parse_sync(std::string_view text);

enum class ClockMode : std::uint8_t { none, wall, virtual_time };
std::string_view name_of(ClockMode mode);
std::optional<ClockMode> parse_clock_mode(std::string_view text);  // none, wall, virtual

}  // namespace rankine
