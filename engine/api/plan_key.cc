#include "engine/api/plan_key.h"

namespace rankine {

PlanKey key_of(const Call& call) noexcept {
  const bool knows_in_place =
      call.collective == Collective::all_reduce || call.collective == Collective::all_to_all;
  PlanKey key{.count = call.count,
              .algorithm = call.options.algorithm,
              .root = call.root != 0 && has_root(call.collective) ? call.root : 0,
              .peer = call.collective == Collective::send_recv ? call.peer : 0,
              .segments = call.options.segments,
              .group = call.options.group,
              .collective = call.collective,
              .type = call.type,
              .op = call.op,
              .in_place = knows_in_place && call.in == call.out && call.in != nullptr,
              .counts = call.counts,
              .dims = call.options.dims,
              .skips = call.options.skips,
              .levels = call.options.levels};
  if (call.options.transport) key.transport = static_cast<std::int16_t>(*call.options.transport);
  return key;
}

}  // namespace rankine
