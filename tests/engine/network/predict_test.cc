#include "engine/network/predict.h"
#include "engine/network/cells.h"
#include "engine/network/simulate.h"
#include "tests/budget.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// Compares IntervalMap with a plain list, after random changes, in one chunk or many.
template <class Numbers>
void expect_like_a_plain_list() {
  std::mt19937 random(5);
  constexpr std::size_t kAll = 60;
  Numbers numbers;
  std::vector<int> plain(kAll, 0);
  for (int i = 0; i < 5000; ++i) {
    const std::size_t first = random() % kAll, end = first + 1 + random() % (kAll - first);
    const int most = static_cast<int>(random() % 4);
    numbers.change(first, end, kAll, [&](std::size_t at, std::size_t alike, int& value) {
      for (std::size_t j = at; j < at + alike; ++j) EXPECT_EQ(plain[j], value);
      value = std::max(value - 1, most);
    });
    for (std::size_t j = first; j < end; ++j) plain[j] = std::max(plain[j] - 1, most);
    std::size_t next = 0, stretches = 0;
    numbers.read(0, kAll, [&](std::size_t at, std::size_t alike, int value) {
      ASSERT_EQ(at, next);
      for (std::size_t j = at; j < at + alike; ++j) ASSERT_EQ(plain[j], value);
      next += alike;
      ++stretches;
    });
    ASSERT_EQ(next, kAll);
    ASSERT_EQ(stretches, numbers.count());
  }
}

TEST(IntervalMap, LikeAPlainList) {
  expect_like_a_plain_list<IntervalMap<int>>();
  expect_like_a_plain_list<IntervalMap<int, 2>>();
  expect_like_a_plain_list<IntervalMap<int, 5>>();
}

// Too many cells for one table: rows of stretches, one of which becomes a table.
TEST(CellTable, LikeAPlainOneWhereCellsAreMany) {
  constexpr int kRanks = 3, kBlocks = 1 << 23;
  const Schedule schedule{kRanks, kBlocks, 0, {}, {}, 2};
  CellTable<std::int64_t> cells(schedule, {Collective::all_gather, kRanks, kBlocks}, kRanks);
  EXPECT_EQ(cells.held(), std::size_t{kRanks});
  cells.change(1, 1, {5, kBlocks - 5, 1}, [](Block first, int count, std::int64_t& value) {
    EXPECT_EQ(first, 5);
    EXPECT_EQ(count, kBlocks - 5);
    value = 9;
  });
  EXPECT_EQ(cells.held(), std::size_t{kRanks} + 1);
  EXPECT_EQ(cells.at(1, 1, 4), 0);
  EXPECT_EQ(cells.at(1, 1, 5), 9);
  EXPECT_EQ(cells.at(1, 0, 5), 0);
  EXPECT_EQ(cells.at(2, 1, 5), 0);
  cells.change(0, 0, {1, 3, 4}, [](Block, int count, std::int64_t& value) {
    EXPECT_EQ(count, 1);
    value = 3;
  });
  EXPECT_EQ(cells.at(0, 0, 9), 3);
  EXPECT_EQ(cells.at(0, 0, 8), 0);
}

TEST(CellTable, ARowOfManyStretchesBecomesATable) {
  constexpr int kRanks = 1 << 14, kBlocks = 2048;
  const Schedule schedule{kRanks, kBlocks, 0, {}};
  CellTable<std::int64_t> cells(schedule, {Collective::all_gather, kRanks, kBlocks}, kRanks);
  for (Block b = 0; b < kBlocks; b += 2) {
    cells.change(7, 0, {b, 1, 1}, [b](Block, int, std::int64_t& value) { value = b + 1; });
  }
  EXPECT_EQ(cells.held(), std::size_t{kRanks} - 1 + kBlocks);
  for (Block b = 0; b < kBlocks; ++b) EXPECT_EQ(cells.at(7, 0, b), b % 2 == 0 ? b + 1 : 0);
  EXPECT_EQ(cells.at(6, 0, 0), 0);
}

TEST(Meetings, FewAndMany) {
  constexpr int kRanks = 1000;
  Meetings meetings(kRanks);
  for (int again = 0; again < 3; ++again) {
    for (Rank r = 1; r < kRanks; ++r) meetings.add(0, r, nullptr);
    meetings.add(5, 0, nullptr);
    meetings.add(5, 6, nullptr);
  }
  const Meetings::Numbers met = meetings.numbers();
  EXPECT_EQ(met.targets[0], kRanks - 1);
  EXPECT_EQ(met.sources[0], 1);
  EXPECT_EQ(met.partners[0], kRanks - 1);
  EXPECT_EQ(met.partners[5], 2);
  EXPECT_EQ(met.targets[5], 2);
  EXPECT_EQ(met.sources[6], 2);
  EXPECT_EQ(met.partners[6], 2);
}

// Predictions on modelled networks: ordered, exact, and with a reason for each refused algorithm.

Params among(int ranks) {
  Params params{.ranks = ranks, .segments = 0};
  return params;
}

std::vector<Candidate> candidates(Collective collective, int ranks, std::uint64_t bytes,
                                  const Fabric& fabric) {
  auto all = predict(collective, among(ranks), bytes, fabric);
  EXPECT_TRUE(all.ok()) << all.status().text();
  return *all;
}

const Candidate& find(const std::vector<Candidate>& all, std::string_view name) {
  return *std::find_if(all.begin(), all.end(),
                       [&](const Candidate& c) { return c.algorithm->name == name; });
}

// The largest difference between equal costs: one byte per round, for the candidate with more
// rounds.
double rounding(const Candidate& a, const Candidate& b) {
  return plain_regime().fabric.link.beta.to_double() * std::max(a.rounds, b.rounds);
}

TEST(Predict, EveryAlgorithmOfTheCollectiveIsThereCheapestFirst) {
  for (const Collective collective : all_collectives()) {
    const auto all = candidates(collective, 6, 4096, plain_regime().fabric);
    const auto lines =
        std::count_if(catalogue().begin(), catalogue().end(),
                      [&](const Algorithm& a) { return a.collective == collective; });
    EXPECT_EQ(static_cast<std::ptrdiff_t>(all.size()), lines);
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_TRUE(all[i - 1].ok() || !all[i].ok());
      if (all[i].ok()) {
        EXPECT_LE(all[i - 1].seconds, all[i].seconds + rounding(all[i - 1], all[i]));
      }
    }
  }
}

TEST(Predict, LatencyAndBandwidthWantDifferentAlgorithms) {
  const Fabric& fabric = plain_regime().fabric;
  EXPECT_EQ(candidates(Collective::all_reduce, 16, 8, fabric).front().algorithm->name,
            "recursive_doubling");
  EXPECT_EQ(candidates(Collective::all_reduce, 16, 1 << 28, fabric).front().algorithm->name,
            "halving_doubling");
}

TEST(Predict, TheSwitchIsRefusedWithoutTheAbilityAndUsedWithIt) {
  const auto without = candidates(Collective::all_reduce, 8, 1024, plain_regime().fabric);
  const Candidate& refused = find(without, "switch");
  EXPECT_FALSE(refused.ok());
  EXPECT_NE(refused.refusal.find("ALU"), std::string::npos) << refused.refusal;
  const auto with = candidates(Collective::all_reduce, 8, 1024, find_regime("switch")->fabric);
  EXPECT_EQ(with.front().algorithm->name, "switch");
}

TEST(Predict, WhereTheSwitchPermutesAnAllToAllInOneRoundIsTheBest) {
  Fabric fabric = find_regime("scale_up")->fabric;
  EXPECT_EQ(candidates(Collective::all_to_all, 16, 64, fabric).front().algorithm->name, "bruck");
  fabric.permute = true;
  for (const std::uint64_t bytes : {64ULL, 1ULL << 20, 1ULL << 28}) {
    EXPECT_EQ(candidates(Collective::all_to_all, 16, bytes, fabric).front().algorithm->name,
              "direct");
  }
}

// If two algorithms cost the same except for the rounding of blocks to whole bytes, the choice
// between them is stable over sizes: a former winner does not come back.
TEST(Predict, EqualsAreChosenAlikeAtEverySize) {
  const Sample sample("winners", 6);
  std::uint64_t number = 0;
  for (const char* network : {"scale_up", "scale_out"}) {
    for (int ranks = 2; ranks <= 12; ++ranks) {
      if (!sample.has(number++)) continue;
      std::vector<std::string_view> winners;
      for (std::uint64_t bytes = 64; bytes <= std::uint64_t{256} << 20; bytes *= 2) {
        const std::string_view winner =
            candidates(Collective::all_reduce, ranks, bytes, find_regime(network)->fabric)
                .front()
                .algorithm->name;
        if (!winners.empty() && winners.back() == winner) continue;
        EXPECT_EQ(std::count(winners.begin(), winners.end(), winner), 0)
            << network << ", " << ranks << " ranks, " << bytes << " bytes: " << winner << " again";
        winners.push_back(winner);
      }
    }
  }
}

// Among 4 ranks on the plain network, linear sends 3 messages and binomial_near 2, one after the
// other. A message of 300,000 bytes is a quarter alpha (1 us) and three quarters bytes (100 GB/s).
TEST(Predict, WeighMultipliesAndPutsInOrder) {
  const Fabric& fabric = plain_regime().fabric;
  auto all = candidates(Collective::broadcast, 4, 300'000, fabric);
  const auto measured = [](const Algorithm& entry) -> std::optional<CReal> {
    if (entry.name == "linear") return CReal{.latency = 0.5, .bandwidth = 0.7};
    if (entry.name == "binomial_near") return CReal{.latency = 1, .bandwidth = 1.5};
    if (entry.name == "switch") return CReal{.latency = 0.01, .bandwidth = 0.01};
    return std::nullopt;
  };
  ASSERT_TRUE(weigh(all, measured, fabric).ok());
  EXPECT_EQ(all[0].algorithm->name, "linear");
  EXPECT_DOUBLE_EQ(*all[0].c_real, 0.65);
  EXPECT_DOUBLE_EQ(all[0].seconds, 12e-6);
  EXPECT_DOUBLE_EQ(all[0].expected(), 7.8e-6);
  EXPECT_EQ(all[1].algorithm->name, "binomial_near");
  EXPECT_DOUBLE_EQ(*all[1].c_real, 1.375);
  EXPECT_DOUBLE_EQ(all[1].expected(), 11e-6);
  // The unmeasured algorithms follow, the cheapest first, then those that are refused.
  for (std::size_t i = 2; i < all.size(); ++i) EXPECT_FALSE(all[i].c_real) << i;
  EXPECT_TRUE(all[2].ok());
  EXPECT_EQ(all.back().algorithm->name, "switch");
}

TEST(Predict, TheShareOfAlphasIsThatOfTheMessagesWithoutBytes) {
  const Fabric& fabric = plain_regime().fabric;
  const auto share = [&](std::uint64_t bytes) {
    const auto all = candidates(Collective::broadcast, 4, bytes, fabric);
    return *latency_share(find(all, "linear"), fabric);
  };
  EXPECT_DOUBLE_EQ(share(0), 1);
  EXPECT_DOUBLE_EQ(share(100'000), 0.5);
  EXPECT_DOUBLE_EQ(share(300'000), 0.25);
}

using enum Collective;

Fabric fabric_with(Rational alpha, Rational beta) {
  Fabric fabric;
  fabric.ports = 16;
  fabric.link = {alpha, beta};
  return fabric;
}

// T(P), term by term.
Rational pipelined_time(int l, int p, Rational alpha, Rational m_beta) {
  return Rational(l + p - 1) * (alpha + m_beta / Rational(p));
}

TEST(PipelineOptimum, NoOtherNumberIsBetter) {
  const Rational alpha(1, 1'000'000);
  for (const int l : {1, 2, 3, 7, 15, 62}) {
    for (const std::int64_t m : {0, 1, 1000, 65'536, 1'000'003, 4 << 20}) {
      const Rational m_beta(m, 100'000'000'000);
      constexpr int kMost = 400;
      const int best = pipeline_optimum(Rational(l - 1) * m_beta, alpha, kMost);
      for (int p = 1; p <= kMost; ++p) {
        EXPECT_FALSE(pipelined_time(l, p, alpha, m_beta) < pipelined_time(l, best, alpha, m_beta))
            << "L = " << l << ", M = " << m << ": " << p << " beats " << best;
      }
      const double continuous = std::sqrt((l - 1) * m_beta.to_double() / alpha.to_double());
      EXPECT_LE(std::fabs(best - std::clamp(continuous, 1.0, 400.0)), 1.0) << "L = " << l;
    }
  }
}

TEST(PipelineOptimum, DecidesTiesExactly) {
  // T(2) = T(3) if filling = 6 alpha: the smaller P is chosen.
  EXPECT_EQ(pipeline_optimum(6, 1, 100), 2);
  EXPECT_EQ(pipeline_optimum(Rational(6'000'000'001, 1'000'000'000), 1, 100), 3);
  EXPECT_EQ(pipeline_optimum(0, 1, 100), 1);
  EXPECT_EQ(pipeline_optimum(0, 0, 100), 1);
  EXPECT_EQ(pipeline_optimum(1, 0, 100), 100);  // without alpha, the maximum
  EXPECT_EQ(pipeline_optimum(1'000'000, 1, 7), 7);
}

// The closed form's optimum is the simulator's too, while ports are free.
TEST(PipelineOptimum, AgreeWithTheSimulator) {
  const Fabric fabric = fabric_with(Rational(1, 1'000'000), Rational(1, 100'000'000'000));
  constexpr std::uint64_t kBytes = 3'000'001;
  const struct {
    Collective collective;
    const char* name;
  } kLines[] = {
      {broadcast, "chain"},        {Collective::reduce, "chain"}, {broadcast, "binary_tree"},
      {broadcast, "binomial_far"}, {broadcast, "double_tree"},    {broadcast, "two_tree"},
      {all_reduce, "chain"},       {all_reduce, "binary_tree"},   {all_reduce, "double_tree"},
      {all_reduce, "two_tree"},    {all_reduce, "hierarchical"},  {all_reduce, "ring_tree"}};
  for (const auto& [collective, name] : kLines) {
    const Algorithm& entry = *find_algorithm(collective, name);
    Params params = entry.only_taken({.ranks = 12, .group = 3});
    const auto best = pipeline_optimum(entry, params, fabric, kBytes);
    ASSERT_TRUE(best.ok()) << name << ": " << best.status().text();
    EXPECT_GT(*best, 1) << name;
    const auto time = [&](int segments) {
      params.segments = segments;
      const Schedule schedule = entry.make(params);
      const auto result = simulate(schedule, goal_of(entry, params, schedule), fabric, kBytes,
                                   {.sync = Sync::rounds, .ideal_blocks = true});
      EXPECT_TRUE(result.ok());
      return Rational(result->end, result->ticks_per_second);
    };
    EXPECT_FALSE(time(*best + 1) < time(*best)) << name << ", P = " << *best;
    EXPECT_FALSE(time(*best - 1) < time(*best)) << name << ", P = " << *best;
  }
}

TEST(PipelineOptimum, StayWithinBytesAndCatalogue) {
  Fabric fabric = fabric_with(0, Rational(1, 1'000'000'000));
  Params params{.ranks = 4};
  const Algorithm& entry = *find_algorithm(broadcast, "chain");
  EXPECT_EQ(*pipeline_optimum(entry, params, fabric, 100), 100);
  EXPECT_EQ(*pipeline_optimum(entry, params, fabric, 1 << 30), kMostSegments);
  params.segments = kMostSegments;
  EXPECT_FALSE(entry.refusal(params));
  params.segments = kMostSegments + 1;
  EXPECT_TRUE(entry.refusal(params));
  params.ranks = 0;
  EXPECT_FALSE(pipeline_optimum(entry, params, fabric, 100).ok());
}

double seconds_of(const Algorithm& entry, Params params, const Fabric& fabric, std::uint64_t bytes,
                  int segments, const SimulateOptions& options = {}) {
  params.segments = segments;
  const Schedule schedule = entry.make(params);
  const auto result = simulate(schedule, goal_of(entry, params, schedule), fabric, bytes, options);
  EXPECT_TRUE(result.ok());
  return result->seconds;
}

// Compared with every P. Time is not quite convex in P (blocks are whole bytes, the colours of
// trees alternate between odd and even), so the choice may lose up to a thousandth.
TEST(BestSegments, NoOtherNumberIsAThousandthBetter) {
  constexpr int kMost = 80;
  for (const int ports : {1, 2, 4}) {
    Fabric fabric = fabric_with(Rational(3, 2'000'000), Rational(1, 50'000'000'000));
    fabric.ports = ports;
    for (const auto& [collective, name] : {std::pair{broadcast, "chain"},
                                           {broadcast, "double_tree"},
                                           {all_reduce, "chain"},
                                           {all_reduce, "double_tree"},
                                           {all_reduce, "two_tree"},
                                           {all_reduce, "binary_tree"}}) {
      const Algorithm& entry = *find_algorithm(collective, name);
      for (const std::uint64_t bytes : {64U, 100'003U, 1'000'003U}) {
        for (const Sync sync : {Sync::dataflow, Sync::rounds}) {
          const Params params{.ranks = 8};
          const auto best = best_segments(entry, params, fabric, bytes, {.sync = sync}).value();
          const double found = seconds_of(entry, params, fabric, bytes, best, {.sync = sync});
          for (int p = 1; p <= std::min<int>(kMost, static_cast<int>(bytes)); ++p) {
            EXPECT_LE(found, 1.001 * seconds_of(entry, params, fabric, bytes, p, {.sync = sync}))
                << name << ", " << ports << " ports, " << bytes << " B: P = " << best << ", not "
                << p;
          }
        }
      }
    }
  }
}

// With one port the two trees wait for each other, which the closed form ignores.
TEST(BestSegments, KnowsThePorts) {
  const Algorithm& entry = *find_algorithm(all_reduce, "double_tree");
  constexpr std::uint64_t kBytes = 64 << 20;
  Fabric one = fabric_with(Rational(1, 1'000'000), Rational(1, 100'000'000'000)), four = one;
  one.ports = 1;
  four.ports = 4;
  const Params params{.ranks = 8};
  EXPECT_EQ(*pipeline_optimum(entry, params, one, kBytes),
            *pipeline_optimum(entry, params, four, kBytes));
  const int with_one = *best_segments(entry, params, one, kBytes);
  const int with_four = *best_segments(entry, params, four, kBytes);
  EXPECT_LT(with_one, with_four);
  EXPECT_LT(seconds_of(entry, params, one, kBytes, with_one),
            0.98 * seconds_of(entry, params, one, kBytes, with_four));
}

TEST(BestSegments, IsBoundedAndCanBeEnded) {
  const Algorithm& entry = *find_algorithm(broadcast, "chain");
  const Fabric fabric = fabric_with(0, Rational(1, 1'000'000'000));  // each further segment helps
  int asked = 0;
  const auto best = best_segments(entry, {.ranks = 64}, fabric, 1 << 20, {}, [&] {
    ++asked;
    return Status();
  });
  ASSERT_TRUE(best.ok());
  EXPECT_LE(*best, kMostMessages / 64);
  EXPECT_LE(asked, 30);
  EXPECT_EQ(*best_segments(entry, {.ranks = 8}, fabric, 0), 1);
  EXPECT_LE(*best_segments(entry, {.ranks = 8}, fabric, 5), 5);
  EXPECT_EQ(*best_segments(*find_algorithm(broadcast, "linear"), {.ranks = 8}, fabric, 64), 1);
  EXPECT_FALSE(best_segments(entry, {.ranks = 0}, fabric, 64).ok());
  const auto ended = best_segments(entry, {.ranks = 8}, fabric, 1 << 20, {},
                                   [] { return Status(Code::timeout, "too late"); });
  ASSERT_FALSE(ended.ok());
  EXPECT_EQ(ended.status().text(), "too late");
}

}  // namespace
}  // namespace rankine
