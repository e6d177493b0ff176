// What ranks stage for one another, made fast: a pass over programs in which peers reach scratch
// only, for the direct transport.
//
// Past the caches. A rank that stores to scratch what others read fetches lines from their caches,
// in order to overwrite them; then the others fetch them from its own. Stores past the caches do
// neither: data go to memory, and come from there, which takes less than a line's way from one far
// core's cache to another, and about as long as that from a near one's.
//
// In pieces. An operation is cut, so that its readers begin with the first piece while the next one
// is made; and what shows a result follows piece by piece, while the cache holds what it reads.
//
//   rank 0:  stage 0 | enter | stage 1 | add 0, show 0 | add 1, show 1 | copy 0 | copy 1
//
// With LowerOptions::staged_first, a rank enters when it has staged its first piece.
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/costs.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"

namespace rankine {

// Faults for the tests of the tests: a piece waits for the first piece of what it reads alone.
enum class StageMutant : std::uint8_t { none, first_pieces };

struct StageOptions {
  std::size_t stream = Costs{}.stage_stream;  // bytes of an operation from which it pays
  std::size_t piece = Costs{}.stage_piece;    // bytes
  std::size_t element_bytes = 1;              // no piece ends inside one
  StageMutant mutant = StageMutant::none;
  PlanMeter* meter = nullptr;  // what the making is counted on
};

// Of a program made with ProgramOptions::staged. Every operation is cut, so that a piece waits for
// pieces alone; rounds, places and the order of additions stay, and results are the same to the
// last bit.
Program stage(const Program& program, const StageOptions& options = {});

// Staged calls that are larger than the scratch they are worth, in turns: a pass over programs in
// which peers reach scratch only.
//
// A turn is the call of a part of every block, in all rounds; the next one follows, of the next
// part. Scratch has room for two turns: what one stages is written while others may still read of
// the one before, and who writes to a place again has waited for all who read what was there two
// turns ago. So scratch does not grow with the call, and what it holds is in the caches still when
// it is read. A turn stages before the last round of the one before it, so that nobody waits for
// it.
//
//   rank 0:  stage 0 | add 0, show 0 | stage 1 | copy 0 | add 1, show 1 | stage 2 where 0 was | ...
//
// Which contributions a block is made of, and in which order, stays as it is: so do results, to the
// last bit.

// Faults for the tests of the tests: who writes to a place again waits for nobody.
enum class TurnMutant : std::uint8_t { none, no_waits };

struct TurnOptions {
  std::size_t scratch = Costs{}.stage_turn;  // bytes that a turn may take at a rank
  std::size_t part = Costs{}.stage_piece;    // bytes of a block that are worth a turn
  TurnMutant mutant = TurnMutant::none;
};

// `whole`: what make_program() makes of all the rest, staged. Returned as it is where turns would
// not make its scratch less; and where they are not safe: in place, where blocks' inputs lie under
// outputs of others that begin elsewhere.
Program in_turns(Program whole, const Schedule& schedule, const Goal& goal, const Layout& layout,
                 Buffers buffers, const ProgramOptions& program, const TurnOptions& options = {});

}  // namespace rankine
