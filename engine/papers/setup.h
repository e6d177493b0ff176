// A run of a claim's text with its letters filled in: a line of the catalogue under a network.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "algorithms/catalogue.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/papers/runs.h"

namespace rankine::claims {

struct Setup {
  const Algorithm* algorithm = nullptr;
  Params params;
  Fabric fabric;
  std::uint64_t bytes = 0;
  int nodes = 0;
  SimulateOptions options{.sync = Sync::rounds, .ideal_blocks = true};
};

// Mistakes throw std::logic_error, or NotInCatalogue or NotDefined.
Setup set_up(const RunText& run, const Letters& letters);

// Two setups are the same where their options' values are.
std::string key_of(const RunText& run, const Letters& letters);

// A value that is to be a whole number; else `what` it is is in the error.
std::int64_t whole(const Value& value, std::string_view what);

}  // namespace rankine::claims
