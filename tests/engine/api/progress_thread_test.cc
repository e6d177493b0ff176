// A thread that makes progress for ranks that do other things: what is started comes to its end
// without them, on groups and of messages too; it keeps its core, and sleeps; and whatever ends a
// communicator ends it for the ranks as if they had made progress themselves. request_test.cc has
// what requests do with it as without.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <latch>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/request.h"
#include "engine/api/split.h"
#include "engine/api/team.h"
#include "engine/run/user_functions.h"
#include "numa/cpus.h"
#include "numa/topology.h"
#include "tests/engine/api/child_process.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

constexpr std::chrono::milliseconds kLong{60'000};

int a_core() { return Topology::detect().cpus().front().os_index; }

// In rounds, so that no rank's part can be done at once, nor by its peers.
Call ring_of(std::vector<float>& x) {
  return {.collective = Collective::all_reduce,
          .in = x.data(),
          .out = x.data(),
          .count = x.size(),
          .options = {.algorithm = "ring"}};
}

constexpr int kRanks = 4;

// The ranks from 1 on are done with what they call before rank 0, which has only started it, makes
// any call again. Without the thread that cannot be, and all would end at their deadline.
void others_end_first(const std::function<Status(Member&, std::vector<Request>&)>& start) {
  Ranks all({.ranks = kRanks, .timeout = kLong, .progress_core = a_core()});
  std::latch done(kRanks - 1);
  const auto results = all.run([&](Member& me) -> Status {
    std::vector<Request> requests;
    if (Status status = start(me, requests); !status.ok()) return status;
    if (me.rank() == 0) {
      done.wait();
      return wait_all(requests);
    }
    Status status = wait_all(requests);
    done.count_down();
    return status;
  });
  for (const Status& status : results) EXPECT_TRUE(status.ok()) << status.text();
}

Status keep(Result<Request> request, std::vector<Request>& requests) {
  if (!request.ok()) return request.status();
  requests.push_back(std::move(*request));
  return {};
}

TEST(ProgressThread, MovesOnWhatIsStarted) {
  std::array<std::vector<float>, kRanks> x;
  for (auto& mine : x) mine.assign(10'000, 1.0F);
  others_end_first([&](Member& me, std::vector<Request>& requests) {
    return keep(me.start(ring_of(x[static_cast<std::size_t>(me.rank())])), requests);
  });
  for (const auto& mine : x) EXPECT_EQ(mine, std::vector<float>(10'000, kRanks));
}

TEST(ProgressThread, BeginsWhatIsBehindAnother) {
  std::array<std::array<std::vector<float>, 5>, kRanks> x;
  others_end_first([&](Member& me, std::vector<Request>& requests) -> Status {
    for (std::size_t i = 0; i < 5; ++i) {
      auto& mine = x[static_cast<std::size_t>(me.rank())][i];
      mine.assign(1'000 * (i + 1), 1.0F);  // each its own plan, made when its turn has come
      if (Status status = keep(me.start(ring_of(mine)), requests); !status.ok()) return status;
    }
    return {};
  });
  for (const auto& rank : x) {
    for (const auto& mine : rank) EXPECT_EQ(mine, std::vector<float>(mine.size(), kRanks));
  }
}

TEST(ProgressThread, MovesOnGroupsAndMessages) {
  for (const bool own_thread : {false, true}) {
    std::array<std::vector<float>, kRanks> x, sent, got;
    std::array<std::unique_ptr<Member>, kRanks> part;
    others_end_first([&](Member& me, std::vector<Request>& requests) -> Status {
      const auto r = static_cast<std::size_t>(me.rank());
      x[r].assign(10'000, 1.0F);
      // Too long to be on its way before it is received.
      sent[r].assign(1 << 20, static_cast<float>(r));
      got[r].resize(sent[r].size());
      auto split = me.split(0, -me.rank(), {.own_thread = own_thread});
      if (!split.ok()) return split.status();
      part[r] = std::move(*split);
      const Rank right = (me.rank() + 1) % kRanks, left = (me.rank() + kRanks - 1) % kRanks;
      if (Status status = keep(part[r]->start(ring_of(x[r])), requests); !status.ok()) {
        return status;
      }
      if (Status status = keep(me.async().send(std::span<const float>(sent[r]), right), requests);
          !status.ok()) {
        return status;
      }
      return keep(me.async().recv(std::span(got[r]), left), requests);
    });
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_EQ(x[r], std::vector<float>(10'000, kRanks));
      EXPECT_EQ(got[r], sent[(r + kRanks - 1) % kRanks]);
    }
    for (auto& member : part) member.reset();
  }
}

TEST(ProgressThread, FindsOutThatTheDeadlineHasPassed) {
  Ranks all({.ranks = 2, .timeout = 30ms, .progress_core = a_core()});
  std::vector<float> x(10), y(10);
  auto first = all.members()[0]->start(ring_of(x));
  auto second = all.members()[0]->start(ring_of(y));
  while (all.communicator().health().ok()) std::this_thread::yield();  // nobody looks but it
  EXPECT_EQ(all.communicator().health().code(), Code::timeout);
  EXPECT_EQ(second->wait().code(), Code::timeout);
  EXPECT_EQ(first->test().status().code(), Code::timeout);
  EXPECT_EQ(first->wait().code(), Code::timeout);
}

TEST(ProgressThread, EndsWhenTheCommunicatorDoes) {
  const auto end_of = [](const std::function<void(Ranks&)>& end) {
    Ranks all({.ranks = 3, .timeout = kLong, .progress_core = a_core()});
    std::array<std::vector<float>, 3> x;
    std::vector<Request> requests;
    for (const Rank r : {0, 1}) {
      x[static_cast<std::size_t>(r)].resize(10'000);
      auto& member = *all.members()[static_cast<std::size_t>(r)];
      EXPECT_TRUE(keep(member.start(ring_of(x[static_cast<std::size_t>(r)])), requests).ok());
    }
    end(all);
    const Status first = requests[0].wait();
    EXPECT_EQ(requests[1].wait().code(), first.code());
    return first.code();
  };
  EXPECT_EQ(end_of([](Ranks& all) { all.communicator().abort("enough"); }), Code::aborted);
  EXPECT_EQ(end_of([](Ranks& all) { all.drop(2); }), Code::rank_lost);
  EXPECT_EQ(end_of([](Ranks& all) {
              std::vector<float> x(10'000);
              Call other = ring_of(x);
              other.op = ReduceOp::max;
              EXPECT_EQ(all.members()[2]->call(other).code(), Code::mismatch);
            }),
            Code::mismatch);
}

TEST(ProgressThread, MembersAndRequestsThatGoUnderWayEndTheCommunicator) {
  for (const bool member_goes : {true, false}) {
    Ranks all({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
    std::vector<float> x(10'000);
    auto request = all.members()[0]->start(ring_of(x));
    ASSERT_TRUE(request.ok());
    if (member_goes) {
      all.drop(0);
      EXPECT_EQ(request->wait().code(), Code::aborted);
    } else {
      *request = Request();
    }
    EXPECT_EQ(all.communicator().health().code(), Code::aborted);
  }
}

TEST(ProgressThread, CallsFunctionsThatThrow) {
  Ranks all({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
  const auto throws = [](std::span<const int>, std::span<int>) { throw std::runtime_error("no"); };
  const TypedUserOp<int> op = user_op<int>(throws, Commutes::yes);
  std::latch started(2);
  const auto results = all.run([&](Member& me) -> Status {
    std::vector<int> x(10'000, 1);
    auto request = me.async().all_reduce(std::span(x), op);
    if (!request.ok()) return request.status();
    started.arrive_and_wait();
    return request->wait();
  });
  for (const Status& status : results) {
    EXPECT_EQ(status.code(), Code::remote_error) << status.text();
  }
}

TEST(ProgressThread, RanksOfATeamMayThrowWhatTheyLike) {
  auto team = Team::create({.ranks = 3, .timeout = kLong, .progress_core = a_core()});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> x(10'000);
    auto request = me.start(ring_of(x));
    request.status().throw_if_error();
    if (me.rank() == 2) throw std::runtime_error("enough");
    request->wait().throw_if_error();
  });
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE((*team)->run([](Member&) {}).ok());
}

TEST(ProgressThread, IsNotInAForkedChild) {
  Ranks all({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
  std::vector<float> x(10'000, 1), y(10'000, 1);
  auto one = all.members()[0]->start(ring_of(x));
  ASSERT_TRUE(one.ok());
  const std::string child = testing_processes::run_in_child([&] {
    int failed = 0;
    failed |= one->test().status().code() == Code::forked ? 0 : 1;
    failed |= one->wait().code() == Code::forked ? 0 : 2;
    failed |= all.members()[0]->progress().code() == Code::forked ? 0 : 4;
    *one = Request();
    all.drop(0);
    if (!testing_processes::kChildrenMayHaveThreads) return failed;
    // One of its own, with a thread of its own.
    Ranks own({.ranks = 2, .timeout = kLong, .progress_core = a_core()});
    std::vector<float> a(10'000, 1), b(10'000, 1);
    auto first = own.members()[0]->start(ring_of(a));
    failed |= own.members()[1]->call(ring_of(b)).ok() ? 0 : 8;
    failed |= first->wait().ok() && a[9'999] == 2 ? 0 : 16;
    return failed;
  });
  EXPECT_EQ(child, "exit 0");
  EXPECT_TRUE(all.members()[1]->call(ring_of(y)).ok());
  EXPECT_TRUE(one->wait().ok());
  EXPECT_EQ(y, std::vector<float>(10'000, 2));
}

TEST(ProgressThread, NeedsACoreThatThereIs) {
  const auto refusal = [](int core) {
    const auto made = Communicator::create({.ranks = 1, .progress_core = core});
    EXPECT_EQ(made.status().code(), Code::invalid_argument);
    const auto team = Team::create({.ranks = 1, .progress_core = core});
    EXPECT_EQ(team.status().text(), made.status().text());
    return made.status().text();
  };
  EXPECT_EQ(refusal(-1), "progress_core is -1; allowed are 0 and more");
  for (const int core : {1'000'000, std::numeric_limits<int>::max()}) {
    EXPECT_TRUE(refusal(core).starts_with("progress_core is " + std::to_string(core) +
                                          ": thread not pinned to CPU"))
        << refusal(core);
  }
}

TEST(ProgressThread, HasItsCoreForItself) {
  const Topology here = Topology::detect();
  if (here.cores() < 2) GTEST_SKIP() << "there is one core";
  for (const Cpu& cpu : {here.cpus().front(), here.cpus().back()}) {
    const auto on_its_core = [&](const Team& team) {
      return here.find_cpu(team.report().front().place.cpu)->core == cpu.core;
    };
    const auto team = Team::create({.ranks = 1, .progress_core = cpu.os_index});
    ASSERT_TRUE(team.ok()) << team.status().text();
    EXPECT_FALSE(on_its_core(**team));
  }
  // As long as the communicator lives, from the other teams too.
  const int first = here.cpus().front().os_index;
  const auto comm = Communicator::create({.ranks = 1, .progress_core = first});
  const auto team = Team::create({.ranks = 1});
  EXPECT_NE((*team)->report().front().place.cpu, first);
}

TEST(ProgressThread, CountsAmongTheThreadsThatPlayRanks) {
  const int cpus = cpu_budget().cpus;
  const auto mode_of = [&](std::optional<int> core) {
    Ranks all({.ranks = cpus, .timeout = kLong, .progress_core = core});
    for (const Status& status : all.run([](Member& me) { return me.barrier(); })) {
      EXPECT_TRUE(status.ok()) << status.text();
    }
    // It counts itself as soon as it runs.
    while (core && all.communicator().wait_policy().mode == WaitPolicy::Mode::spin) {
      std::this_thread::yield();
    }
    return all.communicator().wait_policy().mode;
  };
  EXPECT_EQ(mode_of(std::nullopt), WaitPolicy::Mode::spin);
  EXPECT_EQ(mode_of(a_core()), WaitPolicy::Mode::yield);
  EXPECT_EQ(mode_of(std::nullopt), WaitPolicy::Mode::spin);  // it is gone
}

}  // namespace
}  // namespace rankine
