// Random collective calls of all kinds, numbers from the environment, and an epilogue that checks
// its rows (Witness).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/numbers.h"
#include "engine/faults/collective_case.h"
#include "engine/run/user_functions.h"

namespace rankine {

inline std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Returns the case for this seed, equal on every rank.
inline CollectiveCase random_case(std::uint64_t seed, int ranks) {
  std::uint64_t state = seed;
  const auto below = [&state](std::uint64_t n) { return splitmix(state += kSplitMixStep) % n; };
  CollectiveCase test;
  test.collective = all_collectives()[below(kCollectives)];
  if (test.collective == Collective::barrier) test.collective = Collective::all_reduce;
  test.ranks = ranks;
  // Mostly few sizes, so that plans recur; sometimes any size.
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
    const Algorithm& entry = catalogue()[below(catalogue().size())];
    Params params{.ranks = ranks};
    if (entry.collective == test.collective && !entry.refusal(params)) {
      test.options.algorithm = entry.name;
    }
  }
  test.displaced = below(2) == 0;
  return test;
}

// An epilogue that copies its rows. A row that was not final then differs from the output after the
// call.

class Witness {
 public:
  Witness(std::size_t rows, std::size_t row_elements, std::size_t element_bytes)
      : epilogue{see, this, row_elements},
        row_bytes_(row_elements * element_bytes),
        seen_(rows * row_bytes_),
        times_(rows) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;

  const Epilogue epilogue;

  // True if all rows equal the rows of the output.
  bool saw(const void* out) const {
    return seen_.empty() || std::memcmp(seen_.data(), out, seen_.size()) == 0;
  }
  bool saw_each(int times) const {
    return std::all_of(times_.begin(), times_.end(), [times](int n) { return n == times; });
  }
  bool saw_each_once() const { return saw_each(1); }

 private:
  static void see(const void* rows, std::size_t first, std::size_t count, void* context) {
    Witness& me = *static_cast<Witness*>(context);
    std::memcpy(me.seen_.data() + first * me.row_bytes_, rows, count * me.row_bytes_);
    for (std::size_t i = 0; i < count; ++i) ++me.times_[first + i];
  }

  const std::size_t row_bytes_;
  std::vector<std::byte> seen_;
  std::vector<int> times_;  // by row
};

}  // namespace rankine
