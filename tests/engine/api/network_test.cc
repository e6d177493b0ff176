// Calls on a modelled network: their data are right, and their times are the simulator's, to the
// last tick, from call to call.
#include "engine/api/network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/network/network_clock.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/run/interpret.h"
#include "tests/engine/api/network_twin.h"
#include "tests/numa/scoped_env.h"

namespace rankine {
namespace {

// The whole catalogue, one call after the other, so that each begins where the one before has left
// its ranks: all at different times.
TEST(CallsOnANetwork, TakeTheTimeOfTheSimulatorBackToBack) {
  for (const char* name : {"scale_out", "scale_up,sync=rounds", "switch", "two_level", "torus"}) {
    const auto on = network(name);
    for (const int ranks : {1, 2, 3, 5, 8}) {
      if (!wired_for(on->fabric, ranks).ok()) continue;
      Twin twin(ranks, on);
      std::uint64_t number = 0;
      for (const Algorithm& line : catalogue()) {
        const std::uint64_t random = splitmix(++number * kSplitMixStep);
        const std::size_t count = line.collective == Collective::barrier ? 1 : 1 + random % 400;
        const Rank root = static_cast<Rank>(random / 400 % static_cast<std::uint64_t>(ranks));
        const bool in_place = line.collective == Collective::all_reduce && random >> 63 != 0;
        const auto params = twin.params_for(line, root);
        if (!params) continue;
        twin.call(line, *params, count, in_place);
        if (testing::Test::HasFailure()) return;
      }
      EXPECT_EQ(twin.end() > 0, ranks > 1);
    }
  }
}

TEST(CallsOnANetwork, WaitForWorkOfARanksOwn) {
  Twin twin(4, network("scale_out"));
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  const Params params = *twin.params_for(ring);
  twin.call(ring, params, 1000, false);
  twin.compute(2, 0.25);
  twin.expect_same_times("work");
  twin.call(ring, params, 1000, true);
  EXPECT_GT(twin.end(), 0);
}

// A PCIe switch: what only copies is the switch's, sums are messages.
TEST(CallsOnANetwork, OfASwitchThatCopiesAndDoesNotAdd) {
  constexpr int kRanks = 5;
  const auto pcie = network(R"({"preset": "pcie", "multicast": true, "alpha_switch": "150ns"})");
  const auto line = [](Collective collective, std::string_view name) -> const Algorithm& {
    return *find_algorithm(collective, name);
  };
  Twin twin(kRanks, pcie);
  for (const Algorithm* served :
       {&line(Collective::broadcast, "switch"), &line(Collective::all_gather, "switch"),
        &line(Collective::all_reduce, "binomial_multicast")}) {
    const auto params = twin.params_for(*served);
    ASSERT_TRUE(params.has_value());
    twin.call(*served, *params, 100, false);
    ASSERT_FALSE(HasFailure());
  }
  CallNetwork lowering = *pcie;
  lowering.lower = true;
  Ranks refusing({.ranks = kRanks, .network = pcie});
  Ranks lowered({.ranks = kRanks, .network = std::make_shared<const CallNetwork>(lowering)});
  for (const Collective sums : {Collective::reduce, Collective::reduce_scatter}) {
    const auto call = [&](Member& me) {
      std::vector<float> in(kRanks * 10, 1.0F), out(kRanks * 10);
      const Status status = me.call({.collective = sums,
                                     .in = in.data(),
                                     .out = out.data(),
                                     .count = 10,
                                     .type = DataType::f32,
                                     .options = {.algorithm = "switch"}});
      if (status.ok() && (me.rank() == 0 || sums == Collective::reduce_scatter)) {
        EXPECT_EQ(out[9], static_cast<float>(kRanks));
      }
      return status;
    };
    for (const Status& status : refusing.run(call)) {
      EXPECT_EQ(status.code(), Code::invalid_argument);
      EXPECT_NE(status.text().find("has no ALU"), std::string::npos) << status.text();
    }
    for (const Status& status : lowered.run(call)) EXPECT_TRUE(status.ok()) << status.text();
  }
}

// Where they name no algorithm, they get the one that is the cheapest there.
TEST(CallsOnANetwork, ChooseTheAlgorithmByTheNetwork) {
  constexpr int kRanks = 8;
  for (const char* name : {"scale_out", "switch", "torus"}) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 18}) {
      const auto on = network(name);
      Params params;
      params.ranks = kRanks;
      params.segments = 0;
      const auto predicted = predict(Collective::all_reduce, params, count * 4, on->fabric);
      ASSERT_TRUE(predicted.ok());
      const auto best =
          std::find_if(predicted->begin(), predicted->end(), [](const Candidate& candidate) {
            return candidate.ok() && candidate.algorithm->other_bits.empty();
          });
      Ranks all({.ranks = kRanks, .network = on});
      const auto results = all.run([&](Member& me) {
        std::vector<float> data(count, 1.0F);
        const auto plan = me.plan_of({.in = data.data(), .out = data.data(), .count = count});
        if (!plan.ok()) return plan.status();
        EXPECT_TRUE(plan->starts_with(std::string(best->algorithm->name) + ",")) << *plan;
        return me.all_reduce(std::span(data));
      });
      double seconds = 0;
      for (std::size_t r = 0; r < results.size(); ++r) {
        EXPECT_TRUE(results[r].ok()) << results[r].text();
        seconds = std::max(seconds, all.members()[r]->model_time());
      }
      EXPECT_EQ(seconds, best->seconds) << name << ", " << best->algorithm->name;
    }
  }
}

// A program of its users, at full speed and on networks that the environment names: it prints what
// the simulator says.
TEST(CallsOnANetwork, TakeAProgramAsItIs) {
  const auto program = [](int ranks) {
    auto team = Team::create({.ranks = ranks});
    team.status().throw_if_error();
    std::vector<double> ended(static_cast<std::size_t>(ranks));
    (*team)
        ->run([&](Member& me) {
          std::vector<float> gradient(1 << 16, 1.0F);
          me.all_reduce(std::span(gradient), ReduceOp::sum, {.algorithm = "ring"}).throw_if_error();
          EXPECT_EQ(gradient.back(), static_cast<float>(ranks));
          ended[static_cast<std::size_t>(me.rank())] = me.model_time();
        })
        .throw_if_error();
    return *std::max_element(ended.begin(), ended.end());
  };
  constexpr int kRanks = 16;
  EXPECT_EQ(program(kRanks), 0);
  const Algorithm& ring = *find_algorithm(Collective::all_reduce, "ring");
  Params params;
  params.ranks = kRanks;
  const Schedule schedule = ring.make(params);
  for (const char* name : {"scale_up", "scale_out", "torus"}) {
    const ScopedEnv variable("RANKINE_NETWORK", name);
    const auto simulated =
        simulate(schedule, goal_of(ring, params, schedule), network(name)->fabric, 4 << 16, {});
    ASSERT_TRUE(simulated.ok());
    EXPECT_EQ(program(kRanks), simulated->seconds) << name;
  }
}

// Blocks of the users' own sizes cost what each of them has.
TEST(CallsOnANetwork, ChargeCountsAsTheyAre) {
  constexpr int kRanks = 3;
  const std::vector<std::size_t> counts = {7, 0, 300};
  const auto on = network(R"({"alpha": "1us", "bandwidth": "1GB/s"})");
  Ranks all({.ranks = kRanks, .network = on});
  const auto results = all.run([&](Member& me) {
    const std::vector<float> in(counts[static_cast<std::size_t>(me.rank())], 1.0F);
    std::vector<float> out(307);
    return me.call({.collective = Collective::all_gather,
                    .in = in.data(),
                    .out = out.data(),
                    .counts = counts,
                    .options = {.algorithm = "ring"}});
  });
  for (const Status& status : results) ASSERT_TRUE(status.ok()) << status.text();
  // Rounds of a ring: each rank forwards, one after the other, what came from its left. Rank 2's
  // block of 1,200 bytes goes to 0 and then to 1; what is longer ends later.
  EXPECT_DOUBLE_EQ(all.members()[1]->model_time(), 2 * (1e-6 + 1200e-9));
}

TEST(CallsOnANetwork, AreWatchedByObserversToo) {
  struct Counts : RoundObserver {
    bool before_round(int) noexcept override { return ++rounds > 0; }
    int rounds = 0;
  };
  Ranks all({.ranks = 3, .network = network("scale_up")});
  std::vector<Counts> watching(3);
  const auto results = all.run([&](Member& me) {
    std::vector<float> data(30, 1.0F);
    return me.call({.collective = Collective::all_reduce,
                    .in = data.data(),
                    .out = data.data(),
                    .count = data.size(),
                    .options = {.algorithm = "ring"}},
                   watching[static_cast<std::size_t>(me.rank())]);
  });
  for (const Status& status : results) ASSERT_TRUE(status.ok()) << status.text();
  for (const Counts& one : watching) EXPECT_EQ(one.rounds, 4);
  EXPECT_GT(all.members()[0]->model_time(), 0);
}

// Whoever waits for a clock waits as for data: until the deadline.
TEST(CallsOnANetwork, EndWithTheirDeadline) {
  using std::chrono_literals::operator""ms;
  Ranks all({.ranks = 3, .timeout = 100ms, .network = network("scale_out")});
  const auto results = all.run([](Member& me) {
    std::vector<float> data(10, 1.0F);
    return me.rank() == 2 ? Status() : me.all_reduce(std::span(data));
  });
  EXPECT_EQ(results[0].code(), Code::timeout) << results[0].text();
  EXPECT_EQ(results[1].text(), results[0].text());
}

TEST(CallsOnANetwork, RefuseWhatTheNetworkCannotDoAndGoOn) {
  Ranks all({.ranks = 4, .network = network("scale_out")});
  const auto reduce = [&](std::string_view algorithm) {
    return all.run([&](Member& me) {
      std::vector<float> data(10, 1.0F);
      return me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = algorithm});
    });
  };
  for (const Status& status : reduce("switch")) {
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_NE(status.text().find("ALU"), std::string::npos) << status.text();
  }
  EXPECT_EQ(all.members()[0]->model_time(), 0);
  Ranks lowered({.ranks = 4, .network = network("scale_out,lower=yes")});
  for (const Status& status : lowered.run([&](Member& me) {
         std::vector<float> data(10, 1.0F);
         return me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = "switch"});
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  EXPECT_GT(lowered.members()[0]->model_time(), 0);
  for (const Status& status : reduce("ring")) EXPECT_TRUE(status.ok()) << status.text();
}

TEST(CallsAtFullSpeed, HaveNoModelTime) {
  Ranks all({.ranks = 2});
  all.run([](Member& me) { return me.barrier(); });
  EXPECT_EQ(all.members()[0]->model_time(), 0);
  EXPECT_EQ(all.members()[0]->compute(1).text(),
            "compute() is for modelled networks; this communicator has none");
}

TEST(CallNetwork, IsRefusedWhenACommunicatorIsMade) {
  const auto text = [](CallNetwork network, int ranks) {
    const auto made = Communicator::create(
        {.ranks = ranks, .network = std::make_shared<const CallNetwork>(std::move(network))});
    EXPECT_EQ(made.status().code(), Code::invalid_argument);
    return made.status().text();
  };
  CallNetwork no_ports;
  no_ports.fabric.ports = 0;
  EXPECT_NE(text(no_ports, 4).find("network: ports is 0"), std::string::npos);
  CallNetwork negative;
  negative.fabric.link.alpha = Rational(-1);
  EXPECT_NE(text(negative, 4).find("alpha is"), std::string::npos) << text(negative, 4);
  CallNetwork torus = *network("torus");
  torus.fabric.wiring.dims = {4, 4};
  EXPECT_NE(text(torus, 9).find("4x4"), std::string::npos) << text(torus, 9);
  CallNetwork few_seats = *network("scale_out");
  few_seats.seats = std::make_shared<NetworkSeats>(3);
  EXPECT_EQ(text(few_seats, 4), "network: seats has 3 places; the network has 4");
}

TEST(CallNetwork, IsReadFromATextOrTheEnvironment) {
  EXPECT_EQ(network("scale_out,clock=virtual,sync=rounds")->sync, Sync::rounds);
  EXPECT_EQ(network(R"({"name": "mine", "ports": 3, "alpha": "2us"})")->fabric.ports, 3);
  const auto error = [](std::string_view text) { return find_call_network(text).status().text(); };
  EXPECT_NE(error("scale_outt").find("scale_outt"), std::string::npos) << error("scale_outt");
  EXPECT_EQ(network("scale_out,clock=wall,dilate=2.5")->clock, ClockMode::wall);
  EXPECT_EQ(network("scale_out,clock=wall,dilate=2.5")->dilate, 2.5);
  EXPECT_EQ(network("scale_out,dilate=auto")->dilate, 0);
  EXPECT_TRUE(network("scale_out,lower=yes")->lower);
  EXPECT_EQ(error("scale_out,lower=1"), "lower is '1'; allowed are yes, no");
  EXPECT_EQ(error("scale_out,clock=none"), "clock is 'none'; allowed are virtual, wall");
  EXPECT_EQ(error("scale_out,dilate=-1"),
            "dilate is '-1'; allowed are positive numbers up to 1e12, and auto");
  EXPECT_EQ(error("scale_out,sync=lockstep"), "sync is 'lockstep'; allowed are dataflow, rounds");
  EXPECT_EQ(error("scale_out,prots=2"),
            "'prots=2' is unknown; allowed are sync=, lower=, clock=, dilate=");
  {
    const ScopedEnv variable("RANKINE_NETWORK", "scale_out");
    auto team = Team::create({.ranks = 2});
    ASSERT_TRUE(team.ok()) << team.status().text();
    double seconds = 0;
    const Status status = (*team)->run([&](Member& me) {
      me.barrier().throw_if_error();
      if (me.rank() == 0) seconds = me.model_time();
    });
    EXPECT_TRUE(status.ok()) << status.text();
    EXPECT_GT(seconds, 0);
  }
  const ScopedEnv variable("RANKINE_NETWORK", "nowhere");
  EXPECT_NE(Team::create({.ranks = 2}).status().text().find("RANKINE_NETWORK"), std::string::npos);
}

}  // namespace
}  // namespace rankine
