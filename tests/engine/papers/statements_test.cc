// Verdicts follow from what is measured; every statement can be measured.
#include "engine/papers/statements.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace rankine::reproduce {
namespace {

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

TEST(Judged, PercentsByPoints) {
  const Statement statement = percents(5, 30, 0.5);
  const auto verdict = [&](double low, double high) {
    return verdict_text(judged(statement, {low, "a"}, {high, "b"}));
  };
  EXPECT_EQ(verdict(5, 30), "agrees");
  EXPECT_EQ(verdict(10, 12), "agrees");
  EXPECT_EQ(verdict(4.5, 30.5), "agrees");
  EXPECT_EQ(verdict(4.25, 20), "differs by 0.75 points");
  EXPECT_EQ(verdict(1, 40), "differs by 10 points");
  EXPECT_EQ(verdict(-3, 31), "differs by 8 points");
}

TEST(Judged, OpenEnds) {
  const Statement more = percents(20, kNoLimit, 0);
  EXPECT_TRUE(judged(more, {20, ""}, {1000, ""}).agrees);
  EXPECT_FALSE(judged(more, {19.9, ""}, {1000, ""}).agrees);
  const Statement less = percents(-kNoLimit, 0, 0);
  EXPECT_TRUE(judged(less, {-40, ""}, {0, ""}).agrees);
  EXPECT_FALSE(judged(less, {-40, ""}, {0.1, ""}).agrees);
}

TEST(Judged, SizesByFactors) {
  const Statement statement = sizes(4 * kMi, 2);
  const auto verdict = [&](double low, double high) {
    return verdict_text(judged(statement, {low * kMi, "a"}, {high * kMi, "b"}));
  };
  EXPECT_EQ(verdict(4, 4), "agrees");
  EXPECT_EQ(verdict(2, 8), "agrees");
  EXPECT_EQ(verdict(1, 4), "differs by a factor of 4");
  EXPECT_EQ(verdict(4, 12), "differs by a factor of 3");
  const Outcome never = judged(statement, {kNoLimit, "6a"}, {kNoLimit, "6a"});
  EXPECT_FALSE(never.agrees);
  EXPECT_EQ(found_text(never), "beyond 128 MiB (6a)");
}

TEST(Judged, InWords) {
  EXPECT_EQ(stated_text(percents(5, 30, 0)), "5 to 30 %");
  EXPECT_EQ(stated_text(percents(20, kNoLimit, 0)), "at least 20 %");
  EXPECT_EQ(stated_text(percents(-kNoLimit, 0, 0)), "at most 0 %");
  EXPECT_EQ(stated_text(sizes(4 * kMi, 2)), "4 MiB");
  EXPECT_EQ(stated_text(sizes(512 * 1024, 2)), "512 KiB");
  const Statement statement = percents(5, 30, 0);
  EXPECT_EQ(found_text(judged(statement, {1.25, "6a, 32 B"}, {2, "6b, 1 KiB"})),
            "1.25 to 2 % (6a, 32 B; 6b, 1 KiB)");
}

// Profiles made up: L takes 1 s + m, B takes 2 s + m / 4, and the other algorithm twice of each.
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
  EXPECT_EQ(all.high.at, "6a, 32 B");  // where bytes count least
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
  statement.as_printed = true;
  EXPECT_EQ(points(statement), "Swing L 32, Swing B 1024, Trivance B 1024, ");
  statement = percents(5, 30, 0.5);
  statement.measure = Measure::latency_gain;
  EXPECT_EQ(points(statement), "Swing L 32, Trivance L 32, ");
  statement = sizes(kMi, 2);
  statement.from = statement.to = 0;  // it names none
  EXPECT_EQ(points(statement),
            "Swing L 32, Swing B 134217728, Trivance L 32, Trivance B 134217728, ");
}

TEST(Statements, OvertakenIsFoundWhereTheCurvesCross) {
  // The other one takes as long in L, and has twice the rounds but half of the load in B.
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
  for (const Outcome& outcome : outcomes(all)) {
    const Statement& statement = *outcome.statement;
    EXPECT_TRUE(ids.insert(statement.id).second) << statement.id;
    EXPECT_TRUE(statement.id.starts_with("trivance-")) << statement.id;
    EXPECT_FALSE(statement.where.empty() || statement.text.empty()) << statement.id;
    EXPECT_LE(statement.low, statement.high) << statement.id;
    EXPECT_LE(outcome.low.value, outcome.high.value) << statement.id;
    EXPECT_FALSE(std::isnan(outcome.low.value)) << statement.id;
    EXPECT_FALSE(!outcome.agrees && statement.why.empty()) << statement.id;
    // Whoever differs is judged again, and nobody else.
    EXPECT_EQ(statement.judged_again, !outcome.agrees) << statement.id;
    agree += outcome.agrees ? 1 : 0;
  }
  EXPECT_GT(agree, 20);
  EXPECT_LT(agree, static_cast<int>(statements().size()));
}

}  // namespace
}  // namespace rankine::reproduce
