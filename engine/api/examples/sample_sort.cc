// Sorts 40,000 keys on four ranks: each rank sorts its keys, samples of all ranks decide the rank
// of each key, and an all-to-all with counts moves the keys (Blelloch et al., 1991).
//
//   bazel run //engine/api/examples:sample_sort
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <span>
#include <vector>

#include "engine/api/team.h"

namespace {

using Keys = std::vector<std::uint64_t>;

constexpr std::size_t kRanks = 4, kEach = 10'000, kSamples = 64;

// Returns this rank's part of the sorted keys of all ranks.
Keys sample_sort(rankine::Member& me, Keys mine) {
  std::sort(mine.begin(), mine.end());
  Keys samples(kSamples), all(kSamples * kRanks);
  for (std::size_t i = 0; i < kSamples; ++i) samples[i] = mine[i * mine.size() / kSamples];
  me.all_gather(std::span<const std::uint64_t>(samples), std::span(all)).throw_if_error();
  std::sort(all.begin(), all.end());

  // The number of keys from each rank to each rank; all ranks must know all of them.
  std::vector<std::size_t> to(kRanks), counts(kRanks * kRanks);
  auto from = mine.begin();
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    const auto end = rank + 1 == kRanks
                         ? mine.end()
                         : std::lower_bound(from, mine.end(), all[(rank + 1) * kSamples]);
    to[rank] = static_cast<std::size_t>(end - from);
    from = end;
  }
  me.all_gather(std::span<const std::size_t>(to), std::span(counts)).throw_if_error();
  std::size_t arriving = 0;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    arriving += counts[rank * kRanks + static_cast<std::size_t>(me.rank())];
  }
  Keys sorted(arriving);
  me.with_counts(rankine::Collective::all_to_all, std::span<const std::uint64_t>(mine),
                 std::span(sorted), counts)
      .throw_if_error();
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

}  // namespace

int main() {
  auto team = rankine::Team::create({.ranks = kRanks});
  team.status().throw_if_error();
  Keys parts[kRanks], brought;
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    std::mt19937_64 random(rank);
    for (std::size_t i = 0; i < kEach; ++i) brought.push_back(random());
  }
  (*team)
      ->run([&](rankine::Member& me) {
        const auto self = static_cast<std::size_t>(me.rank());
        const auto first = brought.begin() + static_cast<std::ptrdiff_t>(self * kEach);
        parts[self] = sample_sort(me, Keys(first, first + kEach));
      })
      .throw_if_error();
  Keys sorted;
  std::size_t largest = 0;
  for (const Keys& part : parts) {
    sorted.insert(sorted.end(), part.begin(), part.end());
    largest = std::max(largest, part.size());
  }
  std::sort(brought.begin(), brought.end());
  std::printf("%zu keys, %s, %s\n", sorted.size(), sorted == brought ? "in order" : "NOT in order",
              largest < kEach * 5 / 4 ? "no rank with many more than its part" : "badly spread");
}
