#include "engine/cli/tune.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

// Points of all three kinds from these costs; `noise` raises every second one and lowers the
// others.
std::vector<CostPoint> planted(const CostModel& m, double noise = 0) {
  std::vector<CostPoint> points;
  double sign = 1;
  for (std::size_t bytes = 8; bytes <= 1 << 20; bytes *= 2) {
    const auto b = static_cast<double>(bytes);
    for (const auto& [hops, moved, added] :
         {std::array{1.0, b, 0.0}, std::array{1.0, b, b}, std::array{0.0, 0.0, b}}) {
      const double seconds = hops * m.alpha + moved * m.beta + added * m.gamma;
      points.push_back({"planted", bytes, hops, moved, added, seconds * (1 + sign * noise)});
      sign = -sign;
    }
  }
  return points;
}

TEST(CostFit, RecoversWhatWasPlanted) {
  for (const CostModel& m : {CostModel{1e-7, 1.3e-11, 2e-12}, CostModel{2.5e-7, 3e-11, 3e-11},
                             CostModel{5e-6, 1e-9, 1e-13}}) {
    const auto fit = fit_costs(planted(m)).value();
    EXPECT_NEAR(fit.model.alpha / m.alpha, 1, 1e-6);
    EXPECT_NEAR(fit.model.beta / m.beta, 1, 1e-6);
    EXPECT_NEAR(fit.model.gamma / m.gamma, 1, 1e-6);
    EXPECT_LT(fit.rms, 1e-6);
  }
}

TEST(CostFit, NoiseIsLeftInTheResiduals) {
  const CostModel m{1e-7, 1.3e-11, 5e-12};
  const std::vector<CostPoint> points = planted(m, 0.1);
  const auto fit = fit_costs(points).value();
  EXPECT_NEAR(fit.model.alpha / m.alpha, 1, 0.1);
  EXPECT_NEAR(fit.model.beta / m.beta, 1, 0.1);
  EXPECT_NEAR(fit.model.gamma / m.gamma, 1, 0.1);
  ASSERT_EQ(fit.residuals.size(), points.size());
  EXPECT_NEAR(fit.rms, 0.1, 0.02);
  double squares = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CostPoint& p = points[i];
    const double model =
        p.hops * fit.model.alpha + p.moved * fit.model.beta + p.added * fit.model.gamma;
    EXPECT_NEAR(fit.residuals[i], model / p.seconds - 1, 1e-9);
    squares += fit.residuals[i] * fit.residuals[i];
  }
  EXPECT_NEAR(fit.rms, std::sqrt(squares / static_cast<double>(points.size())), 1e-12);
}

TEST(CostFit, RefusesWhatTellsNothingApart) {
  std::vector<CostPoint> points;
  EXPECT_FALSE(fit_costs(points).ok());
  for (const double m : {1.0, 2.0, 3.0}) points.push_back({"reduce", 8, 1, m, m, 1 + m});
  const auto fit = fit_costs(points);
  ASSERT_FALSE(fit.ok());
  EXPECT_EQ(fit.status().text(), "3 points do not tell hops, bytes moved and bytes added apart");
  points.push_back({"clock stood still", 8, 1, 0, 0, 0});
  EXPECT_NE(fit_costs(points).status().text().find("'clock stood still' of 8 bytes took"),
            std::string::npos);
}

TEST(MeasureCosts, HasPointsOfAllKinds) {
  const auto points = measure_costs(0.1).value();
  EXPECT_TRUE(fit_costs(points).ok());
  for (const CostPoint& point : points) EXPECT_GT(point.seconds, 0) << point.what;
}

}  // namespace
}  // namespace rankine::tools
