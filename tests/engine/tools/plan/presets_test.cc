// Every preset at up to 64 ranks: what the plan says of a collective, the clocks of threads that
// play it say too, to the last tick; and what is exposed and what is hidden is all communication.
//
// Models are of full size, and so are the times; buffers are thinned (play_step.h), since those of
// 405 billion parameters are in no machine's memory 64 times.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/network/fabric.h"
#include "engine/read/count.h"
#include "engine/tools/plan/play_step.h"
#include "engine/tools/plan/step.h"

namespace rankine::tools {
namespace {

constexpr int kMostRanks = 64;
constexpr std::uint64_t kMostBytes = 1024;

// All known machines, and the first of them on every preset of a network that so many ranks fit.
std::vector<Machine> machines() {
  std::vector<Machine> all;
  for (const KnownMachine& known : known_machines()) all.push_back(known.machine);
  for (const Regime& regime : regimes()) {
    Machine machine = all.front();
    machine.name = "a100 on " + std::string(regime.name);
    machine.network = regime.fabric;
    all.push_back(std::move(machine));
  }
  return all;
}

// What people do with so many ranks: each axis alone, and together.
std::vector<Mapping> mappings(const Model& model) {
  std::vector<Mapping> all;
  const auto add = [&](std::array<int, kAxes> axes, auto change) {
    Mapping mapping;
    mapping.axes = axes;
    mapping.micro_batches = 4 * mapping[Axis::pp];
    change(mapping);
    if (check_mapping(model, mapping).ok()) all.push_back(mapping);
  };
  const auto plain = [](Mapping&) {};
  const auto split = [](Mapping& m) {
    m.splits_norms = true;
    m.zero = 1;
  };
  add({1, 1, 1, 64, 1}, plain);
  add({1, 1, 1, 16, 1}, [](Mapping& m) { m.zero = 3; });
  add({4, 1, 1, 4, 3}, plain);
  add({8, 1, 1, 8, 1}, split);
  add({8, 1, 1, 2, 2}, [&](Mapping& m) {
    split(m);
    m.interleave = 2;
  });
  add({2, 4, 1, 2, 1}, [](Mapping& m) { m.zero = 2; });
  add({1, 1, 8, 4, 2}, split);
  add({2, 1, 4, 1, 1}, [](Mapping& m) { m.router_skew = 1.5; });
  add({2, 1, 1, 1, 2}, [](Mapping& m) { m.order = PipelineOrder::zbv; });
  return all;
}

// What is exposed and what is hidden is all communication, and with computing and waiting all time.
void expect_sums(const StepPlan& plan, const std::string& what) {
  double exposed = 0, hidden = 0, all = 0;
  for (const PlannedCollective& c : plan.collectives) {
    EXPECT_GE(c.hidden, 0) << what << ": " << c.what;
    EXPECT_GE(c.exposed(), -1e-12 * c.seconds()) << what << ": " << c.what;
    exposed += c.exposed();
    hidden += c.hidden;
    all += c.times * c.price.seconds;
  }
  EXPECT_NEAR(exposed + hidden, all, 1e-12 * all) << what;
  EXPECT_NEAR(plan.computing() + exposed + plan.bubble(), plan.seconds, 1e-9 * plan.seconds)
      << what;
}

void expect_played_as_planned(const StepPlan& plan, const std::string& what) {
  const auto played = play_collectives(plan, {.most_bytes = kMostBytes});
  ASSERT_TRUE(played.ok()) << what << ": " << played.status().text();
  ASSERT_FALSE(played->empty());
  for (const PlayedCollective& c : *played) {
    EXPECT_EQ(c.seconds, c.planned.price.seconds)
        << what << ": " << c.planned.what << ", " << c.planned.price.algorithm->name << ", "
        << c.planned.price.bytes << " bytes";
    EXPECT_EQ(c.wrong, 0) << what << ": " << c.planned.what;
    EXPECT_LE(c.bytes, std::max(kMostBytes, c.planned.price.sent)) << what;
  }
}

class Presets : public testing::TestWithParam<std::string> {};

// Every mapping on every machine is planned. All are played on the first, and four, which differ
// from model to model, on each other machine and preset of a network; of those that gather
// parameters among 64 threads, which takes many seconds on few cores, only on the first.
TEST_P(Presets, ArePlayedAsTheyArePlanned) {
  const Model model = find_published_model(GetParam())->model;
  const std::vector<Mapping> mapped = mappings(model);
  ASSERT_GE(mapped.size(), 3u);
  const std::vector<Machine> all = machines();
  std::size_t turn = model.name.size();
  for (std::size_t n = 0; n < all.size(); ++n, turn += 2) {
    for (std::size_t m = 0; m < mapped.size(); ++m) {
      const Machine& machine = all[n];
      const Mapping& mapping = mapped[m];
      ASSERT_LE(mapping.ranks(), kMostRanks);
      if (!wired_for(machine.network, mapping.ranks()).ok()) continue;  // 48 in a hypercube
      Prices prices(machine, mapping.ranks(), *find_menu("nccl"));
      const auto plan = plan_step(model, mapping, machine, prices);
      const std::string what = model.name + ", " + describe(mapping) + ", " + machine.name;
      ASSERT_TRUE(plan.ok()) << what << ": " << plan.status().text();
      expect_sums(*plan, what);
      const bool is_slow = mapping.ranks() > 32 && mapping.zero > 0;
      const bool has_turn = !is_slow && (turn + m) % mapped.size() < 4;
      if (n == 0 || has_turn) expect_played_as_planned(*plan, what);
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const PublishedModel& one : published_models()) all.push_back(one.model.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Each, Presets, testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace rankine::tools
