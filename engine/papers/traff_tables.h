// Traff's paper on reduce-scatter, theorem by theorem: for each number of processors of a range,
// the stated value and the value of the circulant schedule.
//   p processors    m the size of the vector    s skips    q = ceil(log2 p)
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/profiles.h"

namespace rankine::reproduce {

// One comparison for a number of processors; there may be several, for sizes of blocks or skips.
struct TraffCase {
  bool agrees = false;
  std::string stated, found;  // "22 processors: 5 rounds"
};

struct TraffStatement {
  std::string_view id;  // never changes
  std::string_view where;
  std::string_view text;
  std::vector<int> (*processors)();
  std::vector<TraffCase> (*cases)(int p);
  std::string_view why{};  // the reason of a difference, if known, for readers
};
std::span<const TraffStatement> traff_statements();

struct TraffOutcome {
  const TraffStatement* statement = nullptr;
  std::size_t cases = 0, agreeing = 0;
  TraffCase shown;         // the first disagreeing case, or else the last one
  std::string processors;  // "1..256, 257, 384, ... 1024"

  bool agrees() const { return agreeing == cases; }
};

// The outcomes of all statements, computed on all cores.
std::vector<TraffOutcome> traff_outcomes(const ProgressReport& progress = {});

// "holds", "does not hold in 3 of 100 cases"
std::string verdict_text(const TraffOutcome& outcome);

}  // namespace rankine::reproduce
