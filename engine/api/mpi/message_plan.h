// message_plan() turns one rank's plan into a list of messages, waits and computations, for ranks
// that communicate by messages only, such as MPI processes. Messages go over the wire or, between
// ranks of one node, through memory that both ranks reach.
//
// The source is a plan of the mailbox transport in which every message is as long as its data
// (CompileRequest::slot_payload of 0). In such a plan a message's memory stays unchanged until its
// reader has used it; this is required to send messages directly from their place. So memory
// places, the order of additions, user operations and epilogues are those of the mailbox plan.
//
//  - All data from one rank to another in one round form one message, a Parcel, with one piece per
//    contiguous stretch: the wire carries as many messages as the schedule states. The tag is the
//    round.
//  - Data to store are received at their destination. Data to add up are received in staging memory
//    behind the scratch, in two halves that rounds use in turn.
//  - Through memory only addresses travel: the receiver copies the data to their destination, or
//    adds them up in place, and then reports that it has used them. If ranks reach only each
//    other's scratch, the sender first copies data from its buffers into the scratch, once for all
//    receivers until the data are overwritten.
//  - In each round, messages through memory come first, so that messages over the wire have time to
//    arrive.
//  - A rank processes its rounds in order: it starts the round's receptions and sends, then
//    receptions of the next round if their memory is already free, and does its work as messages
//    arrive. A rank waits only for messages of this round or an earlier one. The other end has
//    started such a message, or starts it before it waits for any message of that round; so, by
//    induction over rounds, no deadlock is possible, even if every message waited for its receiver.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/run/plan.h"
#include "engine/run/user_functions.h"

namespace rankine {

// The path of messages between two ranks.
enum class Way : std::uint8_t {
  wire,     // MPI messages
  scratch,  // the ranks reach each other's scratch: processes of one node
  here,     // the ranks reach all of each other's memory: threads of one process
};
// Messages through memory of at most this length travel inside the mail slot, so the sender need
// not wait until the receiver has used them.
inline constexpr std::size_t kWithTheWord = 56;

// A stretch of bytes in the rank's input, output or scratch. Memory::message: the bytes came
// through memory and are used at the sender's place.
struct Piece {
  Memory memory = Memory::input;
  std::size_t offset = 0, bytes = 0;
};

struct Parcel {
  int peer = 0;
  int round = 0;  // as ops count rounds: 1 + the schedule's round
  bool sends = false;
  Way way = Way::wire;
  std::size_t bytes = 0;
  // In order; the total length is equal at both ends. Over the wire each end divides the bytes into
  // pieces by its own layout; through memory both ends have the same pieces.
  std::vector<Piece> pieces;

  bool with_the_word() const { return way != Way::wire && bytes <= kWithTheWord; }
};

// A fold, an apply or a finish of the plan, or a copy into scratch for other ranks. Operands that
// came over the wire are in the scratch. Operands that came through memory have Memory::message:
// piece `offset` of parcel `message`.
struct Work {
  Op op;
  std::size_t first_operand = 0;
};

struct MessageStep {
  // done: the rank has used a parcel that came through memory.
  enum class Kind : std::uint8_t { start, wait, work, done };
  Kind kind = Kind::start;
  int index = 0;  // parcel number, or number of a work item
};

struct MessagePlan {
  std::vector<Parcel> parcels;
  std::vector<Work> work;
  std::vector<Operand> operands;
  // Each parcel is started once and later waited for once. Exception: a parcel that is received
  // through memory has no start, and has a done after its wait.
  std::vector<MessageStep> steps;
  std::size_t scratch_bytes = 0;
};

// `plan` is one rank's part of a mailbox plan as described above. `in_place_offset`: the offset in
// bytes of the input behind the output if both may be one memory; unset: they do not overlap.
// `ways`: the path to each rank; empty: all over the wire.
MessagePlan message_plan(const RankPlan& plan, std::optional<std::ptrdiff_t> in_place_offset,
                         std::span<const Way> ways = {});

// A call's memory, by Memory: input, output, scratch.
using Addresses = std::array<std::byte*, 3>;

// The parts of a call that are not in its plan.
struct CallWork {
  Addresses memory{};
  const UserOp* user_op = nullptr;
  const Epilogue* epilogue = nullptr;
  // By parcel: the addresses of the pieces that came through memory.
  const std::byte* const* const* pieces = nullptr;
};

// Copies those pieces of a parcel through memory that are only stored, not added up.
void store_pieces(const MessagePlan& messages, const Plan& plan, int parcel,
                  const CallWork& call) noexcept;

// Executes work `index` of the rank. `plan` is the plan, of all ranks, that message_plan() read
// (this rank's ops may be freed). Returns false if a user function threw; `why` is its text.
bool do_work(const MessagePlan& messages, const Plan& plan, int index, const CallWork& call,
             std::vector<void*>& operands, std::string& why) noexcept;

}  // namespace rankine
