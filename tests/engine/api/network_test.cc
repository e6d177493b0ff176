// Calls on a modelled network: the data are right, and the times equal the simulator's to the last
// tick, from call to call. The clocks themselves are tested too.

#include "engine/api/network.h"
#include "algorithms/catalogue.h"
#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/base/numbers.h"
#include "engine/faults/collective_case.h"
#include "engine/network/network_clock.h"
#include "engine/network/predict.h"
#include "engine/network/simulate.h"
#include "engine/network/wall.h"
#include "engine/run/interpret.h"
#include "tests/budget.h"
#include "tests/engine/api/ranks.h"
#include "tests/engine/api/simulated_times.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// Ranks that call on a modelled network, and a simulator of the same calls: after every call each
// rank's time and the time of every round must equal the simulator's to the last digit, and the
// data must be right.

std::shared_ptr<const CallNetwork> network(std::string_view text) {
  auto found = find_call_network(text);
  EXPECT_TRUE(found.ok()) << found.status().text();
  return found.ok() ? *found : nullptr;
}

// Groups of three ranks, unlike links, and a switch with all abilities; no number is a multiple of
// another.
Fabric uneven_fabric(int ports) {
  Fabric fabric;
  fabric.ports = ports;
  fabric.link = {Rational(7, 10'000'000), Rational(1, 70'000'000'000)};
  fabric.group = 3;
  fabric.between = {Rational(23, 10'000'000), Rational(1, 11'000'000'000)};
  fabric.multicast = fabric.alu = true;
  fabric.alpha_switch = Rational(13, 100'000'000);
  return fabric;
}

class Twin {
 public:
  Twin(int ranks, std::shared_ptr<const CallNetwork> on)
      : network_(std::move(on)),
        all_({.ranks = ranks, .network = network_}),
        pool_(Team::create({.ranks = ranks,
                            .placement = {.kind = PlacementPolicy::Kind::none, .cpus = {}},
                            .tuned = false})
                  .value()),
        times_(*network_, ranks),
        members_(static_cast<std::size_t>(ranks)),
        buffers_(members_.size()) {
    std::iota(members_.begin(), members_.end(), 0);
  }

  int ranks() const { return static_cast<int>(members_.size()); }

  std::optional<Params> params_for(const Algorithm& entry, Rank root = 0) const {
    return times_.params_for(entry, members_, root);
  }

  // Makes one call with u32 sums, checks the results, and simulates the call.
  void call(const Algorithm& entry, const Params& params, std::size_t count, bool in_place) {
    const int n = ranks();
    CollectiveCase test{
        .collective = entry.collective,
        .ranks = n,
        .count = count,
        .type = DataType::u32,
        .op = entry.collective == Collective::barrier ? ReduceOp::bor : ReduceOp::sum,
        .root = params.root,
        .peer = entry.takes("peer") ? params.peer : (params.root + 1) % n,
        .in_place = in_place,
        .options = {.algorithm = entry.name}};
    set_parameters(params, test.options);
    const Status run = pool_->run([&](Member& thread) {
      const Rank r = thread.rank();
      EXPECT_EQ(run_case(member(r), test, buffers_[static_cast<std::size_t>(r)]), "");
    });
    ASSERT_TRUE(run.ok()) << run.text();
    // The largest number of blocks on one rank: for an all-to-all one row of blocks.
    const std::size_t blocks =
        static_cast<std::size_t>(natural_blocks(entry.collective, n)) /
        (entry.collective == Collective::all_to_all ? static_cast<std::size_t>(n) : 1);
    simulate_too(entry, params, count * blocks * 4);
  }

  void compute(Rank r, double seconds) {
    member(r).compute(seconds).throw_if_error();
    times_.compute(r, seconds);
  }

  void expect_same_times(const std::string& after) {
    for (const Rank r : members_) {
      EXPECT_EQ(member(r).model_time(), times_.seconds(r)) << after << ": rank " << r;
    }
  }

  Member& member(Rank r) { return *all_.members()[static_cast<std::size_t>(r)]; }
  NetworkReport report() { return all_.communicator().network_report(); }
  std::vector<Ticks>& ends() { return times_.ends(); }
  Ticks end() { return *std::max_element(ends().begin(), ends().end()); }

 private:
  void simulate_too(const Algorithm& entry, const Params& params, std::size_t bytes) {
    const auto simulated = times_.call(entry, params, members_, bytes).value();
    const std::string what =
        std::string(name_of(entry.collective)) + " " + std::string(entry.name) + ", " +
        std::to_string(ranks()) + " ranks on " + network_->fabric.name + ", " +
        std::to_string(network_->fabric.ports) + " ports, " + std::string(name_of(network_->sync));
    expect_same_times(what);
    std::vector<double> rounds;
    for (const Ticks end : simulated.round_end) rounds.push_back(times_.in_seconds(end));
    EXPECT_EQ(report().rounds, rounds) << what;
  }

  const std::shared_ptr<const CallNetwork> network_;
  Ranks all_;
  const std::unique_ptr<Team> pool_;  // threads that sleep between calls
  SimulatedTimes times_;
  std::vector<Rank> members_;
  std::vector<CaseBuffers> buffers_;  // of the latest call, by rank
};

// --- The tests

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

// A PCIe switch that copies but does not add: calls that only copy use the switch, and sums use
// messages.
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
  for (const Collective sums :
       {Collective::reduce, Collective::reduce_scatter, Collective::all_reduce}) {
    const auto call = [&](Member& me) {
      std::vector<float> in(kRanks * 10, 1.0F), out(kRanks * 10);
      const Status status = me.call({.collective = sums,
                                     .in = in.data(),
                                     .out = out.data(),
                                     .count = 10,
                                     .options = {.algorithm = "switch"}});
      if (status.ok() && (me.rank() == 0 || sums != Collective::reduce)) {
        EXPECT_EQ(out[9], static_cast<float>(kRanks));
      }
      return status;
    };
    expect_all(refusing.run(call), Code::invalid_argument, {"has no ALU"});
    expect_ok(lowered.run(call));
  }
  EXPECT_EQ(refusing.members()[0]->model_time(), 0);
  EXPECT_GT(lowered.members()[0]->model_time(), 0);
  expect_ok(refusing.run([](Member& me) { return me.barrier(); }));
}

// A call without an algorithm gets the cheapest algorithm of the network.
TEST(CallsOnANetwork, ChooseTheAlgorithmByTheNetwork) {
  constexpr int kRanks = 8;
  for (const char* name : {"scale_out", "switch", "torus"}) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{1} << 18}) {
      const auto on = network(name);
      Params params{.ranks = kRanks, .segments = 0};
      const auto predicted = predict(Collective::all_reduce, params, count * 4, on->fabric).value();
      const auto best =
          std::find_if(predicted.begin(), predicted.end(), [](const Candidate& candidate) {
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

// A block costs the time of its count.
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
  expect_ok(results);
  // In a ring each rank forwards blocks from its left neighbour, one per round. Rank 2's block of
  // 1,200 bytes goes to rank 0 and then to rank 1; a longer block ends later.
  EXPECT_DOUBLE_EQ(all.members()[1]->model_time(), 2 * (1e-6 + 1200e-9));
}

// Observers see every round, and a wait for a clock ends at the deadline, like a wait for data.
TEST(CallsOnANetwork, AreWatchedAndEndWithTheirDeadline) {
  using std::chrono_literals::operator""ms;
  struct Counts : RoundObserver {
    bool before_round(int) noexcept override { return ++rounds > 0; }
    int rounds = 0;
  };
  Ranks all({.ranks = 3, .network = network("scale_up")});
  std::vector<Counts> watching(3);
  expect_ok(all.run([&](Member& me) {
    std::vector<float> data(30, 1.0F);
    return me.call({.in = data.data(),
                    .out = data.data(),
                    .count = data.size(),
                    .options = {.algorithm = "ring"}},
                   watching[static_cast<std::size_t>(me.rank())]);
  }));
  for (const Counts& one : watching) EXPECT_EQ(one.rounds, 4);
  expect_all(all.run([&](Member& me) {
    while (me.rank() == 2 && all.communicator().health().ok()) std::this_thread::yield();
    return me.barrier({.timeout = 100ms});
  }),
             Code::timeout);
}

TEST(CallNetwork, IsRefusedWhenACommunicatorIsMade) {
  const auto refused = [](CallNetwork network, int ranks, const std::string& words) {
    const auto made = Communicator::create(
        {.ranks = ranks, .network = std::make_shared<const CallNetwork>(std::move(network))});
    expect_refused(made.status(), {words});
  };
  CallNetwork no_ports, negative, torus = *network("torus"), few_seats = *network("scale_out");
  no_ports.fabric.ports = 0;
  negative.fabric.link.alpha = Rational(-1);
  torus.fabric.wiring.dims = {4, 4};
  few_seats.seats = std::make_shared<RankClocks>(3);
  refused(no_ports, 4, "network: ports is 0");
  refused(negative, 4, "alpha is");
  refused(torus, 9, "4x4");
  refused(few_seats, 4, "network: seats has 3 places");
  Ranks without({.ranks = 1});
  expect_refused(without.members()[0]->compute(1), {"compute() is for modelled networks"});
  EXPECT_EQ(without.members()[0]->model_time(), 0);
}

TEST(CallNetwork, IsReadFromAText) {
  EXPECT_EQ(network("scale_out,clock=virtual,sync=rounds")->sync, Sync::rounds);
  EXPECT_EQ(network(R"({"name": "mine", "ports": 3, "alpha": "2us"})")->fabric.ports, 3);
  EXPECT_EQ(network("scale_out,clock=wall,dilate=2.5")->clock, ClockMode::wall);
  EXPECT_EQ(network("scale_out,clock=wall,dilate=2.5")->dilate, 2.5);
  EXPECT_EQ(network("scale_out,dilate=auto")->dilate, 0);
  EXPECT_TRUE(network("scale_out,lower=yes")->lower);
  for (const auto& [text, words] : std::vector<std::pair<std::string_view, std::string>>{
           {"scale_outt", "scale_outt"},
           {"scale_out,lower=1", "lower is '1'; allowed are yes, no"},
           {"scale_out,clock=none", "clock is 'none'; allowed are virtual, wall"},
           {"scale_out,dilate=-1", "dilate is '-1'; allowed are"},
           {"scale_out,sync=lockstep", "sync is 'lockstep'; allowed are dataflow, rounds"},
           {"scale_out,prots=2", "'prots=2' is unknown; allowed are sync="}}) {
    expect_words(find_call_network(text).status(), {words});
  }
}

// --- The clocks on threads. Virtual time must equal the simulator's to the last tick, in every
// round and on any machine. For the wall clock the tests assert only machine-independent facts.

// The thread sanitizer is some 20 times slower, so it runs only small N and one port budget.
#if defined(__SANITIZE_THREAD__)
constexpr int kMostRanks = 6;
constexpr std::array<int, 1> kPorts = {2};
#else
constexpr int kMostRanks = 33;
constexpr std::array<int, 5> kPorts = {1, 2, 3, 4, 8};
#endif

struct Clocked {
  std::string name;
  CallNetwork network;
  std::vector<int> ranks;
};

void PrintTo(const Clocked& one, std::ostream* out) { *out << one.name; }

class NetworkClock : public testing::TestWithParam<Clocked> {};

// The whole catalogue, one call after the other: each call begins at the ranks' different end times
// of the call before.
TEST_P(NetworkClock, EqualsTheSimulatorBackToBack) {
  int runs = 0;
  const Sample sample("network clock", 5);
  std::uint64_t number = std::hash<std::string>()(GetParam().name) % 1000;
  for (const int n : GetParam().ranks) {
    if (n > kMostRanks || !wired_for(GetParam().network.fabric, n).ok()) continue;
    ++runs;
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      if (!sample.has(number++)) continue;
      CallNetwork network = GetParam().network;
      network.sync = sync;
      Twin twin(n, std::make_shared<const CallNetwork>(network));
      std::size_t lines = 0, called = 0;
      for (const Algorithm& entry : catalogue()) {
        const std::uint64_t random = splitmix(++lines * kSplitMixStep);
        const auto params =
            twin.params_for(entry, static_cast<Rank>(random / 400 % static_cast<std::uint64_t>(n)));
        if (!params) continue;
        const bool in_place = entry.collective == Collective::all_reduce && random >> 63 != 0;
        twin.call(entry, *params, entry.collective == Collective::barrier ? 1 : 1 + random % 400,
                  in_place);
        if (HasFailure()) return;
        ++called;
      }
      EXPECT_GT(called, catalogue().size() / 2) << n << " ranks";
      EXPECT_EQ(twin.end() > 0, n > 1);
      if (network.fabric.ports == 0) continue;
      const NetworkReport report = twin.report();
      for (std::size_t r = 0; r < report.most_sent.size(); ++r) {
        EXPECT_LE(report.most_sent[r], network.fabric.ports);
        EXPECT_LE(report.most_received[r], network.fabric.ports);
      }
    }
  }
  if (kMostRanks > 6) {
    EXPECT_GT(runs, 0);
  }
}

std::vector<Clocked> clocked() {
  std::vector<Clocked> all;
  for (const char* name : {"scale_out", "scale_up", "switch", "two_level", "torus"}) {
    all.push_back({name, *network(name), {1, 2, 3, 5, 8}});
  }
  for (const int ports : kPorts) {
    const std::string name = std::to_string(ports) + " ports";
    all.push_back(
        {name, {.fabric = uneven_fabric(ports)}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 25, 33}});
    // A switch with permute: each rank alone keeps the latencies that its port has paid in a round.
    Fabric permute = uneven_fabric(ports);
    permute.permute = true;
    permute.gamma = Rational(1, 13'000'000'000);
    all.push_back({name + ", permute", {.fabric = permute}, {2, 3, 5, 6, 9, 16}});
  }
  // Messages share links. Ports: one, and one per link.
  struct Wires {
    Wiring wiring;
    std::vector<int> ranks;
    int group = 0;
  };
  for (const auto& [wiring, ranks, group] :
       {Wires{{.kind = WiringKind::ring}, {5, 8, 9, 16, 27}},
        Wires{{.kind = WiringKind::ring, .routing = Routing::one_way}, {6}},
        Wires{{.kind = WiringKind::torus, .dims = {2, 4}}, {8}},
        Wires{{.kind = WiringKind::torus, .dims = {3, 3}}, {9}},
        Wires{{.kind = WiringKind::two_level}, {8}, 3}}) {
    Fabric fabric = uneven_fabric(1);
    fabric.multicast = fabric.alu = false;
    fabric.group = group;
    fabric.wiring = wiring;
    fabric.alpha_hop = Rational(17, 100'000'000);
    all.push_back({std::string(name_of(wiring.kind)), {.fabric = fabric}, ranks});
    fabric.ports = 0;
    if (wiring.has_rings()) {
      all.push_back({std::string(name_of(wiring.kind)) + ", all ports", {.fabric = fabric}, ranks});
    }
  }
  // The clock also includes gamma, eta, places and odd links.
  for (const WiringKind kind : {WiringKind::full, WiringKind::ring}) {
    Fabric fabric = uneven_fabric(2);
    fabric.multicast = fabric.alu = false;
    fabric.gamma = Rational(1, 13'000'000'000);
    fabric.link.eta_alpha = fabric.between.eta_alpha = Rational(9, 7);
    fabric.link.eta_beta = Rational(4, 5);
    fabric.size = 9;
    fabric.places = {3, 4, 8, 0, 1, 7};
    fabric.odd = {{.at = 8, .beta = Rational(1, 3'000'000'000)},
                  {.from = 3, .to = 4, .beta = Rational(1, 2'000'000'000)}};
    fabric.wiring.kind = kind;
    if (kind == WiringKind::ring) fabric.group = 0;
    all.push_back({"unlike links, " + std::string(name_of(kind)), {.fabric = fabric}, {6}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Networks, NetworkClock, testing::ValuesIn(clocked()));

// Every rank sends to every rank in one round: all ports are used, and no rank has more open
// messages than ports, with every clock.
TEST(Ports, AreAllUsedAndNeverExceeded) {
  constexpr int kRanks = 10;
  for (const ClockMode mode : {ClockMode::virtual_time, ClockMode::wall}) {
    for (int ports = 1; ports <= 8; ++ports) {
      CallNetwork network{.fabric = uneven_fabric(ports), .clock = mode, .dilate = 20};
      network.fabric.group = 0;
      network.fabric.permute = ports % 2 == 0;
      Twin twin(kRanks, std::make_shared<const CallNetwork>(network));
      const Algorithm& direct = *find_algorithm(Collective::all_to_all, "direct");
      for (int i = 0; i < 3; ++i) {
        twin.call(direct, *twin.params_for(direct), 100, false);
        ASSERT_FALSE(HasFailure());
      }
      const std::vector<int> all(kRanks, ports);
      EXPECT_EQ(twin.report().most_sent, all) << name_of(mode);
      EXPECT_EQ(twin.report().most_received, all) << name_of(mode);
    }
  }
}

// Two communicators share two places: a rank's call on one communicator begins after its call on
// the other has ended.
TEST(Seats, GiveCommunicatorsOneTimeAndOneSetOfPorts) {
  CallNetwork network{.fabric = uneven_fabric(2)};
  network.fabric.size = 6;
  network.seats = std::make_shared<RankClocks>(6);
  std::vector<Ticks> ends(6, 0);
  const auto at = [&](const std::vector<int>& places) {
    network.fabric.places = places;
    return std::make_unique<Twin>(4, std::make_shared<const CallNetwork>(network));
  };
  const std::vector<int> low = {0, 1, 2, 3}, high = {5, 3, 4, 2};
  const auto below = at(low), above = at(high);
  int calls = 0;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce && entry.collective != Collective::all_to_all) {
      continue;
    }
    const bool first = ++calls % 3 != 0;
    Twin& twin = first ? *below : *above;
    const std::vector<int>& places = first ? low : high;
    const auto params = twin.params_for(entry);
    if (!params) continue;
    for (std::size_t r = 0; r < places.size(); ++r) {
      twin.ends()[r] = ends[static_cast<std::size_t>(places[r])];
    }
    twin.call(entry, *params, 100, false);
    ASSERT_FALSE(HasFailure()) << entry.name;
    for (std::size_t r = 0; r < places.size(); ++r) {
      ends[static_cast<std::size_t>(places[r])] = twin.ends()[r];
    }
  }
  EXPECT_GT(calls, 20);
}

// The plan of the wall clock equals the simulator's result; no data arrive before their time, and
// the report is consistent.
TEST(WallClock, KeepsItsPlanAndReportsHowWell) {
  for (const char* name : {"ring", "double_tree", "hierarchical"}) {
    for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
      CallNetwork network{.fabric = uneven_fabric(1),
                          .sync = sync,
                          .clock = ClockMode::wall,
                          .dilate = 1000,
                          .tolerance_ns = 200'000};
      Twin twin(4, std::make_shared<const CallNetwork>(network));
      const Algorithm& entry = *find_algorithm(Collective::all_reduce, name);
      for (int i = 0; i < 2; ++i) {
        twin.call(entry, *twin.params_for(entry), 2500, i == 1);
        ASSERT_FALSE(HasFailure());
        const NetworkReport report = twin.report();
        EXPECT_EQ(report.dilate, network.dilate);
        // No deadline ends early, except for rounding in the last digits of a double.
        constexpr double kNs = 1e-9;
        EXPECT_GE(report.elapsed + kNs, report.seconds * report.dilate) << name;
        ASSERT_EQ(report.rounds_elapsed.size(), report.rounds.size());
        for (std::size_t k = 0; k < report.rounds.size(); ++k) {
          if (report.rounds_elapsed[k] == 0) continue;
          EXPECT_GE(report.rounds_elapsed[k] + kNs, report.rounds[k] * report.dilate)
              << name << ", round " << k;
          EXPECT_LE(report.rounds_elapsed[k], report.elapsed);
        }
        const Lateness& lateness = report.lateness;
        EXPECT_GT(lateness.deadlines, 0);
        EXPECT_LE(lateness.missed, lateness.deadlines);
        EXPECT_LE(0, lateness.median_ns);
        EXPECT_LE(lateness.median_ns, lateness.worst_ns);
        EXPECT_EQ(lateness.missed > 0, lateness.worst_ns > network.tolerance_ns);
        if (lateness.missed > 0) {
          EXPECT_GT(lateness.passed_on_ns, 0);
        }
      }
    }
  }
}

// A rank that misses a deadline stays late, and so do the ranks that receive from it: no rank
// catches up.
TEST(WallClock, PassesLatenessOn) {
  CallNetwork network{.fabric = uneven_fabric(1),
                      .clock = ClockMode::wall,
                      .dilate = 1,
                      .tolerance_ns = -1};  // every rank is always late
  Twin twin(3, std::make_shared<const CallNetwork>(network));
  const Algorithm& chain = *find_algorithm(Collective::broadcast, "chain");
  Params params = *twin.params_for(chain);
  params.segments = 1;
  twin.call(chain, params, 2500, false);
  const NetworkReport report = twin.report();
  EXPECT_EQ(report.lateness.missed, report.lateness.deadlines);
  EXPECT_EQ(report.lateness.deadlines, 2);
  EXPECT_GE(report.rounds_elapsed[1] - report.rounds_elapsed[0] + 1e-9,
            report.rounds[1] - report.rounds[0]);
}

// A rank that works between its calls is late in the next call, and so are the ranks that receive
// from it.
TEST(WallClock, CountsWorkBetweenCallsAsLate) {
  using std::chrono_literals::operator""ms;
  CallNetwork network{.fabric = uneven_fabric(1),
                      .clock = ClockMode::wall,
                      .dilate = 1000,
                      .tolerance_ns = 1'000'000};
  Ranks all({.ranks = 3, .network = std::make_shared<const CallNetwork>(network)});
  constexpr auto kWork = 100ms;
  for (const Status& status : all.run([&](Member& me) {
         std::vector<float> data(30, 1.0F);
         const CallOptions ring{.algorithm = "ring"};
         Status first = me.all_reduce(std::span(data), ReduceOp::sum, ring);
         if (me.rank() == 1) std::this_thread::sleep_for(kWork);
         return first.ok() ? me.all_reduce(std::span(data), ReduceOp::sum, ring) : first;
       })) {
    EXPECT_TRUE(status.ok()) << status.text();
  }
  const NetworkReport report = all.communicator().network_report();
  const std::chrono::duration<double> work = kWork;
  // The plan keeps the end of the first call, so the lateness is the rest of the work.
  EXPECT_GT(static_cast<double>(report.lateness.passed_on_ns) * 1e-9, work.count() / 2);
  EXPECT_GE(report.elapsed, work.count());
}

// A restart of model time on one communicator applies to all communicators with the same seats.
TEST(WallClock, BeginsAgainForAllWhoShareSeats) {
  const auto seats = std::make_shared<RankClocks>(2);
  const auto network = std::make_shared<const CallNetwork>(CallNetwork{
      .fabric = uneven_fabric(1), .clock = ClockMode::wall, .dilate = 10, .seats = seats});
  Ranks some({.ranks = 2, .network = network}), others({.ranks = 2, .network = network});
  const auto call = [](Ranks& all) { expect_ok(all.run([](Member& me) { return me.barrier(); })); };
  call(some);
  call(others);
  some.communicator().restart_model_time();
  EXPECT_EQ(seats->origin_ns(), 0);
  call(others);
  EXPECT_NE(seats->origin_ns(), 0) << "time has begun";
  call(some);
}

// A call that needs longer than its timeout fails at once, without a wait.
TEST(WallClock, RefusesACallThatTakesLongerThanItMay) {
  using std::chrono_literals::operator""s;
  CallNetwork network{.fabric = uneven_fabric(1), .clock = ClockMode::wall, .dilate = 1e9};
  Ranks all({.ranks = 2,
             .timeout = 60s,
             .network = std::make_shared<const CallNetwork>(std::move(network))});
  expect_all(all.run([](Member& me) { return me.barrier(); }), Code::timeout, {"dilated"});
}

TEST(WallClock, FindsADilation) {
  Ranks all({.ranks = 4, .network = network("scale_out,clock=wall")});
  expect_ok(all.run([](Member& me) { return me.barrier(); }));
  EXPECT_GE(all.communicator().network_report().dilate, 1);
}

TEST(ModelTime, BeginsAgain) {
  Ranks all({.ranks = 4, .network = network("scale_out")});
  double first = 0;
  for (int i = 0; i < 2; ++i) {
    all.run([](Member& me) {
      std::vector<float> data(1000, 1.0F);
      return me.all_reduce(std::span(data), ReduceOp::sum, {.algorithm = "ring"});
    });
    const double seconds = all.communicator().network_report().seconds;
    EXPECT_GT(seconds, 0);
    if (i > 0) {
      EXPECT_EQ(seconds, first);
    }
    first = seconds;
    all.communicator().restart_model_time();
    EXPECT_EQ(all.members()[0]->model_time(), 0);
  }
}

TEST(WakeUps, AreNeverEarly) {
  for (const std::int64_t late : measure_wake_ups(5, 100'000, {})) EXPECT_GE(late, 0);
}

}  // namespace
}  // namespace rankine
