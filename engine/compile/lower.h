// Lowering turns a program into a plan, with one lowering per transport (engine/run/plan.h
// describes them).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "engine/base/status.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"

namespace rankine {

struct LowerOptions {
  std::size_t slot_payload = 48;  // bytes that fit into a mailbox slot
  int mailbox_capacity = 8;       // messages that a pair may have in flight (mailbox.h)
  // Mailbox: the node of each rank; empty: one node. Messages between nodes are sent at the
  // beginning of their round, in any number, and each is released at once.
  std::span<const int> nodes{};
  int ports = 0;  // mailbox: maximum of a rank's messages in flight in each direction; 0: unlimited
  std::size_t board_bytes = 0;  // data bytes that fit into half a board (mailbox.h)
  // Direct: keep ops that only wait for others' stores, at their places.
  bool keeps_waits = false;
  // Direct: a rank enters the call after it has staged this many bytes, and stages the rest after
  // that.
  std::size_t staged_first = std::numeric_limits<std::size_t>::max();
  // Direct: ranks end a call while others still read their scratch, if none needs more than so many
  // bytes. Only if others reach nothing but scratch.
  std::size_t ahead_max_bytes = 0;
  // Faults for the tests of the tests: each leaves out a rule, which the fuzz test must notice.
  enum class Mutant : std::uint8_t {
    none,
    no_write_after_read,
    no_exit_waits,
    no_credit_waits,
    dropped_wait,  // every third wait for progress
    no_entry_waits,
    receives_first,  // in a sub-round of the mailbox transport
    early_release,   // messages are released before they are used
    early_entry,     // data staged after entering count as staged before
    no_port_waits,   // mailbox: a rank sends without waiting for a free port
  };
  Mutant mutant = Mutant::none;
  PlanningBudget* meter = nullptr;  // counts the steps of planning
};

Plan lower_direct(DataflowProgram program, const LowerOptions& options);
// Fails if one operation needs more messages of one pair than the mailbox holds.
Result<Plan> lower_mailbox(const DataflowProgram& program, const LowerOptions& options);
// For an eager program. Fails if others want more bytes of a rank in one round than a board holds.
Result<Plan> lower_board(const DataflowProgram& program, const LowerOptions& options);

// True if an eager program gains by boards of this size: in every round with messages all data fit,
// and all ranks hear from all, so that boards add no wait.
bool suits_boards(const DataflowProgram& program, std::size_t board_bytes,
                  PlanningBudget* meter = nullptr);

// The op that moves an operation's data, for any transport.

// The round number of ops, which count from 1.
inline std::uint16_t round_of(const Operation& op) {
  return static_cast<std::uint16_t>(op.round + 1);
}

// Has no operands if another rank has stored the data (Operation::pushed). The caller adds the
// operands.
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
