// What a schedule's time is made of on a network.
#pragma once

#include <optional>

#include "algorithms/rational.h"
#include "engine/base/status.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

// A schedule's time as a multiple of alpha, of a hop (where messages share links), of M beta and of
// M gamma (where the network has one), each where the others are 0. They are exact, and need not be
// reached by the same chain of messages.
struct Coefficients {
  Rational alpha;
  std::optional<Rational> hop;
  Rational beta;
  std::optional<Rational> gamma{};
  // What busbw comes to, over the network's peak, where M is so large that only beta counts.
  std::optional<double> eta{};
};

// Errors: those of simulate().
Result<Coefficients> coefficients(const Prepared& prepared, const Fabric& fabric,
                                  SimulateOptions options);

// {"n_alpha": {"value": 2.5, "exact": "5/2"}, "n_beta": ..., "eta": 0.5}
Json to_json(const Coefficients& coefficients);

}  // namespace rankine::tools
