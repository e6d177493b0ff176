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

#include "engine/compile/program.h"

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

}  // namespace rankine
