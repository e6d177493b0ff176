// Reduce once, store to many: a pass over programs for the direct transport.
//
// In a schedule such as two-shot, a rank adds up a block in one round and the others copy it in a
// later one. Memory that another core has just written is dear to read, and the copies cost a
// synchronisation; so where it is safe, the operation that makes the block stores it at the others
// as well, and their copies have nothing left to do but to wait for it.
//
// Safe: everything that touches the copy's destination before the copy does so in a round before
// that of the storing operation (which then waits for it), or is the storing operation itself,
// reading exactly what it overwrites, or is its own rank's and comes before. So every wait still
// points to an earlier round, and the program cannot deadlock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/compile/program.h"

namespace rankine {

// Faults for the tests of the tests: the storing operation waits for nobody, or stores what
// somebody may still need.
enum class PushMutant : std::uint8_t { none, no_waits, no_care };

// Of an all-reduce's program. Of a reduce's, which is planned alike for both ways of calling it,
// with Buffers::in_place, whose rules hold for both; for other collectives `buffers` does not say
// what lies in one memory.
void push(Program& program, Buffers buffers, PushMutant mutant = PushMutant::none,
          PlanMeter* meter = nullptr);

// Whether that looks at copies of less than so many bytes.
bool has_short_copies(const Program& program, std::size_t bytes);

// Where the others' caches hold what is overwritten there, since nobody has read it before: pieces
// of at least `from` bytes are finished first and then copied (Operation::claims).
void claim_copies(Program& program, std::size_t from = Costs{}.claim);

// Read your own before others take it: a pass over programs for the direct transport.
//
// A cache line that one core has written moves to the core that reads it, and its writer has to
// fetch it back: where a rank adds its own vector to others' while they read its own, every line
// crosses twice (measured: twice to three times the time). So each rank first copies its own to the
// destination, before it even waits for the others, and then adds theirs. One part of the vector
// needs no copy: each rank begins with another part, which nobody else has come to yet.
//
//   rank 0 of 2:  copy upper half | lower half = own + other's | upper half += other's
//   rank 1 of 2:  copy lower half | upper half = own + other's | lower half += other's

// Of an all-reduce's program, in ranges of at least `from` bytes: what is shorter is there at once,
// and further operations cost more than they save. For the others `buffers` does not say what lies
// in one memory. The order of additions stays, so results are the same to the last bit.
Program own_first(Program program, Buffers buffers, std::size_t from = Costs{}.own_first,
                  PlanMeter* meter = nullptr);

// Apart as in place: a pass over programs for the direct transport.
//
// In place, whoever adds a block up stores the sum where it has just read: at each of the others
// the lines cross once to be added, are taken over, and cross once more to be read. Apart, either
// the sums are stored at outputs that the others' caches hold, and every line crosses a third time,
// or each rank fetches them, after one more wait. So each rank first copies to its output what
// others want of its input, which costs one pass over memory of its own, and the others go on as in
// place:
//
//   rank 0 of 2:  copy lower half | upper half: own input + other's output, stored at both outputs
//   rank 1 of 2:  copy upper half | lower half: own input + other's output, stored at both outputs
//
// (Measured: at 4 and 8 ranks on two cores 0.6 of the time of storing apart, 0.8 of fetching.)

// Of an all-reduce's program made for buffers in place: the same for buffers apart. Results are the
// same to the last bit.
Program copy_first(Program program, PlanMeter* meter = nullptr);

// Both ends copy: a pass over programs for the direct transport.
//
// In shared memory either end of a message can move it. The reader does, unless that leaves its
// owner idle: the root of a broadcast, the senders of a gather. Then the owner stores a part of the
// message where it is wanted, while the reader fetches the rest, in as much time as makes both end
// together:
//
//   rank 0, the root:  store first half at rank 1
//   rank 1:            fetch second half
//
// (Measured, a broadcast between two ranks, 1 MiB: 15 us, 24 us if all is fetched.) Results that no
// cache can hold are stored by their owners even if these have as much to fetch: storing past the
// caches what one has takes 0.5 to 0.8 of the time of fetching it from a far core's.

struct ShareOptions {
  std::size_t from = Costs{}.share_copies;      // bytes that are worth a wait more
  std::size_t readers = Costs{}.share_readers;  // of one owner: more are faster than it by far
  bool streams = false;                         // the results are more than the caches hold
  std::size_t stream_from = Costs{}.stream;
  PlanMeter* meter = nullptr;  // what the making is counted on
};

// Where all that happens is that inputs are fetched, to places where nothing was before, and every
// reader has an owner that helps; any other program stays as it is. Stores wait for entries alone,
// so nothing can deadlock; and no rank leaves a call while others use its memory, so readers find
// what was stored.
Program share_copies(Program program, const ShareOptions& options = {});

}  // namespace rankine
