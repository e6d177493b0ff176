// What a schedule means, executed literally on plain memory: every transfer of a round reads what
// was there when the round began. No versions, no places, no kernels: nothing of the code under
// test.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine {

// A stretch of a rank's memory that holds its input and its output, wherever they lie in it.
struct Image {
  std::vector<std::byte> bytes;
  std::size_t input = 0, output = 0;  // offsets
};

// What `before` becomes: in each rank's output every block that it needs and that the schedule
// brings there (or that started there), everything else untouched. A reduction folds its sources in
// the order stated, the rank's own block first; avg divides where the last contribution arrives.
std::vector<Image> execute_literally(const Schedule& schedule, const Goal& goal,
                                     const Layout& layout, DataType type, ReduceOp op,
                                     std::vector<Image> before);

}  // namespace rankine
