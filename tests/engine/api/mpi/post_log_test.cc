// PostLog with threads as ranks. A table of addresses replaces the exchange of addresses over MPI.
#include "engine/api/mpi/post_log.h"

#include "tests/engine/api/ranks.h"
#include "tests/testing.h"

namespace rankine::mpi {
namespace {

constexpr auto kTimeout = std::chrono::minutes(2);

std::size_t of(Rank r) { return static_cast<std::size_t>(r); }

// Each rank runs f with its log after all ranks have met; the log ends when no rank reads it any
// more.
std::vector<Status> with_logs(int ranks, const std::function<Status(Member&, PostLog&)>& f) {
  Ranks all({.ranks = ranks, .timeout = kTimeout});
  std::vector<const std::byte*> addresses(of(ranks));
  return all.run([&](Member& me) -> Status {
    auto log = PostLog::make(me, kTimeout);
    if (!log.ok()) return log.status();
    addresses[of(me.rank())] = log->address();
    if (Status status = me.barrier(); !status.ok()) return status;
    log->meet(addresses);
    Status status = f(me, *log);
    log->end();
    return status;
  });
}

// The block lengths of a call, equal on every rank: short, 0, and sometimes longer than a post
// holds.
std::uint64_t length_of(int call, Rank from, Rank to) {
  std::mt19937 random(static_cast<unsigned>(call * 10'007 + from * 101 + to));
  if (random() % 3 == 0) return 0;
  if (random() % 40 == 0) return kMostPosted - 100 + random() % 200;
  return random() % 200;
}
std::byte byte_of(int call, Rank from, Rank to, std::uint64_t i) {
  return static_cast<std::byte>(call * 31 + from * 7 + to * 3 + static_cast<int>(i));
}
bool is_taken(int call, int ranks) {
  for (Rank r = 0; r < ranks; ++r) {
    std::uint64_t bytes = 0;
    for (Rank p = 0; p < ranks; ++p) bytes += length_of(call, r, p);
    if (bytes > kMostPosted) return false;
  }
  return true;
}

void post(PostLog& log, int call, Rank self, int ranks) {
  const PostLog::Room room = log.begin(Function::alltoallv, 0);
  std::uint64_t at = 0;
  for (Rank p = 0; p < ranks; ++p) {
    room.sends[of(p)] = length_of(call, self, p);
    room.receives[of(p)] = length_of(call, p, self);
    for (std::uint64_t i = 0; i < room.sends[of(p)]; ++i, ++at) {
      if (at < kMostPosted) room.data[at] = byte_of(call, self, p, i);
    }
  }
}

TEST(PostLog, EveryBlockComesToItsReceiverCallAfterCall) {
  for (const int ranks : {1, 2, 3, 5}) {
    int taken = 0;
    expect_ok(with_logs(ranks, [&](Member& me, PostLog& log) -> Status {
      for (int call = 0; call < 400; ++call) {
        post(log, call, me.rank(), ranks);
        if (Status status = log.call_roll(); !status.ok()) return status;
        const auto concluded = conclude(log.posts());
        if (!concluded.ok()) return concluded.status();
        const bool is_mine = !*concluded;
        EXPECT_EQ(is_mine, is_taken(call, ranks)) << call;
        if (!is_mine) continue;
        if (me.rank() == 0) ++taken;
        // Some ranks read late, when other ranks are at the next post.
        if (call % ranks == me.rank()) std::this_thread::yield();
        for (Rank r = 0; r < ranks; ++r) {
          const std::byte* const block = log.block_from(r);
          for (std::uint64_t i = 0; i < length_of(call, r, me.rank()); ++i) {
            if (block[i] == byte_of(call, r, me.rank(), i)) continue;
            return {Code::remote_error, "call " + std::to_string(call) + ": byte " +
                                            std::to_string(i) + " from rank " + std::to_string(r) +
                                            " is wrong"};
          }
        }
      }
      return {};
    }));
    EXPECT_GT(taken, 100) << ranks;
    EXPECT_LT(taken, 400) << ranks;
  }
}

TEST(PostLog, WhatOneLeavesToMpiAllLeave) {
  expect_ok(with_logs(3, [&](Member& me, PostLog& log) -> Status {
    for (int call = 0; call < 6; ++call) {
      post(log, 1, me.rank(), 3);
      if (call % 3 == me.rank() && call < 3) log.leave_to_mpi();
      if (Status status = log.call_roll(); !status.ok()) return status;
      const auto concluded = conclude(log.posts());
      if (!concluded.ok()) return concluded.status();
      EXPECT_EQ(*concluded == Passed::arguments, call < 3) << call;
    }
    return {};
  }));
}

TEST(PostLog, AllAreToldTheSameMismatchAndGoOn) {
  expect_ok(with_logs(3, [&](Member& me, PostLog& log) -> Status {
    for (int call = 0; call < 4; ++call) {
      const PostLog::Room room =
          log.begin(call == 0 && me.rank() == 1 ? Function::scatterv : Function::gatherv,
                    call == 1 && me.rank() == 2 ? 1 : 0);
      for (Rank p = 0; p < 3; ++p) room.sends[of(p)] = room.receives[of(p)] = 0;
      if (call == 2 && me.rank() == 2) room.sends[0] = 4;
      if (Status status = log.call_roll(); !status.ok()) return status;
      const char* const texts[] = {
          "rank 1 calls MPI_Scatterv with root 0, and rank 0 calls MPI_Gatherv with root 0",
          "rank 2 calls MPI_Gatherv with root 1, and rank 0 calls MPI_Gatherv with root 0",
          "rank 2 sends 4 bytes to rank 0; rank 0 receives 0", ""};
      EXPECT_EQ(conclude(log.posts()).status().text(), texts[call]);
    }
    return {};
  }));
}

TEST(PostLog, TheRollIsNoOtherCallOfTheEngines) {
  const auto results = with_logs(2, [&](Member& me, PostLog& log) -> Status {
    if (me.rank() == 1) return me.barrier();
    log.begin(Function::alltoallv, 0);
    return log.call_roll();
  });
  for (const Status& status : results) EXPECT_EQ(status.code(), Code::mismatch) << status.text();
}

}  // namespace
}  // namespace rankine::mpi
