// Program -> plan, one lowering per transport (engine/run/plan.h says what each does).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "engine/base/status.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"

namespace rankine {

struct LowerOptions {
  std::size_t slot_payload = 48;  // bytes that fit into a mailbox slot
  int mailbox_capacity = 8;       // messages that a pair may have under way (mailbox.h)
  int ports = 0;                  // mailbox: messages that a rank may have in flight in each
                                  // direction; 0: as many as there are
  std::size_t board_bytes = 0;    // of data that fit into half a board (board.h)
  // Direct: ops that only wait for what others store stay, where they wait.
  bool keeps_waits = false;
  // Direct: a rank that has staged so many bytes enters the call, and stages the rest after that.
  std::size_t staged_first = std::numeric_limits<std::size_t>::max();
  // Faults for the tests of the tests: a rule left out, to see that the fuzz test notices.
  enum class Mutant : std::uint8_t {
    none,
    no_write_after_read,
    no_exit_waits,
    no_credit_waits,
    dropped_wait,  // every third wait for progress
    no_entry_waits,
    receives_first,  // in a sub-round of the mailbox transport
    early_release,   // messages are given back before they are used
    early_entry,     // what is staged after entering is taken for staged before
    no_port_waits,   // mailbox: a rank sends whether ports are free or not
  };
  Mutant mutant = Mutant::none;
  PlanMeter* meter = nullptr;  // what the making is counted on
};

Plan lower_direct(Program program, const LowerOptions& options);
// Fails where one operation needs more messages of one pair than the mailbox holds.
Result<Plan> lower_mailbox(const Program& program, const LowerOptions& options);
// Of an eager program. Fails where others want more of a rank in one round than a board holds.
Result<Plan> lower_board(const Program& program, const LowerOptions& options);

// Whether an eager program gains by boards that hold so much: in every round that has messages all
// hear from all, so that no wait is added, and everything fits.
bool suits_boards(const Program& program, std::size_t board_bytes, PlanMeter* meter = nullptr);

// What an operation becomes in a plan, whatever the transport: the op that moves its data.

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
