// What Open MPI ships, next to its own loops, written out as one rank runs them.
#include <gtest/gtest.h>

#include <set>
#include <tuple>
#include <vector>

#include "algorithms/pat.h"
#include "algorithms/ring.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

using Message = std::tuple<Rank, Rank, Block>;  // from, to, what
using Messages = std::vector<std::multiset<Message>>;

Messages stated(const Schedule& s) {
  Messages out(static_cast<std::size_t>(s.rounds));
  for (int k = 0; k < s.rounds; ++k) {
    for_each_transfer(s, k, [&](const Transfer& t) {
      t.what.list.for_each([&](Block b) {
        out[static_cast<std::size_t>(k)].insert({t.from.front(), t.to.front(), b});
      });
    });
  }
  return out;
}

// Even ranks begin with the right neighbour, odd ones with the left; what comes from either side
// lies two blocks further from step to step, and is what the next step sends.
TEST(NeighbourExchange, IsOpenMpis) {
  for (int p = 2; p <= 40; p += 2) {
    Messages expected(static_cast<std::size_t>(p / 2));
    for (Rank rank = 0; rank < p; ++rank) {
      const bool even = rank % 2 == 0;
      const Rank neighbour[] = {even ? (rank + 1) % p : rank - 1,
                                even ? (rank - 1 + p) % p : (rank + 1) % p};
      int from[] = {even ? rank : rank - 1, even ? rank : rank - 1};
      const int offset[] = {even ? 2 : -2, even ? -2 : 2};
      expected[0].insert({rank, neighbour[0], rank});
      int send = even ? rank : rank - 1;
      for (int i = 1; i < p / 2; ++i) {
        const int side = i % 2;
        from[side] = ((from[side] + offset[side]) % p + p) % p;
        for (const int b : {send, send + 1}) {
          expected[static_cast<std::size_t>(i)].insert({rank, neighbour[side], b});
        }
        send = from[side];
      }
    }
    EXPECT_EQ(stated(neighbour_exchange_all_gather(p)), expected) << p;
  }
}

// In every step as many blocks as one has, but the last where the distance is a one of p below its
// highest zeros ("ignored steps").
TEST(Sparbit, IsOpenMpis) {
  for (int p = 2; p <= 130; ++p) {
    const int steps = ceil_log2(p), last_ignored = __builtin_ctz(static_cast<unsigned>(p));
    const unsigned ignored = (~(static_cast<unsigned>(p) >> last_ignored) | 1u) << last_ignored;
    Messages expected(static_cast<std::size_t>(steps));
    int have = 1;
    for (int i = 0; i < steps; ++i) {
      const int distance = 1 << (steps - 1 - i);
      const bool exclusion =
          (static_cast<unsigned>(distance) & ignored) == static_cast<unsigned>(distance);
      for (int n = 0; n < have - (exclusion ? 1 : 0); ++n) {
        for (Rank rank = 0; rank < p; ++rank) {
          expected[static_cast<std::size_t>(i)].insert(
              {rank, (rank + distance) % p, ((rank - 2 * n * distance) % p + p) % p});
        }
      }
      have = 2 * have - (exclusion ? 1 : 0);
    }
    EXPECT_EQ(stated(sparbit_all_gather(p)), expected) << p;
  }
}

// The blocks go the way of PAT's with the largest aggregation, one by one.
TEST(Sparbit, IsPatInSingleMessages) {
  for (int p = 2; p <= 64; ++p) {
    const Schedule sparbit = sparbit_all_gather(p);
    EXPECT_EQ(stated(sparbit), stated(pat_all_gather(p, pat_default_aggregation(p)))) << p;
    for (int k = 0; k < sparbit.rounds; ++k) {
      for_each_transfer(sparbit, k, [](const Transfer& t) { EXPECT_EQ(t.what.list.size(), 1); });
    }
  }
}

}  // namespace
}  // namespace rankine
