// Transposes a 12 x 8 matrix that four ranks hold by rows, and transposes it back.
//
//   bazel run //engine/api/examples:transpose
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <span>
#include <vector>

#include "engine/api/examples/distributed_transpose.h"
#include "engine/api/team.h"

int main() {
  constexpr std::size_t kRanks = 4, kRows = 12, kCols = 8;
  auto team = rankine::Team::create({.ranks = kRanks});
  team.status().throw_if_error();
  std::atomic<int> right = 0, back = 0;
  (*team)
      ->run([&](rankine::Member& me) {
        const auto self = static_cast<std::size_t>(me.rank());
        std::vector<float> mine(kRows / kRanks * kCols);
        for (std::size_t i = 0; i < mine.size(); ++i) {
          mine[i] = static_cast<float>(self * mine.size() + i);  // its place in the matrix
        }
        const auto turned = distributed_transpose(me, std::span<const float>(mine), kRows, kCols);
        for (std::size_t i = 0; i < turned.size(); ++i) {
          const std::size_t row = self * (kCols / kRanks) + i / kRows, col = i % kRows;
          right += turned[i] == static_cast<float>(col * kCols + row) ? 1 : 0;
        }
        const auto again = distributed_transpose(me, std::span<const float>(turned), kCols, kRows);
        back += again == mine ? 1 : 0;
      })
      .throw_if_error();
  std::printf("%d of %zu elements are where they belong; %d ranks have their rows back\n",
              right.load(), kRows * kCols, back.load());
}
