// The header rankine.hpp in a C++17 project.
#include "engine/api/c/rankine.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

static_assert(__cplusplus == 201703L, "this is what the test is about");

struct BFloat {
  std::uint16_t bits;
};
template <>
struct rk::DataType<BFloat> {
  static constexpr rkDataType_t value = rkBfloat16;
};

namespace {

constexpr int kRanks = 3;

void on_threads(rk::Communicator& team, const std::function<void(int, rk::Member&)>& f) {
  std::vector<std::thread> threads;
  for (int r = 0; r < team.ranks(); ++r) threads.emplace_back([&, r] { f(r, team[r]); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Cxx17, RunsRanksOnThreads) {
  rk::Communicator team(kRanks);
  std::vector<int> sums(kRanks);
  team.run([&](rk::Member& me) {
    std::vector<int> x(1, me.rank());
    me.all_reduce(x);
    sums[static_cast<std::size_t>(me.rank())] = x[0];
  });
  EXPECT_EQ(sums, (std::vector<int>{3, 3, 3}));
}

TEST(Cxx17, AThreadThatThrowsEndsTheCallsOfTheOthers) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = 3'600'000;
  rk::Communicator team(kRanks, config);
  std::vector<std::string> texts(kRanks);
  try {
    team.run([&](rk::Member& me) {
      me.barrier();
      if (me.rank() == 1) throw std::logic_error("out of luck");
      try {
        me.barrier();
      } catch (const rk::Error& error) {
        EXPECT_EQ(error.result(), rkRemoteError);
        texts[static_cast<std::size_t>(me.rank())] = error.what();
        throw;
      }
    });
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::logic_error& error) {
    EXPECT_EQ(error.what(), std::string("out of luck"));
  }
  const std::string told = "rkBarrier: rank 1 failed: out of luck";
  EXPECT_EQ(texts, (std::vector<std::string>{told, "", told}));
}

TEST(Cxx17, AMemberThatIsUnwoundIsNotWaitedFor) {
  rkConfig_t config = RK_CONFIG_INITIALIZER;
  config.timeoutMs = 3'600'000;
  rkUniqueId id;
  rk::check(rkGetUniqueId(&id));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        rk::Member me(id, 2, rank, config);
        me.barrier();
        if (rank == 1) throw std::logic_error("out of luck");
        me.barrier();
        ADD_FAILURE() << "rank 1 is there";
      } catch (const rk::Error& error) {
        EXPECT_EQ(error.result(), rkRankLost) << error.what();
      } catch (const std::logic_error&) {
        EXPECT_EQ(rank, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Cxx17, BucketsReduceManyTensors) {
  rk::Communicator team(kRanks);
  team.run([](rk::Member& me) {
    std::vector<std::vector<float>> tensors(10, std::vector<float>(10, 1.0F));
    std::array<float, 3> unused{7, 7, 7};
    rk::Buckets buckets(me);
    for (auto& tensor : tensors) buckets.add(tensor);
    if (me.rank() == 0) {
      buckets.add_unused(unused);
    } else {
      buckets.add(unused);
    }
    buckets.flush();
    buckets.wait_for(10);
    EXPECT_EQ(tensors[9][0], 3);
    me.set_call_site("the end");
    buckets.wait();
    EXPECT_EQ(buckets.calls(), 1u);
    EXPECT_EQ(tensors[9][9], 3);
    EXPECT_EQ(unused[2], 14);
    buckets.add(tensors[0]);  // the destructor of Buckets waits
  });
}

TEST(Cxx17, ActiveRanksListTheContributors) {
  rk::Communicator team(kRanks);
  team.run([](rk::Member& me) {
    rk::ActiveRanks active(me, std::chrono::hours(1));
    const std::vector<int> all = {0, 1, 2};
    const std::vector<int> in(kRanks, me.rank() + 1);
    std::vector<int> out(kRanks), block(1);
    active.wait_for(all);
    EXPECT_EQ(active.all_reduce(in, out), all);
    EXPECT_EQ(out, std::vector<int>(kRanks, 6));
    EXPECT_EQ(active.reduce_scatter(in, block), all);
    EXPECT_EQ(block[0], 6);
    block[0] = me.rank();
    EXPECT_EQ(active.all_gather(block, out), all);
    EXPECT_EQ(out, all);
    EXPECT_EQ(active.all_to_all(in, out), all);
    EXPECT_EQ(out, (std::vector<int>{1, 2, 3}));
    EXPECT_EQ(active.broadcast(block, 2), std::vector<int>{2});
    EXPECT_EQ(block[0], 2);
    EXPECT_THROW(active.all_gather(in, out), rk::Error);
  });
}

// Expert e multiplies by e + 1. The first expert drops the last of four rows.
TEST(Cxx17, TokensGoToExpertsAndReturnAsAnotherType) {
  rk::Communicator team(kRanks);
  team.run([](rk::Member& me) {
    const int rank = me.rank();
    rk::Experts<BFloat, float> made(me, kRanks, 2, 2, 3);
    rk::Experts<BFloat, float> experts = std::move(made);
    const BFloat number{static_cast<std::uint16_t>(
        std::array{0x3f80, 0x4000, 0x4040}[static_cast<std::size_t>(rank)])};
    const std::vector<BFloat> tokens(2, number);
    const std::array<std::int32_t, 2> indices{(rank + 1) % kRanks, 0};
    std::vector<BFloat> rows(6);
    const auto counts = experts.dispatch(tokens, indices, rows);
    EXPECT_EQ(counts.size(), 1u);
    const std::size_t count = counts.data()[0];
    EXPECT_EQ(count, rank == 0 ? 3u : 1u);
    std::vector<float> results, out(2);
    for (std::size_t i = 0; i < 2 * count; ++i) {
      const std::uint32_t bits = std::uint32_t{rows[i].bits} << 16;
      float x;
      std::memcpy(&x, &bits, sizeof(x));
      results.push_back(x * static_cast<float>(rank + 1));
    }
    experts.combine(results, std::vector<float>{0.5F, 4}, out);
    const auto mine = static_cast<float>(rank + 1);
    EXPECT_EQ(out[1], 0.5F * mine * static_cast<float>((rank + 1) % kRanks + 1) +
                          (rank == 2 ? 0.0F : 4 * mine));
    EXPECT_EQ(experts.dropped().size(), rank == 2 ? 1u : 0u);
    EXPECT_THROW(experts.combine(results, std::vector<float>(), out), rk::Error);
    EXPECT_THROW(experts.dispatch(tokens, std::vector<std::int32_t>(1), rows), rk::Error);
  });
}

TEST(Cxx17, TakesContainersArraysAndViews) {
  rk::Communicator team(kRanks);
  on_threads(team, [](int rank, rk::Member& me) {
    EXPECT_EQ(me.rank(), rank);
    EXPECT_EQ(me.ranks(), kRanks);
    const std::vector<int> in(kRanks, rank + 1);
    std::array<int, kRanks> out{};
    me.all_reduce(in, out);
    EXPECT_EQ(out, (std::array<int, kRanks>{6, 6, 6}));
    int raw[kRanks] = {rank, rank, rank};
    me.all_reduce(raw, rkMax);
    EXPECT_EQ(raw[0], 2);
    me.reduce(in, out, 1, rkMax);
    if (rank == 1) {
      EXPECT_EQ(out[2], 3);
    }
    me.all_reduce(rk::view(in.data(), 2), rk::view(out.data(), 2), rkProd);
    EXPECT_EQ(out[1], 6);
    me.broadcast(out, 1);
    std::vector<int> all(kRanks * kRanks);
    me.all_gather(in, all);
    EXPECT_EQ(all, (std::vector<int>{1, 1, 1, 2, 2, 2, 3, 3, 3}));
    std::vector<int> one(1);
    me.reduce_scatter(in, one);
    EXPECT_EQ(one[0], 6);
    me.all_to_all(in, out);
    EXPECT_EQ(out, (std::array<int, kRanks>{1, 2, 3}));
    me.gather(one, out, 0);
    me.scatter(in, one, 2);
    EXPECT_EQ(one[0], 3);
    const std::vector<std::size_t> counts = {1, 0, 1};
    me.all_gather(in, out, counts);
    EXPECT_EQ(out[1], 3);
    me.reduce_scatter(in, one, counts);
    me.gather(in, out, 0, counts);
    me.scatter(in, one, 0, counts);
    me.all_to_all(in, out, std::vector<std::size_t>(kRanks * kRanks, 1));
    me.all_to_all(in, {8, 4, 0}, out, {}, std::vector<std::size_t>(kRanks * kRanks, 1));
    EXPECT_EQ(out, (std::array<int, kRanks>{1, 2, 3}));
    me.scan(in, out);
    EXPECT_EQ(out[2], (rank + 1) * (rank + 2) / 2);
    out = {-1, -1, -1};
    me.exscan(in, out);
    EXPECT_EQ(out[2], rank == 0 ? -1 : rank * (rank + 1) / 2);
    me.barrier();
    auto memory = me.allocate<double>(10);
    EXPECT_EQ(memory.size(), 10u);
    EXPECT_EQ(memory.data()[9], 0);
    me.all_reduce(memory);
    me.deallocate(memory.data());
    EXPECT_EQ(me.async_error(), rkSuccess);
    EXPECT_NE(me.flight_record().find("\"health\": \"ok\""), std::string::npos)
        << me.flight_record();
    EXPECT_EQ(me.model_time(), 0);
  });
}

TEST(Cxx17, ErrorsHaveTheirResultAndText) {
  rk::Communicator team(1);
  std::vector<float> x(4), y(3);
  try {
    team[0].all_reduce(x, y);
    ADD_FAILURE();
  } catch (const rk::Error& e) {
    EXPECT_EQ(e.result(), rkInvalidArgument);
    EXPECT_EQ(std::string(e.what()).find("out has 3 elements; allowed are 4"), 0U);
  }
  try {
    team[0].broadcast(x, 9);
    ADD_FAILURE();
  } catch (const rk::Error& e) {
    EXPECT_EQ(e.result(), rkInvalidArgument);
    EXPECT_STREQ(e.what(), "rkBcast: root is 9; allowed are 0 to 0");
  }
  EXPECT_THROW(team[0].compute(1), rk::Error);
  EXPECT_THROW(rk::Communicator(0), rk::Error);
  EXPECT_THROW(rk::Communicator(-1), rk::Error);
  EXPECT_THROW(team[0].allocate<double>(~std::size_t{0}), rk::Error);
  EXPECT_EQ(rk::version(), RK_VERSION_CODE);
}

TEST(Cxx17, RanksThatThereCannotBeCostNoMemory) {
  const auto kilobytes = [] {
    rusage used;
    EXPECT_EQ(getrusage(RUSAGE_SELF, &used), 0);
    return used.ru_maxrss;
  };
  const long before = kilobytes();
  EXPECT_THROW(rk::Communicator(200'000'000), rk::Error);
  EXPECT_LT(kilobytes() - before, 800'000) << "their handles have 1.6 GB";
}

TEST(Cxx17, MembersMoveAndGroupsStartTogether) {
  const rkUniqueId id = rk::unique_id();
  rk::Member a(id, 2, 0), b(id, 2, 1), c;
  EXPECT_EQ(c.get(), nullptr);
  c = std::move(b);
  EXPECT_EQ(b.get(), nullptr);
  int x = 1, y = 2;
  rk::Group group;
  a.all_reduce(rk::view(&x, 1));
  c.all_reduce(rk::view(&y, 1));
  group.end();
  EXPECT_EQ(x, 3);
  EXPECT_EQ(y, 3);
  c.abort();
  EXPECT_EQ(a.async_error(), rkAborted);
}

// An abort during a call of the rank's thread is safe; the thread sanitizer verifies this.
TEST(Cxx17, MembersAreAbortedFromAnyThread) {
  rk::Communicator team(2);
  std::thread waits([&] {
    try {
      team[0].barrier();
      ADD_FAILURE();
    } catch (const rk::Error& e) {  // or the abort came before the call began
      EXPECT_TRUE(e.result() == rkAborted || e.result() == rkInvalidArgument) << e.what();
    }
  });
  team[0].abort();
  waits.join();
  EXPECT_THROW(team[0].rank(), rk::Error);
  team[0].abort();  // does nothing
  EXPECT_EQ(team[1].async_error(), rkAborted);
}

TEST(Cxx17, RequestsAreOwned) {
  rk::Communicator team(kRanks);
  on_threads(team, [](int rank, rk::Member& me) {
    std::vector<int> x(1000, 1), y(1000, rank);
    rk::Group calls;
    me.all_reduce(x);
    me.all_reduce(y, rkMax);
    rk::Request request = calls.prepare();
    EXPECT_EQ(x[0], 1);
    EXPECT_NE(request.orders().find("by_rank"), std::string::npos);
    for (int i = 0; i < 3; ++i) {
      request.start();
      me.progress();
      while (!request.wait_for(std::chrono::seconds(10))) {
      }
    }
    EXPECT_EQ(x, std::vector<int>(1000, kRanks * kRanks * kRanks));
    EXPECT_EQ(y, std::vector<int>(1000, kRanks - 1));
    std::vector<rk::Request> requests;
    for (std::vector<int>* one : {&x, &y}) {
      rk::Group more;
      me.all_reduce(*one, rkMin);
      requests.push_back(more.async());
    }
    rk::wait_all(requests);
    {
      rk::Group more;
      me.all_reduce(x);
      const rk::Request goes = more.async();
    }  // the destructor of Request waits
    EXPECT_EQ(x[999], kRanks * kRanks * kRanks * kRanks);
    EXPECT_THROW(requests[0].wait(), rk::Error);
    EXPECT_THROW(rk::Request().start(), rk::Error);
  });
}

TEST(Cxx17, SplitsInAGroupIntoWhatStays) {
  rk::Communicator team(kRanks);
  std::vector<rk::Member> parts(kRanks);
  {
    rk::Group all;
    for (int r = 0; r < kRanks; ++r) team[r].split(0, -r, parts[static_cast<std::size_t>(r)]);
    all.end();
  }
  EXPECT_EQ(parts[0].rank(), kRanks - 1);
  EXPECT_THROW(team[0].split(0, 0, parts[0]), rk::Error);
  rk::Group refused;
  EXPECT_THROW(team[0].split(0, 0), rk::Error);
  EXPECT_THROW(refused.end(), rk::Error);
}

TEST(Cxx17, AGroupInsideAnotherOneHasNoRequest) {
  rk::Communicator team(1);
  std::vector<int> x(1, 1);
  rk::Group outer;
  {
    rk::Group inner;
    team[0].all_reduce(x);
    EXPECT_THROW(inner.async(), rk::Error);
  }
  outer.async().wait();
}

TEST(Cxx17, OrdersAreAskedForAndReadBack) {
  rkConfig_t config = rk::default_config();
  config.order = "by_rank";
  rk::Communicator team(2, config);
  EXPECT_EQ(team[1].order(), "by_rank");
  EXPECT_EQ(rk::Communicator(1)[0].order(), "");
  on_threads(team, [](int, rk::Member& me) {
    std::vector<float> x(1000, 1);
    rkCallOptions_t options = rk::default_call_options();
    options.order = "group_invariant";
    me.set_call_options(options);
    rk::Group calls;
    me.all_reduce(x);
    const rk::Request request = calls.prepare();
    EXPECT_NE(request.orders().find("group_invariant"), std::string::npos) << request.orders();
    options.order = "tidy";
    try {
      me.set_call_options(options);
      ADD_FAILURE();
    } catch (const rk::Error& error) {
      EXPECT_STREQ(error.what(),
                   "rkCommSetCallOptions: order is 'tidy'; allowed are coherent, repeatable, "
                   "by_rank, size_invariant, group_invariant, tp_invariant, and NULL");
    }
  });
}

}  // namespace
