// One question to the model: an algorithm with its parameters, a size and a network. What simulate,
// cost and run have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "algorithms/catalogue.h"
#include "engine/network/simulate.h"
#include "engine/read/flow.h"

namespace rankine::tools {

struct Question {
  const Algorithm* algorithm = nullptr;
  Params params{};          // segments 0: the best number for this network and size; no dims: those
                            // of a torus network
  std::uint64_t bytes = 0;  // M
  Fabric fabric{};
  SimulateOptions options{};
  Fidelity fidelity = Fidelity::eq1;  // of simulate
  bool lower = false;                 // rewrite what the network cannot do into messages
};

// M where somebody says `bytes` whatever the collective: a barrier has no vector.
inline std::size_t vector_bytes(Collective collective, std::size_t bytes) {
  return collective == Collective::barrier ? 0 : bytes;
}

// A question made ready: parameters with their defaults, and the schedule that they make.
struct Prepared {
  Params params;
  Schedule schedule;
  Goal goal;
};

// Of a question that has its network and its parameters as wire.h makes them. Errors: what the
// algorithm refuses, and what best_segments() does.
Result<Prepared> prepare(const Question& question);

// Blocks of those sizes in place of M, which follows from them. Of a question that has its
// algorithm and its ranks. Errors: check_counts().
Status take_counts(Question& question, std::vector<std::uint64_t> counts);

// "all_reduce of 1 MiB among 8 ranks on plain (1 port, 1 us, 100 GB/s)"
std::string describe(const Question& question);

// A weight (see Pricing) in bytes: a whole number where it is one.
double bytes_of(std::int64_t weight, std::int64_t weight_per_byte);

}  // namespace rankine::tools
