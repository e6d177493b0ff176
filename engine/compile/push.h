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

}  // namespace rankine
