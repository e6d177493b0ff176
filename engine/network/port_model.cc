#include "engine/network/port_model.h"

namespace rankine {

std::string_view name_of(Sync sync) { return sync == Sync::dataflow ? "dataflow" : "rounds"; }

std::optional<Sync> parse_sync(std::string_view text) {
  if (text == "dataflow") return Sync::dataflow;
  if (text == "rounds") return Sync::rounds;
  return std::nullopt;
}

}  // namespace rankine
