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
#pragma once

#include <cstddef>
#include <cstdint>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/base/costs.h"
#include "engine/compile/program.h"
#include "engine/run/plan.h"

namespace rankine {

// Faults for the tests of the tests: a piece waits only for the first piece of its source.
enum class StageMutant : std::uint8_t { none, first_pieces };

struct StageOptions {
  std::size_t stream =
      Costs{}.stage_stream_min_bytes;  // smallest operation, bytes, for which it pays
  std::size_t piece = Costs{}.stage_piece_max_bytes;  // bytes
  std::size_t element_bytes = 1;              // pieces end at element borders
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

}  // namespace rankine
