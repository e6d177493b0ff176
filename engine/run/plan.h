// A program made ready to run: for each rank a flat array of 32-byte ops that the interpreter walks
// once per call. Plans are immutable; all ranks share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/base/costs.h"
#include "engine/base/memory.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/policy.h"

namespace rankine {

// Memory that a rank brings to a call. `message`: in a slot or at the address found there; `board`:
// in the half that it has posted last (plans only).
enum class Memory : std::uint8_t { input, output, scratch, message, board };

enum class OpCode : std::uint8_t {
  end,
  enter,          // offers this rank's buffers to the others; nothing is published before. Direct
                  // transport, and not of a rank that is alone
  wait_entry,     // until `peer` has entered this call: its buffers' addresses are known then
  wait_progress,  // until `peer`'s progress in this call reaches `value`
  wait_message,   // until message `value` of this call from `peer` is there
  wait_credit,    // until `peer` has taken all messages of this call before number `value`
  fold,           // destination and copies = operand 0 op operand 1 op ...; then publish `value`,
                  // if not 0. Without operands it only publishes
  send,           // message `value` of this call to `peer`: operand 0
  release,        // messages from `peer` before number `value` have been used
  post,           // operand 0, if any, goes to `offset` in the half of this rank's board whose turn
                  // it is; unless more follows, the half is then the others' to read
  wait_post,      // until `peer` has made the post that this rank has made last
  wait_posts,     // the same of all other ranks
  apply,          // fold, by the user's operation (user_op.h)
  widen,          // destination, f32 = operand 0, of the users' type (Plan::conversions)
  narrow,         // destination, of the users' type = operand 0, f32, rounded
  finish,         // the call's epilogue gets the rows of the output that lie there (epilogue.h)
  count_ports,    // for reports, where a rank has a budget of ports. `value` 0: how many of its
                  // messages are in flight; else how many to it, `value` of which are used next
};

enum OpFlag : std::uint8_t {
  kDivides = 1,      // fold completes the reduction: avg divides
  kOnlyIfMoved = 2,  // skip where destination and source are the same address
  kStreams = 4,      // store past the caches
  kByAddress = 8,    // send: the message carries an address; release: credit is due at once
  kClaims = 16,      // fold: the copies' memory is in other cores' caches (copy_bytes_claiming)
  kMoreToPost = 32,  // post: it goes on with the next op
  kStages = 64,      // fold: others read it here; past the caches or not (staging_stores.h)
  kFetches = 128,    // fold: reads what others have stored so
};

struct Op {
  OpCode code = OpCode::end;
  std::uint8_t flags = 0;
  std::uint16_t operands = 0;
  std::uint16_t peer = 0;
  std::uint16_t round = 0;  // for reports: 1 + the schedule's round
  std::uint32_t value = 0;
  Memory memory = Memory::output;  // of the destination, this rank's
  std::uint16_t copies = 0;        // further destinations, among the operands behind the sources
  std::size_t offset = 0;          // of the destination, bytes
  std::size_t bytes = 0;
};
static_assert(sizeof(Op) == 32);

struct Operand {  // what an op reads, or a further place that it writes
  std::uint16_t rank = 0;
  Memory memory = Memory::input;
  std::uint32_t message = 0;  // Memory::message: its number in this call
  std::size_t offset = 0;
};
static_assert(sizeof(Operand) == 16);

// Traffic of one rank with one peer, so that counters go on across calls.
struct Traffic {
  std::uint16_t peer = 0;
  std::uint32_t sent = 0, received = 0;
};

struct RankPlan {
  std::vector<Op> ops;            // ends with OpCode::end
  std::vector<Operand> operands;  // in the order in which the ops use them
  std::vector<Traffic> traffic;   // mailbox transport; empty with direct
  std::size_t scratch_bytes = 0;
  // Of the users' buffers, to see whether ranks share them; 0 where nobody wants to know.
  std::size_t input_bytes = 0, output_bytes = 0;
};

struct Plan {
  Transport transport = Transport::direct;
  int ranks = 0;
  int rounds = 0;  // of the schedule
  // Whether no rank that gets anything can end a call before all that bring or get anything have
  // begun it; false where nobody wants to know.
  bool all_meet = false;
  bool stages = false;  // some op does (kStages)
  std::vector<RankPlan> rank;
  std::uint32_t span = 1;  // by how much a call advances the progress counters' base: 1 .. 2^29
  int most_operands = 0;   // of any op, its destinations included
  std::size_t element_bytes = 1;
  std::size_t row_bytes = 0;      // of rows that an epilogue finishes; 0: there is none
  int divisor = 0;                // avg: the number of ranks
  int ports = 0;                  // a rank's messages in flight per direction, at most; 0: any number
  ReduceKernel fold = nullptr;    // nullptr: nothing is reduced
  SpreadKernel spread = nullptr;  // the same to several places
  // Of sums that are added up in f32 and rounded to the users' type at the end: how, and bytes of
  // an element of that type. `element_bytes` is that of f32 then.
  Conversions conversions;
  std::size_t narrow_bytes = 0;
  Costs costs;                    // of moving bytes
  std::string algorithm;          // for reports
};

// Slots of mailboxes and halves of boards begin with a header of so many bytes (post.h); on a board
// data that fit behind it in its line stand there.
inline constexpr std::size_t kPostHeader = 16;

// Where the blocks of a schedule lie in the users' buffers.
//
// A block has one size and, at the ranks where it starts (Goal::starts), one offset in their input;
// at the ranks that need it (Goal::needs), one offset in their output. Neither depends on the rank.

struct BlockHome {
  std::size_t input = 0;   // bytes from the start of an input that holds the block
  std::size_t output = 0;  // bytes from the start of an output that holds it
  std::size_t bytes = 0;
};

struct Layout {
  std::size_t element_bytes = 1;
  HugeVector<BlockHome> blocks;  // one per block of the schedule
};

// Borders between the parts of one natural block: `plain` gives the first M mod B parts one element
// more (what users see and the model uses); `cache_lines` moves them to multiples of 64 bytes, so
// that no two ranks store into one line (two ranks on one line cost 15 to 25 %).
enum class Borders : unsigned char { plain, cache_lines };

// counts[i]: elements of natural block i (natural_blocks(collective, N) of them).
Layout make_layout(const Goal& goal, std::span<const std::size_t> counts, std::size_t element_bytes,
                   Borders borders);

// Bytes of the input and the output buffer of rank r.
std::size_t input_bytes(const Layout& layout, const Goal& goal, Rank r);
std::size_t output_bytes(const Layout& layout, const Goal& goal, Rank r);

}  // namespace rankine
