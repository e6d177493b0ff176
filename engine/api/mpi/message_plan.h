// What one rank does in a call among ranks that have nothing but messages, as MPI's processes:
// which messages it starts, which of them it waits for, and what it computes in between. Messages
// go over the wire, or, between ranks of one node, through memory that both reach.
//
// Read off a plan of the mailbox transport in which every message is as long as its data
// (CompileRequest::slot_payload of 0): there a message's memory stays as it is until its reader has
// used it, which is what a message that is sent from where it lies asks for. So places, the order
// of additions, operations of the user's and epilogues are the plan's.
//
//  - What a rank sends another in a round is one message, a Parcel, of as many pieces as lie apart:
//    a schedule's messages are counted on the wire as they are stated. It has the round as its tag.
//  - What is only stored is received where it belongs. What is to be added up is received beside
//    the scratch, in one of two halves that rounds use in turn.
//  - Through memory goes no data, only where they are: the receiver copies them to where they
//    belong, or adds them up where they are, and then says so. Of ranks that reach each other's
//    scratch only, the sender first shows there what lies in its buffers, once for all who want it
//    until it is overwritten.
//  - In a round memory comes first, so that messages over the wire have that time to arrive.
//  - A rank goes through its rounds in order: it starts what it receives and sends, then what it
//    receives in its next round where that memory is free by then, and does its work as messages
//    come. A wait is for a message of that round or an earlier one, which the other end has started
//    or will start before it waits for anything of that round; so by induction over rounds nothing
//    can deadlock, even if every message waited for its receiver.
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

// How messages go between two ranks.
enum class Way : std::uint8_t {
  wire,     // from end to end
  scratch,  // they reach each other's scratch: processes of one node
  here,     // they reach all of each other's memory: threads of one process
};
// What goes through memory and is no longer than this goes with the word that says that it is
// there: nobody waits until it has been used.
inline constexpr std::size_t kWithTheWord = 56;

// Bytes of a message in the rank's input, output or scratch. Memory::message: through memory, and
// used where they are.
struct Piece {
  Memory memory = Memory::input;
  std::size_t offset = 0, bytes = 0;
};

struct Parcel {
  int peer = 0;
  int round = 0;  // as ops count them: 1 + the schedule's
  bool sends = false;
  Way way = Way::wire;
  std::size_t bytes = 0;
  // In order; both ends have the same bytes. Over the wire each end cuts them as they lie there;
  // through memory both ends have the same pieces.
  std::vector<Piece> pieces;

  bool with_the_word() const { return way != Way::wire && bytes <= kWithTheWord; }
};

// A fold, an apply or a finish of the plan, or what a rank shows others. Operands that came over
// the wire are in the scratch; those that came through memory are Memory::message: piece `offset`
// of parcel `message`.
struct Work {
  Op op;
  std::size_t first_operand = 0;
};

struct MessageStep {
  // done: what came by a parcel through memory has been used.
  enum class Kind : std::uint8_t { start, wait, work, done };
  Kind kind = Kind::start;
  int index = 0;  // of a parcel, or of work
};

struct MessagePlan {
  std::vector<Parcel> parcels;
  std::vector<Work> work;
  std::vector<Operand> operands;
  // Every parcel is started once and waited for once, later; one that is received through memory is
  // not started, and done once, after that.
  std::vector<MessageStep> steps;
  std::size_t scratch_bytes = 0;
};

// `plan` is one rank's of a mailbox plan that was made as said above. `in_place_offset`: by how
// many bytes its input begins behind its output where the two may be one memory; none: they lie
// apart. `ways`: to each rank; empty: all over the wire.
MessagePlan message_plan(const RankPlan& plan, std::optional<std::ptrdiff_t> in_place_offset,
                         std::span<const Way> ways = {});

// A call's memory, by Memory: input, output, scratch.
using Addresses = std::array<std::byte*, 3>;

// What of a call is not its plan's.
struct CallWork {
  Addresses memory{};
  const UserOp* user_op = nullptr;
  const Epilogue* epilogue = nullptr;
  // By parcel: where its pieces are that have come through memory.
  const std::byte* const* const* pieces = nullptr;
};

// Copies what of a parcel that has come through memory is only stored.
void store_pieces(const MessagePlan& messages, const Plan& plan, int parcel,
                  const CallWork& call) noexcept;

// Does work `index` of the rank's. `plan` is what message_plan() was made from, of all its ranks
// (this one's ops may be gone). False: a function of the user's threw, and `why` says what.
bool do_work(const MessagePlan& messages, const Plan& plan, int index, const CallWork& call,
             std::vector<void*>& operands, std::string& why) noexcept;

}  // namespace rankine
