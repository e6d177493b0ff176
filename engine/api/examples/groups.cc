// Two axes of parallelism: the ranks of a tensor-parallel group add activations; the ranks with one
// part of the model add gradients.
//
//   bazel run //engine/api/examples:groups
#include <cstdio>
#include <span>
#include <vector>

#include "engine/api/split.h"
#include "engine/api/team.h"

int main() {
  auto team = rankine::Team::create({.ranks = 6});
  team.status().throw_if_error();
  std::vector<float> activations(6), gradients(6);
  (*team)
      ->run([&](rankine::Member& me) {
        auto grid = rankine::Grid::make(me, {{"dp", 2}, {"tp", 3}}).value();
        const auto self = static_cast<std::size_t>(me.rank());
        activations[self] = gradients[self] = static_cast<float>(me.rank());
        grid.axis("tp").all_reduce(std::span(&activations[self], 1)).throw_if_error();
        grid.axis("dp").all_reduce(std::span(&gradients[self], 1)).throw_if_error();
      })
      .throw_if_error();
  for (int rank = 0; rank < 6; ++rank) {
    std::printf("rank %d: activations %g, gradients %g\n", rank,
                activations[static_cast<std::size_t>(rank)],
                gradients[static_cast<std::size_t>(rank)]);
  }
}
