// Who copies what. That the result is right is the fuzz test's business.
#include "engine/compile/direct_passes.h"

#include <gtest/gtest.h>

#include <vector>

#include "algorithms/catalogue.h"
#include "engine/run/plan.h"

namespace rankine {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;  // bytes

Program shared(Collective collective, const char* name, int ranks, const ShareOptions& options = {},
               std::size_t bytes = kBlock) {
  const Algorithm& algorithm = *find_algorithm(collective, name);
  Params params;
  params.ranks = ranks;
  const Schedule schedule = algorithm.make(params);
  const Goal goal = goal_of(algorithm, params, schedule);
  const std::vector<std::size_t> counts(static_cast<std::size_t>(natural_blocks(collective, ranks)),
                                        bytes);
  auto program =
      make_program(schedule, goal, make_layout(goal, counts, 1, Borders::plain), Buffers::apart);
  program.status().throw_if_error();
  return share_copies(*program, options);
}

// Bytes that a rank fetches from others, and that it stores at them.
struct Moved {
  std::size_t fetched = 0, stored = 0;
  bool operator==(const Moved&) const = default;
};

std::vector<Moved> moved(const Program& program) {
  std::vector<Moved> by_rank(static_cast<std::size_t>(program.ranks));
  for (const Operation& op : program.operations) {
    Moved& mine = by_rank[static_cast<std::size_t>(op.rank)];
    mine.stored += static_cast<std::size_t>(op.copies) * op.bytes;
    const Source& source = program.sources[static_cast<std::size_t>(op.first_source)];
    if (source.rank != op.rank && !op.pushed) mine.fetched += op.bytes;
  }
  return by_rank;
}

TEST(ShareCopies, TheRootOfABroadcastStoresAsMuchAsEverybodyFetches) {
  EXPECT_EQ(moved(shared(Collective::broadcast, "linear", 2)),
            (std::vector<Moved>{{0, kBlock / 2}, {kBlock / 2, 0}}));
  const Moved reader{3 * kBlock / 4, 0};
  EXPECT_EQ(moved(shared(Collective::broadcast, "linear", 4, {.readers = 3})),
            (std::vector<Moved>{{0, 3 * kBlock / 4}, reader, reader, reader}));
}

TEST(ShareCopies, AnOwnerWithMoreReadersThanThatStoresNothing) {
  const Moved reader{kBlock, 0};
  EXPECT_EQ(moved(shared(Collective::broadcast, "linear", 4, {.readers = 2})),
            (std::vector<Moved>{{0, 0}, reader, reader, reader}));
}

TEST(ShareCopies, TheSendersOfAGatherStoreAsMuchAsTheRootFetches) {
  const Moved sender{0, 3 * kBlock / 4};
  EXPECT_EQ(moved(shared(Collective::gather, "linear", 4)),
            (std::vector<Moved>{{3 * kBlock / 4, 0}, sender, sender, sender}));
}

TEST(ShareCopies, WhereEverybodyIsBusyNothingChanges) {
  for (const Moved& rank : moved(shared(Collective::all_gather, "direct", 4))) {
    EXPECT_EQ(rank, (Moved{3 * kBlock, 0}));
  }
}

TEST(ShareCopies, WhereBlocksAreRelayedNothingChanges) {
  for (const char* name : {"chain", "binomial_far", "scatter_all_gather"}) {
    for (const Moved& rank : moved(shared(Collective::broadcast, name, 4))) {
      EXPECT_EQ(rank.stored, 0U) << name;
    }
  }
}

TEST(ShareCopies, ShortMessagesAreFetched) {
  EXPECT_EQ(moved(shared(Collective::broadcast, "linear", 2, {}, 16 << 10))[0].stored, 0U);
}

TEST(ShareCopies, StreamsAreStoredByTheirOwners) {
  for (const Moved& rank : moved(shared(Collective::all_gather, "direct", 4, {.streams = true}))) {
    EXPECT_EQ(rank, (Moved{0, 3 * kBlock}));
  }
}

TEST(ShareCopies, StoresWaitForNothing) {
  const Program program = shared(Collective::all_to_all, "direct", 5, {.streams = true});
  for (const Operation& op : program.operations) {
    if (op.copies == 0) continue;
    EXPECT_EQ(op.earlier, 0);
    EXPECT_EQ(program.sources[static_cast<std::size_t>(op.first_source)].producer, -1);
  }
}

}  // namespace
}  // namespace rankine
