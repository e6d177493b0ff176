// What the size of gradient buckets costs: many equal tensors, summed up a bucket at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/tools/table.h"

namespace rankine::tools {

struct BucketQuestion {
  const Algorithm* algorithm = nullptr;  // of all_reduce
  Fabric fabric{};                       // wired for these ranks
  int ranks = 8;
  std::uint64_t tensors = 1000, tensor_bytes = 1'000'000;  // at least one of each
  std::uint64_t bucket = 25'000'000;  // a size to be among those tried; PyTorch's
  // Seconds of the pass that makes the tensors one after the other; 0: all of them are there.
  double backward = 0;

  std::uint64_t all_bytes() const { return tensors * tensor_bytes; }
};

struct BucketRow {
  std::uint64_t tensors = 0, bytes = 0, calls = 0;  // of a bucket
  double each = 0;                                  // seconds of a bucket, by the simulator
  double last = 0;                                  // of the last one, which may not be full
  std::optional<double> formula{};                  // the same by the catalogue's closed forms
  double exposed = 0;                               // seconds that the pass does not cover
  std::optional<double> played{};                   // of all of them, by ranks on threads

  double all() const { return static_cast<double>(calls - 1) * each + last; }
};

// Buckets of one tensor, two, four ... all of them, and `bucket`, ascending. A pure function.
// Errors: invalid_argument where the algorithm has no schedule for so many ranks.
Result<std::vector<BucketRow>> bucket_rows(const BucketQuestion& question);

// The row that keeps least waiting, the smallest of several. Requires one.
std::size_t best_bucket(const std::vector<BucketRow>& rows);

// Into how many calls to divide all tensors where communication takes longer than the pass; none
// where no closed form says it, or nothing hides.
std::optional<double> best_calls(const BucketQuestion& question);

// The rows for people and programs; what the pass does not cover only where something `hides`.
// Requires a row.
Table bucket_table(const std::vector<BucketRow>& rows, bool hides);

}  // namespace rankine::tools
