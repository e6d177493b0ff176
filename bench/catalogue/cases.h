// This header lists the benchmarks of the catalogue: calls of all algorithms, at full speed and on
// modelled networks, and the planning of calls.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/base/status.h"
#include "engine/cli/perf.h"

namespace rankine {

// Divides a call's elements among the collective's natural blocks.
enum class CountsKind : unsigned char {
  even,
  rising,  // block b gets a share of b + 1: all differ
  one,     // the first block gets all elements
};
std::string_view name_of(CountsKind kind);
Result<std::vector<CountsKind>> read_counts_kinds(std::string_view argument, std::string_view text);

struct CatalogueGrid {
  std::vector<int> ranks{};  // empty: usable cores at full speed, 8 on networks
  std::vector<std::size_t> bytes = {std::size_t{64} << 10};
  std::vector<CountsKind> counts = {CountsKind::even, CountsKind::rising};
  std::vector<tools::NamedNetwork> networks{};  // beside full speed
};

struct CatalogueCase {
  // all_reduce/ring/ranks:8/bytes:65536/network:scale_out
  std::string name;
  tools::PerfCase asked;
  std::shared_ptr<const tools::PerfCases> cases;  // owns the memory that the options refer to
  std::vector<std::size_t> counts{};              // for a call with counts, which refers to them
};

// Every algorithm with all values of the grid that it takes; counts other than even only for
// collectives with more than one block. Calls refer to memory of their case, so cases must not
// move. Ranks, sizes and networks without any case are left out, with the reason in `notes`.
std::vector<std::unique_ptr<const CatalogueCase>> catalogue_cases(const CatalogueGrid& grid,
                                                                  std::vector<std::string>& notes);

// Registers benchmarks of the cost of planning a call: compile/all_reduce/ring/ranks:8/bytes:65536
// (making its plan) and predict/... (predicting its time on a network), for the whole catalogue.
// The network is scale_out; operations that it cannot do are turned into messages (lower.h). Real
// time. Empty `ranks`: 8.
void register_planning(const std::vector<int>& ranks, const std::vector<std::size_t>& bytes);

}  // namespace rankine
