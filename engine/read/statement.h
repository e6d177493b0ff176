// Whether a catalogue line says the truth: its closed forms next to what was derived.
#pragma once

#include <optional>
#include <string>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/collective.h"
#include "engine/read/counts.h"

namespace rankine {

// The first field of the line whose formula does not give exactly the derived value, as a text that
// names field, formula, its value and the derived value; nullopt where all agree. Compared are
// rounds, sent and received (of the busiest rank, in units of M), send_ports and receive_ports, but
// for those of which the line says kComputed.
// Throws std::logic_error where a formula cannot be read (closed_form.h).
std::optional<std::string> compare_statement(const Algorithm& line, const Params& params,
                                             const Goal& goal, const Counts& counts);

}  // namespace rankine
