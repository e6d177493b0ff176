// A tuning table for this machine decides for calls without an algorithm; a named algorithm takes
// precedence.

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace rankine {
namespace {

constexpr std::size_t kSmall = 8, kLarge = 65536;

// Sets RANKINE_TUNING before the process reads it, which happens once.
class TunedProcess : public testing::Environment {
 public:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/tuned_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    const std::string path = folder + "/tuning.json";
    const auto row = [](std::size_t bytes, std::string_view name) {
      return TuningRow{Collective::all_reduce, 2, bytes,
                       find_algorithm(Collective::all_reduce, name), 1};
    };
    const TuningTable table(read_hardware(), "now", {},
                            {row(kSmall, "ring"), row(kLarge, "central")});
    ASSERT_TRUE(save_tuning(table, path).ok());
    setenv("RANKINE_TUNING", path.c_str(), 1);
  }
};
[[maybe_unused]] const auto* const kProcess = testing::AddGlobalTestEnvironment(new TunedProcess);

// Runs an all-reduce of `bytes` bytes and checks the sums; returns the name of its algorithm.
std::string plan_of(const TeamOptions& options, std::size_t bytes, const CallOptions& call = {}) {
  auto team = Team::create(options);
  EXPECT_TRUE(team.ok()) << team.status().text();
  std::string plan;
  const Status status = (*team)->run([&](Member& me) {
    std::vector<float> in(bytes / sizeof(float), 1.0f), out(in.size());
    me.all_reduce(std::span<const float>(in), std::span(out), ReduceOp::sum, call).throw_if_error();
    EXPECT_EQ(out, std::vector<float>(in.size(), static_cast<float>(me.ranks())));
    if (me.rank() != 0) return;
    const auto found = me.plan_of({.collective = Collective::all_reduce,
                                   .in = in.data(),
                                   .out = out.data(),
                                   .count = in.size(),
                                   .options = call});
    if (found.ok()) plan = found->substr(0, found->find(','));
  });
  EXPECT_TRUE(status.ok()) << status.text();
  return plan;
}

TEST(Tuned, TheTableDecidesByRanksAndBytes) {
  EXPECT_EQ(plan_of({.ranks = 2}, kSmall), "ring");
  EXPECT_EQ(plan_of({.ranks = 2}, kLarge), "central");
  EXPECT_EQ(plan_of({.ranks = 3}, kSmall), "direct_one_shot");
}

TEST(Tuned, WhoeverSaysNoGetsTheDefault) {
  EXPECT_EQ(plan_of({.ranks = 2, .tuned = false}, kSmall), "direct_one_shot");
}

// The table's rows were measured with buffers that other ranks read directly. Ranks of other
// processes cannot read private buffers directly.
TEST(Tuned, PrivateBuffersOfProcessesGoByTheCosts) {
  const std::vector<Rank> also{1};
  const auto communicator =
      Communicator::create(
          {.ranks = 2, .rank = 0, .name = testing_processes::fresh_name(), .more_ranks = also})
          .value();
  const auto me = communicator->join(0).value();
  const auto plan_on = [&](float* data, bool shared) {
    const auto plan = me->plan_of({.collective = Collective::all_reduce,
                                   .in = data,
                                   .out = data + 2,
                                   .count = kSmall / sizeof(float),
                                   .options = {.shared_payloads = shared}})
                          .value();
    return plan.substr(0, plan.find(','));
  };
  std::vector<float> own(4);
  EXPECT_EQ(plan_on(own.data(), false), "direct_one_shot");
  const auto shared = me->allocate<float>(4).value();
  EXPECT_EQ(plan_on(shared.span().data(), true), "ring");
}

TEST(Tuned, WhatIsNamedRuns) {
  EXPECT_EQ(plan_of({.ranks = 2}, kSmall, {.algorithm = "chain"}), "chain");
  setenv("RANKINE_ALGO", "all_reduce:binary_tree", 1);
  EXPECT_EQ(plan_of({.ranks = 2}, kSmall), "binary_tree");
  unsetenv("RANKINE_ALGO");
}

}  // namespace
}  // namespace rankine
