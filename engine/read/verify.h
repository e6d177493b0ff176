// The symbolic verifier: proves that a schedule does what its collective asks, for any N.
//
// It executes the schedule round by round as the language defines it (all reads of a round before
// its writes), over sets of contributions in the place of data: the place (rank, plane, block)
// holds the set of ranks whose contributions to the block have been added up there. What it proves:
//
//   - result    every rank that needs a block ends with it on plane 0, made of the contribution of
//               every rank where the block started, each exactly once (Goal in collective.h)
//   - reading   nothing is read that is not there
//   - adding    nothing is added twice; a collective that is_idempotent() may hear a rank again,
//   but
//               every reduction must bring something new
//   - writing   in one round a place gets either one copy, or any number of reductions
//   - economy   no copy brings what is there already, and whatever arrives is sent on, or needed at
//               the end: no transfer could be left out. Doubling a transfer is therefore an error,
//               in whichever round, and so is a transfer whose value is overwritten unread
//   - form      ranks, blocks and planes in range; one block or more, as many in `where` as in
//   `what`
//               and the same ones (only the plane may differ); a copy has one sender
//   - same bits in an all-reduce whose goal asks for it, every rank's result is added up in the
//   same
//               brackets and the same order (schedule.h says in which order a round adds)
//   - progress  with mailboxes of bounded capacity between every two ranks, nobody waits for ever
//
// Sets that are cyclic intervals of ranks, which is nearly all of them, take eight bytes; others
// are bit sets, each kept once. Neighbouring blocks to which the same happens are looked at
// together where there are many (cells.h), so time and memory grow with the messages and not with
// what is in them. Where everyone does the same (everyone.h) one rank's part is proved: what holds
// of it holds of all, turned, and violations are told as rank 0 sees them. Transfers from a rank to
// itself are local work: they obey the same rules, and take no mailbox.
//
// A pure function, to be called from any number of threads at once. Throws std::bad_alloc only;
// whatever is wrong with a schedule is the value that it returns. What the schedule itself throws
// passes through.
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
  too_large,     // more states than VerifyOptions::max_states: nothing was proved
  bad_index,     // a rank, block or plane that does not exist
  bad_sizes,     // no sender, no receiver or no block; not as many blocks in `where` as in `what`
  other_block,   // delivers a block to the place of another one
  many_to_copy,  // a copy with several senders
  not_there,     // reads a place that holds nothing
  double_count,  // adds a contribution that the sum has already
  two_copies,    // two copies into one place in one round
  mixed_acts,    // a copy and a reduction into one place in one round
  redundant,     // brings only what is there already
  dead,          // arrives, and is overwritten or left over without having been used
  wrong_result,  // a needed block ends without some contribution
  other_order,   // ranks end with sums of the same, added up in different ways
  deadlock,      // ranks wait for one another for ever
};
inline constexpr int kViolationKinds = 15;

std::string_view name_of(ViolationKind kind);  // "double_count"

// What is wrong, at the first place where it shows. Fields that do not apply are -1.
struct Violation {
  ViolationKind kind = ViolationKind::bad_shape;
  int round = -1;
  Rank rank = -1;  // whose place or program is wrong
  Block block = -1;
  std::string text;  // names all of it: "round 3, rank 2, block 5: ..."
};

struct VerifyOptions {
  bool progress = true;      // whether to look for deadlocks at all
  int mailbox_capacity = 8;  // messages that fit between a sender and a receiver, at least 1
  MessageOrder order = MessageOrder::sub_rounds;
  bool economy = true;  // false: redundant and dead transfers are accepted
  // What places hold: each by itself where they are few, neighbours that hold the same at once.
  std::int64_t max_states = std::int64_t{1} << 28;
  bool one_for_all = true;  // one rank's part is proved where everyone does the same
};

// The first violation, or nullopt: the schedule is proved.
std::optional<Violation> verify(const Schedule& schedule, const Goal& goal,
                                const VerifyOptions& options = {});

}  // namespace rankine
