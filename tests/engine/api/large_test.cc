// Vectors that are finished in parts, copied by both ends or stored past the caches: what only
// large ones meet.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/api/team.h"

namespace rankine {
namespace {

using Elements = std::vector<std::uint32_t>;

// What rank `from` contributes to element i of natural block b.
std::uint32_t value(Rank from, std::size_t b, std::size_t i) {
  return static_cast<std::uint32_t>((from + 1) * 1'000'003) +
         static_cast<std::uint32_t>(b * 1009 + i * 7);
}

struct Case {
  Collective collective;
  int ranks;
  std::size_t count;  // elements of a natural block
};

class Large : public testing::TestWithParam<Case> {};

TEST_P(Large, TheDefaultsGiveWhatTheyShould) {
  const auto [collective, ranks, count] = GetParam();
  const Rank root = ranks - 1, peer = 0;
  const Goal goal{collective, ranks, natural_blocks(collective, ranks), root, peer};
  auto team = Team::create({.ranks = ranks, .tuned = false});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (const bool in_place : {false, true}) {
    if (in_place && collective != Collective::all_reduce) continue;
    const Status status = (*team)->run([&](Member& me) {
      const Rank self = me.rank();
      const auto blocks_of = [&](bool output) {
        std::vector<std::size_t> blocks;
        for (int b = 0; b < goal.blocks; ++b) {
          if (output ? goal.needs(self, b) : goal.starts(self, b)) {
            blocks.push_back(static_cast<std::size_t>(b));
          }
        }
        return blocks;
      };
      const auto brings = blocks_of(false), wants = blocks_of(true);
      Elements in(brings.size() * count), apart(in_place ? 0 : wants.size() * count);
      for (std::size_t k = 0; k < in.size(); ++k) in[k] = value(self, brings[k / count], k % count);
      std::uint32_t* out = in_place ? in.data() : apart.data();
      for (int twice = 0; twice < 2; ++twice) {  // results lie in caches the second time
        if (in_place && twice == 1) break;
        me.call({.collective = collective,
                 .in = in.data(),
                 .out = out,
                 .count = count,
                 .type = DataType::u32,
                 .root = root,
                 .peer = peer})
            .throw_if_error();
        std::size_t wrong = 0;
        for (std::size_t w = 0; w < wants.size(); ++w) {
          std::vector<Rank> sources;
          for (Rank q = 0; q < ranks; ++q) {
            if (goal.wants(self, static_cast<int>(wants[w]), q)) sources.push_back(q);
          }
          for (std::size_t i = 0; i < count; ++i) {
            std::uint32_t sum = 0;
            for (const Rank q : sources) sum += value(q, wants[w], i);
            wrong += out[w * count + i] != sum ? 1 : 0;
          }
        }
        EXPECT_EQ(wrong, 0U) << "rank " << self << (in_place ? ", in place" : "");
        std::fill(apart.begin(), apart.end(), 0U);
      }
    });
    ASSERT_TRUE(status.ok()) << status.text();
  }
}

std::vector<Case> cases() {
  using enum Collective;
  std::vector<Case> all;
  for (const Collective c : {all_reduce, reduce, broadcast, all_gather, reduce_scatter, all_to_all,
                             gather, scatter, send_recv}) {
    for (const int n : {2, 3, 5}) all.push_back({c, n, 60'007});
  }
  // Several parts of 64 KiB and a rest, and vectors beyond the caches.
  for (const int n : {2, 3, 5}) all.push_back({all_reduce, n, 300'007});
#ifndef __SANITIZE_THREAD__  // it would look at every byte of these for minutes
  for (const Collective c : {all_reduce, broadcast, all_gather, all_to_all, send_recv}) {
    all.push_back({c, 2, (std::size_t{9} << 20) + 5});
  }
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(AllCollectives, Large, testing::ValuesIn(cases()),
                         [](const testing::TestParamInfo<Case>& test) {
                           return std::string(name_of(test.param.collective)) + "_" +
                                  std::to_string(test.param.ranks) + "_" +
                                  std::to_string(test.param.count);
                         });

}  // namespace
}  // namespace rankine
