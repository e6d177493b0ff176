// rankine tune and what follows from it: the table, --check, choose.
#include "engine/tools/tune.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/tools/contest.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/tool_process.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using enum Collective;

// RANKINE_TUNING names a file of the test's own; nothing goes to the user's cache.
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
  EXPECT_EQ(tried, (std::set<std::string>{"push_plain", "board_pair_read", "stage_apart",
                                          "stage_in_place", "stage_stream"}));
  EXPECT_EQ(read->costs(), expected);
}

// Numbers unlike the defaults, and of a size that is not tried.
TEST_F(Tune, CostsStayWhereNoneWasTriedAndTopoShowsThem) {
  Costs costs;
  costs.board_pair_read = 6144;
  costs.yield = 7'000;
  ASSERT_TRUE(save_tuning({read_hardware(), "yesterday", {}, {}, costs}, file_).ok());
  ASSERT_EQ(quick({"--ranks", "3", "--collectives", "gather"}).exit, 0);
  const auto read = parse_tuning(table());
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->costs(), costs);

  // A process reads its table once, so each of these is a new one.
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

// A table says of all-reduces how they do out of place; in place the default runs, and is named.
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

// Two ranks gather in one way only. It is said at once, and of the option that it is about.
TEST_F(Tune, SaysWhereNothingIsToBeChosen) {
  const Captured run = quick({"--ranks", "2", "--collectives", "gather"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_THAT(run.err, HasSubstr("--collectives is gather; among 2 ranks nothing is to be chosen"));
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
    for (const char* protocol : {"warm", "fresh"}) {  // in place has no say
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
           {{"tune", "--collectives", "send_recv"}, 2, "--collectives is send_recv; among "},
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

// What is shown on a terminal while the tool works, with something done where a text appears.
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
    // As a table, too.
    Watcher again({when}, [] { raise(SIGINT); });
    EXPECT_EQ(watched(again, {"tune", "-e", "64", "--rounds", "3", "--ranks", "3", "--collectives",
                              "gather"})
                  .exit,
              130);
  }
}

// A signal that comes between two batches, too, which some of these do.
TEST_F(Tune, InterruptedWhileCostsAreTriedItSaysSo) {
  const auto before = std::signal(SIGINT, [](int) {});  // of one that comes too late
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
    // Among two ranks all of these do the same.
    const std::size_t one_shot = contest.stands_for(*find_algorithm(all_reduce, "direct_one_shot"));
    EXPECT_EQ(one_shot, contest.stands_for(*find_algorithm(all_reduce, "recursive_doubling")));
    EXPECT_EQ(contest.contenders[one_shot]->name, "direct_one_shot");
    EXPECT_NE(one_shot, contest.stands_for(*find_algorithm(all_reduce, "ring")));
  }
  EXPECT_TRUE(make_contests(send_recv, 4, {8}).empty());
  EXPECT_EQ(make_contests(barrier, 4, {8, 1 << 20}).size(), 1u);
  // Sizes that rounding makes the same are one.
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
  contest.contexts[2][0][4] = 1.1;  // once near the best, though 10 times it elsewhere
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
  // Where programs' calls go elsewhere, the machine's choice is not theirs.
  setenv("RANKINE_NETWORK", "scale_out", 1);
  const Captured elsewhere = run_captured(ask);
  EXPECT_EQ(elsewhere.exit, 2);
  EXPECT_THAT(elsewhere.err, HasSubstr("RANKINE_NETWORK is 'scale_out'"));
  EXPECT_THAT(with({"--network", "scale_out"}), HasSubstr("(network model)"));
  unsetenv("RANKINE_NETWORK");
}

}  // namespace
}  // namespace rankine::tools
