// What a hop and an addition cost on this machine: measured, and fitted by least squares.
//
// The model is T = hops alpha + moved beta + added gamma. Three kinds of points tell the three
// apart: a vector that goes to and fro between two ranks (1 hop, M moved), a reduce in place whose
// root alternates (1 hop, M moved, M added), and the kernel alone on one core (M added). To and
// fro, every byte was written by the other core just before, and no call can begin before the one
// before has ended: half a round trip is one way.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/status.h"

namespace rankine::tools {

struct CostPoint {
  std::string what;  // "to and fro"
  std::size_t bytes = 0;
  double hops = 0, moved = 0, added = 0;
  double seconds = 0;
};

struct CostFit {
  CostModel model;
  std::vector<double> residuals;  // of each point: model over measured, less 1
  double rms = 0;                 // of these
};

// Least squares of the relative residuals, so that 8 bytes count as much as a megabyte. Errors:
// seconds that are not positive, and points that do not tell the three apart.
Result<CostFit> fit_costs(const std::vector<CostPoint>& points);

// Measures with a team of two ranks, for about so many seconds, and less once a signal has
// interrupted it (interrupt.h). Errors: those of its calls.
Result<std::vector<CostPoint>> measure_costs(Team& team, double seconds = 2);

}  // namespace rankine::tools
