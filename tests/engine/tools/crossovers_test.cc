// Where the cheapest changes: computed where lines meet, told and drawn.
#include "engine/tools/crossovers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/engine/tools/well_formed.h"

namespace rankine::tools {
namespace {

// at + slope * bytes
PlotCurve line(const std::string& name, double at, double slope,
               const std::vector<double>& sizes = {1, 64, 4096}) {
  PlotCurve curve{name, {}};
  for (const double bytes : sizes) curve.points.push_back({bytes, at + slope * bytes});
  return curve;
}

TEST(Crossovers, AreWhereTheLinesMeet) {
  // 1 + b and 101 + b / 2 meet at 200 bytes.
  const NetworkCurves network{"n", {line("late", 101, 0.5), line("early", 1, 1)}};
  const auto found = crossovers(network);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bytes, 1);
  EXPECT_EQ(found[0].winner, 1U);
  EXPECT_EQ(found[0].us, 2);
  EXPECT_NEAR(found[1].bytes, 200, 1e-9);
  EXPECT_EQ(found[1].winner, 0U);
  EXPECT_NEAR(found[1].us, 201, 1e-9);
}

TEST(Crossovers, OfEqualsTheFirstWinsAndWhoIsAheadStays) {
  NetworkCurves network{"n", {line("absent", 0, 0, {}), line("a", 1, 1), line("b", 1, 1)}};
  auto found = crossovers(network);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].winner, 1U);
  network.curves[2].points[1].y *= 0.9995;  // less than a thousandth
  EXPECT_EQ(crossovers(network).size(), 1U);
  network.curves[2].points[1].y *= 0.99;
  found = crossovers(network);
  ASSERT_EQ(found.size(), 2U);  // and b stays ahead where they are equal again
  EXPECT_EQ(found[1].winner, 2U);
  EXPECT_EQ(found[1].bytes, 1);  // as good as a until there, and better at once
  EXPECT_TRUE(crossovers({"none", {}}).empty());
}

TEST(Crossovers, AreToldAndDrawn) {
  const std::vector<NetworkCurves> networks = {
      {"x < y", {line("late", 101, 0.5), line("early", 1, 1)}},
      {"flat", {line("late", 10, 0), line("early", 20, 0), line("absent", 0, 0, {})}}};
  const std::string text = crossovers_text(networks);
  EXPECT_NE(text.find("# x < y      1 B  early           2 us\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# x < y    200 B  late          201 us\n"), std::string::npos) << text;
  EXPECT_NE(text.find("# flat       1 B  late           10 us\n"), std::string::npos) << text;
  const std::string svg = crossovers_svg("all_reduce among 8 ranks", networks);
  EXPECT_EQ(why_not_well_formed(svg), "");
  for (const char* part : {">all_reduce among 8 ranks on x &lt; y<",
                           ">all_reduce among 8 ranks on flat<", ">200 B<", ">late<", "r=\"8\""}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("absent"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace
}  // namespace rankine::tools
