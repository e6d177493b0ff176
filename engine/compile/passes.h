// The passes of the compiler. On programs for the direct transport: four passes, so that fewer
// lines cross between cores: push() stores a sum at all its readers, copy_local_first() copies own
// data before the others read it, copy_then_reduce() makes the in-place form usable for separate
// buffers, and split_copies() splits a copy between reader and owner (direct_passes.cc); two for
// staged programs (staging.cc). On plans: finish_rows(), widen_and_narrow() and with_forms()
// (plan_passes.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/costs.h"
#include "engine/compile/program.h"
#include "engine/compile/ssa.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine {

// Reduce once, store to many. In a schedule such as two-shot, a rank adds up a block in one round
// and the others copy it in a later one. Memory that another core has just written is slow to read,
// and the copies cost a synchronisation. So if it is safe, the operation that makes the block also
// stores it at the others, and their copies only wait for it.
//
// Safe: each operation that touches the copy's destination before the copy is in a round before
// that of the storing operation (which then waits for it), or is the storing operation itself and
// reads exactly the bytes that it overwrites, or is an earlier operation of the storing rank. So
// every wait still points to an earlier round, and the program cannot deadlock.

// Faults for the tests of the tests: no_waits: the storing operation does not wait; no_care: it
// stores over bytes that are still needed.
enum class PushMutant : std::uint8_t { none, no_waits, no_care };

// For an all-reduce's program. Also for a reduce's program, with Buffers::in_place: it has one plan
// for both kinds of call, and the rules for in place hold for both. For other collectives `buffers`
// does not tell which bytes are one memory.
void push(DataflowProgram& program, Buffers buffers, PushMutant mutant = PushMutant::none,
          PlanningBudget* meter = nullptr);

// True if push() would consider copies of less than `bytes` bytes.
bool has_short_copies(const DataflowProgram& program, std::size_t bytes);

// Marks pieces of at least `from` bytes to be finished first and then copied (Operation::claims).
// For destinations in the others' caches, which the storing rank has not just read. Other
// operations with copies get no place in their rank's scratch if no operation reads their result
// there.
void claim_copies(DataflowProgram& program, std::size_t from = Costs{}.claim_copy_min_bytes);

// Read your own data before others take it. A cache line that one core has written moves to the
// core that reads it, and its writer has to fetch it back: if a rank adds its own vector to others'
// while they read its own, every line crosses twice (measured: two to three times the time). So
// each rank first copies its own data to the destination, before it even waits for the others, and
// then adds theirs. One part of the vector needs no copy: each rank begins with another part, which
// no other rank has reached yet.
//
//   rank 0 of 2:  copy upper half | lower half = own + other's | upper half += other's
//   rank 1 of 2:  copy lower half | upper half = own + other's | lower half += other's

// For an all-reduce's program, in ranges of at least `from` bytes: shorter ranges arrive at once,
// and further operations cost more than they save. For other collectives `buffers` does not tell
// which bytes are one memory. The order of additions stays, so results are equal to the last bit.
DataflowProgram copy_local_first(DataflowProgram program, Buffers buffers,
                                 std::size_t from = Costs{}.copy_local_first_min_bytes,
                                 PlanningBudget* meter = nullptr);

// Separate buffers as in place. In place, the rank that adds a block up stores the sum over the
// data that it has just read: at each other rank the lines cross once to be added, are taken over,
// and cross once more to be read. With separate buffers, either the sums are stored in outputs that
// the others' caches hold, and every line crosses a third time, or each rank fetches them, after
// one more wait. So each rank first copies to its output the part of its input that others read,
// which costs one pass over its memory, and the rest runs as in place:
//
//   rank 0 of 2:  copy lower half | upper half: own input + other's output, stored at both outputs
//   rank 1 of 2:  copy upper half | lower half: own input + other's output, stored at both outputs
//
// (Measured: at 4 and 8 ranks on two cores, 0.6 of the time of storing to separate outputs, 0.8 of
// fetching.)

// Converts an all-reduce's program for buffers in place into one for separate buffers. Results are
// equal to the last bit.
DataflowProgram copy_then_reduce(DataflowProgram program, PlanningBudget* meter = nullptr);

// Both ends copy. In shared memory either end of a message can move it. The reader does, unless
// that leaves its owner idle: the root of a broadcast, the senders of a gather. Then the owner
// stores a part of the message at the reader, while the reader fetches the rest, split so that both
// end together:
//
//   rank 0, the root:  store first half at rank 1
//   rank 1:            fetch second half
//
// (Measured, a broadcast between two ranks, 1 MiB: 15 us, and 24 us if the reader fetches all.)
// Results that no cache can hold are stored by their owners even if these have as much to fetch:
// storing own data past the caches takes 0.5 to 0.8 of the time of fetching them from a far core's.

struct ShareOptions {
  std::size_t from = Costs{}.split_copies_min_bytes;  // bytes that are worth one more wait
  // maximum per owner: more readers are much faster than the owner
  std::size_t readers = Costs{}.split_copies_max_readers;
  bool all = false;      // owners store all data
  bool streams = false;  // the results exceed the caches
  std::size_t stream_from = Costs{}.stream_min_bytes;
  PlanningBudget* meter = nullptr;  // counts the steps of planning
};

// For programs in which all operations fetch inputs to places without earlier data, and every
// reader has an owner that helps; any other program is returned unchanged. Stores wait only for
// entries, so nothing can deadlock; and no rank leaves a call while others use its memory, so
// readers find the stored data.
DataflowProgram split_copies(DataflowProgram program, const ShareOptions& options = {});

// Two passes change programs in which peers reach only scratch, for the direct transport: stage()
// cuts staged operations into pieces, stored past the caches if that is faster, and in_turns() runs
// a large call as a series of smaller ones in little scratch.
//
// Past the caches. A rank that stores to scratch for others first fetches the lines from their
// caches to overwrite them; then the others fetch the lines from its cache. Stores past the caches
// do neither: the data go to memory and come from there, which takes less time than a line's way
// between far cores' caches, and about as long as that between near ones.
//
// In pieces. An operation is cut, so that its readers begin with the first piece while the next one
// is made; and the operation that shows a result follows piece by piece, while the cache holds its
// source.
//
//   rank 0:  stage 0 | enter | stage 1 | add 0, show 0 | add 1, show 1 | copy 0 | copy 1
//
// With LowerOptions::staged_first, a rank enters when it has staged its first piece.

// Faults for the tests of the tests: a piece waits only for the first piece of its source.
enum class StageMutant : std::uint8_t { none, first_pieces };

struct StageOptions {
  std::size_t stream =
      Costs{}.stage_stream_min_bytes;  // smallest operation, bytes, for which it pays
  std::size_t piece = Costs{}.stage_piece_max_bytes;  // bytes
  std::size_t element_bytes = 1;                      // pieces end at element borders
  StageMutant mutant = StageMutant::none;
  PlanningBudget* meter = nullptr;  // counts the steps of planning
};

// For a program made with ProgramOptions::staged. Cuts every operation, so that a piece waits only
// for pieces; rounds, places and the order of additions stay, and results are equal to the last
// bit.
DataflowProgram stage(const DataflowProgram& program, const StageOptions& options = {});

// Turns split a staged call that is larger than the scratch it is worth.
//
// A turn is the call on a part of every block, in all rounds; the next turn takes the next part.
// Scratch has room for two turns: a turn's staged data are written while others may still read
// those of the turn before, and a rank that overwrites a place has waited for all readers of its
// data from two turns ago. So scratch does not grow with the call, and its data are still in the
// caches when they are read. A turn stages before the last round of the turn before, so that no
// rank waits for the staging.
//
//   rank 0:  stage 0 | add 0, show 0 | stage 1 | copy 0 | add 1, show 1 | stage 2 over 0 | ...
//
// The contributions to a block and their order stay, and so do results, to the last bit.

// Faults for the tests of the tests: a rank overwrites a place without waiting.
enum class TurnMutant : std::uint8_t { none, no_waits };

struct TurnOptions {
  std::size_t scratch = Costs{}.stage_turn_max_bytes;  // bytes that a turn may take at a rank
  std::size_t part = Costs{}.stage_piece_max_bytes;    // bytes of a block that are worth a turn
  TurnMutant mutant = TurnMutant::none;
};

// `whole`: the program that make_program() makes from the other arguments, staged. It is returned
// unchanged if turns would not reduce its scratch, or if turns are not safe: in place, if inputs of
// blocks lie under outputs of other blocks that begin elsewhere.
DataflowProgram in_turns(DataflowProgram whole, const Schedule& schedule,
                         const CollectiveSpec& goal, const Layout& layout, Buffers buffers,
                         const ProgramOptions& program, const TurnOptions& options = {});

// Passes change plans: finish_rows() adds an epilogue's ops (engine/run/user_functions.h),
// widen_and_narrow() converts the data of a plan that moves f32, await_readers() keeps scratch for
// readers of earlier calls, and with_forms() joins plans.

// Rows of results that an epilogue finishes. The last op that writes a part of a row of its rank's
// output is followed by OpCode::finish for the row. Data that others store there count as written
// by the op that waits for them (Operation::pushed). Rows that no op of their rank writes (they lie
// there in place, or others have stored them without a wait) are finished before the rank's end,
// when no other rank uses its memory any more. Large ops that finish rows and have no waiters are
// cut at borders of rows, so that a piece is still in the cache when its rows are finished; after
// other ops, rows are finished from the last one back. The rest of a plan stays unchanged, and so
// do the results' bits.

// For a plan that still has the ops that only wait (LowerOptions::keeps_waits); this pass removes
// them. output_bytes: per rank, a multiple of row_bytes. Pieces have at least `piece` bytes
// (Costs::sum_part_bytes).
void finish_rows(Plan& plan, std::span<const std::size_t> output_bytes, std::size_t row_bytes,
                 std::size_t piece, PlanningBudget* meter = nullptr);

// Sums of floats of 16 and 8 bits that a schedule adds up in several folds: the schedule moves f32.
//
// One fold adds up in f32 and rounds once. Several folds would round each partial sum. So the plan
// is made for f32: each rank widens its input into its scratch, the schedule runs there, and each
// rank narrows its result into its output. A message has two or four times the bytes, and the
// result's bits are those of f32 rounded once, with every algorithm, transport and network.

// True if results of this operation are computed in f32 and rounded once.
constexpr bool adds_up_in_f32(DataType type, ReduceOp op) {
  return is_float(type) && type != DataType::f32 && type != DataType::f64 && rounds(type, op);
}

// Moves the buffers of a plan for f32 into the scratch, widens before the first op and narrows
// after the last one. `users`: the layout of the call's buffers; `moved`: the layout of the data
// that the plan moves. The plan must still have the ops that wait for others' stores.
void widen_and_narrow(Plan& plan, const CollectiveSpec& goal, DataType type, const Layout& users,
                      const Layout& moved);

// For ranks whose earlier calls may have run ahead (CompileRequest::ahead_max_bytes): they wait for
// the readers of those before they enter or store in their scratch.
void await_readers(Plan& plan);

// The form of a plan; a plan that stages has Form::stages.
Form form_of(const Plan& plan);
// One plan for several plans of a call with equal results, bit by bit, in different forms: ranks
// choose by trials (engine/run/form_trials.h), which begin with the first plan. Staged data go past
// the caches in Form::stages and through them in Form::posts, and no call compares the ways
// (staging_stores.h). At most one form uses mailboxes.
struct FormPlan {
  Form form = Form::posts;  // all of a call have different ones
  Plan plan;
};
Plan with_forms(std::vector<FormPlan> plans, std::size_t trial_class, std::size_t bytes);

}  // namespace rankine
