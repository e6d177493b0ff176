// A call keeps its promise about time while it is planned, and a plan its limit of memory.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/communicator.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using std::chrono_literals::operator""ms;

// Takes much longer to plan than the deadlines here: 1.5 million operations.
constexpr int kRanks = 24;
constexpr std::size_t kCount = std::size_t{1} << 20;
CallOptions long_to_plan(std::chrono::milliseconds timeout = 0ms) {
  return {.algorithm = "double_tree", .segments = 16384, .timeout = timeout};
}

TEST(Planning, EndsWithTheDeadlineOnAllRanks) {
  Ranks all({.ranks = kRanks, .plan_bytes = std::size_t{64} << 30});
  std::vector<std::vector<float>> data(kRanks, std::vector<float>(kCount));
  const auto results = all.run([&](Member& me) {
    return me.all_reduce(std::span(data[static_cast<std::size_t>(me.rank())]), ReduceOp::sum,
                         long_to_plan(20ms));
  });
  for (const Status& status : results) {
    EXPECT_EQ(status.code(), Code::timeout) << status.text();
    EXPECT_EQ(status.text(), results[0].text());
  }
  EXPECT_NE(results[0].text().find("planning its call"), std::string::npos) << results[0].text();
  EXPECT_EQ(all.communicator().health().code(), Code::timeout);
  EXPECT_EQ(all.communicator().cached_plans(), 0u) << "planning went on to its end";
}

TEST(Planning, OfOneRankThatAsksForAPlanEndsToo) {
  Ranks all({.ranks = kRanks, .timeout = 20ms, .plan_bytes = std::size_t{64} << 30});
  const auto plan = all.members()[0]->plan_of({.count = kCount, .options = long_to_plan()});
  EXPECT_EQ(plan.status().code(), Code::timeout) << plan.status().text();
  EXPECT_EQ(plan.status().text(), "no answer within 20 ms: rank 0 was still planning its call");
  EXPECT_EQ(all.communicator().cached_plans(), 0u) << "planning went on to its end";
}

TEST(Planning, EndsWithAnAbortFromAnotherThread) {
  Ranks all({.ranks = kRanks, .plan_bytes = std::size_t{64} << 30});
  std::vector<std::vector<float>> data(kRanks, std::vector<float>(kCount));
  std::thread stranger([&] {
    std::this_thread::sleep_for(100ms);
    all.communicator().abort("enough");
  });
  const auto results = all.run([&](Member& me) {
    return me.all_reduce(std::span(data[static_cast<std::size_t>(me.rank())]), ReduceOp::sum,
                         long_to_plan());
  });
  stranger.join();
  EXPECT_EQ(all.communicator().cached_plans(), 0u) << "planning went on to its end";
  for (const Status& status : results) {
    EXPECT_EQ(status.code(), Code::aborted) << status.text();
    EXPECT_EQ(status.text(), "enough");
  }
}

TEST(Planning, ACallThatNeedsTooMuchMemoryIsRefusedAndTheCommunicatorGoesOn) {
  constexpr int kFew = 4;
  Ranks all({.ranks = kFew, .plan_bytes = std::size_t{1} << 20});
  std::vector<std::vector<float>> data(kFew, std::vector<float>(100'000, 1.0F));
  const auto call = [&](const CallOptions& options) {
    return all.run([&](Member& me) {
      return me.all_reduce(std::span(data[static_cast<std::size_t>(me.rank())]), ReduceOp::sum,
                           options);
    });
  };
  const auto refused = call({.algorithm = "chain", .segments = 1000});
  for (const Status& status : refused) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_EQ(status.text(), refused[0].text());
  }
  EXPECT_NE(refused[0].text().find("all_reduce among 4 ranks by chain with 1000 segments: to plan "
                                   "6000 moves of a block may take 6 MiB; allowed are 1 MiB"),
            std::string::npos)
      << refused[0].text();
  for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(100'000, 1.0F));
  // What it names does it, and so does the engine's choice.
  const std::string rest = refused[0].text().substr(refused[0].text().find("least is ") + 9);
  const std::string least = rest.substr(0, rest.find_first_of(" ,"));
  for (const Status& status : call({.algorithm = least})) EXPECT_TRUE(status.ok()) << status.text();
  for (const Status& status : call({})) EXPECT_TRUE(status.ok()) << status.text();
  for (const auto& vector : data) EXPECT_EQ(vector, std::vector<float>(100'000, 16.0F));
}

TEST(Planning, NeedsSomeMemory) {
  const auto made = Communicator::create({.ranks = 2, .plan_bytes = 0});
  EXPECT_EQ(made.status().text(), "plan_bytes is 0; it must be positive");
}

}  // namespace
}  // namespace rankine
