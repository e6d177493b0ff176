#include "engine/network/wire.h"

#include <utility>

namespace rankine {

Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params) {
  auto wired = wired_for(fabric, params.ranks, params.dims);
  if (!wired.ok()) return wired;
  if (!algorithm.takes("dims")) {
    if (params.dims == wired->wiring.dims) params.dims.clear();
  } else if (params.dims.empty()) {
    params.dims = wired->wiring.dims;
  }
  if (wired->group > 0) take_levels(algorithm, {wired->group}, params);
  return wired;
}

void take_levels(const Algorithm& algorithm, const std::vector<int>& levels, Params& params) {
  if (levels.empty()) return;
  Params filled = params;
  if (algorithm.takes("levels") && params.levels.empty()) filled.levels = levels;
  if (algorithm.takes("group") && params.group == 0) filled.group = levels.back();
  if (!algorithm.refusal(algorithm.only_taken(filled))) params = std::move(filled);
}

}  // namespace rankine
