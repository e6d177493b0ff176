// What is benchmarked: calls of the whole catalogue, at full speed and on modelled networks.
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

// How a call's elements are dealt out to the collective's natural blocks.
enum class CountsKind : unsigned char {
  even,
  rising,  // block b gets a share of b + 1: no two alike
  one,     // the first block has all
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
  std::shared_ptr<const tools::PerfCases> cases;  // of which it is one: what the options refer to
  std::vector<std::size_t> counts{};              // of a call with counts, which refers to them
};

// Every algorithm with everything in the grid that it takes; counts other than even are of
// collectives with more than one block. Calls refer to what their case holds, so cases stay where
// they are. Ranks, sizes and networks of which no case can be made are left out, with the reason in
// `notes`.
std::vector<std::unique_ptr<const CatalogueCase>> catalogue_cases(const CatalogueGrid& grid,
                                                                  std::vector<std::string>& notes);

// What planning a call costs: making its plan, and predicting its time on a network.

// compile/all_reduce/ring/ranks:8/bytes:65536 and predict/..., for the whole catalogue; the network
// is scale_out, and what it cannot do is turned into messages (lower.h). Real time. Without
// ranks: 8.
void register_planning(const std::vector<int>& ranks, const std::vector<std::size_t>& bytes);

}  // namespace rankine
