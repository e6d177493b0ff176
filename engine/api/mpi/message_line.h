// What messages cost by their length, as a line: alpha seconds, and beta for every byte.
#pragma once

#include <cstddef>
#include <span>

#include "engine/base/status.h"
#include "engine/network/fabric.h"

namespace rankine {

struct TimedMessage {
  std::size_t bytes = 0;
  double seconds = 0;  // one way; of several the median
};

// Through the first, which is the shortest and whose time alpha is, and as steep as the median of
// the lines from there to each of the others: one that was held up changes nothing. Requires two,
// and that the others are longer than the first. Errors: an alpha or a beta that is not above 0,
// where a machine that does other things lets long messages take no longer than short ones, or is
// above kMostSeconds (machine_model.h); the text says all the times.
Result<Link> line_through(std::span<const TimedMessage> messages);

}  // namespace rankine
