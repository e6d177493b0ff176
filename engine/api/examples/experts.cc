// A layer of experts, two on each of four ranks: every token goes to the two experts that its
// router chose, and their weighted results come back. With a capacity, an expert takes that many
// rows at most, and drops the others.
//
//   bazel run //engine/api/examples:experts
#include "engine/api/experts.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include "engine/api/team.h"

namespace {

constexpr std::size_t kRanks = 4, kTokens = 10, kWidth = 2;
constexpr int kExperts = 8, kChoices = 2;

struct Tally {
  std::size_t right = 0, dropped = 0;
};

// A token is its number; expert e multiplies it by e + 1.
Tally run(rankine::Member& me, std::size_t capacity) {
  auto experts = rankine::Experts::create(me, {.experts = kExperts,
                                               .choices = kChoices,
                                               .row_elements = kWidth,
                                               .type = rankine::DataType::f32,
                                               .capacity = capacity})
                     .value();
  const auto self = static_cast<std::size_t>(me.rank());
  std::vector<float> tokens, want, out(kTokens * kWidth), weights;
  std::vector<std::int32_t> indices;
  for (std::size_t i = 0; i < kTokens; ++i) {
    const auto first = static_cast<int>((self + i * i) % kExperts), second = (first + 1) % kExperts;
    const auto number = static_cast<float>(self * kTokens + i);
    const auto first_factor = static_cast<float>(first + 1);
    const auto second_factor = static_cast<float>(second + 1);
    indices.insert(indices.end(), {first, second});
    weights.insert(weights.end(), {0.75F, 0.25F});
    tokens.insert(tokens.end(), kWidth, number);
    want.insert(want.end(), kWidth, number * (0.75F * first_factor + 0.25F * second_factor));
  }
  std::vector<float> rows(kRanks * kTokens * kChoices * kWidth);  // for all rows, if need be
  experts.dispatch(tokens, indices, rows).throw_if_error();
  float* row = rows.data();
  auto expert = static_cast<float>(me.rank() * kExperts / me.ranks() + 1);
  for (const std::size_t count : experts.counts()) {
    for (float* const end = row + count * kWidth; row != end; ++row) *row *= expert;
    ++expert;
  }
  experts.combine(std::span(rows.data(), row), weights, out).throw_if_error();
  Tally tally{.dropped = experts.dropped().size()};
  for (std::size_t i = 0; i < kTokens; ++i) tally.right += out[i * kWidth] == want[i * kWidth];
  return tally;
}

}  // namespace

int main() {
  auto team = rankine::Team::create({.ranks = kRanks});
  team.status().throw_if_error();
  for (const std::size_t capacity : {0, 12}) {
    Tally tallies[kRanks], sum;
    (*team)
        ->run([&](rankine::Member& me) {
          tallies[static_cast<std::size_t>(me.rank())] = run(me, capacity);
        })
        .throw_if_error();
    for (const Tally& tally : tallies) {
      sum.right += tally.right;
      sum.dropped += tally.dropped;
    }
    std::printf("capacity %zu: %zu of %zu tokens have both results, %zu rows dropped\n", capacity,
                sum.right, kRanks * kTokens, sum.dropped);
  }
}
