// Random collective calls of all kinds, and the numbers that the environment may give to tests.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "algorithms/catalogue.h"
#include "engine/base/numbers.h"
#include "engine/faults/collective_case.h"

namespace rankine {

inline std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// The same on every rank.
inline CollectiveCase random_case(std::uint64_t seed, int ranks) {
  std::uint64_t state = seed;
  const auto below = [&state](std::uint64_t n) { return splitmix(state += kSplitMixStep) % n; };
  CollectiveCase test;
  test.collective = all_collectives()[below(kCollectives)];
  if (test.collective == Collective::barrier) test.collective = Collective::all_reduce;
  test.ranks = ranks;
  // Few sizes, so that plans are met again, and now and then any.
  constexpr std::size_t kSizes[] = {0, 1, 2, 7, 30, 64, 100};
  test.count = below(30) == 0 ? below(5000) : kSizes[below(std::size(kSizes))];
  if (test.collective == Collective::all_to_all) test.count %= 200;
  test.type = static_cast<DataType>(below(kDataTypes));
  do {
    test.op = static_cast<ReduceOp>(below(kReduceOps));
  } while (!takes(test.collective, test.type, test.op));
  test.root = static_cast<Rank>(below(static_cast<std::uint64_t>(ranks)));
  test.peer = static_cast<Rank>(below(static_cast<std::uint64_t>(ranks)));
  test.in_place = below(2) == 0;
  test.skew = below(3) == 0 ? below(61) : 0;
  test.seed = seed;
  if (below(4) == 0)
    test.options.transport = below(2) == 0 ? Transport::direct : Transport::mailbox;
  if (below(4) == 0) {
    const Algorithm& line = catalogue()[below(catalogue().size())];
    Params params;
    params.ranks = ranks;
    if (line.collective == test.collective && !line.refusal(params)) {
      test.options.algorithm = line.name;
    }
  }
  test.displaced = below(2) == 0;
  return test;
}

}  // namespace rankine
