#include "engine/compile/rank_order.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankine {

bool in_rank_order(const Versions& versions) {
  std::vector<std::pair<Rank, int>> runs;  // first rank, how many
  for (int v = 0; v < versions.size(); ++v) {
    runs.clear();
    versions.for_each_source(versions[v], [&](int source) {
      runs.emplace_back(versions[source].lowest, versions[source].contributions);
    });
    std::sort(runs.begin(), runs.end());
    for (std::size_t i = 1; i < runs.size(); ++i) {
      if (runs[i - 1].first + runs[i - 1].second != runs[i].first) return false;
    }
  }
  return true;
}

}  // namespace rankine
