#include "engine/tools/perf_curves.h"

#include <algorithm>

#include "algorithms/catalogue.h"

namespace rankine::tools {
namespace {

constexpr double kMicro = 1e6;

// In the catalogue's order; nullptr, of the engine's choice, comes first.
std::vector<const Algorithm*> algorithms_of(const std::vector<PerfCases>& all) {
  std::vector<const Algorithm*> found;
  for (const PerfCases& cases : all) {
    for (const AskedAlgorithm& one : cases.algorithms) found.push_back(one.algorithm);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace

std::string why_no_curves(const PerfCases& cases) {
  if (cases.ranks < 2) return "2 ranks and more are needed";
  const Call& first = cases.rows.front().call;
  std::vector<std::size_t> sizes;
  for (const PerfCase& row : cases.rows) {
    const bool same =
        row.call.type == first.type && row.call.op == first.op && row.call.root == first.root;
    if (!same) return "one --datatype, one --op and one --root are needed";
    if (row.bytes > 0) sizes.push_back(row.bytes);
  }
  if (sizes.empty() || sizes.front() == sizes.back())
    return "sizes from 1 byte, two of them, are needed";
  return {};
}

std::vector<NetworkCurves> curves_of(const std::vector<PerfCases>& all,
                                     std::span<const PerfRow> rows) {
  const std::vector<const Algorithm*> algorithms = algorithms_of(all);
  std::vector<NetworkCurves> networks;
  std::size_t next = 0;
  for (const PerfCases& cases : all) {
    NetworkCurves network{cases.network, {}};
    for (const Algorithm* one : algorithms) {
      network.curves.push_back(
          {one == nullptr ? "the engine's choice" : std::string(one->name), {}});
    }
    for (const PerfCase& asked : cases.rows) {
      const PerfRow& row = rows[next++];
      const Algorithm* line =
          asked.call.options.algorithm.empty()
              ? nullptr
              : find_algorithm(asked.call.collective, asked.call.options.algorithm);
      const auto at = std::find(algorithms.begin(), algorithms.end(), line) - algorithms.begin();
      if (row.bytes == 0) continue;
      network.curves[static_cast<std::size_t>(at)].points.push_back(
          {static_cast<double>(row.bytes), seconds_of(row.measured.first()) * kMicro});
    }
    networks.push_back(std::move(network));
  }
  return networks;
}

}  // namespace rankine::tools
