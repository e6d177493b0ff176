#include "engine/network/wire.h"

namespace rankine {

Result<Fabric> wire(const Fabric& fabric, const Algorithm& algorithm, Params& params) {
  auto wired = wired_for(fabric, params.ranks, params.dims);
  if (!wired.ok()) return wired;
  if (!algorithm.takes("dims")) {
    if (params.dims == wired->wiring.dims) params.dims.clear();
  } else if (params.dims.empty()) {
    params.dims = wired->wiring.dims;
  }
  return wired;
}

}  // namespace rankine
