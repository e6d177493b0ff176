#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine/cli/drawing.h"
#include "engine/cli/perf.h"
#include "engine/cli/table.h"
#include "engine/lab/winner_map.h"
#include "tests/engine/cli/tool_fixtures.h"

namespace rankine::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Rows of fields by RFC 4180, with line feeds as ends of lines; any other text fails the test.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < text.size();) {
    std::vector<std::string>& row = rows.emplace_back();
    for (bool more = true; more && i < text.size();) {
      std::string& field = row.emplace_back();
      const bool quoted = text[i] == '"';
      if (quoted) ++i;
      for (; i < text.size(); ++i) {
        if (quoted && text[i] == '"' && text.substr(i, 2) != "\"\"") break;
        if (quoted && text[i] == '"') ++i;
        if (!quoted && (text[i] == ',' || text[i] == '\n')) break;
        EXPECT_FALSE(!quoted && (text[i] == '"' || text[i] == '\r')) << text;
        field += text[i];
      }
      if (quoted) ++i;
      more = i < text.size() && text[i] == ',';
      EXPECT_TRUE(more || (i < text.size() && text[i] == '\n')) << text;
      ++i;
    }
  }
  return rows;
}

Table example() {
  Table table(as::text("who"), "n", as::bytes("size"), as::model_time("time"),
              As("{:.1f} %")("share"), As("{:.2f} x")("times", "factor", "-"),
              as::text("only people", "-"), as::data("only_programs"), "half");
  table.title = "a title";
  table.notes = {"a note"};
  table.add("a, \"b\"\nc", 3, 2048, 1.5e-6, 0.25, 2.0, "here", true, Rational(1) / Rational(2));
  table.add("d", 10, Cell(), 0.25, 1, Cell(), "", false);
  return table;
}

TEST(Table, IsTextForPeople) {
  EXPECT_EQ(to_text(example()),
            "a title\n\n"
            "who        n   size    time    share   times  only people  half\n"
            "a, \"b\" c   3  2 KiB  1.5 us   25.0 %  2.00 x  here          1/2\n"
            "d         10         250 ms  100.0 %       -\n"
            "a note\n");
}

TEST(Table, HasNoHeaderWithoutNamesAndNoHiddenColumns) {
  Table table(as::text(""), Column("n").when(false), as::number(""));
  table.add("a", 1, 22);
  table.add("bc");
  EXPECT_EQ(to_text(table, "> "), "> a   22\n> bc\n");
}

TEST(Table, IsCsvForPrograms) {
  const std::string csv = to_csv(example());
  EXPECT_EQ(csv,
            "who,n,size,time,share,factor,only_programs,half\n"
            "\"a, \"\"b\"\"\nc\",3,2048,1.5e-06,0.25,2.00,true,0.5\n"
            "d,10,,0.25,1,,false,\n");
  EXPECT_EQ(to_csv(example(), false), csv.substr(csv.find('\n') + 1));
  EXPECT_EQ(read_csv(csv)[1][0], "a, \"b\"\nc");
}

TEST(Table, IsJsonForPrograms) {
  EXPECT_EQ(to_json(example()).dump(),
            R"([{"who":"a, \"b\"\nc","n":3,"size":2048,"time":1.5e-06,"share":0.25,"factor":2.0,)"
            R"("only_programs":true,"half":0.5},)"
            R"({"who":"d","n":10,"time":0.25,"share":1,"factor":null,"only_programs":false}])");
}

// A report of perf with texts that contain all characters that CSV quotes.
std::string odd_report() {
  const nlohmann::json series = {{"time", 1.5}, {"spread", 0.1}};
  const nlohmann::json row = {{"size", 8},
                              {"type", "f32"},
                              {"redop", "sum"},
                              {"root", -1},
                              {"algorithm", "a, \"b\"\nc"},
                              {"in_place_algorithm", "a"},
                              {"out_of_place", series}};
  const nlohmann::json report = {{"config", {{"collective", "all_reduce"}, {"ranks", 2}}},
                                 {"results", {row}}};
  const auto path = std::filesystem::path(testing::TempDir()) / "odd.json";
  std::ofstream(path) << report.dump();
  return path.string();
}

TEST(Csv, IsWellFormedOfEverySubcommandThatHasIt) {
  const std::string odd = odd_report();
  // Arguments of each subcommand that give rows, with commas in texts if possible.
  std::map<std::string, std::vector<std::string>> asked = {
      {"perf",
       {"all_reduce", "--ranks", "2", "-b", "8", "-e", "8", "-n", "1", "--network",
        "scale_out,sync=rounds"}},
      {"compare", {odd, odd}},
      {"choose", {"all_reduce", "--network", "scale_out"}},
      {"map", {"all_reduce", "--ranks", "2,6", "-e", "4K", "--network", "scale_out"}},
      {"simulate", {"all_reduce", "--algo", "ring,double_tree", "--ranks", "4"}},
      {"cost", {"all_reduce", "--algo", "ring", "--ranks", "4"}},
      {"gaps", {"all_reduce", "--ranks-to", "9"}},
      {"run", {"all_reduce", "--algo", "ring", "--ranks", "2"}},
      {"skips", {"--ranks", "5"}},
      {"buckets", {"--tensors", "8"}},
      {"plan", {"gpt2", "--tp", "2"}},
      {"step", {"gpt2", "--dp", "2", "--batch", "2", "--thin", "1K"}},
      {"verify", {"broadcast", "--ranks", "1..3"}},
      {"faults", {"--list"}}};
  for (const std::string& name : subcommand_names(&laboratory())) {
    SCOPED_TRACE(name);
    const bool has = run_captured({name, "--help"}).out.find("--csv") != std::string::npos;
    EXPECT_EQ(asked.contains(name), has) << "this test asks every subcommand that has --csv";
    if (!has || !asked.contains(name)) continue;
    std::vector<std::string> arguments = asked[name];
    arguments.insert(arguments.begin(), name);
    arguments.push_back("--csv");
    const Captured run = run_captured(arguments);
    ASSERT_EQ(run.exit, 0) << run.err;
    const auto rows = read_csv(run.out);
    ASSERT_GE(rows.size(), 2U) << run.out;
    const std::set<std::string> keys(rows[0].begin(), rows[0].end());
    EXPECT_EQ(keys.size(), rows[0].size()) << run.out;
    EXPECT_FALSE(keys.contains("")) << run.out;
    for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size()) << run.out;
  }
}

TEST(Csv, KeepsTextsAsTheyAre) {
  const std::string odd = odd_report();
  const auto rows = read_csv(run_captured({"compare", odd, odd, "--csv"}).out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[1], testing::Contains("a, \"b\"\nc"));
  const std::vector<std::string> perf = {"perf", "all_reduce", "--ranks",   "2",
                                         "-b",   "8",          "-e",        "8",
                                         "-n",   "1",          "--network", "scale_out,sync=rounds",
                                         "--csv"};
  EXPECT_THAT(read_csv(run_captured(perf).out).back(), testing::Contains("scale_out,sync=rounds"));
}

}  // namespace

// The picture is well-formed XML and shows the plot's content.

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
  EXPECT_EQ(xml_error(to_svg(small_plot())), "");
  EXPECT_EQ(xml_error(to_svg(Plot{})), "");
  // The XML reader detects errors.
  EXPECT_NE(xml_error("<svg><a></svg>"), "");
  EXPECT_NE(xml_error("<svg>a < b</svg>"), "");
  EXPECT_NE(xml_error("<svg>a & b</svg>"), "");
  EXPECT_NE(xml_error("<svg x=1></svg>"), "");
  EXPECT_NE(xml_error("<svg/><svg/>"), "");
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

// If there are more curves than colours, curves that are the least at some size keep theirs.
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
  EXPECT_EQ(xml_error(svg), "");
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
  // Ends of the frame and its middle, because 512 is 32 * 16 and 8192 is 512 * 16.
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
  EXPECT_EQ(xml_error(svg), "");
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
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_EQ(count_of(svg, "fill=\"none\" stroke=\"black\""), 2u);
  // The ring of a mark is at the point of its size, with its name.
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
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray"), 2u);  // the ninth curve, and its legend
  plot.curves.assign(17, {"one", {{32, 0}, {64, 1}}});
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray=\"6 4\""), 16u);
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray=\"2 3\""), 2u);
}

}  // namespace

// Crossovers, at which the cheapest algorithm changes: computed from lines, printed and drawn.

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
  EXPECT_EQ(found[1].bytes, 1);  // as good as a up to there, and better beyond
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
  EXPECT_EQ(xml_error(svg), "");
  for (const char* part : {">all_reduce among 8 ranks on x &lt; y<",
                           ">all_reduce among 8 ranks on flat<", ">200 B<", ">late<", "r=\"8\""}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(svg.find("absent"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

}  // namespace

// rankine choose and rankine map: their output, their drawings and their refusals.

namespace {

MapRequest small_request() {
  MapRequest request;
  request.fabric = plain_regime().fabric;
  request.ranks = {2, 8};
  request.sizes = {8, 1 << 26};
  return request;
}

TEST(WinnerMap, EveryCellHasItsWinnerAndLead) {
  std::size_t last = 0;
  const auto map = make_winner_map(small_request(), [&](std::size_t done, std::size_t all) {
    EXPECT_EQ(all, 4U);
    last = done;
  });
  ASSERT_TRUE(map.ok()) << map.status().text();
  EXPECT_EQ(last, 4U);
  for (const Winner& cell : map->cells) {
    ASSERT_NE(cell.algorithm, nullptr);
    EXPECT_GT(cell.seconds, 0);
    EXPECT_GE(cell.lead, 1);
  }
  EXPECT_EQ(map->at(1, 0).algorithm->name, "recursive_doubling");
  EXPECT_EQ(map->at(1, 1).algorithm->name, "halving_doubling");
  const std::string rows = to_csv(winners_table(*map));
  EXPECT_NE(rows.find("\n8,8,recursive_doubling,"), std::string::npos) << rows;
  EXPECT_NE(rows.find(",halving_doubling,"), std::string::npos) << rows;
}

TEST(WinnerMap, OnlyContendersCompete) {
  MapRequest request = small_request();
  request.contenders = {find_algorithm(Collective::all_reduce, "ring")};
  const auto map = make_winner_map(request, {});
  ASSERT_TRUE(map.ok());
  for (const Winner& cell : map->cells) EXPECT_EQ(cell.algorithm->name, "ring");
}

TEST(Menu, RestrictsWhatIsChosenAndMapped) {
  const auto choice = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"choose", "all_reduce", "--ranks",   "12",    "--bytes",
                                          "8",      "--network",  "scale_out", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 0) << run.err;
    return nlohmann::json::parse(run.out);
  };
  EXPECT_EQ(choice({})["choice"]["algorithm"], "recursive_doubling");
  const nlohmann::json of_nccl = choice({"--menu", "nccl"});
  EXPECT_EQ(of_nccl["menu"], "nccl");
  EXPECT_EQ(of_nccl["choice"]["algorithm"], "double_tree_nccl");
  EXPECT_EQ(of_nccl["candidates"].size(), 3U);
  const Captured map = run_captured({"map", "all_reduce", "--ranks", "12", "-e", "64", "--menu",
                                     "nccl", "--network", "scale_out"});
  EXPECT_NE(map.out.find("   12  64 B  double_tree_nccl "), std::string::npos) << map.out;
}

TEST(Menu, RefusesWhatItCannotAnswer) {
  const auto error = [](const std::vector<std::string>& arguments) {
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 2);
    return run.err;
  };
  EXPECT_NE(error({"choose", "all_reduce", "--menu", "mpi", "--ports", "2"})
                .find("--menu is 'mpi'; allowed are all, mpich, nccl, openmpi, ucc"),
            std::string::npos);
  EXPECT_NE(error({"choose", "barrier", "--menu", "nccl", "--ports", "2"})
                .find("--menu is 'nccl', which has nothing of barrier"),
            std::string::npos);
  EXPECT_NE(error({"map", "all_reduce", "--menu", "nccl", "--algo", "swing"})
                .find("--menu is 'nccl', which has ring, double_tree_nccl, switch of all_reduce"),
            std::string::npos);
  EXPECT_NE(
      error({"choose", "all_reduce", "--menu", "nccl"}).find("which is for modelled networks"),
      std::string::npos);
}

TEST(WinnerMap, ThePictureHasACellEachAndALegend) {
  const auto map = make_winner_map(small_request(), {});
  const std::string svg = to_svg(*map);
  std::size_t titles = 0;
  for (std::size_t at = 0; (at = svg.find("<title>", at)) != std::string::npos; ++at) ++titles;
  EXPECT_EQ(titles, 4U);
  EXPECT_NE(svg.find(">recursive_doubling</text>"), std::string::npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(Choose, JsonHasTheChoiceAndAllCandidates) {
  const Captured run = run_captured(
      {"choose", "all_reduce", "--ranks", "8", "--bytes", "1K", "--network", "plain", "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["choice"], json["candidates"][0]);
  EXPECT_GT(json["candidates"].size(), 10U);
  EXPECT_EQ(json["bytes"], 1024);
}

// For names and refusals of any length, columns are aligned and two blanks apart.
TEST(Choose, ExplainKeepsItsColumnsApart) {
  const Captured run = run_captured({"choose", "all_reduce", "--ranks", "12", "--bytes", "1M",
                                     "--network", "scale_out", "--explain"});
  ASSERT_EQ(run.exit, 0) << run.err;
  std::istringstream lines(run.out);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  const std::size_t ends = line.find("time") + 4;  // the end of times and of their heading
  ASSERT_LT(ends, line.size()) << line;
  std::size_t rows = 0, refused = 0;
  while (std::getline(lines, line)) {
    ++rows;
    const std::size_t name_ends = line.find(' ', 3);
    ASSERT_NE(name_ends, std::string::npos) << line;
    EXPECT_EQ(line.substr(name_ends, 2), "  ") << line;
    if (line.find("cannot run: ") != std::string::npos) {
      ++refused;
    } else {
      EXPECT_EQ(line.substr(ends - 1, 3), "s  ") << line;
    }
  }
  EXPECT_GT(rows, 10U);
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, rows);
}

TEST(Choose, WrongArgumentsAreNamedWithWhatIsAllowed) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    std::vector<std::string> arguments = {"choose", "all_reduce"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, 2) << run.out;
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  };
  refused({"--ports", "0"}, "ports is '0'");
  refused({"--bandwidth", "100GBs"}, "'100GBs'");
  refused({"--bandwidth", "-1GB/s"}, "'-1GB/s'");
  refused({"--alpha", "1 fortnight"}, "'1 fortnight'");
  refused({"--network", "no_such_network"}, "no_such_network");
  refused({"--ranks", "0"}, "ranks is '0'");
  refused({"--sync", "barrier"}, "'barrier'");
}

TEST(Map, SizesMustRise) {
  const Captured run = run_captured({"map", "all_reduce", "-b", "1K", "-e", "8"});
  EXPECT_EQ(run.exit, 2);
  EXPECT_NE(run.err.find("--minbytes is 1024 and --maxbytes is 8"), std::string::npos) << run.err;
}

}  // namespace

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

json row(int size, double us, double spread, const std::string& algorithm = "ring") {
  const json series = {{"time", us}, {"spread", spread}};
  return {{"size", size},           {"type", "f32"},
          {"redop", "sum"},         {"root", -1},
          {"algorithm", algorithm}, {"in_place_algorithm", algorithm},
          {"out_of_place", series}};
}

json report(const std::vector<json>& rows) {
  return {{"config", {{"collective", "all_reduce"}, {"ranks", 2}}}, {"results", rows}};
}

std::string file_of(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / name;
  std::ofstream(path) << text;
  return path.string();
}

Captured compare(const json& a, const json& b, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments = {"compare", file_of("a.json", a.dump()),
                                        file_of("b.json", b.dump())};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_captured(arguments);
}

TEST(Compare, SaysWhatIsBeyondNoise) {
  const json a = report({row(8, 1, 0.02), row(16, 1, 0.02), row(32, 1, 0.02), row(64, 9, 0)});
  const json b = report({row(8, 1.03, 0.02), row(16, 1.05, 0.02), row(32, 0.9, 0.02)});
  const Captured run = compare(a, b, {"--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const json found = json::parse(run.out);
  ASSERT_EQ(found.at("rows").size(), 3U);
  EXPECT_EQ(found.at("rows")[0].at("verdict"), "same");
  EXPECT_EQ(found.at("rows")[1].at("verdict"), "slower");
  EXPECT_EQ(found.at("rows")[2].at("verdict"), "faster");
  EXPECT_NEAR(found.at("rows")[1].at("noise"), 0.04, 1e-12);
  EXPECT_NEAR(found.at("geometric_mean"), std::cbrt(1.03 * 1.05 * 0.9), 1e-12);
  EXPECT_EQ(found.at("slower"), 1);
  EXPECT_THAT(found.at("only_a"), ElementsAre("64 f32 sum out of place"));
  const Captured text = compare(a, b);
  EXPECT_THAT(text.out, AllOf(HasSubstr("beyond noise 1 faster, 1 slower, 1 not"),
                              HasSubstr("only in a: 1 row, 64 f32 sum out of place"),
                              HasSubstr("b/a: b takes 0.991 of a's time")));
}

TEST(Compare, FailsOnlyAboveTheRatioAndBeyondNoise) {
  const json a = report({row(8, 1, 0.01), row(16, 1, 0.2)});
  const json b = report({row(8, 1.06, 0.01), row(16, 1.3, 0.2)});
  const Captured failed = compare(a, b, {"--fail-above", "1.05"});
  EXPECT_EQ(failed.exit, 1);
  EXPECT_THAT(failed.err, HasSubstr("1 row is slower than 1.05 x, beyond noise"));
  EXPECT_EQ(compare(a, b, {"--fail-above", "1.07"}).exit, 0);
  EXPECT_EQ(compare(b, a, {"--fail-above", "1.05"}).exit, 0);
}

TEST(Compare, SeveralAlgorithmsAreToldApartAndCyclesCountAsOne) {
  const auto a = PerfFile::parse("a", report({row(8, 1, 0, "ring"), row(8, 2, 0, "chain"),
                                              row(8, 3, 0, "ring"), row(8, 5, 0, "ring")})
                                          .dump());
  ASSERT_TRUE(a.ok());
  ASSERT_EQ(a->times.size(), 2U);
  EXPECT_EQ(a->times[0].us, 3);
  EXPECT_NEAR(a->times[0].spread.value(), 1.0 / 3, 1e-12);  // from 1, 3 and 5
  const auto b = PerfFile::parse("b", report({row(8, 4, 0, "chain"), row(8, 3, 0, "ring")}).dump());
  const auto both = compare_files(*a, *b);
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both->rows.size(), 2U);
  EXPECT_EQ(both->rows[0].ratio, 1);
  EXPECT_EQ(both->rows[1].ratio, 2);
  // The engine may have chosen another algorithm; the row is still compared.
  const auto other = PerfFile::parse("b", report({row(8, 4, 0, "tree")}).dump());
  const auto one = PerfFile::parse("a", report({row(8, 4, 0, "ring")}).dump());
  EXPECT_TRUE(compare_files(*one, *other).ok());
}

TEST(Compare, ReadsNcclTestsOwnReports) {
  const std::string theirs = R"({"version":1,"config":{"nthreads":1},"results":[{"size":8,
    "count":2,"type":"float","redop":"sum","root":"    -1","out_of_place":{"time":2.0,
    "alg_bw":1,"bus_bw":1,"nwrong":0},"out_of_place_per_iter":{"cv_pct":3.0},"in_place":null}]})";
  const auto file = PerfFile::parse("theirs", theirs);
  ASSERT_TRUE(file.ok()) << file.status().text();
  ASSERT_EQ(file->times.size(), 1U);
  EXPECT_EQ(file->times[0].row, "8 f32 sum out of place");
  EXPECT_NEAR(file->times[0].spread.value(), 0.03, 1e-12);
  const Captured run = compare(json::parse(theirs), report({row(8, 1, 0.01)}));
  EXPECT_EQ(run.exit, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("0.500"));
}

TEST(Compare, NothingKnownOfNoiseIsSaid) {
  json bare = row(8, 1, 0);
  bare["out_of_place"].erase("spread");
  const Captured run = compare(report({bare}), report({bare}));
  EXPECT_EQ(run.exit, 0);
  EXPECT_THAT(run.out, HasSubstr("?: neither report has a spread"));
}

TEST(Compare, WrongFilesAreNamed) {
  const json good = report({row(8, 1, 0)});
  const auto error = [&](const std::string& text) {
    const Captured run =
        run_captured({"compare", file_of("good.json", good.dump()), file_of("bad.json", text)});
    EXPECT_EQ(run.exit, 2) << run.out;
    EXPECT_THAT(run.err, HasSubstr("bad.json"));
    return run.err;
  };
  EXPECT_THAT(error(""), HasSubstr("it is no JSON object"));
  EXPECT_THAT(error("[1]"), HasSubstr("it is no JSON object"));
  EXPECT_THAT(error("{}"), HasSubstr("it has no list 'results'"));
  EXPECT_THAT(error(R"({"results": []})"), HasSubstr("it has no times"));
  EXPECT_THAT(error(R"({"results": [3]})"), HasSubstr("a result has no 'size'"));
  EXPECT_THAT(error(R"({"results": [{"size": -1}]})"), HasSubstr("a result has no 'size'"));
  EXPECT_THAT(error(R"({"results": [{"size": 8, "out_of_place": {"time": "x"}}]})"),
              HasSubstr("has no 'time'"));
  const Captured missing = run_captured({"compare", "/nonexistent/a", "/nonexistent/b"});
  EXPECT_EQ(missing.exit, 2);
  EXPECT_THAT(missing.err, HasSubstr("'/nonexistent/a' cannot be read: No such file"));
  EXPECT_EQ(run_captured({"compare", "a.json"}).exit, 2);
  json other = good;
  other["config"]["collective"] = "broadcast";
  EXPECT_THAT(compare(good, other).err, HasSubstr("all_reduce, the second of broadcast"));
  other = good;
  other["config"]["ranks"] = 4;
  EXPECT_THAT(compare(good, other).err, HasSubstr("among 2 ranks, the second among 4"));
  EXPECT_THAT(compare(good, report({row(16, 1, 0)})).err, HasSubstr("no row in common"));
  EXPECT_THAT(compare(good, good, {"--fail-above", "-1"}).err, HasSubstr("--fail-above is '-1'"));
}

TEST(Compare, ReadsWhatPerfWrites) {
  const std::string file = file_of("perf.json", "");
  ASSERT_EQ(
      run_captured({"perf", "all_reduce", "-t", "2", "-n", "3", "-b", "8", "-e", "16", "-J", file})
          .exit,
      0);
  const Captured run = run_captured({"compare", file, file, "--json"});
  ASSERT_EQ(run.exit, 0) << run.err;
  const json found = json::parse(run.out);
  EXPECT_EQ(found.at("same"), 4);
  EXPECT_EQ(found.at("geometric_mean"), 1);
  EXPECT_TRUE(found.at("rows")[0].at("noise").is_number());
}

}  // namespace
}  // namespace rankine::tools
