// Ranks that take turns on one thread: they get on as ranks on threads do, and where none of them
// can, their calls end at once and with an error.
#include "engine/papers/execute.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/network.h"

namespace rankine::claims {
namespace {

// Counts the turns of ranks that could not go on.
struct Counted : Turns {
  void give_way(int turn) noexcept override {
    in_vain += turn > 0 ? 1 : 0;
    Turns::give_way(turn);
  }
  int in_vain = 0;
};

// A communicator all of whose ranks are played here.
struct Ranks {
  explicit Ranks(int ranks, std::shared_ptr<const CallNetwork> network = {}) {
    CommunicatorOptions options{.ranks = ranks, .timeout = std::chrono::hours(1)};
    options.tuned = false;
    options.network = std::move(network);
    auto made = Communicator::create(options);
    communicator = std::move(*made);
    for (Rank r = 0; r < ranks; ++r) {
      members.push_back(std::move(*communicator->join(r)));
      members.back()->give_way_to(&turns);
    }
  }
  // The sum of the ranks' numbers, of which each gets `out`.
  Status sum(Rank rank, std::uint32_t& out, const char* algorithm = "") {
    const auto in = static_cast<std::uint32_t>(rank);
    return members[static_cast<std::size_t>(rank)]->call({.collective = Collective::all_reduce,
                                                          .in = &in,
                                                          .out = &out,
                                                          .count = 1,
                                                          .type = DataType::u32,
                                                          .options = {.algorithm = algorithm}});
  }

  Counted turns;
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<Member>> members;
};

void never() { FAIL() << "ranks that can go on are said to be stuck"; }

TEST(Turns, RanksThatWaitForOneAnotherGetOn) {
  constexpr int kRanks = 300;
  Ranks ranks(kRanks);
  std::vector<std::uint32_t> out(kRanks);
  std::vector<Status> ended(kRanks);
  for (const char* algorithm : {"ring", "recursive_doubling"}) {
    const auto part = [&](Rank rank) {
      const auto r = static_cast<std::size_t>(rank);
      ended[r] = ranks.sum(rank, out[r], algorithm);
    };
    ranks.turns.run(kRanks, part, never);
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_TRUE(ended[r].ok()) << ended[r].text();
      EXPECT_EQ(out[r], kRanks * (kRanks - 1) / 2) << "rank " << r << ", " << algorithm;
    }
    EXPECT_EQ(ranks.turns.in_vain, 0) << algorithm;
  }
}

// Were nobody told, the ranks that call would wait for an hour.
TEST(Turns, WhereNoRankCanGoOnSomebodyIsTold) {
  constexpr int kRanks = 5;
  Ranks ranks(kRanks);
  std::vector<Status> ended(kRanks);
  int told = 0;
  const auto part = [&](Rank rank) {
    if (rank == 3) return;  // it does not come
    std::uint32_t out = 0;
    ended[static_cast<std::size_t>(rank)] = ranks.sum(rank, out);
  };
  ranks.turns.run(kRanks, part, [&] {
    ++told;
    ranks.communicator->abort("none can go on");
  });
  EXPECT_EQ(told, 1);
  for (const Rank r : {0, 1, 2, 4}) {
    const Status& status = ended[static_cast<std::size_t>(r)];
    EXPECT_EQ(status.code(), Code::aborted) << "rank " << r << ": " << status.text();
  }
}

// Calls on a network change it for their thread, and these are not nested in one another.
TEST(Turns, CancellationIsAsItWasBefore) {
  constexpr int kRanks = 3;
  Ranks ranks(kRanks, *find_call_network("scale_out"));
  const auto part = [&](Rank rank) {
    std::uint32_t out = 0;
    const Status status = ranks.sum(rank, out);
    EXPECT_TRUE(status.ok()) << status.text();
  };
  ranks.turns.run(kRanks, part, never);
  int state = PTHREAD_CANCEL_DISABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
}

}  // namespace
}  // namespace rankine::claims
