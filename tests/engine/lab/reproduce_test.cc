// Tests of reproducing papers: figures, statements and tables, and turns of ranks on one thread.

#include <pthread.h>
#include <nlohmann/json.hpp>

#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/lab/commands.h"
#include "engine/papers/figures.h"
#include "engine/papers/played.h"
#include "engine/papers/runs.h"
#include "engine/papers/statements.h"
#include "engine/papers/tables.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

// Single messages, as traces print them, of schedules small enough to be worked out by hand.

namespace rankine::claims {
namespace {

std::string value(std::string_view run, std::string_view quantity, std::vector<Value> arguments) {
  Runs runs;
  const auto found =
      runs.quantity(read_runs(run, "bytes=800; alpha=1; beta=0"), {}, quantity, arguments);
  return found ? to_string(*found) : "nothing";
}

TEST(Messages, AreThoseWorkedOutByHand) {
  const char* tree = "broadcast binomial_near; ranks=4";
  const char* halving = "reduce_scatter recursive_halving; ranks=8";
  const struct {
    const char *run, *quantity;
    std::vector<Value> arguments;
    const char* value;
  } cases[] = {{tree, "sends", {1, 0, 1}, "800"}, {tree, "sends", {2, 0, 2}, "800"},
               {tree, "sends", {2, 1, 3}, "800"}, {tree, "sends", {1, 1, 3}, "0"},
               {tree, "sends", {3, 1}, "0"},      {tree, "sent_by", {0}, "1600"},
               {tree, "sent_in", {2}, "800"},     {tree, "sent_in", {3}, "0"},
               {tree, "first_round", {1}, "2"},   {tree, "last_round", {0}, "2"},
               {tree, "first_round", {3}, "0"},   {halving, "sent_in", {1}, "400"},
               {halving, "sent_in", {2}, "200"},  {halving, "largest", {}, "400"},
               {tree, "sends", {1}, "nothing"},   {tree, "sent_by", {1, 2}, "nothing"},
               {tree, "rounds", {1}, "nothing"}};
  for (const auto& [run, quantity, arguments, wanted] : cases) {
    EXPECT_EQ(value(run, quantity, arguments), wanted) << run << ": " << quantity;
  }
  EXPECT_THROW(value(tree, "sent_by", {Value(1) / 2}), std::logic_error);
}

TEST(Messages, OnOnePathAntipodesLoadTheLinksTwice) {
  // 1 + 2 + 4 links one after the other; half of the last message goes each way, so it is 1 + 2 +
  // 2.
  EXPECT_EQ(value("all_reduce recursive_doubling; ranks=8", "one_path_delay", {}), "7");
  EXPECT_EQ(value("all_reduce recursive_doubling; ranks=8", "ring_load", {}), "5");
  EXPECT_EQ(value("all_reduce torus_doubling_latency; ranks=16; dims=4x4; wiring=torus",
                  "one_path_delay", {}),
            "12");
}

// Ranks that take turns on one thread: they make progress as ranks on threads do. If no rank can,
// their calls end at once with an error.

// Counts the turns of ranks that could not go on.
struct Counted : Turns {
  void give_way(int turn) noexcept override {
    in_vain += turn > 0 ? 1 : 0;
    Turns::give_way(turn);
  }
  int in_vain = 0;
};

// A communicator with all its ranks on this thread.
struct Ranks {
  explicit Ranks(int ranks, std::shared_ptr<const CallNetwork> network = {}) {
    CommunicatorOptions options{.ranks = ranks, .timeout = std::chrono::hours(1)};
    options.tuned = false;
    options.network = std::move(network);
    auto made = Communicator::create(options);
    communicator = std::move(*made);
    for (Rank r = 0; r < ranks; ++r) {
      members.push_back(std::move(*communicator->join(r)));
      members.back()->set_yield_callback(&turns);
    }
  }
  // The sum of the ranks' numbers; each rank receives it in `out`.
  Status sum(Rank rank, std::uint32_t& out, const char* algorithm = "") {
    const auto in = static_cast<std::uint32_t>(rank);
    return members[static_cast<std::size_t>(rank)]->call({.collective = Collective::all_reduce,
                                                          .in = &in,
                                                          .out = &out,
                                                          .count = 1,
                                                          .type = DataType::u32,
                                                          .options = {.algorithm = algorithm}});
  }

  Counted turns;
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<Member>> members;
};

void never() { FAIL() << "ranks that can go on are said to be stuck"; }

TEST(Turns, RanksThatWaitForOneAnotherGetOn) {
  constexpr int kRanks = 300;
  Ranks ranks(kRanks);
  std::vector<std::uint32_t> out(kRanks);
  std::vector<Status> ended(kRanks);
  for (const char* algorithm : {"ring", "recursive_doubling"}) {
    const auto part = [&](Rank rank) {
      const auto r = static_cast<std::size_t>(rank);
      ended[r] = ranks.sum(rank, out[r], algorithm);
    };
    ranks.turns.run(kRanks, part, never);
    for (std::size_t r = 0; r < kRanks; ++r) {
      EXPECT_TRUE(ended[r].ok()) << ended[r].text();
      EXPECT_EQ(out[r], kRanks * (kRanks - 1) / 2) << "rank " << r << ", " << algorithm;
    }
    EXPECT_EQ(ranks.turns.in_vain, 0) << algorithm;
  }
}

// Without the callback the calling ranks would wait for an hour.
TEST(Turns, WhereNoRankCanGoOnSomebodyIsTold) {
  constexpr int kRanks = 5;
  Ranks ranks(kRanks);
  std::vector<Status> ended(kRanks);
  int told = 0;
  const auto part = [&](Rank rank) {
    if (rank == 3) return;  // never calls
    std::uint32_t out = 0;
    ended[static_cast<std::size_t>(rank)] = ranks.sum(rank, out);
  };
  ranks.turns.run(kRanks, part, [&] {
    ++told;
    ranks.communicator->abort("none can go on");
  });
  EXPECT_EQ(told, 1);
  for (const Rank r : {0, 1, 2, 4}) {
    const Status& status = ended[static_cast<std::size_t>(r)];
    EXPECT_EQ(status.code(), Code::aborted) << "rank " << r << ": " << status.text();
  }
}

// Calls on a network change the thread's cancellation state, and the calls of ranks overlap without
// nesting.
TEST(Turns, CancellationIsAsItWasBefore) {
  constexpr int kRanks = 3;
  Ranks ranks(kRanks, *find_call_network("scale_out"));
  const auto part = [&](Rank rank) {
    std::uint32_t out = 0;
    const Status status = ranks.sum(rank, out);
    EXPECT_TRUE(status.ok()) << status.text();
  };
  ranks.turns.run(kRanks, part, never);
  int state = PTHREAD_CANCEL_DISABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
}

}  // namespace
}  // namespace rankine::claims

// The figures' panels: their algorithms, the forms of these, and the sizes at which the fastest
// changes.

namespace rankine::reproduce {
namespace {

class Figures : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    profiles_ = new Profiles;
    panels_ = new std::vector<Panel>(panels(*profiles_));
  }
  static void TearDownTestSuite() {
    delete panels_;
    delete profiles_;
  }
  static const Panel& panel(std::string_view id) {
    for (const Panel& each : *panels_) {
      if (each.spec.id == id) return each;
    }
    throw std::logic_error("no panel " + std::string(id));
  }
  static Profiles* profiles_;
  static std::vector<Panel>* panels_;
};
Profiles* Figures::profiles_ = nullptr;
std::vector<Panel>* Figures::panels_ = nullptr;

TEST_F(Figures, HaveThePapersAlgorithms) {
  const auto names = [](const Panel& panel) {
    std::string text;
    for (const Curve& curve : panel.curves) text += std::string(curve.contender->name) + ",";
    return text;
  };
  EXPECT_EQ(names(panel("7b")), "Bucket,Recursive doubling,Swing,Bruck,Trivance,");
  EXPECT_EQ(names(panel("9")), "Bucket,Bruck,Trivance,");
  EXPECT_EQ(figure_sizes().front(), 32u);
  EXPECT_EQ(figure_sizes().back(), 128u << 20);
}

TEST_F(Figures, TimesAreWhatTheModelSays) {
  // Ring of 8, worked out by hand: Trivance (L) sends to distances 1 and 1, then to 2 and 3, with 1
  // and 3 vectors on the busiest link.
  const Panel& ring = panel("6a");
  const double m = 4096, beta = 1 / 100e9;
  EXPECT_NEAR(ring.time(ring.trivance(), Form::latency, m),
              2 * 1.5e-6 + (1 + 3) * 200e-9 + (1 + 3) * m * beta, 1e-15);
  // Bucket: 14 rounds of one link and half an eighth of the vector each way.
  EXPECT_NEAR(ring.time(*ring.find("Bucket"), m), 14 * (1.5e-6 + 200e-9 + m / 16 * beta), 1e-15);
  EXPECT_EQ(ring.gain(ring.trivance(), m), 0);
}

TEST_F(Figures, TheBetterFormIsTaken) {
  for (const Panel& each : *panels_) {
    for (const Curve& curve : each.curves) {
      if (curve.latency == nullptr) continue;
      for (const std::uint64_t size : figure_sizes()) {
        const auto m = static_cast<double>(size);
        EXPECT_LE(each.time(curve, m), each.time(curve, Form::latency, m));
        EXPECT_LE(each.time(curve, m), each.time(curve, Form::bandwidth, m));
      }
      const auto change = each.change_of_form(curve);
      ASSERT_TRUE(change.has_value()) << each.spec.id << " " << curve.contender->name;
      EXPECT_EQ(each.form(curve, *change / 1.001), Form::latency);
      EXPECT_EQ(each.form(curve, *change * 1.001), Form::bandwidth);
    }
  }
}

TEST_F(Figures, TheFastestChangesAtTheCrossovers) {
  for (const Panel& each : *panels_) {
    const Curve* leader = &each.fastest(32);
    for (const Crossover& crossover : crossovers(each)) {
      EXPECT_EQ(crossover.before, leader);
      const auto lead = [&](double m) {
        return each.time(*crossover.before, m) < each.time(*crossover.after, m);
      };
      EXPECT_TRUE(lead(crossover.bytes / 1.0001)) << each.spec.id;
      EXPECT_FALSE(lead(crossover.bytes * 1.0001)) << each.spec.id;
      leader = crossover.after;
    }
    EXPECT_EQ(&each.fastest(128 << 20), leader) << each.spec.id;
    for (const std::uint64_t size : figure_sizes()) {
      const auto m = static_cast<double>(size);
      for (const Curve& curve : each.curves) {
        EXPECT_LE(each.time(each.fastest(m), m), each.time(curve, m)) << each.spec.id;
      }
    }
  }
}

TEST_F(Figures, BandwidthMovesTheCurves) {
  // Under Eq. (1), four times the bandwidth equals a quarter of the size, except for alpha.
  const Panel &slow = panel("8-200"), &fast = panel("8-800");
  for (const double m : {1024.0, 65536.0, 4194304.0}) {
    EXPECT_NEAR(slow.time(slow.trivance(), m), fast.time(fast.trivance(), 4 * m), 1e-15);
  }
  EXPECT_EQ(fast.time(fast.trivance(), 512), panel("7b").time(panel("7b").trivance(), 512));
}

// Verdicts follow from measurements, and every statement can be measured.

constexpr double kMi = 1 << 20;

Statement percents(double low, double high, double allowed) {
  return {.id = "test",
          .where = "here",
          .text = "so much faster",
          .measure = Measure::gain,
          .panels = "6a",
          .others = "",
          .from = 32,
          .to = 1024,
          .low = low,
          .high = high,
          .allowed = allowed};
}
Statement sizes(double size, double allowed) {
  Statement statement = percents(size, size, allowed);
  statement.measure = Measure::overtaken;
  return statement;
}

TEST(Judged, PercentsByPointsAndSizesByFactors) {
  const struct {
    Statement statement;
    double low, high;
    const char* verdict;
  } cases[] = {{percents(5, 30, 0.5), 5, 30, "holds"},
               {percents(5, 30, 0.5), 4.5, 30.5, "holds"},
               {percents(5, 30, 0.5), 4.25, 20, "differs by 0.75 points"},
               {percents(5, 30, 0.5), 1, 40, "differs by 10 points"},
               {percents(5, 30, 0.5), -3, 31, "differs by 8 points"},
               {percents(20, kNoLimit, 0), 20, 1000, "holds"},
               {percents(20, kNoLimit, 0), 19.9, 1000, "differs by 0.1 points"},
               {percents(-kNoLimit, 0, 0), -40, 0, "holds"},
               {sizes(4 * kMi, 2), 4 * kMi, 4 * kMi, "holds"},
               {sizes(4 * kMi, 2), 2 * kMi, 8 * kMi, "holds"},
               {sizes(4 * kMi, 2), 1 * kMi, 4 * kMi, "differs by a factor of 4"},
               {sizes(4 * kMi, 2), 4 * kMi, 12 * kMi, "differs by a factor of 3"}};
  for (const auto& [statement, low, high, verdict] : cases) {
    const Outcome outcome = judged(statement, {low, "a"}, {high, "b"});
    EXPECT_EQ(verdict_text(outcome), verdict) << low << " to " << high;
    EXPECT_EQ(outcome.agrees, std::string(verdict) == "holds");
  }
  const Outcome never = judged(sizes(4 * kMi, 2), {kNoLimit, "6a"}, {kNoLimit, "6a"});
  EXPECT_FALSE(never.agrees);
  EXPECT_EQ(found_text(never), "beyond 128 MiB (6a)");
  EXPECT_EQ(stated_text(percents(5, 30, 0)), "5 to 30 %");
  EXPECT_EQ(stated_text(percents(5, 30, 0.5)), "5 to 30 %, within 0.5 points");
  EXPECT_EQ(stated_text(sizes(512 * 1024, 2)), "512 KiB, within a factor of 2");
}

// Artificial profiles: L takes 1 s + m, B takes 2 s + m / 4, and the other algorithm takes twice as
// long in each.
struct Toy {
  Profile latency, bandwidth, slow_latency, slow_bandwidth;
  Panel panel;

  explicit Toy(std::int64_t slower = 2) {
    const auto rounds = [](int count, std::int64_t load) {
      Profile profile;
      profile.per_m = 8;
      profile.rounds.assign(static_cast<std::size_t>(count), {{0, load}});
      return profile;
    };
    latency = rounds(1, 8);
    bandwidth = rounds(2, 1);
    slow_latency = rounds(static_cast<int>(slower), 8);
    slow_bandwidth = rounds(static_cast<int>(2 * slower), 1);
    panel.spec = {"6a", "toy", {8}};
    panel.curves = {{find_contender("Swing"), &slow_latency, &slow_bandwidth},
                    {find_contender("Trivance"), &latency, &bandwidth}};
  }
};

TEST(Statements, GainsAreMeasuredAtAllSizesAsked) {
  const Toy toy;
  Statement statement = percents(100, 100, 1e-9);
  const Outcome all = outcome_of(statement, {&toy.panel, 1});
  EXPECT_TRUE(all.agrees == (all.low.value > 100 - 1e-9));
  EXPECT_LE(all.high.value, 100 + 1e-9);
  EXPECT_EQ(all.high.at, "6a, 32 B");  // the size at which bytes count least
  statement.from = statement.to = 32;
  EXPECT_EQ(outcome_of(statement, {&toy.panel, 1}).low.at, "6a, 32 B");
  statement.panels = "10";
  EXPECT_THROW(outcome_of(statement, {&toy.panel, 1}), std::logic_error);
  statement.panels = "6a";
  statement.others = "Bucket";
  EXPECT_THROW(outcome_of(statement, {&toy.panel, 1}), std::logic_error);
}

TEST(Statements, PointsAreTheEndsOfWhatIsLookedAt) {
  const Toy toy;
  const auto points = [&toy](const Statement& statement) {
    std::string text;
    const auto by_panel = points_of(statement, {&toy.panel, 1});
    EXPECT_EQ(by_panel.size(), 1u);
    for (const Point& point : by_panel.front()) {
      EXPECT_EQ(point.seconds(), toy.panel.time(*point.curve, point.form, point.bytes));
      text += std::string(point.curve->contender->name) + " " + std::string(letter_of(point.form)) +
              " " + std::to_string(std::lround(point.bytes)) + ", ";
    }
    return text;
  };
  Statement statement = percents(5, 30, 0.5);
  EXPECT_EQ(points(statement), "Swing L 32, Swing B 1024, Trivance L 32, Trivance B 1024, ");
  statement.measure = Measure::latency_gain;
  EXPECT_EQ(points(statement), "Swing L 32, Trivance L 32, ");
  statement = sizes(kMi, 2);
  statement.from = statement.to = 0;  // no sizes given
  EXPECT_EQ(points(statement),
            "Swing L 32, Swing B 134217728, Trivance L 32, Trivance B 134217728, ");
}

TEST(Statements, OvertakenIsFoundWhereTheCurvesCross) {
  // The other algorithm takes as long in L; in B it has twice the rounds and half of the load.
  Toy toy(1);
  toy.slow_latency.rounds.assign(1, {{0, 16}});
  toy.slow_bandwidth.rounds.assign(4, {{0, 0}});
  const double alpha = 1.5e-6, per_byte = 1e-11;
  // Trivance's B form, 2 alpha + m beta / 4, meets 4 alpha.
  const double expected = 8 * alpha / per_byte;
  Statement statement = sizes(expected, 1.001);
  const Outcome outcome = outcome_of(statement, {&toy.panel, 1});
  EXPECT_TRUE(outcome.agrees) << outcome.low.value << " against " << expected;
}

TEST(Statements, AreNamedOnceAndExplainedWhereTheyDiffer) {
  std::set<std::string_view> ids;
  Profiles profiles;
  const std::vector<Panel> all = panels(profiles);
  int agree = 0;
  for (const Statement& statement : statements()) {
    const Outcome outcome = outcome_of(statement, all);
    EXPECT_TRUE(ids.insert(statement.id).second) << statement.id;
    EXPECT_TRUE(statement.id.starts_with("trivance-")) << statement.id;
    EXPECT_FALSE(statement.where.empty() || statement.text.empty()) << statement.id;
    EXPECT_LE(statement.low, statement.high) << statement.id;
    EXPECT_LE(outcome.low.value, outcome.high.value) << statement.id;
    EXPECT_FALSE(std::isnan(outcome.low.value)) << statement.id;
    EXPECT_FALSE(!outcome.agrees && statement.why.empty()) << statement.id;
    agree += outcome.agrees ? 1 : 0;
  }
  EXPECT_GT(agree, 0);
  EXPECT_LT(agree, static_cast<int>(statements().size()));
}

// All statements are judged by the same curves, so no two that hold exclude each other. The test
// finds a statement that is judged by other curves.
TEST(Statements, NoTwoThatHoldContradictInACell) {
  Profiles profiles;
  const std::vector<Panel> all = panels(profiles);
  std::vector<const Statement*> holding;
  for (const Statement& each : statements()) {
    if (outcome_of(each, all).agrees) holding.push_back(&each);
  }
  int contradictions = 0;
  for (const Statement& a : statements()) {
    for (const Statement& b : statements()) contradictions += contradict(a, b) ? 1 : 0;
  }
  EXPECT_GT(contradictions, 0);  // the paper has some
  for (const Statement* a : holding) {
    for (const Statement* b : holding) EXPECT_FALSE(contradict(*a, *b)) << a->id << " " << b->id;
  }
}

TEST(Statements, ContradictWhereNoFigureCanShowBoth) {
  Statement above = percents(5, 30, 0), below = percents(-kNoLimit, 0, 0);
  below.others = "Swing";
  EXPECT_TRUE(contradict(above, below));
  EXPECT_TRUE(contradict(below, above));
  below.panels = "6b";
  EXPECT_FALSE(contradict(above, below));
  below.panels = "6b 6a";
  EXPECT_TRUE(contradict(above, below));
  below.from = below.to = 2048;  // above ends at 1024
  EXPECT_FALSE(contradict(above, below));
  below.from = 1024;
  below.others = "";  // one of all is faster, which may be another than Swing
  above.others = "Swing";
  EXPECT_FALSE(contradict(above, below));
  EXPECT_TRUE(contradict(sizes(4 * kMi, 2), sizes(8 * kMi, 2)));
  EXPECT_FALSE(contradict(sizes(4 * kMi, 2), sizes(4 * kMi, 1)));
}

// Ring of 8 by the tables: Trivance (L) takes 2 rounds and n/2, Swing (B) 6 rounds and log2(n)/3.
TEST_F(Figures, ByTheFormulasAreThoseOfTheTables) {
  const Panel ring = by_formulas(panel("6a"));
  const double alpha = 1.5e-6, beta = 1 / 100e9, m = 4096;
  EXPECT_NEAR(ring.time(ring.trivance(), Form::latency, m), 2 * alpha + 4 * m * beta, 1e-12);
  EXPECT_NEAR(ring.time(*ring.find("Swing"), Form::bandwidth, m), 6 * alpha + m * beta, 1e-12);
  // Section 4.4: distances 1, 3, 9 and 19 in a ring of 64.
  const Panel printed = at_printed_distances(panel("6b"));
  EXPECT_EQ(printed.trivance().latency->total_load(), 32);
}

// Tables 1 and 2: schedules match the appendix, or the row explains the difference.

TEST(Tables, SchedulesAreWhatTheTextDerives) {
  Profiles profiles;
  profiles.work_out(table_keys());
  std::set<std::string> different;
  for (const TableRow& row : table_rows(profiles)) {
    const std::string what = std::string(row.line->name);
    EXPECT_TRUE(row.lambda.exact()) << what << ": rounds";
    EXPECT_TRUE(row.delta.exact()) << what << ": bytes";
    EXPECT_EQ(row.table, row.dims.size() == 1 ? 1 : 2);
    EXPECT_TRUE(row.theta.printed && row.lambda.printed && row.delta.printed) << what;
    EXPECT_EQ(row.theta.exact(), row.why.empty()) << what;
    if (!row.theta.exact()) different.insert(what);
    if (row.table == 1 || what != "Swing (B)") continue;
    // On large tori the result is within 2 % of the printed limit: 1.2, 1.04 ...
    EXPECT_NEAR(static_cast<double>(row.theta.found.approximate()),
                static_cast<double>(row.theta.printed->approximate()), 0.04);
  }
  // Exactly the rows with a known difference in delay have an explanation.
  EXPECT_EQ(different, (std::set<std::string>{"Rec.Doub. (B)", "Rec.Doub. (L)", "Swing (L)",
                                              "Bruck (B), shortest", "Bruck (L), shortest"}));
}

}  // namespace
}  // namespace rankine::reproduce

// rankine reproduce.

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

void expect_members(const Json& json, const std::string& names) {
  for (const std::string& name : words_of(names)) {
    EXPECT_TRUE(json.contains(name)) << name << " in " << json;
  }
}

std::size_t agreeing(const Json& statements, const std::string& members) {
  std::size_t agree = 0;
  for (const Json& row : statements) {
    expect_members(row, members);
    agree += row.at("verdict") == "holds" ? 1 : 0;
  }
  return agree;
}

// One run of everything; the test then checks each piece.
TEST(Reproduce, JsonAndPicturesHaveEverything) {
  const std::string pictures = new_folder() + "/figures";
  const Json papers = json_of("reproduce --json --svg " + pictures).at("papers");
  ASSERT_EQ(papers.size(), 1u);
  const Json& trivance = papers.at(0);
  EXPECT_EQ(trivance.at("paper"), "trivance");
  for (const Json& row : trivance.at("tables")) {
    expect_members(row, "table algorithm line routing dims why");
    for (const char* quantity : {"lambda", "delta", "theta"}) {
      expect_members(row.at(quantity), "printed derived found exact");
      EXPECT_TRUE(row.at(quantity).at("found").at("number").is_number());
    }
  }
  for (const Json& figure : trivance.at("figures")) {
    expect_members(figure, "id title trivance dims gigabits_per_second crossovers");
    EXPECT_EQ(figure.at("gain_percent_at_printed_distances").size(), 23u);
    const std::size_t sizes = figure.at("sizes").size();
    EXPECT_EQ(sizes, 23u);
    EXPECT_EQ(figure.at("curves").back().at("algorithm"), "Trivance");
    for (const Json& curve : figure.at("curves")) {
      expect_members(curve, "algorithm change_of_form_bytes");
      for (const char* series : {"seconds", "gain_percent", "form"}) {
        EXPECT_EQ(curve.at(series).size(), sizes) << series;
      }
    }
  }
  EXPECT_EQ(trivance.at("agree"),
            agreeing(trivance.at("statements"),
                     "id where statement measure unit panels others stated found allowed distance "
                     "verdict why"));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(pictures)) {
    EXPECT_TRUE(is_well_formed(text_of(entry.path()))) << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 7u);
  // Paths that cannot be folders are refused before the work.
  const std::string file = file_with("a_file", "x");
  EXPECT_EQ(run_line("reproduce trivance --svg " + file).exit, 3);
  EXPECT_EQ(run_line("reproduce trivance --svg " + file + "/below").exit, 3);
}

}  // namespace
}  // namespace rankine::tools
