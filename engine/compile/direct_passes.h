// Four passes change programs for the direct transport, so that fewer lines cross between cores:
// push() stores a sum at all its readers, copy_local_first() copies own data before the others read
// it, copy_then_reduce() makes the in-place form usable for separate buffers, and split_copies()
// splits a copy between reader and owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compile/program.h"

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
// For destinations in the others' caches, which the storing rank has not just read.
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
  bool streams = false;  // the results exceed the caches
  std::size_t stream_from = Costs{}.stream_min_bytes;
  PlanningBudget* meter = nullptr;  // counts the steps of planning
};

// For programs in which all operations fetch inputs to places without earlier data, and every
// reader has an owner that helps; any other program is returned unchanged. Stores wait only for
// entries, so nothing can deadlock; and no rank leaves a call while others use its memory, so
// readers find the stored data.
DataflowProgram split_copies(DataflowProgram program, const ShareOptions& options = {});

}  // namespace rankine
