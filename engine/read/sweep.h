// The sweep: the whole catalogue, every N, verified and compared with what its lines state.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/read/verify.h"

namespace rankine {

struct SweepOptions {
  int ranks_from = 1, ranks_to = 64;     // N, both included
  std::optional<Collective> collective;  // only this one
  std::string algorithm;                 // only lines of this name; empty: all
  // Texts to try of parameters, by name; of the others what their rows say
  // (algorithms/parameters.h), and the most even tori of one to three dimensions.
  std::map<std::string, std::vector<std::string>, std::less<>> values;
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
// then N, then the other parameters in their order. Texts that a parameter cannot have throw
// std::invalid_argument.
std::vector<SweepResult> sweep_cases(const SweepOptions& options);

// The same list, worked off by all cores. The result does not depend on the number of threads. An
// exception that a schedule throws is that case's failure.
std::vector<SweepResult> sweep(const SweepOptions& options, const SweepProgress& progress = {});

}  // namespace rankine
