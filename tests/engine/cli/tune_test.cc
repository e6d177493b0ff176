// Tests of rankine tune and of its consequences: regrets, choices, contests, borders of costs,
// c_real, the table, --check, choose.

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/cli/tune.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;
using Rounds = std::vector<Context>;
using enum Collective;

TEST(Regret, IsTheTimeOverThatOfTheBestWhereItLasts) {
  const Context times = {3, 2, kNotTimed, 4};
  EXPECT_DOUBLE_EQ(regret_in(times, 0), 1.5);
  EXPECT_DOUBLE_EQ(regret_in(times, 1), 1);
  EXPECT_EQ(regret_in(times, 2), kNotTimed);
  EXPECT_DOUBLE_EQ(regret_in(times, 3), 2);
  // More than a quarter of the rounds must see it.
  EXPECT_EQ(lasting_regret({}, 0), 1);
  for (const auto& [regrets, lasting] :
       {std::pair(Context{9}, 9), std::pair(Context{9, 2}, 9), std::pair(Context{9, 2, 3}, 3),
        std::pair(Context{9, 2, 3, 1}, 3), std::pair(Context{9, 8, 3, 1, 2}, 8),
        std::pair(Context{9, 8, 7, 1, 2, 1, 1, 1}, 7)}) {
    Rounds rounds;
    for (const double regret : regrets) rounds.push_back({regret, 1});
    EXPECT_EQ(lasting_regret(rounds, 0), lasting);
  }
  EXPECT_EQ(median_over({{1, kNotTimed, 5}, {3, kNotTimed, kNotTimed}, {2, kNotTimed, 7}}),
            (Context{2, kNotTimed, 6}));
  EXPECT_TRUE(median_over({}).empty());
  const RegretSummary s = summarise_regrets({1, 4, 2, 4});
  EXPECT_EQ(s.samples, 4u);
  EXPECT_NEAR(s.geometric_mean, std::pow(32, 0.25), 1e-12);
  EXPECT_EQ(s.max, 4);
  EXPECT_EQ(s.worst, 1u);
  EXPECT_EQ(summarise_regrets({}).geometric_mean, 1);
}

TEST(RobustChoice, MinimisesTheWorstAndKeepsTheDefault) {
  const Context near = {4, 1.0, 5, 1.5}, far = {4, 5, 1.0, 1.4};
  struct {
    const char* what;
    std::vector<Rounds> protocols;
    std::size_t contender;
    double regret;
  } cases[] = {
      // Contender 1 wins warm and 2 wins fresh, each by far; 3 is second in both.
      {"over protocols", {Rounds(3, near), Rounds(3, far)}, 3, 1.5},
      {"over rounds", {{near, far, near, far, far}}, 3, 1.5},  // cores near and far
      {"an interruption", {{{2, 1}, {2, 1}, {2, 50}, {2, 1}}}, 1, 1},
      {"an interruption of the default", {{{1, 2}, {1, 2}, {50, 2}, {1, 2}}}, 0, 1},
      {"within the margin", {Rounds(4, {1.09, 1})}, 0, 1.09},
      {"beyond the margin", {Rounds(4, {1.11, 1})}, 1, 1},
      // In two of five rounds an interruption hit the default; in the others none was better.
      {"noise on the default", {{{1.3, 1}, {1, 1}, {1.3, 1}, {1, 1}, {1, 1}}}, 0, 1.3},
      {"too few rounds", {Rounds(4, {2, 1}), Rounds(kFewestRounds - 1, {2, 1})}, 0, 0},
      {"one that did not run", {Rounds(3, {2, kNotTimed, 1.5})}, 2, 1},
  };
  for (const auto& [what, protocols, contender, regret] : cases) {
    const Choice choice = robust_choice(protocols, protocols[0][0].size(), 0);
    EXPECT_EQ(choice.contender, contender) << what;
    if (regret > 0) {
      EXPECT_DOUBLE_EQ(choice.regret, regret) << what;
    }
  }
  EXPECT_EQ(robust_choice(std::array{Rounds(4, {1.09, 1})}, 2, 0, 1.05).contender, 1u);
}

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
  for (const std::size_t before : {0, 300, 1 << 30}) {
    const Border border = best_border(crossing_at_4096(2), before);
    EXPECT_TRUE(border.value >= 2048U && border.value < 4096U) << before;
    EXPECT_GT(border.gain, 1) << before;
  }
  // Five of nine sizes, those from 4096 on, take half the time.
  EXPECT_NEAR(best_border(crossing_at_4096(2), std::size_t{1} << 30).gain, std::pow(2, 5.0 / 9),
              1e-12);
  for (const std::size_t before : {2048, 3000, 4095}) {  // as good as any
    const Border border = best_border(crossing_at_4096(2), before);
    EXPECT_EQ(border.value, before);
    EXPECT_EQ(border.gain, 1);
  }
  EXPECT_EQ(best_border(crossing_at_4096(1), 77).value, 77U);
  EXPECT_EQ(best_border(std::vector<FormTimes>{{64, 2, 1}, {128, 2, 1}}, 128).value, 63U);
  EXPECT_EQ(best_border(std::vector<FormTimes>{{64, 1, 2}, {128, 1, 2}}, 0).value, 128U);
}

// Tries all fields that apply to this number of ranks, in the time that there is. Each finding
// keeps its value or gains, within the allowed range.
TEST(CostSearch, TriesEveryFormThatThereIs) {
  const InterruptGuard forgets;  // an interrupt of an earlier test
  std::vector<std::string> asked;
  const auto found_by = [&asked](std::chrono::seconds from_now) {
    return search_costs({}, 2,
                        {.deadline = std::chrono::steady_clock::now() + from_now,
                         .rounds = 1,
                         .progress = [&](std::string_view field) { asked.emplace_back(field); }});
  };
  EXPECT_TRUE(found_by(std::chrono::seconds(-1))->empty());
  EXPECT_TRUE(asked.empty());
  const auto found = found_by(std::chrono::hours(1)).value();
  ASSERT_EQ(found.size(), asked.size());
  EXPECT_GE(found.size(), 6U);
  for (const CostFinding& finding : found) {
    EXPECT_EQ(finding.before, Costs{}.*finding.field->value) << finding.field->name;
    EXPECT_GE(finding.after, finding.field->least) << finding.field->name;
    EXPECT_LE(finding.after, finding.field->most) << finding.field->name;
    EXPECT_EQ(finding.after == finding.before, finding.gain == 1) << finding.field->name;
    EXPECT_FALSE(finding.sizes.empty()) << finding.field->name;
    for (const FormTimes& size : finding.sizes) EXPECT_TRUE(size.first > 0 && size.second > 0);
  }
}

// Readers of the table are new processes.
class Tune : public testing::Test {
 protected:
  void save(const TuningTable& table) const { ASSERT_TRUE(save_tuning(table, file_).ok()); }
  TuningTable table() const {
    auto read = parse_tuning(text_of(file_));
    EXPECT_TRUE(read.ok()) << read.status().text();
    return *read;
  }
  static std::string quick(const std::string& more) {
    return "tune -e 64 -f 8 --rounds 3 --budget 1 " + more;
  }
  static Captured said(const std::string& line) {
    ToolProcess tool(words_of(line));
    Captured all{.exit = -1, .out = tool.rest(), .err = {}};
    all.exit = tool.wait();
    all.err = tool.err();
    return all;
  }
  const OwnTuning tuning_;
  const std::string& file_ = tuning_.file;
};

TEST_F(Tune, WritesATableOfWhatItMeasured) {
  const std::string text = output_of(quick("--ranks 3,4 --collectives gather,scatter --sizes"));
  EXPECT_TRUE(has(text, file_) && has(text, "alpha") && has(text, "noise:")) << text;
  // Ranks, collectives, and sizes: 8 bytes are one element per rank.
  const TuningTable before = table();
  EXPECT_EQ(before.hardware(), read_hardware());
  EXPECT_EQ(before.rows().size(), 2u * 2u * 2u);
  for (const TuningRow& row : before.rows()) EXPECT_GE(row.regret, 1);
  // Rows and costs that are not measured again stay.
  Costs costs;
  costs.pair_board_call_max_bytes = 6144;
  costs.crowded_yield_ns = 7'000;
  save({read_hardware(), "yesterday", {}, before.rows(), costs});
  output_of(quick("--ranks 3 --collectives gather -b 64"));
  EXPECT_EQ(table().costs(), costs);
  EXPECT_NE(before.find(gather, 3, 12)->bytes, table().find(gather, 3, 12)->bytes);
  EXPECT_EQ(*before.find(scatter, 3, 12), *table().find(scatter, 3, 12));
  const Json report = Json::parse(said("topo --ranks 2 --json").out)["costs"];
  EXPECT_EQ(report["table"], file_);
  for (const CostField& field : cost_fields()) {
    EXPECT_EQ(report["values"][std::string(field.name)], costs.*field.value) << field.name;
  }
  EXPECT_TRUE(has(said("topo --ranks 2").out, "pair_board_call_max_bytes 6 KiB (16 KiB)"));
  EXPECT_TRUE(has(said("choose all_reduce --ranks 2 --bytes 8 --explain").out,
                  "pair_board_call_max_bytes = 6 KiB"));
  EXPECT_TRUE(
      has(said("choose all_reduce --ranks 2 --bytes 4K --explain").out,
          "ranks time it against a form that reads: direct_one_shot on the direct transport"));
  EXPECT_EQ(json_of("choose broadcast --ranks 4 --bytes 4K --json")["trials"][0]["transport"],
            "board");
}

TEST_F(Tune, MeasuresCostsAndWritesWhatItFound) {
  const Json report =
      json_of("tune --ranks 2 --collectives all_reduce -e 64 -f 8 --rounds 1 --budget 60 --json");
  Costs expected;
  std::set<std::string> tried;
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
  EXPECT_EQ(table().costs(), expected);
}

// An all-reduce's row in a table holds out of place only; in place the default runs and is named.
TEST_F(Tune, PerfSaysWhatRanInPlaceWhereThatIsSomethingElse) {
  const Algorithm* ring = find_algorithm(all_reduce, "ring");
  save({read_hardware(), "yesterday", {}, {{all_reduce, 2, 8192, ring, 0}}, {}});
  EXPECT_TRUE(has(said("perf all_reduce -t 2 -b 8K -e 8K -n 1").out,
                  "ring@board | direct_one_shot@board\n"));
  EXPECT_TRUE(has(said("perf all_gather -t 2 -b 8K -e 8K -n 1").out, " direct@board\n"));
}

TEST_F(Tune, CheckMeasuresAndWritesNothing) {
  save({read_hardware(),
        "yesterday",
        {},
        {{all_reduce, 2, 64, find_algorithm(all_reduce, "two_tree"), 1}}});
  const std::string before = text_of(file_);
  const Json report = json_of(quick("--ranks 2 --collectives all_reduce --check --json"));
  EXPECT_EQ(text_of(file_), before);
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
  EXPECT_EQ(run_line("tune --check").exit, 3);
  EXPECT_FALSE(std::filesystem::exists(file_));
  std::ofstream(file_) << "a file is no folder";
  OwnTuning::set(file_ + "/below");
  EXPECT_TRUE(has(run_line("tune --budget 1").err, "'" + file_ + "/below'"));
  OwnTuning::set("off");
  const Captured off = run_line("tune");
  EXPECT_EQ(off.exit, 2);
  EXPECT_TRUE(has(off.err, "RANKINE_TUNING is 'off'"));
}

// The terminal's content while the tool works; calls `act` when the texts appear.
class Watcher : public std::stringbuf {
 public:
  Watcher(std::vector<std::string> texts, std::function<void()> act)
      : texts_(std::move(texts)), act_(std::move(act)) {}

 protected:
  int sync() override {
    const auto shown = [this](const std::string& text) { return has(str(), text); };
    if (act_ && std::all_of(texts_.begin(), texts_.end(), shown)) std::exchange(act_, nullptr)();
    str("");
    return 0;
  }

 private:
  std::vector<std::string> texts_;
  std::function<void()> act_;
};

std::pair<int, Json> watched(const std::string& line, const std::vector<std::string>& texts,
                             const std::function<void()>& act) {
  Watcher terminal(texts, act);
  std::ostringstream out;
  std::ostream err(&terminal);
  Console console{.out = out, .err = err, .err_is_terminal = true};
  const int exit = static_cast<int>(run_tool(words_of(line), console));
  return {exit, Json::parse(out.str(), nullptr, false)};
}

TEST_F(Tune, InterruptedItTellsWhatItHasAndKeepsWhatIsWhole) {
  const auto [exit, report] =
      watched("tune -e 64 -f 8 --rounds 3 --ranks 3,4 --collectives gather,scatter --json",
              {"judging, round 2", "among 4 ranks"}, [] { raise(SIGINT); });
  EXPECT_EQ(exit, 130);
  EXPECT_EQ(report.at("complete"), false);
  EXPECT_EQ(report.at("written"), true);
  EXPECT_TRUE(report.contains("model"));
  std::set<int> ranks;
  for (const Json& row : report.at("rows")) ranks.insert(row.at("ranks").get<int>());
  EXPECT_EQ(ranks, (std::set<int>{3, 4}));
  const TuningTable whole = table();
  EXPECT_EQ(whole.rows().size(), 2u * 2u);
  for (const TuningRow& row : whole.rows()) EXPECT_EQ(row.ranks, 3);
}

TEST_F(Tune, InterruptedEarlyItLeavesTheTableAlone) {
  const std::string line = "tune -e 64 --rounds 3 --ranks 3 --collectives gather";
  for (const char* when : {"measuring hops", "looking, round 1", "choosing, round 2"}) {
    std::ofstream(file_) << "old";
    const auto [exit, report] = watched(line + " --json", {when}, [] { raise(SIGTERM); });
    EXPECT_EQ(exit, 143) << when;
    EXPECT_EQ(report.at("written"), false);
    EXPECT_EQ(report.at("complete"), false);
    EXPECT_EQ(text_of(file_), "old");
    EXPECT_EQ(watched(line, {when}, [] { raise(SIGINT); }).first, 130);
  }
}

// Some of these signals come between two batches.
TEST_F(Tune, InterruptedWhileCostsAreTriedItSaysSo) {
  const auto before = std::signal(SIGINT, [](int) {});  // for a signal that comes too late
  for (const int ms : {10, 40, 80, 120, 160}) {
    std::jthread later;
    const int exit = watched("tune -e 64 --rounds 3 --ranks 2 --collectives all_reduce --json",
                             {"costs among 2 ranks"},
                             [&] {
                               later = std::jthread([ms] {
                                 std::this_thread::sleep_for(std::chrono::milliseconds(ms));
                                 kill(getpid(), SIGINT);
                               });
                             })
                         .first;
    if (later.joinable()) later.join();
    EXPECT_TRUE(exit == 0 || exit == 130) << ms << " ms: " << exit;
  }
  std::signal(SIGINT, before);
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
  // Sizes are those of the calls; sizes that rounding makes equal count once.
  EXPECT_EQ(make_contests(all_gather, 4, {8, 16, 64}).size(), 2u);
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
  const OwnTuning off("off");
  const std::string ask = "choose all_reduce --ranks 2 --bytes 8 ";
  const auto source = [&ask](const std::string& more) {
    return json_of(ask + more + " --json")["source"].get<std::string>();
  };
  EXPECT_EQ(source(""), "default");
  EXPECT_EQ(source("--network scale_out"), "network model");
  EXPECT_EQ(source("--alpha 2us"), "network model");
  {
    const ScopedEnv forced("RANKINE_ALGO", "all_reduce:ring");
    EXPECT_TRUE(has(output_of(ask), "ring (RANKINE_ALGO"));
  }
  // If calls go to a network, the tool does not answer with the machine's choice.
  const ScopedEnv elsewhere("RANKINE_NETWORK", "scale_out");
  EXPECT_TRUE(has(run_line(ask).err, "RANKINE_NETWORK is 'scale_out'"));
  EXPECT_EQ(source("--network scale_out"), "network model");
}

// c_real from trials: contests with invented times, the table that tune writes, and the answers of
// choose.

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
// hits all contenders in the second round. An algorithm with segments that makes the schedule of
// another one at one of the sizes takes no part.
std::vector<Contest> played(const std::vector<std::size_t>& sizes) {
  std::vector<Contest> contests = make_contests(broadcast, 4, sizes);
  for (Contest& contest : contests) {
    std::erase_if(contest.contenders, [&contests](const Algorithm* one) {
      return std::any_of(contests.begin(), contests.end(), [one](const Contest& each) {
        return std::find(each.contenders.begin(), each.contenders.end(), one) ==
               each.contenders.end();
      });
    });
    contest.running.assign(contest.contenders.size(), true);
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
  std::vector<Contest> contests = played({kSmall, kLarge});
  ASSERT_EQ(contests.size(), 2u);
  ASSERT_EQ(contests[0].contenders, contests[1].contenders);
  auto found = measured(contests);
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
  // One regime alone says too little.
  EXPECT_TRUE(measured(played({8, 16, kSmall})).empty());
  EXPECT_TRUE(measured(played({kLarge, 2 * kLarge})).empty());
  // Contenders that did not run, or took an impossible time, are left out.
  for (auto& rounds : contests[1].contexts) {
    for (Context& times : rounds) {
      times[0] = kNotTimed;
      times[1] *= 1e4;
    }
  }
  found = measured(contests);
  EXPECT_FALSE(c_real_of(found, *contests[0].contenders[0]));
  EXPECT_FALSE(c_real_of(found, *contests[0].contenders[1]));
  EXPECT_TRUE(c_real_of(found, *contests[0].contenders[2]));
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
  const auto found = trials.measured().value();
  EXPECT_DOUBLE_EQ(c_real_of(found, *contests[0].contenders[0])->latency, 3);
}

class CRealTool : public Tune {
 protected:
  void save(const std::vector<MeasuredCReal>& c_real) const {
    Tune::save({read_hardware(), "yesterday", kModel, {}, {}, c_real});
  }
};

MeasuredCReal among_4(std::string_view name, CReal c_real) {
  return {broadcast, 4, find_algorithm(broadcast, name), c_real};
}

// By the model linear takes 6 us here and binomial_near 4.
TEST_F(CRealTool, ChooseOnThreadsMultipliesTheModel) {
  const std::string ask = "choose broadcast --ranks 4 --bytes 1000";
  save({among_4("linear", {2, 4}), among_4("binomial_near", {1, 3})});
  const Json report = Json::parse(said(ask + " --json").out);
  EXPECT_EQ(report["source"], "c_real");
  EXPECT_EQ(report["choice"]["algorithm"], "binomial_near");
  ASSERT_EQ(report["candidates"].size(), 2u);
  EXPECT_DOUBLE_EQ(report["candidates"][1]["time"], 6e-6);
  EXPECT_DOUBLE_EQ(report["candidates"][1]["c_real"], 3);
  EXPECT_DOUBLE_EQ(report["candidates"][1]["expected"], 18e-6);
  // The default stays unless another is far better.
  save({among_4("linear", {1, 1}), among_4("binomial_near", {1.2, 1.2})});
  EXPECT_EQ(Json::parse(said(ask + " --json").out)["source"], "default");
  EXPECT_TRUE(has(said(ask + " --explain").out, "*  binomial_near "));
}

TEST_F(CRealTool, ChooseOnANetworkMultipliesWhereItIsAsked) {
  save({among_4("linear", {0.1, 0.1}), among_4("binomial_near", {1, 1})});
  const std::string ask = "choose broadcast --ranks 4 --bytes 1000 --network plain --json";
  EXPECT_EQ(Json::parse(said(ask).out)["choice"]["algorithm"] == "linear", false);
  EXPECT_EQ(Json::parse(said(ask + " --c-real").out)["choice"]["algorithm"], "linear");
  // Without a table, or without the collective in it, there is nothing to multiply.
  const std::string other = "choose all_gather --ranks 4 --network plain --c-real";
  EXPECT_EQ(said(other).exit, 3);
  EXPECT_TRUE(has(said(other).err, "'rankine tune --collectives all_gather --ranks 4'"));
  std::filesystem::remove(file_);
  EXPECT_TRUE(has(said(other).err, "--c-real"));
  EXPECT_EQ(said(other).exit, 3);
}

// The fit's values on a busy machine are not tested, so the report gives the expected values.
TEST_F(CRealTool, TuneWritesWhatItReportsAndKeepsTheRest) {
  save({among_4("linear", {1.5, 2.5}),
        {gather, 3, find_algorithm(gather, "linear"), {.latency = 999, .bandwidth = 999}}});
  const Json report =
      json_of("tune --ranks 3 --collectives gather -b 8 -e 1M -f 1024 --rounds 1 --json");
  std::vector<MeasuredCReal> fresh;
  bool kept = false;
  const TuningTable written = table();
  for (const MeasuredCReal& one : written.c_real()) {
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
