// Rows of perf as curves over sizes, an algorithm each.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tools/crossovers.h"
#include "engine/tools/perf_row.h"

namespace rankine::tools {

// Why the rows of these cases would be no curves, as text that says what is needed; empty: they
// are.
std::string why_no_curves(const PerfCases& cases);

// The same of --plot: on the machine rows of all kinds are curves.
std::string why_no_plot(const PerfOptions& options, const PerfCases& cases);

// Each network's curves, in the catalogue's order, and for all networks alike; without a name the
// engine's choice is one. `rows` are all those of `all`, in their order.
std::vector<NetworkCurves> curves_of(const std::vector<PerfCases>& all,
                                     std::span<const PerfRow> rows);

// What was measured at full speed: time over bytes, below it busbw; a curve for each algorithm,
// type, operation and root. `what` begins the titles. Requires rows that why_no_plot() lets pass.
std::string machine_svg(std::string_view what, const PerfCases& cases,
                        std::span<const PerfRow> rows);

}  // namespace rankine::tools
