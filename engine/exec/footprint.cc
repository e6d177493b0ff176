#include "engine/exec/footprint.h"

namespace rankine {

Footprint::Footprint(const Program& program, Buffers buffers)
    : one_memory_(buffers == Buffers::in_place), touches_(static_cast<std::size_t>(program.ranks)) {
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& op = program.operations[i];
    const auto index = static_cast<int>(i);
    add(op.rank, index, op.destination, op.bytes);
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      add(source.rank, index, source.place, op.bytes);
    }
    for (int c = 0; c < op.copies; ++c) {
      const Copy& to = program.copies[static_cast<std::size_t>(op.first_copy + c)];
      add(to.rank, index, to.place, op.bytes);
    }
  }
}

}  // namespace rankine
