// What an operation becomes in a plan, whatever the transport: the op that moves its data.
#pragma once

#include <cstdint>

#include "engine/compile/program.h"
#include "engine/run/plan.h"

namespace rankine {

// As ops count rounds: from 1.
inline std::uint16_t round_of(const Operation& op) {
  return static_cast<std::uint16_t>(op.round + 1);
}

// With nothing to read where another rank has stored the data (Operation::pushed). Its operands are
// the caller's to add.
inline Op fold_op(const Operation& op) {
  Op fold{.code = OpCode::fold,
          .operands = static_cast<std::uint16_t>(op.pushed ? 0 : op.sources),
          .round = round_of(op),
          .memory = op.destination.memory,
          .copies = static_cast<std::uint16_t>(op.copies),
          .offset = op.destination.offset,
          .bytes = op.bytes};
  if (op.completes) fold.flags |= kDivides;
  if (op.only_if_moved) fold.flags |= kOnlyIfMoved;
  if (op.streams) fold.flags |= kStreams;
  if (op.stages) fold.flags |= kStages;
  if (op.fetches) fold.flags |= kFetches;
  if (op.claims) fold.flags |= kClaims;
  return fold;
}

}  // namespace rankine
