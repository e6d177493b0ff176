#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/cli/tune.h"
#include "tests/engine/cli/tool_fixtures.h"

namespace rankine::tools {
namespace {

using Rounds = std::vector<Context>;

TEST(Regret, IsTheTimeOverThatOfTheBest) {
  const Context times = {3, 2, kNotTimed, 4};
  EXPECT_DOUBLE_EQ(regret_in(times, 0), 1.5);
  EXPECT_DOUBLE_EQ(regret_in(times, 1), 1);
  EXPECT_EQ(regret_in(times, 2), kNotTimed);
  EXPECT_DOUBLE_EQ(regret_in(times, 3), 2);
}

TEST(Regret, LastsWhereMoreThanAQuarterOfTheRoundsSeesIt) {
  EXPECT_EQ(lasting_regret({}, 0), 1);
  EXPECT_EQ(lasting_regret({{9, 1}}, 0), 9);
  EXPECT_EQ(lasting_regret({{9, 1}, {2, 1}}, 0), 9);
  EXPECT_EQ(lasting_regret({{9, 1}, {2, 1}, {3, 1}}, 0), 3);
  EXPECT_EQ(lasting_regret({{9, 1}, {2, 1}, {3, 1}, {1, 1}}, 0), 3);
  EXPECT_EQ(lasting_regret({{9, 1}, {8, 1}, {3, 1}, {1, 1}, {2, 1}}, 0), 8);
  const std::vector<Context> eight = {{9, 1}, {8, 1}, {7, 1}, {1, 1},
                                      {2, 1}, {1, 1}, {1, 1}, {1, 1}};
  EXPECT_EQ(lasting_regret(eight, 0), 7);
}

// Contender 1 wins warm and 2 wins fresh, each by far; 3 is second in both, and is chosen.
TEST(RobustChoice, MinimisesTheWorstOverProtocols) {
  const std::array<Rounds, 2> protocols = {Rounds(3, {4, 1.0, 5, 1.5}),
                                           Rounds(3, {4, 5, 1.0, 1.4})};
  const Choice choice = robust_choice(protocols, 4, 0);
  EXPECT_EQ(choice.contender, 3u);
  EXPECT_DOUBLE_EQ(choice.regret, 1.5);
}

// Minimises the worst over rounds too: cores are near in some rounds and far in others.
TEST(RobustChoice, MinimisesTheWorstOverRounds) {
  const Context near = {4, 1.0, 5, 1.5}, far = {4, 5, 1.0, 1.4};
  const std::array<Rounds, 1> protocols = {Rounds{near, far, near, far, far}};
  EXPECT_EQ(robust_choice(protocols, 4, 0).contender, 3u);
}

TEST(RobustChoice, OneInterruptionDecidesNothing) {
  const std::array<Rounds, 1> protocols = {Rounds{{2, 1}, {2, 1}, {2, 50}, {2, 1}}};
  EXPECT_EQ(robust_choice(protocols, 2, 0).contender, 1u);
  // One interruption of the default does not replace it either.
  const std::array<Rounds, 1> others = {Rounds{{1, 2}, {1, 2}, {50, 2}, {1, 2}}};
  EXPECT_EQ(robust_choice(others, 2, 0).contender, 0u);
}

TEST(RobustChoice, TheDefaultStaysWithinTheMargin) {
  const std::array<Rounds, 1> little = {Rounds(4, {1.09, 1})};
  EXPECT_EQ(robust_choice(little, 2, 0).contender, 0u);
  EXPECT_DOUBLE_EQ(robust_choice(little, 2, 0).regret, 1.09);
  EXPECT_EQ(robust_choice(little, 2, 0, 1.05).contender, 1u);
  const std::array<Rounds, 1> enough = {Rounds(4, {1.11, 1})};
  EXPECT_EQ(robust_choice(enough, 2, 0).contender, 1u);
}

// In two of five rounds an interruption hit the default; in the others no contender was better.
TEST(RobustChoice, NoiseOnTheDefaultIsNoReasonToLeaveIt) {
  const std::array<Rounds, 1> protocols = {Rounds{{1.3, 1}, {1, 1}, {1.3, 1}, {1, 1}, {1, 1}}};
  EXPECT_EQ(robust_choice(protocols, 2, 0).contender, 0u);
  EXPECT_DOUBLE_EQ(robust_choice(protocols, 2, 0).regret, 1.3);
}

TEST(RobustChoice, TooFewRoundsChangeNothing) {
  const std::array<Rounds, 2> protocols = {Rounds(4, {2, 1}), Rounds(kFewestRounds - 1, {2, 1})};
  EXPECT_EQ(robust_choice(protocols, 2, 0).contender, 0u);
}

TEST(RobustChoice, WhoDidNotRunIsNotTaken) {
  const std::array<Rounds, 1> protocols = {Rounds(3, {2, kNotTimed, 1.5})};
  EXPECT_EQ(robust_choice(protocols, 3, 0).contender, 2u);
}

TEST(MedianOver, LeavesAsideWhatDidNotRun) {
  const Context median =
      median_over({{1, kNotTimed, 5}, {3, kNotTimed, kNotTimed}, {2, kNotTimed, 7}});
  EXPECT_EQ(median, (Context{2, kNotTimed, 6}));
  EXPECT_TRUE(median_over({}).empty());
}

TEST(Summary, HasGeometricMeanAndMaximum) {
  const RegretSummary s = summarise_regrets({1, 4, 2, 4});
  EXPECT_EQ(s.samples, 4u);
  EXPECT_NEAR(s.geometric_mean, std::pow(32, 0.25), 1e-12);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.worst, 1u);
  EXPECT_EQ(summarise_regrets({}).geometric_mean, 1);
}

}  // namespace

namespace {

// The second form is faster from 4096 on, by a factor.
std::vector<FormTimes> crossing_at_4096(double factor) {
  std::vector<FormTimes> sizes;
  for (std::size_t bytes = 256; bytes <= 65536; bytes *= 2) {
    const double time = static_cast<double>(bytes);
    sizes.push_back(
        {bytes, bytes < 4096 ? time : factor * time, bytes < 4096 ? factor * time : time});
  }
  return sizes;
}

TEST(BestBorder, IsWhereTheOtherFormBecomesFaster) {
  for (const std::size_t before : {std::size_t{0}, std::size_t{300}, std::size_t{1} << 30}) {
    const Border border = best_border(crossing_at_4096(2), before);
    EXPECT_GE(border.value, 2048U) << before;
    EXPECT_LT(border.value, 4096U) << before;
    EXPECT_GT(border.gain, 1) << before;
  }
}

TEST(BestBorder, GainIsTheGeometricMeanOverAllSizes) {
  // Five of nine sizes, those from 4096 on, take half the time.
  EXPECT_NEAR(best_border(crossing_at_4096(2), std::size_t{1} << 30).gain, std::pow(2, 5.0 / 9),
              1e-12);
}

TEST(BestBorder, StaysWhereItIsAsGoodAsAny) {
  for (const std::size_t before : {std::size_t{2048}, std::size_t{3000}, std::size_t{4095}}) {
    const Border border = best_border(crossing_at_4096(2), before);
    EXPECT_EQ(border.value, before);
    EXPECT_EQ(border.gain, 1);
  }
  EXPECT_EQ(best_border(crossing_at_4096(1), 77).value, 77U);
}

TEST(BestBorder, MayLieBeforeTheFirstSizeAndBeyondTheLast) {
  std::vector<FormTimes> sizes = {{64, 2, 1}, {128, 2, 1}};
  EXPECT_EQ(best_border(sizes, 128).value, 63U);
  sizes = {{64, 1, 2}, {128, 1, 2}};
  EXPECT_EQ(best_border(sizes, 0).value, 128U);
}

TEST(CostSearch, FindsNothingInNoTime) {
  int asked = 0;
  const auto found =
      search_costs({}, 2,
                   {.deadline = std::chrono::steady_clock::now() - std::chrono::seconds(1),
                    .progress = [&](std::string_view) { ++asked; }});
  ASSERT_TRUE(found.ok()) << found.status().text();
  EXPECT_TRUE(found->empty());
  EXPECT_EQ(asked, 0);
}

// Tries all fields that apply to this number of ranks. Each finding keeps its value or gains,
// within the allowed range.
TEST(CostSearch, TriesEveryFormThatThereIs) {
  std::vector<std::string> asked;
  const auto found =
      search_costs({}, 2,
                   {.deadline = std::chrono::steady_clock::now() + std::chrono::hours(1),
                    .rounds = 1,
                    .progress = [&](std::string_view field) { asked.emplace_back(field); }});
  ASSERT_TRUE(found.ok()) << found.status().text();
  ASSERT_EQ(found->size(), asked.size());
  EXPECT_GE(found->size(), 6U);
  for (const CostFinding& finding : *found) {
    EXPECT_EQ(finding.before, Costs{}.*finding.field->value) << finding.field->name;
    EXPECT_GE(finding.after, finding.field->least) << finding.field->name;
    EXPECT_LE(finding.after, finding.field->most) << finding.field->name;
    EXPECT_EQ(finding.after == finding.before, finding.gain == 1) << finding.field->name;
    EXPECT_FALSE(finding.sizes.empty()) << finding.field->name;
    for (const FormTimes& size : finding.sizes) {
      EXPECT_GT(size.first, 0);
      EXPECT_GT(size.second, 0);
    }
  }
}

}  // namespace

// rankine tune and its consequences: the table, --check, choose.

namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using enum Collective;

// RANKINE_TUNING names a file in the test's folder, so the user's cache stays as it is.
class Tune : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "/tune_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    file_ = folder + "/tuning.json";
    setenv("RANKINE_TUNING", file_.c_str(), 1);
  }
  std::string table() const {
    std::ostringstream text;
    text << std::ifstream(file_).rdbuf();
    return text.str();
  }
  static Captured quick(std::vector<std::string> more) {
    std::vector<std::string> arguments = {"tune",     "-e", "64",       "-f", "8",
                                          "--rounds", "3",  "--budget", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_captured(arguments);
  }
  std::string file_;
};

TEST_F(Tune, WritesATableOfWhatItMeasured) {
  const Captured run = quick({"--ranks", "3,4", "--collectives", "gather,scatter", "--sizes"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("written to " + file_));
  EXPECT_THAT(run.out, HasSubstr("alpha"));
  EXPECT_THAT(run.out, HasSubstr("noise:"));
  const auto read = parse_tuning(table());
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->hardware(), read_hardware());
  // Ranks, collectives, and sizes: 8 bytes are one element per rank.
  EXPECT_EQ(read->rows().size(), 2u * 2u * 2u);
  for (const TuningRow& row : read->rows()) EXPECT_GE(row.regret, 1);
}

TEST_F(Tune, MeasuresCostsAndWritesWhatItFound) {
  const Captured run = run_captured({"tune", "--ranks", "2", "--collectives", "all_reduce", "-e",
                                     "64", "-f", "8", "--rounds", "1", "--budget", "60", "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto read = parse_tuning(table());
  ASSERT_TRUE(read.ok()) << read.status().text();
  Costs expected;
  std::set<std::string> tried;
  const Json report = Json::parse(run.out);
  for (const Json& one : report["costs"]) {
    const CostField* field = find_cost(one["name"].get<std::string>());
    ASSERT_NE(field, nullptr) << one;
    tried.insert(one["name"]);
    EXPECT_EQ(one["before"], Costs().*field->value);
    expected.*field->value = one["after"];
    EXPECT_GE(one["gain"], one["after"] == one["before"] ? 1 : 1.03);
    EXPECT_GE(one["sizes"].size(), 5U);
  }
  EXPECT_EQ(tried, (std::set<std::string>{"plain_push_max_bytes", "pair_board_call_max_bytes",
                                          "stage_apart_min_bytes", "stage_in_place_min_bytes",
                                          "stage_stream_min_bytes"}));
  EXPECT_EQ(read->costs(), expected);
}

// Values that differ from the defaults, with sizes that are not tried.
TEST_F(Tune, CostsStayWhereNoneWasTriedAndTopoShowsThem) {
  Costs costs;
  costs.pair_board_call_max_bytes = 6144;
  costs.crowded_yield_ns = 7'000;
  ASSERT_TRUE(save_tuning({read_hardware(), "yesterday", {}, {}, costs}, file_).ok());
  ASSERT_EQ(quick({"--ranks", "3", "--collectives", "gather"}).exit, 0);
  const auto read = parse_tuning(table());
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->costs(), costs);

  // A process reads its table once, so each of these is a new process.
  ToolProcess topo({"topo", "--ranks", "2"});
  EXPECT_THAT(
      topo.rest(),
      AllOf(
          HasSubstr("board_pair_read 6 KiB (16 KiB), yield 7000 nanoseconds (200000 nanoseconds)"),
          HasSubstr(file_)));
  EXPECT_EQ(topo.wait(), 0) << topo.err();
  ToolProcess as_json({"topo", "--ranks", "2", "--json"});
  const Json report = Json::parse(as_json.rest())["costs"];
  EXPECT_EQ(report["table"], file_);
  for (const CostField& field : cost_fields()) {
    EXPECT_EQ(report["values"][std::string(field.name)], costs.*field.value) << field.name;
  }
  ToolProcess choose({"choose", "all_reduce", "--ranks", "2", "--bytes", "8", "--explain"});
  EXPECT_THAT(choose.rest(), HasSubstr("board_pair_read = 6 KiB, measured here"));
}

// An all-reduce's row in a table holds out of place only; in place the default runs and is named.
TEST_F(Tune, PerfSaysWhatRanInPlaceWhereThatIsSomethingElse) {
  const Algorithm* ring = find_algorithm(all_reduce, "ring");
  const TuningTable of_one_row(read_hardware(), "yesterday", {}, {{all_reduce, 2, 8192, ring, 0}},
                               {});
  ASSERT_TRUE(save_tuning(of_one_row, file_).ok());
  for (const auto& [collective, last] :
       {std::pair("all_reduce", "ring@board | direct_one_shot@board\n"),
        {"all_gather", " direct@board\n"}}) {
    ToolProcess perf({"perf", collective, "-t", "2", "-b", "8K", "-e", "8K", "-n", "1"});
    EXPECT_THAT(perf.rest(), HasSubstr(last));
    EXPECT_EQ(perf.wait(), 0) << perf.err();
  }
}

// A gather among two ranks has one schedule only. The error comes at once and names the option.
TEST_F(Tune, SaysWhereNothingIsToBeChosen) {
  const Captured run = quick({"--ranks", "2", "--collectives", "gather"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, HasSubstr("--collectives is gather; with 2 ranks they have no choice"));
}

TEST_F(Tune, KeepsWhatWasMeasuredBefore) {
  ASSERT_EQ(quick({"--ranks", "3", "--collectives", "gather,scatter"}).exit, 0);
  const auto before = parse_tuning(table());
  ASSERT_EQ(quick({"--ranks", "3", "--collectives", "gather", "-b", "64"}).exit, 0);
  const auto after = parse_tuning(table());
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_NE(before->find(gather, 3, 12)->bytes, after->find(gather, 3, 12)->bytes);
  EXPECT_EQ(*before->find(scatter, 3, 12), *after->find(scatter, 3, 12));
}

TEST_F(Tune, CheckMeasuresAndWritesNothing) {
  const TuningTable bad(read_hardware(), "yesterday", {},
                        {{all_reduce, 2, 64, find_algorithm(all_reduce, "two_tree"), 1}});
  ASSERT_TRUE(save_tuning(bad, file_).ok());
  const std::string before = table();
  const Captured run = quick({"--ranks", "2", "--collectives", "all_reduce", "--check", "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_EQ(table(), before);
  const Json report = Json::parse(run.out);
  EXPECT_EQ(report["written"], false);
  ASSERT_EQ(report["rows"].size(), 2u);
  for (const Json& row : report["rows"]) {
    EXPECT_EQ(row["default"], "direct_one_shot");
    EXPECT_EQ(row["table"], "two_tree");
    EXPECT_EQ(row["rounds"], 3);
    for (const char* protocol : {"warm", "fresh"}) {  // in place does not count
      const Json& one = row[protocol];
      double best = one["times"].begin().value();
      for (const Json& time : one["times"]) best = std::min<double>(best, time);
      const double of_default = one["times"]["direct_one_shot"];
      EXPECT_NEAR(one["default_regret"], of_default / best, 1e-9);
      EXPECT_GE(one["table_regret"], 1.0);
    }
  }
  EXPECT_GE(report["regret"]["table"]["max"], report["regret"]["table"]["geometric_mean"]);
}

TEST_F(Tune, SaysWhatIsWrong) {
  struct Misuse {
    std::vector<std::string> arguments;
    int exit;
    const char* says;
  };
  for (const Misuse& one : std::vector<Misuse>{
           {{"tune", "--ranks", "1"}, 2, "--ranks is '1'"},
           {{"tune", "--ranks", "2,x"}, 2, "--ranks is '2,x'"},
           {{"tune", "--collectives", "all_reduse"}, 2, "did you mean 'all_reduce'"},
           {{"tune", "--collectives", "send_recv"}, 2, "--collectives is send_recv; with "},
           {{"tune", "-b", "1K", "-e", "8"}, 2, "--minbytes is 1K"},
           {{"tune", "-b", "0"}, 2, "--minbytes is 0"},
           {{"tune", "--budget", "0"}, 2, "--budget is '0'"},
           {{"tune", "--rounds", "0"}, 2, "--rounds is '0'"},
           {{"tune", "--check"}, 3, "holds no table of this machine"},
           {{"tune", "all_reduce"}, 2, "one argument too many"}}) {
    const Captured run = run_captured(one.arguments);
    EXPECT_EQ(run.exit, one.exit) << run.err;
    EXPECT_THAT(run.err, HasSubstr(one.says));
  }
  EXPECT_FALSE(std::filesystem::exists(file_));
  setenv("RANKINE_TUNING", "off", 1);
  const Captured off = run_captured({"tune"});
  EXPECT_EQ(off.exit, 2);
  EXPECT_THAT(off.err, HasSubstr("RANKINE_TUNING is 'off'"));
}

// The terminal's content while the tool works; calls `act` when the texts appear.
class Watcher : public std::stringbuf {
 public:
  Watcher(std::vector<std::string> texts, std::function<void()> act)
      : texts_(std::move(texts)), act_(std::move(act)) {}

 protected:
  int sync() override {
    const auto shown = [this](const std::string& text) {
      return str().find(text) != std::string::npos;
    };
    if (act_ && std::all_of(texts_.begin(), texts_.end(), shown)) std::exchange(act_, nullptr)();
    str("");
    return 0;
  }

 private:
  std::vector<std::string> texts_;
  std::function<void()> act_;
};

struct Watched {
  int exit;
  Json report;
};

Watched watched(Watcher& terminal, std::vector<std::string> arguments) {
  std::ostringstream out;
  std::ostream err(&terminal);
  Console console{.out = out, .err = err, .err_is_terminal = true};
  const int exit = static_cast<int>(run_tool(arguments, console));
  return {exit, Json::parse(out.str(), nullptr, false)};
}

TEST_F(Tune, InterruptedItTellsWhatItHasAndKeepsWhatIsWhole) {
  Watcher terminal({"judging, round 2", "among 4 ranks"}, [] { raise(SIGINT); });
  const Watched run = watched(terminal, {"tune", "-e", "64", "-f", "8", "--rounds", "3", "--ranks",
                                         "3,4", "--collectives", "gather,scatter", "--json"});
  EXPECT_EQ(run.exit, 130);
  EXPECT_EQ(run.report.at("complete"), false);
  EXPECT_EQ(run.report.at("written"), true);
  EXPECT_TRUE(run.report.contains("model"));
  std::set<int> ranks;
  for (const Json& row : run.report.at("rows")) ranks.insert(row.at("ranks").get<int>());
  EXPECT_EQ(ranks, (std::set<int>{3, 4}));
  const auto read = parse_tuning(table());
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->rows().size(), 2u * 2u);
  for (const TuningRow& row : read->rows()) EXPECT_EQ(row.ranks, 3);
}

TEST_F(Tune, InterruptedEarlyItLeavesTheTableAlone) {
  for (const char* when : {"measuring hops", "looking, round 1", "choosing, round 2"}) {
    std::ofstream(file_) << "old";
    Watcher terminal({when}, [] { raise(SIGTERM); });
    const Watched run = watched(terminal, {"tune", "-e", "64", "--rounds", "3", "--ranks", "3",
                                           "--collectives", "gather", "--json"});
    EXPECT_EQ(run.exit, 143) << when;
    EXPECT_EQ(run.report.at("written"), false);
    EXPECT_EQ(run.report.at("complete"), false);
    EXPECT_EQ(table(), "old");
    // Also with a table as output.
    Watcher again({when}, [] { raise(SIGINT); });
    EXPECT_EQ(watched(again, {"tune", "-e", "64", "--rounds", "3", "--ranks", "3", "--collectives",
                              "gather"})
                  .exit,
              130);
  }
}

// Some of these signals come between two batches.
TEST_F(Tune, InterruptedWhileCostsAreTriedItSaysSo) {
  const auto before = std::signal(SIGINT, [](int) {});  // for a signal that comes too late
  for (const int ms : {10, 40, 80, 120, 160}) {
    std::jthread later;
    Watcher terminal({"costs among 2 ranks"}, [&] {
      later = std::jthread([ms] {
        std::this_thread::sleep_for(std::chrono::milliseconds(ms));
        kill(getpid(), SIGINT);
      });
    });
    const Watched run = watched(terminal, {"tune", "-e", "64", "--rounds", "3", "--ranks", "2",
                                           "--collectives", "all_reduce", "--json"});
    if (later.joinable()) later.join();
    if (run.exit != 0) {
      EXPECT_EQ(run.exit, 130) << ms;
    }
  }
  std::signal(SIGINT, before);
}

TEST_F(Tune, TriesItsPathBeforeItMeasures) {
  std::ofstream(file_) << "a file is no folder";
  setenv("RANKINE_TUNING", (file_ + "/below").c_str(), 1);
  bool measured = false;
  Watcher terminal({"measuring"}, [&] { measured = true; });
  EXPECT_EQ(watched(terminal, {"tune", "--budget", "1", "--ranks", "3"}).exit, 3);
  EXPECT_FALSE(measured);
  EXPECT_THAT(run_captured({"tune", "--budget", "1"}).err,
              HasSubstr("the tuning table '" + file_ + "/below' cannot be written: Not a dir"));
}

TEST(Contests, HaveNoScheduleTwice) {
  const std::vector<Contest> contests = make_contests(all_reduce, 2, {8, 1 << 20});
  ASSERT_EQ(contests.size(), 2u);
  for (const Contest& contest : contests) {
    EXPECT_EQ(std::set<std::string>(contest.schedules.begin(), contest.schedules.end()).size(),
              contest.contenders.size());
    EXPECT_EQ(contest.contenders[contest.standard],
              &default_algorithm(all_reduce, 2, contest.bytes));
    // Among two ranks all of these algorithms have equal schedules.
    const std::size_t one_shot = contest.stands_for(*find_algorithm(all_reduce, "direct_one_shot"));
    EXPECT_EQ(one_shot, contest.stands_for(*find_algorithm(all_reduce, "recursive_doubling")));
    EXPECT_EQ(contest.contenders[one_shot]->name, "direct_one_shot");
    EXPECT_NE(one_shot, contest.stands_for(*find_algorithm(all_reduce, "ring")));
  }
  EXPECT_TRUE(make_contests(send_recv, 4, {8}).empty());
  EXPECT_EQ(make_contests(barrier, 4, {8, 1 << 20}).size(), 1u);
  // Sizes that rounding makes equal count once.
  EXPECT_EQ(make_contests(all_gather, 4, {8, 16, 64}).size(), 2u);
}

TEST(Contests, SizesAreThoseOfTheCalls) {
  for (const Collective collective : {all_reduce, all_gather, all_to_all}) {
    for (const Contest& contest : make_contests(collective, 3, {8, 1000, 65536})) {
      EXPECT_EQ(call_of(contest).count * (collective == all_reduce ? 1 : 3) * 4, contest.bytes);
    }
  }
}

TEST(Contests, TheHopelessDoNotGoOn) {
  Contest contest = make_contests(all_reduce, 5, {64}).front();
  const std::size_t n = contest.contenders.size();
  ASSERT_GE(n, 7u);
  for (auto& rounds : contest.contexts) {
    rounds = {Context(n, 10.0)};
    rounds[0][1] = 1;
    rounds[0][2] = 1.5;
    rounds[0][3] = 1.2;
  }
  contest.contexts[2][0][4] = 1.1;  // once near the best, but elsewhere 10 times slower
  const Algorithm& kept = *contest.contenders[6];
  keep_the_best(contest, 3, 2, &kept);
  for (std::size_t i = 0; i < n; ++i) {
    EXPECT_EQ(contest.running[i], i <= 3 || i == 6) << i;  // 0: the default
  }
  EXPECT_EQ(contest.rounds(), 0u);
}

TEST(ChooseTool, SaysWhereItsAnswerComesFrom) {
  setenv("RANKINE_TUNING", "off", 1);
  const std::vector<std::string> ask = {"choose", "all_reduce", "--ranks", "2", "--bytes", "8"};
  const auto with = [&ask](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = ask;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    return run.out;
  };
  EXPECT_EQ(with({}),
            "all_reduce of 8 B among 2 ranks on threads of this machine: direct_one_shot "
            "(default: no table)\n");
  EXPECT_EQ(Json::parse(with({"--json"}))["source"], "default");
  EXPECT_THAT(with({"--network", "scale_out"}), HasSubstr("(network model)"));
  EXPECT_EQ(Json::parse(with({"--alpha", "2us", "--json"}))["source"], "network model");
  setenv("RANKINE_ALGO", "all_reduce:ring", 1);
  EXPECT_THAT(with({}), HasSubstr("ring (RANKINE_ALGO says so)"));
  unsetenv("RANKINE_ALGO");
  // If calls go to a network, the tool does not answer with the machine's choice.
  setenv("RANKINE_NETWORK", "scale_out", 1);
  const Captured elsewhere = run_captured(ask);
  EXPECT_EQ(elsewhere.exit, 2);
  EXPECT_THAT(elsewhere.err, HasSubstr("RANKINE_NETWORK is 'scale_out'"));
  EXPECT_THAT(with({"--network", "scale_out"}), HasSubstr("(network model)"));
  unsetenv("RANKINE_NETWORK");
}

}  // namespace

// c_real from trials: contests with invented times, the table that tune writes, and the answers of
// choose.

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

// A broadcast among 4 ranks at these sizes, three rounds by each protocol. Contender i takes 1 + i
// / 8 times the model's time if the size is small, and twice that if it is large. An interruption
// hits all contenders in the second round.
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
    const Algorithm& entry = *contests[0].contenders[i];
    const auto c_real = c_real_of(found, entry);
    // Algorithms that use a switch have no c_real, because the model has no switch.
    const bool runs = model_of(contests[0], i) != kNotTimed;
    EXPECT_EQ(c_real.has_value(), runs) << entry.name;
    expected += runs ? 1 : 0;
    if (!c_real) continue;
    const double factor = 1 + static_cast<double>(i) / 8;
    EXPECT_DOUBLE_EQ(c_real->latency, factor) << entry.name;
    EXPECT_DOUBLE_EQ(c_real->bandwidth, 2 * factor) << entry.name;
  }
  EXPECT_EQ(found.size(), expected);
  EXPECT_GE(expected, 5u);
  for (const MeasuredCReal& one : found) {
    EXPECT_EQ(one.collective, broadcast);
    EXPECT_EQ(one.ranks, 4);
  }
}

// Later rounds count as much as earlier ones; here they are the majority.
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

// RANKINE_TUNING names a file in the test's folder. Child processes read it, because a process
// reads it only once.
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

// The whole output of a process, and its exit code.
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

// The fit's values on a busy machine are not tested, so the report gives the expected values.
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
  if (report["c_real"].empty()) return;  // then the old values stay
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
