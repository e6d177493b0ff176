// The picture is well-formed XML and shows what the plot has.
#include "engine/tools/svg_plot.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/engine/tools/well_formed.h"

namespace rankine::tools {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

Plot small_plot() {
  Plot plot{.title = "a < b & \"c\"", .y_label = "percent", .bytes_low = 32, .bytes_high = 8192};
  plot.curves = {{"one", {{32, 0}, {1024, 50, true}, {8192, 400}}}, {"two > one", {{32, -10}}}};
  plot.dotted = 512;
  plot.dotted_name = "here";
  return plot;
}

TEST(SvgPlot, IsWellFormed) {
  EXPECT_EQ(why_not_well_formed(to_svg(small_plot())), "");
  EXPECT_EQ(why_not_well_formed(to_svg({})), "");
  // The judge sees what is wrong.
  EXPECT_NE(why_not_well_formed("<svg><a></svg>"), "");
  EXPECT_NE(why_not_well_formed("<svg>a < b</svg>"), "");
  EXPECT_NE(why_not_well_formed("<svg>a & b</svg>"), "");
  EXPECT_NE(why_not_well_formed("<svg x=1></svg>"), "");
  EXPECT_NE(why_not_well_formed("<svg/><svg/>"), "");
}

TEST(SvgPlot, ShowsCurvesMarkersAndNames) {
  const std::string svg = to_svg(small_plot());
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "<circle"), 4u);                 // three points and the legend's
  EXPECT_EQ(count_of(svg, "fill=\"white\" stroke="), 1u);  // one of them hollow
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 2u);
  for (const char* text : {">32 B<", ">128 B<", ">8 KiB<", ">one<", ">two &gt; one<", ">here<",
                           ">a &lt; b &amp; &quot;c&quot;<", ">100<", ">0<", ">-40<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(svg.find(">-0<"), std::string::npos);
}

// Beyond as many as there are colours, those that are the least somewhere stay.
TEST(SvgPlot, ManyCurvesFade) {
  Plot plot = small_plot();
  plot.dotted.reset();
  plot.curves.clear();
  for (int i = 0; i < 30; ++i) {
    const double high = i == 20 ? 1 : 50 + i;
    plot.curves.push_back({"c" + std::to_string(i), {{32, high}, {512, i == 7 ? 2.0 : 90}}});
  }
  EXPECT_EQ(fade_all_but_least(plot), (std::vector<std::string>{"c0", "c7", "c20"}));
  const std::string svg = to_svg(plot);
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<polyline"), 30u);
  EXPECT_EQ(count_of(svg, "stroke=\"#d4d4d4\"/>"), 28u);  // and the legend's line
  EXPECT_NE(svg.find(">27 others<"), std::string::npos);
  EXPECT_NE(svg.find(">c20<"), std::string::npos);
  EXPECT_EQ(svg.find(">c1<"), std::string::npos);
  plot.curves.resize(8);
  EXPECT_TRUE(fade_all_but_least(plot).empty());
}

TEST(SvgPlot, LargerSizesStandFurtherRight) {
  Plot plot = small_plot();
  plot.curves = {{"one", {{32, 0}, {512, 0}, {8192, 0}}}};
  const std::string svg = to_svg(plot);
  // Ends of the frame and its middle, as 512 is 32 * 16 and 8192 is 512 * 16.
  EXPECT_NE(svg.find("points=\"64.0,270.7 374.0,270.7 684.0,270.7\""), std::string::npos) << svg;
}

TEST(SvgPlot, LogarithmicHeights) {
  Plot plot = small_plot();
  plot.log_y = true;
  plot.y_low = 0.1;
  plot.y_high = 10;
  plot.baseline = 1;
  plot.curves = {{"one", {{32, 10}, {512, 1}, {8192, 0.1}}}};
  const std::string svg = to_svg(plot);
  // The ends of the frame, and 1 in the middle between 0.1 and 10.
  EXPECT_NE(svg.find("points=\"64.0,44.0 374.0,214.0 684.0,384.0\""), std::string::npos) << svg;
  for (const char* text : {">0.1<", ">0.2<", ">0.5<", ">1<", ">2<", ">5<", ">10<"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
  EXPECT_EQ(count_of(svg, "y1=\"214.0\" y2=\"214.0\" stroke=\"#555\""), 1u);  // the baseline
  plot.y_low = 1e-3;  // many powers of ten: no lines between them
  EXPECT_EQ(to_svg(plot).find(">0.5<"), std::string::npos);
  EXPECT_NE(to_svg(plot).find(">0.01<"), std::string::npos);
}

TEST(SvgPlot, SeveralPlotsInOnePicture) {
  Plot left = small_plot();
  left.legend = false;
  const std::string svg = grid_to_svg({{left, small_plot()}, {small_plot()}});
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "<clipPath"), 3u);
  for (const char* id : {"\"frame0\"", "\"frame1\"", "\"frame2\""}) {
    EXPECT_EQ(count_of(svg, id), 1u);
  }
  EXPECT_EQ(count_of(svg, ">one<"), 2u);  // the legends
  EXPECT_EQ(count_of(svg, "translate("), 3u);
}

TEST(SvgPlot, PointsPlacesOut) {
  Plot plot = small_plot();
  plot.marks = {{512, 0, "a < b"}, {1024, 50, "c"}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(why_not_well_formed(svg), "");
  EXPECT_EQ(count_of(svg, "fill=\"none\" stroke=\"black\""), 2u);
  // Where the point of that size stands, and its name.
  EXPECT_NE(svg.find("<circle cx=\"374.0\" cy=\"270.7\" r=\"8\""), std::string::npos) << svg;
  EXPECT_NE(svg.find(">a &lt; b<"), std::string::npos);
}

// A word near the right edge stands on the left of its ring, inside the frame.
TEST(SvgPlot, WordsStayInTheFrame) {
  Plot plot = small_plot();
  plot.marks = {{512, 0, "176 KiB"}, {8000, 0, "182 KiB"}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(svg.find("text-anchor=\"end\">176 KiB<"), std::string::npos);
  EXPECT_NE(svg.find("text-anchor=\"end\">182 KiB<"), std::string::npos);
}

TEST(SvgPlot, NamesNeitherOverlapNorLeaveThePicture) {
  for (const std::size_t curves : {1, 17, 50}) {
    Plot plot = small_plot();
    plot.dotted.reset();
    plot.curves.assign(curves, {"halving_doubling_half_exchange", {{32, 0}, {64, 1}}});
    const std::string svg = to_svg(plot);
    int width = 0, height = 0;
    const std::size_t size = svg.find("width=");
    ASSERT_EQ(std::sscanf(svg.c_str() + size, "width=\"%d\" height=\"%d\"", &width, &height), 2);
    int last = 0;
    std::size_t names = 0;
    for (std::size_t at = 0; (at = svg.find(">halving", at)) != std::string::npos; ++at, ++names) {
      int x = 0, y = 0;
      const std::size_t text = svg.rfind("<text", at);
      ASSERT_EQ(std::sscanf(svg.c_str() + text, "<text x=\"%d\" y=\"%d\"", &x, &y), 2);
      EXPECT_GE(y - last, 15);
      EXPECT_LT(y, height);
      EXPECT_LE(x + 30 * 7, width);
      last = y;
    }
    EXPECT_EQ(names, curves);
  }
}

TEST(SvgPlot, CurvesWithoutPointsKeepTheirColourAndHaveNoLegend) {
  Plot plot = small_plot();
  plot.curves = {{"gone", {}}, {"there", {{32, 0}, {64, 1}}}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(svg.find(">gone<"), std::string::npos);
  EXPECT_NE(svg.find(">there<"), std::string::npos);
  EXPECT_EQ(count_of(svg, "#d55e00"), 8u);  // the second's: two lines, three markers of two paints
}

TEST(SvgPlot, AfterEightCurvesLinesAreDashed) {
  Plot plot = small_plot();
  plot.dotted.reset();
  plot.curves.assign(9, {"one", {{32, 0}, {64, 1}}});
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray"), 2u);  // of the ninth, and in the legend
  plot.curves.assign(17, {"one", {{32, 0}, {64, 1}}});
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray=\"6 4\""), 16u);
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray=\"2 3\""), 2u);
}

}  // namespace
}  // namespace rankine::tools
