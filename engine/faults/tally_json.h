// A tally as text, from the process that counted to the one that adds up.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/faults/tally.h"

namespace rankine::faults {

nlohmann::json json_of(const Tally& tally);
// Of what json_of() made.
Tally tally_of(const nlohmann::json& json);

// Remarks may hold bytes that are no UTF-8; those are replaced.
std::string text_of(const nlohmann::json& json);

}  // namespace rankine::faults
