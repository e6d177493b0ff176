#include "engine/papers/printed_trivance.h"

#include <cstddef>
#include <cstdint>

namespace rankine::reproduce {
namespace {

std::vector<int> printed_distances(int size) {
  std::vector<int> out;
  int power = 1;
  for (; power * 3 <= size; power *= 3) out.push_back(power);
  if (power < size) out.push_back((size - power + 1) / 2);
  return out;
}

}  // namespace

Profile printed_trivance(const std::vector<int>& dims) {
  const auto dimensions = static_cast<std::int64_t>(dims.size());
  Profile profile{.ranks = 1, .per_m = dimensions, .rounds = {}, .sent = {}, .most_messages = 2};
  for (const int size : dims) profile.ranks *= size;
  std::int64_t sent = 0;
  for (const int distance : printed_distances(dims.front())) {
    // Everybody sends so far both ways, so every link carries so many messages of M / D. The
    // collectives take the dimensions in turns, and meet nowhere.
    for (std::size_t turn = 0; turn < dims.size(); ++turn) {
      profile.rounds.push_back({{.hops = distance, .load = distance}});
      sent += 2 * dimensions;
    }
  }
  profile.sent.assign(static_cast<std::size_t>(profile.ranks), sent);
  profile.most_messages *= static_cast<int>(dimensions);
  return profile;
}

PrintedPanels::PrintedPanels(std::span<const Panel> panels)
    : panels_(panels.begin(), panels.end()) {
  for (Panel& panel : panels_) {
    profiles_.push_back(printed_trivance(panel.spec.dims));
    panel.curves.back().latency = &profiles_.back();
  }
}

}  // namespace rankine::reproduce
