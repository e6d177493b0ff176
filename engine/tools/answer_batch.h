// Questions to the model, lines of JSON, answered on all cores.
#pragma once

#include <cstddef>
#include <iosfwd>

namespace rankine::tools {

// One answer per line of `in` that is not blank, in their order, on all cores; each is flushed as
// soon as it and those before it are known, and none waits for lines that have not come yet.
// Returns how many are errors. Throws what the streams throw.
std::size_t answer_batch(std::istream& in, std::ostream& out);

}  // namespace rankine::tools
