// A layer of experts, one on each of four ranks: two all-to-alls send every token to the expert
// that its router chose and back. The first version uses counts: it sends every token and nothing
// else. The second one uses a capacity: all messages have one size, tokens beyond it are dropped,
// and free places are padded.
//
//   bazel run //engine/api/examples:experts
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include "engine/api/team.h"

namespace {

constexpr std::size_t kRanks = 4, kTokens = 10, kWidth = 2, kCapacity = 3;

// A token is its number; expert e turns it into 1000 * e + number.
float token(std::size_t rank, std::size_t i) { return static_cast<float>(rank * kTokens + i); }
std::size_t expert_of(std::size_t rank, std::size_t i) { return (rank + i * i) % kRanks; }
float worked(std::size_t expert, float number) {
  return 1000 * static_cast<float>(expert) + number;
}

struct Tally {
  int right = 0, dropped = 0, padded = 0;
};

// The tokens of this rank, grouped by expert.
std::vector<std::vector<std::size_t>> routed(std::size_t self) {
  std::vector<std::vector<std::size_t>> by_expert(kRanks);
  for (std::size_t i = 0; i < kTokens; ++i) by_expert[expert_of(self, i)].push_back(i);
  return by_expert;
}

void work(std::size_t expert, std::span<float> rows) {
  for (float& x : rows) x = worked(expert, x);
}

int right(std::size_t self, std::size_t i, const float* row) {
  const float expected = worked(expert_of(self, i), token(self, i));
  return row[0] == expected && row[1] == expected ? 1 : 0;
}

Tally with_counts(rankine::Member& me) {
  const auto self = static_cast<std::size_t>(me.rank());
  const auto by_expert = routed(self);
  std::vector<std::size_t> mine(kRanks), there(kRanks * kRanks), back(kRanks * kRanks);
  std::vector<float> sent;
  for (std::size_t e = 0; e < kRanks; ++e) {
    mine[e] = by_expert[e].size() * kWidth;
    for (const std::size_t i : by_expert[e]) sent.insert(sent.end(), kWidth, token(self, i));
  }
  me.all_gather(std::span<const std::size_t>(mine), std::span(there)).throw_if_error();
  std::size_t arriving = 0;
  for (std::size_t from = 0; from < kRanks; ++from) {
    arriving += there[from * kRanks + self];
    for (std::size_t to = 0; to < kRanks; ++to)
      back[to * kRanks + from] = there[from * kRanks + to];
  }
  std::vector<float> arrived(arriving), returned(sent.size());
  constexpr auto kAllToAll = rankine::Collective::all_to_all;
  me.with_counts(kAllToAll, std::span<const float>(sent), std::span(arrived), there)
      .throw_if_error();
  work(self, arrived);
  me.with_counts(kAllToAll, std::span<const float>(arrived), std::span(returned), back)
      .throw_if_error();
  Tally tally;
  const float* row = returned.data();
  for (const auto& tokens : by_expert) {
    for (const std::size_t i : tokens) {
      tally.right += right(self, i, row);
      row += kWidth;
    }
  }
  return tally;
}

Tally with_capacity(rankine::Member& me) {
  const auto self = static_cast<std::size_t>(me.rank());
  const auto by_expert = routed(self);
  std::vector<float> sent(kRanks * kCapacity * kWidth), arrived(sent.size()), back(sent.size());
  Tally tally;
  for (std::size_t e = 0; e < kRanks; ++e) {
    for (std::size_t slot = 0; slot < kCapacity; ++slot) {
      if (slot >= by_expert[e].size()) {
        ++tally.padded;  // zeroes travel
        continue;
      }
      for (std::size_t j = 0; j < kWidth; ++j) {
        sent[(e * kCapacity + slot) * kWidth + j] = token(self, by_expert[e][slot]);
      }
    }
  }
  me.all_to_all(std::span<const float>(sent), std::span(arrived)).throw_if_error();
  work(self, arrived);
  me.all_to_all(std::span<const float>(arrived), std::span(back)).throw_if_error();
  for (std::size_t e = 0; e < kRanks; ++e) {
    for (std::size_t slot = 0; slot < by_expert[e].size(); ++slot) {
      if (slot >= kCapacity) {
        ++tally.dropped;
      } else {
        tally.right += right(self, by_expert[e][slot], &back[(e * kCapacity + slot) * kWidth]);
      }
    }
  }
  return tally;
}

}  // namespace

int main() {
  auto team = rankine::Team::create({.ranks = kRanks});
  team.status().throw_if_error();
  for (const auto& [name, way] :
       {std::pair{"counts", &with_counts}, {"capacity", &with_capacity}}) {
    Tally tallies[kRanks], sum;
    (*team)
        ->run([&, way = way](rankine::Member& me) {
          tallies[static_cast<std::size_t>(me.rank())] = way(me);
        })
        .throw_if_error();
    for (const Tally& tally : tallies) {
      sum.right += tally.right;
      sum.dropped += tally.dropped;
      sum.padded += tally.padded;
    }
    std::printf("with %s: %d of %zu tokens are back from their experts, %d dropped, %d padded\n",
                name, sum.right, kRanks * kTokens, sum.dropped, sum.padded);
  }
}
