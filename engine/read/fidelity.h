// How closely messages that share links are looked at.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace rankine {

enum class Fidelity : std::uint8_t {
  eq1,     // each pays for its busiest link's load of the round: simulate()
  flow,    // their share of each link at each moment: flow.h
  packet,  // links send one packet after the other: packets.h
};
std::string_view name_of(Fidelity fidelity);
std::optional<Fidelity> parse_fidelity(std::string_view text);
const std::vector<std::string_view>& fidelity_names();  // of all, in that order

}  // namespace rankine
