// The sweep: the whole catalogue, every N, verified and compared with what its lines state.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/read/verify.h"

namespace rankine {

struct SweepOptions {
  int ranks_from = 1, ranks_to = 64;             // N, both included
  std::optional<Collective> collective;          // only this one
  std::string algorithm;                         // only lines of this name; empty: all
  std::vector<int> segments = {1, 2, 3};         // of algorithms that take segments
  std::vector<int> groups = {0, 2, 3, 4};        // of algorithms that take group
  std::vector<int> aggregations = {0, 1, 2, 4};  // of algorithms that take aggregation
  std::vector<int> dimensions = {1, 2, 3};  // of those that take dims: the most even torus of each
  std::vector<int> dims;                    // only this torus, where not empty
  // Of algorithms that take skips: names of schemes, and lists (skips.h).
  std::vector<std::string> skips = {"halving", "powers_of_two", "linear", "square_root",
                                    "halving_near"};
  // Of algorithms that take levels, where N allows them; empty: the default.
  std::vector<std::vector<int>> levels = {{}, {2}, {3}, {2, 4}, {3, 12}, {2, 4, 16}};
  int all_roots_up_to = 9;  // up to this N every root is tried (and for send_recv every peer);
                            // beyond, roots 0, N / 2 and N - 1
  int threads = 0;          // at most as many as there are cores; 0: all
  VerifyOptions verify;
};

// One case and what came of it.
struct SweepResult {
  const Algorithm* algorithm = nullptr;
  Params params;
  std::string failure;  // empty: proved, and the catalogue's line is right
  int rounds = 0;       // derived
  bool ok() const { return failure.empty(); }
  std::string name() const;  // "all_reduce ring N=8", "broadcast chain N=8 root=3 P=2"
};

// Called with the number of cases done and of all; from any thread, one call at a time.
using SweepProgress = std::function<void(std::size_t done, std::size_t all)>;

// The cases that the options ask for, without those that an algorithm refuses. Catalogue order,
// then N, root, peer, segments, group, aggregation, dims, skips and levels. Texts that read_skips()
// cannot read throw std::invalid_argument.
std::vector<SweepResult> sweep_cases(const SweepOptions& options);

// The same list, worked off by all cores. The result does not depend on the number of threads. An
// exception that a schedule throws is that case's failure.
std::vector<SweepResult> sweep(const SweepOptions& options, const SweepProgress& progress = {});

}  // namespace rankine
