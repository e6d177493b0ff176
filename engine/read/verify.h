// verify() proves symbolically that a schedule achieves its collective's result, for any N.
//
// It executes the schedule round by round as the language defines it (all reads of a round before
// its writes), over sets of contributions instead of data: the place (rank, plane, block) holds the
// set of ranks that have contributed to the block's sum there. It proves:
//
//   - result: every rank that needs a block ends with it on plane 0, made of the contribution of
//     every rank where the block started, each exactly once (CollectiveSpec in collective.h)
//   - reading: every place that is read holds a value
//   - adding: no contribution is added twice; a collective that is_idempotent() may receive a rank
//     again, but every reduction must bring a new contribution
//   - writing: in one round a place gets either one copy, or any number of reductions
//   - economy: no copy brings only what the place has, and every arrival is sent on, or needed at
//     the end: no transfer could be left out. Doubling a transfer is therefore an error, in any
//     round, and so is a transfer that is overwritten unread
//   - form: ranks, blocks and planes are in range; a transfer has at least one block, and equal
//     lists of blocks in `what` and `where` (only the plane may differ); a copy has one sender
//   - same bits: if the goal of an all-reduce asks for it, every rank's result is added up in equal
//     brackets and order (schedule.h defines the order within a round)
//   - progress: with mailboxes of bounded capacity between every two ranks, no rank waits forever
//
// Cyclic intervals of ranks, which nearly all sets are, take eight bytes; others are bit sets, each
// kept once. Neighbouring blocks with equal histories are handled together in large tables
// (cells.h), so time and memory grow with the messages and not with their contents. If every rank
// does the same work (rotation_symmetric.h), one rank's part is proved, which proves all, rotated;
// violations are described from rank 0's view. Transfers from a rank to itself are local work: they
// obey the rules above, and take no mailbox.
//
// A pure function, safe to call from several threads at once. It throws std::bad_alloc only; errors
// of a schedule are returned as values. Exceptions of the schedule pass through.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/read/contributions.h"

namespace rankine {

enum class ViolationKind : unsigned char {
  bad_shape,     // schedule and goal disagree in ranks or blocks, or phases in rounds
  too_large,     // more states than VerifyOptions::max_states: unproved
  bad_index,     // a rank, block or plane that does not exist
  bad_sizes,     // no sender, no receiver or no block; `where` and `what` of different length
  other_block,   // delivers a block to another block's place
  many_to_copy,  // a copy with several senders
  not_there,     // reads an empty place
  double_count,  // adds a contribution that is in the sum already
  two_copies,    // two copies into one place in one round
  mixed_acts,    // a copy and a reduction into one place in one round
  redundant,     // brings only contributions that are there already
  dead,          // an arrival is overwritten or left over unused
  wrong_result,  // a needed block ends without some contribution
  other_order,   // ranks end with equal sums, added up in different ways
  deadlock,      // ranks wait for one another forever
};
inline constexpr int kViolationKinds = 15;

std::string_view name_of(ViolationKind kind);  // "double_count"

// An error, at the first place where it shows. Fields that do not apply are -1.
struct Violation {
  ViolationKind kind = ViolationKind::bad_shape;
  int round = -1;
  Rank rank = -1;  // the rank with the wrong place or program
  Block block = -1;
  std::string text;  // describes it in full: "round 3, rank 2, block 5: ..."
};

struct VerifyOptions {
  bool progress = true;      // look for deadlocks
  int mailbox_capacity = 8;  // messages that fit between a sender and a receiver, at least 1
  MessageOrder order = MessageOrder::sub_rounds;
  bool economy = true;  // false: redundant and dead transfers are accepted
  // The greatest number of values of places: counted one by one in small tables, and by stretches
  // of equal neighbours in large ones.
  std::int64_t max_states = std::int64_t{1} << 28;
  bool one_for_all = true;  // prove one rank's part if every rank does the same work
};

// The first violation, or nullopt: the schedule is proved.
std::optional<Violation> verify(const Schedule& schedule, const CollectiveSpec& goal,
                                const VerifyOptions& options = {});

}  // namespace rankine
