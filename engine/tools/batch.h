// simulate's batch: requests as lines of JSON, answered in their order.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>

namespace rankine::tools {

// One request of a batch, answered as one line of JSON without its end: the request's own members,
// then the result's; for a request that cannot be answered, its members, `line` (`number`, from 1)
// and `error`. rankine simulate --help lists all members.
struct BatchAnswer {
  std::string line;
  bool ok = false;
};
BatchAnswer answer_request(std::string_view line, std::size_t number);

// One answer per line of `in` that is not blank, in their order, on all cores; each is flushed as
// soon as it and those before it are known, and none waits for lines that have not come yet.
// Returns how many are errors. Throws what the streams throw.
std::size_t answer_batch(std::istream& in, std::ostream& out);

}  // namespace rankine::tools
