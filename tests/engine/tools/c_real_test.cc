// c_real from trials: contests with made-up times, what tune writes, and what choose says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/tools/c_real_trials.h"
#include "engine/tools/contest.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/tool_process.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using enum Collective;

// 1000 bytes take as long as one alpha.
const CostModel kModel{.alpha = 1e-6, .beta = 1e-9, .gamma = 0};
constexpr std::size_t kSmall = 40, kLarge = 1 << 20;

double model_of(const Contest& contest, std::size_t contender) {
  const auto one = predict_on_threads(*contest.contenders[contender], contest.ranks, contest.bytes,
                                      *machine_fabric(kModel));
  EXPECT_TRUE(one.ok());
  return one.ok() && one->ok() ? one->seconds : kNotTimed;
}

// A broadcast among 4 ranks at these sizes, three rounds by each protocol. Contender i takes
// 1 + i / 8 times the model's time where it is small, and twice that where it is large; in the
// second round something interrupts everybody.
std::vector<Contest> played(const std::vector<std::size_t>& sizes) {
  std::vector<Contest> contests = make_contests(broadcast, 4, sizes);
  for (Contest& contest : contests) {
    Context times;
    for (std::size_t i = 0; i < contest.contenders.size(); ++i) {
      const double factor = 1 + static_cast<double>(i) / 8;
      times.push_back(model_of(contest, i) * factor * (contest.bytes > kSmall ? 2 : 1));
    }
    Context late = times;
    for (double& each : late) each *= 50;
    for (auto& rounds : contest.contexts) rounds = {times, late, times};
  }
  return contests;
}

std::vector<MeasuredCReal> measured(const std::vector<Contest>& contests) {
  CRealTrials trials(*machine_fabric(kModel), Costs());
  for (const Contest& contest : contests) trials.add(contest);
  const auto found = trials.measured();
  EXPECT_TRUE(found.ok()) << found.status().text();
  return found.ok() ? *found : std::vector<MeasuredCReal>();
}

TEST(CRealTrials, FindWhatWasPlantedInEitherRegime) {
  const std::vector<Contest> contests = played({kSmall, kLarge});
  ASSERT_EQ(contests.size(), 2u);
  ASSERT_EQ(contests[0].contenders, contests[1].contenders);
  const auto found = measured(contests);
  std::size_t expected = 0;
  for (std::size_t i = 0; i < contests[0].contenders.size(); ++i) {
    const Algorithm& line = *contests[0].contenders[i];
    const auto c_real = c_real_of(found, line);
    // Not of a switch, which there is none of in the model.
    const bool runs = model_of(contests[0], i) != kNotTimed;
    EXPECT_EQ(c_real.has_value(), runs) << line.name;
    expected += runs ? 1 : 0;
    if (!c_real) continue;
    const double factor = 1 + static_cast<double>(i) / 8;
    EXPECT_DOUBLE_EQ(c_real->latency, factor) << line.name;
    EXPECT_DOUBLE_EQ(c_real->bandwidth, 2 * factor) << line.name;
  }
  EXPECT_EQ(found.size(), expected);
  EXPECT_GE(expected, 5u);
  for (const MeasuredCReal& one : found) {
    EXPECT_EQ(one.collective, broadcast);
    EXPECT_EQ(one.ranks, 4);
  }
}

// Rounds that come later count like earlier ones: here they are the majority.
TEST(CRealTrials, GoOverAllRoundsThatWereAdded) {
  std::vector<Contest> contests = played({kSmall, kLarge});
  CRealTrials trials(*machine_fabric(kModel), Costs());
  for (int turn = 0; turn < 3; ++turn) {
    for (Contest& contest : contests) {
      trials.add(contest);
      for (auto& rounds : contest.contexts) {
        for (Context& times : rounds) {
          for (double& each : times) each *= turn == 0 ? 3 : 1;
        }
      }
    }
  }
  const auto found = trials.measured();
  ASSERT_TRUE(found.ok());
  EXPECT_DOUBLE_EQ(c_real_of(*found, *contests[0].contenders[0])->latency, 3);
}

TEST(CRealTrials, OneRegimeAloneSaysTooLittle) {
  EXPECT_TRUE(measured(played({8, 16, kSmall})).empty());
  EXPECT_TRUE(measured(played({kLarge, 2 * kLarge})).empty());
}

TEST(CRealTrials, LeaveOutWhatDidNotRunAndWhatCannotBe) {
  std::vector<Contest> contests = played({kSmall, kLarge});
  for (auto& rounds : contests[1].contexts) {
    for (Context& times : rounds) {
      times[0] = kNotTimed;
      times[1] *= 1e4;
    }
  }
  const auto found = measured(contests);
  EXPECT_FALSE(c_real_of(found, *contests[0].contenders[0]));
  EXPECT_FALSE(c_real_of(found, *contests[0].contenders[1]));
  EXPECT_TRUE(c_real_of(found, *contests[0].contenders[2]));
}

// RANKINE_TUNING names a file of the test's own, which other processes read: one reads it once.
class CRealTool : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/c_real_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    file_ = folder + "/tuning.json";
    setenv("RANKINE_TUNING", file_.c_str(), 1);
  }
  void save(const std::vector<MeasuredCReal>& c_real) const {
    ASSERT_TRUE(save_tuning({read_hardware(), "yesterday", kModel, {}, {}, c_real}, file_).ok());
  }
  std::string file_;
};

// What a process says, all of it, and how it ends.
struct Said {
  std::string out, err;
  int exit;
};
Said say(const std::vector<std::string>& arguments) {
  ToolProcess tool(arguments);
  Said said{.out = tool.rest(), .err = {}, .exit = tool.wait()};
  said.err = tool.err();
  return said;
}

MeasuredCReal among_4(std::string_view name, CReal c_real) {
  return {broadcast, 4, find_algorithm(broadcast, name), c_real};
}

// By the model linear takes 6 us here and binomial_near 4.
TEST_F(CRealTool, ChooseOnThreadsShowsFormulaFactorAndProduct) {
  save({among_4("linear", {2, 4}), among_4("binomial_near", {1, 3})});
  const std::vector<std::string> ask = {"choose", "broadcast", "--ranks", "4", "--bytes", "1000"};
  std::vector<std::string> more = ask;
  more.push_back("--explain");
  const Said told = say(more);
  EXPECT_EQ(told.exit, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("binomial_near (c_real measured among 4 ranks, table of "
                                  "yesterday)\n"));
  EXPECT_THAT(told.out,
              HasSubstr("     algorithm      time  c_real  expected  to best  rounds  segments\n"
                        "  *  binomial_near  4 us       2      8 us   1.00 x       2         1\n"
                        "     linear         6 us       3     18 us   2.25 x       3\n"));
  more = ask;
  more.push_back("--json");
  const Json report = Json::parse(say(more).out);
  EXPECT_EQ(report["source"], "c_real");
  EXPECT_EQ(report["choice"]["algorithm"], "binomial_near");
  ASSERT_EQ(report["candidates"].size(), 2u);
  EXPECT_DOUBLE_EQ(report["candidates"][1]["time"], 6e-6);
  EXPECT_DOUBLE_EQ(report["candidates"][1]["c_real"], 3);
  EXPECT_DOUBLE_EQ(report["candidates"][1]["expected"], 18e-6);
}

TEST_F(CRealTool, ChooseOnThreadsSaysWhyTheDefaultStayed) {
  save({among_4("linear", {1, 1}), among_4("binomial_near", {1.2, 1.2})});
  const Said told = say({"choose", "broadcast", "--ranks", "4", "--bytes", "1000", "--explain"});
  EXPECT_THAT(told.out, HasSubstr("linear (default: the table does not cover this)"));
  EXPECT_THAT(told.out, HasSubstr("one_round = 64 KiB"));
  EXPECT_THAT(told.out, HasSubstr("the default stays unless it is 1.3 times the best of"));
  EXPECT_THAT(told.out, HasSubstr("*  binomial_near "));
}

TEST_F(CRealTool, ChooseOnANetworkMultipliesWhereItIsAsked) {
  save({among_4("linear", {0.1, 0.1}), among_4("binomial_near", {1, 1})});
  const std::vector<std::string> ask = {"choose",  "broadcast", "--ranks",   "4",
                                        "--bytes", "1000",      "--network", "plain"};
  EXPECT_THAT(say(ask).out, AllOf(HasSubstr("(network model)"), Not(HasSubstr("linear"))));
  std::vector<std::string> more = ask;
  more.insert(more.end(), {"--c-real", "--explain"});
  const Said told = say(more);
  EXPECT_EQ(told.exit, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr(": linear, 303 ns (network model, c_real measured among 4 ranks, "
                                  "table of yesterday)"));
  EXPECT_THAT(told.out, HasSubstr("no c_real was measured"));
}

TEST_F(CRealTool, ChooseSaysWhatIsMissing) {
  const std::vector<std::string> ask = {"choose",    "all_gather", "--ranks", "4",
                                        "--network", "plain",      "--c-real"};
  Said told = say(ask);
  EXPECT_EQ(told.exit, 3);
  EXPECT_THAT(told.err, HasSubstr("--c-real needs a tuning table of this machine; 'rankine tune'"));
  save({among_4("linear", {1, 1})});
  told = say(ask);
  EXPECT_EQ(told.exit, 3);
  EXPECT_THAT(told.err, HasSubstr("has no c_real of an algorithm of all_gather"));
  EXPECT_THAT(told.err, HasSubstr("'rankine tune --collectives all_gather --ranks 4'"));
  told = say({"choose", "all_gather", "--ranks", "4", "--c-real"});
  EXPECT_EQ(told.exit, 2);
  EXPECT_THAT(told.err, HasSubstr("--c-real is for modelled networks"));
}

// What the fit finds on a busy machine is no test's business, so the report says what to expect.
TEST_F(CRealTool, TuneWritesWhatItReportsAndKeepsTheRest) {
  save({among_4("linear", {1.5, 2.5}),
        {gather, 3, find_algorithm(gather, "linear"), {.latency = 999, .bandwidth = 999}}});
  const Captured run = run_captured({"tune", "--ranks", "3", "--collectives", "gather", "-b", "8",
                                     "-e", "1M", "-f", "1024", "--rounds", "1", "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const Json report = Json::parse(run.out);
  std::ifstream in(file_);
  const auto read = parse_tuning(
      std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()));
  ASSERT_TRUE(read.ok()) << read.status().text();
  std::vector<MeasuredCReal> fresh;
  bool kept = false;
  for (const MeasuredCReal& one : read->c_real()) {
    if (one.collective == gather) {
      fresh.push_back(one);
      EXPECT_TRUE(CReal::allows(one.c_real.latency) && CReal::allows(one.c_real.bandwidth));
    } else {
      EXPECT_EQ(one, among_4("linear", {1.5, 2.5}));
      kept = true;
    }
  }
  EXPECT_EQ(kept, !report.contains("no_c_real"));
  if (report["c_real"].empty()) return;  // then what was there stays
  ASSERT_EQ(report["c_real"].size(), fresh.size());
  for (std::size_t i = 0; i < fresh.size(); ++i) {
    EXPECT_EQ(report["c_real"][i]["algorithm"], fresh[i].algorithm->name);
    EXPECT_EQ(report["c_real"][i]["latency"], fresh[i].c_real.latency);
    EXPECT_EQ(report["c_real"][i]["bandwidth"], fresh[i].c_real.bandwidth);
    EXPECT_NE(fresh[i].c_real.latency, 999);
  }
}

}  // namespace
}  // namespace rankine::tools
