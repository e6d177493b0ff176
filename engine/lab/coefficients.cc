#include "engine/lab/coefficients.h"

#include <cstdint>

#include "algorithms/catalogue.h"

namespace rankine::tools {
namespace {

// The coefficient of one parameter: the simulated time if that parameter costs one unit of time on
// all links alike (alpha: per message and passage through the switch; hop: per link crossed; beta
// and gamma: per M bytes sent or added up) and the others cost nothing. M is one byte per block, so
// ideal blocks are whole.
enum class Of { alpha, hop, beta, gamma };
Result<Rational> coefficient(const Prepared& prepared, Fabric fabric, SimulateOptions options,
                             Of of) {
  const std::int64_t m = blocks_per_m(prepared.goal);
  fabric.link =
      fabric.between = {of == Of::alpha ? 1 : 0, of == Of::beta ? Rational(1, m) : Rational(0)};
  fabric.alpha_switch = of == Of::alpha ? 1 : 0;
  fabric.alpha_hop = of == Of::hop ? 1 : 0;
  fabric.gamma = of == Of::gamma ? Rational(1, m) : Rational(0);
  fabric.odd.clear();
  const auto result =
      simulate(prepared.schedule, prepared.goal, fabric, static_cast<std::uint64_t>(m), options);
  if (!result.ok()) return result.status();
  return Rational(result->end, result->ticks_per_second);
}

Json exactly(const Rational& value) {
  return {{"value", value.to_double()}, {"exact", value.to_string()}};
}

}  // namespace

Result<Coefficients> coefficients(const Prepared& prepared, const Fabric& fabric,
                                  SimulateOptions options) {
  const auto alpha = coefficient(prepared, fabric, options, Of::alpha);
  if (!alpha.ok()) return alpha.status();
  const auto beta = coefficient(prepared, fabric, options, Of::beta);
  if (!beta.ok()) return beta.status();
  Coefficients out{*alpha, {}, *beta};
  if (!(fabric.gamma == 0)) {
    const auto gamma = coefficient(prepared, fabric, options, Of::gamma);
    if (!gamma.ok()) return gamma.status();
    out.gamma = *gamma;
  }
  if (!fabric.wiring.shares_links()) return out;
  const auto hop = coefficient(prepared, fabric, options, Of::hop);
  if (!hop.ok()) return hop.status();
  out.hop = *hop;
  return out;
}

Json to_json(const Coefficients& c) {
  Json out = {{"n_alpha", exactly(c.alpha)}, {"n_beta", exactly(c.beta)}};
  if (c.hop) out["n_hop"] = exactly(*c.hop);
  if (c.gamma) out["n_gamma"] = exactly(*c.gamma);
  if (c.eta) out["eta"] = *c.eta;
  return out;
}

}  // namespace rankine::tools
