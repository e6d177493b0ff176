// coefficients() splits a schedule's time on a network into multiples of alpha, hop, beta and
// gamma.
#pragma once

#include <optional>

#include "algorithms/rational.h"
#include "engine/base/status.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/network/simulate.h"

namespace rankine::tools {

// A schedule's time as a multiple of alpha, of a hop (if messages share links), of M beta and of M
// gamma (if the network has one). Each coefficient is computed with the other parameters at 0. The
// values are exact; different coefficients may come from different chains of messages.
struct Coefficients {
  Rational alpha;
  std::optional<Rational> hop;
  Rational beta;
  std::optional<Rational> gamma{};
  // busbw divided by the network's peak, if M is so large that only beta counts.
  std::optional<double> eta{};
};

// Errors: those of simulate().
Result<Coefficients> coefficients(const Prepared& prepared, const Fabric& fabric,
                                  SimulateOptions options);

// {"n_alpha": {"value": 2.5, "exact": "5/2"}, "n_beta": ..., "eta": 0.5}
Json to_json(const Coefficients& coefficients);

}  // namespace rankine::tools
