// Tests of tables as values, of plots and crossovers, and of choose, map and compare.

#include <nlohmann/json.hpp>

#include "engine/cli/drawing.h"
#include "engine/cli/perf.h"
#include "engine/cli/table.h"
#include "engine/lab/winner_map.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using nlohmann::json;

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

TEST(Table, IsTextCsvAndJson) {
  Table table(as::text("who"), "n", as::bytes("size"), as::model_time("time"),
              As("{:.1f} %")("share"), As("{:.2f} x")("times", "factor", "-"),
              as::text("only people", "-"), as::data("only_programs"), "half");
  table.title = "a title";
  table.notes = {"a note"};
  table.add("a, \"b\"\nc", 3, 2048, 1.5e-6, 0.25, 2.0, "here", true, Rational(1) / Rational(2));
  table.add("d", 10, Cell(), 0.25, 1, Cell(), "", false);
  EXPECT_EQ(to_text(table),
            "a title\n\n"
            "who        n   size    time    share   times  only people  half\n"
            "a, \"b\" c   3  2 KiB  1.5 us   25.0 %  2.00 x  here          1/2\n"
            "d         10         250 ms  100.0 %       -\n"
            "a note\n");
  const std::string csv = to_csv(table);
  EXPECT_EQ(csv,
            "who,n,size,time,share,factor,only_programs,half\n"
            "\"a, \"\"b\"\"\nc\",3,2048,1.5e-06,0.25,2.00,true,0.5\n"
            "d,10,,0.25,1,,false,\n");
  EXPECT_EQ(to_csv(table, false), csv.substr(csv.find('\n') + 1));
  EXPECT_EQ(read_csv(csv)[1][0], "a, \"b\"\nc");
  EXPECT_EQ(to_json(table).dump(),
            R"([{"who":"a, \"b\"\nc","n":3,"size":2048,"time":1.5e-06,"share":0.25,"factor":2.0,)"
            R"("only_programs":true,"half":0.5},)"
            R"({"who":"d","n":10,"time":0.25,"share":1,"factor":null,"only_programs":false}])");
  // Without names there is no header, and hidden columns are left out.
  Table plain(as::text(""), Column("n").when(false), as::number(""));
  plain.add("a", 1, 22);
  plain.add("bc");
  EXPECT_EQ(to_text(plain, "> "), "> a   22\n> bc\n");
}

// A report of perf.
json row(int size, double us, double spread, const std::string& algorithm = "ring") {
  return {{"size", size},
          {"type", "f32"},
          {"redop", "sum"},
          {"root", -1},
          {"algorithm", algorithm},
          {"in_place_algorithm", algorithm},
          {"out_of_place", {{"time", us}, {"spread", spread}}}};
}
json report(const std::vector<json>& rows) {
  return {{"config", {{"collective", "all_reduce"}, {"ranks", 2}}}, {"results", rows}};
}

TEST(Csv, IsWellFormedOfEverySubcommandThatHasIt) {
  const std::string odd = file_with("odd.json", report({row(8, 1.5, 0.1, "a, \"b\"\nc")}).dump());
  // Arguments of each subcommand that give rows, with commas in texts if possible.
  const std::map<std::string, std::string> asked = {
      {"perf", "all_reduce --ranks 2 -b 8 -e 8 -n 1 --network scale_out,sync=rounds"},
      {"compare", odd + " " + odd},
      {"choose", "all_reduce --network scale_out"},
      {"map", "all_reduce --ranks 2,6 -e 4K --network scale_out"},
      {"simulate", "all_reduce --algo ring,double_tree --ranks 4"},
      {"cost", "all_reduce --algo ring --ranks 4"},
      {"gaps", "all_reduce --ranks-to 9"},
      {"run", "all_reduce --algo ring --ranks 2"},
      {"skips", "--ranks 5"},
      {"buckets", "--tensors 8"},
      {"plan", "gpt2 --tp 2"},
      {"step", "gpt2 --dp 2 --batch 2 --thin 1K"},
      {"verify", "broadcast --ranks 1..3"},
      {"faults", "--list"}};
  for (const std::string& name : subcommand_names(&laboratory())) {
    SCOPED_TRACE(name);
    const bool has_csv = has(output_of(name + " --help"), "--csv");
    ASSERT_EQ(asked.contains(name), has_csv) << "this test asks every subcommand that has --csv";
    if (!has_csv) continue;
    const auto rows = read_csv(output_of(name + " " + asked.at(name) + " --csv"));
    ASSERT_GE(rows.size(), 2U);
    const std::set<std::string> keys(rows[0].begin(), rows[0].end());
    EXPECT_EQ(keys.size(), rows[0].size());
    EXPECT_FALSE(keys.contains(""));
    for (const auto& one : rows) EXPECT_EQ(one.size(), rows[0].size());
    // Texts stay as they are.
    const auto holds = [&rows](const char* text) {
      return std::count(rows[1].begin(), rows[1].end(), text) > 0;
    };
    EXPECT_TRUE(name != "compare" || holds("a, \"b\"\nc"));
    EXPECT_TRUE(name != "perf" || holds("scale_out,sync=rounds"));
  }
}

// Plots.

Plot small_plot() {
  Plot plot{.title = "a < b & \"c\"", .y_label = "percent", .bytes_low = 32, .bytes_high = 8192};
  plot.curves = {{"one", {{32, 0}, {1024, 50, true}, {8192, 400}}}, {"two > one", {{32, -10}}}};
  plot.dotted = 512;
  plot.dotted_name = "here";
  return plot;
}

void expect_parts(const std::string& svg, std::initializer_list<const char*> parts) {
  for (const char* part : parts) EXPECT_TRUE(has(svg, part)) << part << " in " << svg;
}

TEST(SvgPlot, ShowsCurvesMarkersAndNames) {
  EXPECT_TRUE(is_well_formed(to_svg(Plot{})));
  Plot plot = small_plot();
  plot.marks = {{512, 0, "a < b"}, {8000, 50, "c"}};
  const std::string svg = to_svg(plot);
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, "<polyline"), 2u);
  EXPECT_EQ(count_of(svg, "<circle"), 6u);                 // points, the legend's, and marks
  EXPECT_EQ(count_of(svg, "fill=\"white\" stroke="), 1u);  // one of them hollow
  EXPECT_EQ(count_of(svg, "fill=\"none\" stroke=\"black\""), 2u);
  EXPECT_EQ(count_of(svg, "stroke-dasharray"), 4u);  // the dotted line and a line of each mark
  expect_parts(svg, {">32 B<", ">8 KiB<", ">one<", ">two &gt; one<", ">here<",
                     ">a &lt; b &amp; &quot;c&quot;<", ">100<", ">-40<", ">a &lt; b<"});
  EXPECT_FALSE(has(svg, ">-0<"));
  // The ring of a mark is at the point of its size. A word near the right edge stands on its left.
  expect_parts(svg, {"<circle cx=\"374.0\" cy=\"270.7\" r=\"8\"", "text-anchor=\"end\">c<"});
  EXPECT_FALSE(has(svg, "text-anchor=\"end\">a &lt; b<"));
}

TEST(SvgPlot, PlacesPointsOnItsAxes) {
  Plot plot = small_plot();
  plot.curves = {{"one", {{32, 0}, {512, 0}, {8192, 0}}}};
  // Ends of the frame and its middle, because 512 is 32 * 16 and 8192 is 512 * 16.
  expect_parts(to_svg(plot), {"points=\"64.0,270.7 374.0,270.7 684.0,270.7\""});
  plot.log_y = true;
  plot.y_low = 0.1;
  plot.y_high = 10;
  plot.baseline = 1;
  plot.curves = {{"one", {{32, 10}, {512, 1}, {8192, 0.1}}}, {"absent", {}}};
  // The ends of the frame, and 1 in the middle between 0.1 and 10.
  expect_parts(to_svg(plot), {"points=\"64.0,44.0 374.0,214.0 684.0,384.0\"", ">0.1<", ">0.2<",
                              ">0.5<", ">1<", ">10<", "y1=\"214.0\" y2=\"214.0\" stroke=\"#555\""});
  EXPECT_FALSE(has(to_svg(plot), ">absent<"));  // a curve without points has no legend
  plot.y_low = 1e-3;                            // many powers of ten: no lines between them
  EXPECT_FALSE(has(to_svg(plot), ">0.5<"));
  expect_parts(to_svg(plot), {">0.01<"});
}

// If there are more curves than colours, curves that are the least at some size keep theirs.
TEST(SvgPlot, ManyCurvesFadeOrAreDashed) {
  Plot plot = small_plot();
  plot.dotted.reset();
  plot.curves.assign(17, {"one", {{32, 0}, {64, 1}}});
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray=\"6 4\""), 16u);
  EXPECT_EQ(count_of(to_svg(plot), "stroke-dasharray=\"2 3\""), 2u);
  plot.curves.clear();
  for (int i = 0; i < 30; ++i) {
    const double high = i == 20 ? 1 : 50 + i;
    plot.curves.push_back({"c" + std::to_string(i), {{32, high}, {512, i == 7 ? 2.0 : 90}}});
  }
  EXPECT_EQ(fade_all_but_least(plot), (std::vector<std::string>{"c0", "c7", "c20"}));
  const std::string svg = to_svg(plot);
  EXPECT_EQ(count_of(svg, "<polyline"), 30u);
  EXPECT_EQ(count_of(svg, "stroke=\"#d4d4d4\"/>"), 28u);  // and the legend's line
  expect_parts(svg, {">27 others<", ">c20<"});
  EXPECT_FALSE(has(svg, ">c1<"));
  plot.curves.resize(8);
  EXPECT_TRUE(fade_all_but_least(plot).empty());
}

TEST(SvgPlot, SeveralPlotsInOnePicture) {
  Plot left = small_plot();
  left.legend = false;
  const std::string svg = grid_to_svg({{left, small_plot()}, {small_plot()}});
  EXPECT_TRUE(is_well_formed(svg));
  EXPECT_EQ(count_of(svg, "<clipPath"), 3u);
  for (const char* id : {"\"frame0\"", "\"frame1\"", "\"frame2\""})
    EXPECT_EQ(count_of(svg, id), 1u);
  EXPECT_EQ(count_of(svg, ">one<"), 2u);  // the legends
}

TEST(SvgPlot, NamesNeitherOverlapNorLeaveThePicture) {
  for (const std::size_t curves : {1, 17, 50}) {
    Plot plot = small_plot();
    plot.dotted.reset();
    plot.curves.assign(curves, {"halving_doubling_half_exchange", {{32, 0}, {64, 1}}});
    const std::string svg = to_svg(plot);
    int width = 0, height = 0, last = 0;
    const char* size = svg.c_str() + svg.find("width=");
    ASSERT_EQ(std::sscanf(size, "width=\"%d\" height=\"%d\"", &width, &height), 2);
    std::size_t names = 0;
    for (std::size_t at = 0; (at = svg.find(">halving", at)) != std::string::npos; ++at, ++names) {
      int x = 0, y = 0;
      const char* text = svg.c_str() + svg.rfind("<text", at);
      ASSERT_EQ(std::sscanf(text, "<text x=\"%d\" y=\"%d\"", &x, &y), 2);
      EXPECT_GE(y - last, 15);
      EXPECT_LT(y, height);
      EXPECT_LE(x + 30 * 7, width);
      last = y;
    }
    EXPECT_EQ(names, curves);
  }
}

// Crossovers, at which the cheapest algorithm changes: computed from lines, printed and drawn.

// at + slope * bytes
PlotCurve line(const std::string& name, double at, double slope,
               const std::vector<double>& sizes = {1, 64, 4096}) {
  PlotCurve curve{name, {}};
  for (const double bytes : sizes) curve.points.push_back({bytes, at + slope * bytes});
  return curve;
}

TEST(Crossovers, AreWhereTheLinesMeet) {
  // 1 + b and 101 + b / 2 meet at 200 bytes.
  const auto found = crossovers({"n", {line("late", 101, 0.5), line("early", 1, 1)}});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bytes, 1);
  EXPECT_EQ(found[0].winner, 1U);
  EXPECT_EQ(found[0].us, 2);
  EXPECT_NEAR(found[1].bytes, 200, 1e-9);
  EXPECT_EQ(found[1].winner, 0U);
  EXPECT_NEAR(found[1].us, 201, 1e-9);
  // Of equals the first wins, and a lead of less than a thousandth changes nothing.
  NetworkCurves network{"n", {line("absent", 0, 0, {}), line("a", 1, 1), line("b", 1, 1)}};
  ASSERT_EQ(crossovers(network).size(), 1U);
  EXPECT_EQ(crossovers(network)[0].winner, 1U);
  network.curves[2].points[1].y *= 0.9995;
  EXPECT_EQ(crossovers(network).size(), 1U);
  network.curves[2].points[1].y *= 0.99;
  ASSERT_EQ(crossovers(network).size(), 2U);  // and b stays ahead where they are equal again
  EXPECT_EQ(crossovers(network)[1].winner, 2U);
  EXPECT_EQ(crossovers(network)[1].bytes, 1);  // as good as a up to there, and better beyond
  EXPECT_TRUE(crossovers({"none", {}}).empty());
}

TEST(Crossovers, AreToldAndDrawn) {
  const std::vector<NetworkCurves> networks = {
      {"x < y", {line("late", 101, 0.5), line("early", 1, 1)}},
      {"flat", {line("late", 10, 0), line("early", 20, 0), line("absent", 0, 0, {})}}};
  expect_parts(crossovers_text(networks), {"# x < y      1 B  early           2 us\n",
                                           "# x < y    200 B  late          201 us\n",
                                           "# flat       1 B  late           10 us\n"});
  const std::string svg = crossovers_svg("all_reduce", networks);
  EXPECT_TRUE(is_well_formed(svg));
  expect_parts(svg, {">all_reduce on x &lt; y<", ">200 B<", ">late<", "r=\"8\""});
  for (const char* part : {"absent", "nan", "inf"}) EXPECT_FALSE(has(svg, part)) << part;
}

// rankine choose and rankine map.

TEST(WinnerMap, EveryCellHasItsWinnerAndLead) {
  MapRequest request;
  request.fabric = plain_regime().fabric;
  request.ranks = {2, 8};
  request.sizes = {8, 1 << 26};
  std::size_t last = 0;
  const auto map = make_winner_map(request, [&](std::size_t done, std::size_t all) {
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
  EXPECT_TRUE(has(to_csv(winners_table(*map)), "\n8,8,recursive_doubling,"));
  EXPECT_EQ(count_of(to_svg(*map), "<title>"), 4U);
  EXPECT_TRUE(is_well_formed(to_svg(*map)));
  request.contenders = {find_algorithm(Collective::all_reduce, "ring")};
  const auto of_one = make_winner_map(request, {});
  for (const Winner& cell : of_one->cells) EXPECT_EQ(cell.algorithm->name, "ring");
  EXPECT_TRUE(has(output_of("map all_reduce --ranks 12 -e 64 --menu nccl --network scale_out"),
                  "   12  64 B  double_tree_nccl "));
}

TEST(Choose, ExplainsAllCandidates) {
  const json told = json_of("choose all_reduce --ranks 8 --bytes 1K --network plain --json");
  EXPECT_EQ(told["choice"], told["candidates"][0]);
  // For names and refusals of any length, columns are aligned and two blanks apart.
  const auto lines =
      lines_of(output_of("choose all_reduce --ranks 12 --bytes 1M --network scale_out --explain"));
  const std::size_t ends = lines[1].find("time") + 4;  // the end of times and of their heading
  std::size_t refused = 0;
  for (std::size_t i = 2; i < lines.size(); ++i) {
    const std::size_t name_ends = lines[i].find(' ', 3);
    EXPECT_EQ(lines[i].substr(name_ends, 2), "  ") << lines[i];
    const bool runs = !has(lines[i], "cannot run: ");
    refused += runs ? 0 : 1;
    EXPECT_TRUE(!runs || lines[i].substr(ends - 1, 3) == "s  ") << lines[i];
  }
  EXPECT_GT(lines.size(), 12U);
  EXPECT_GT(refused, 0U);
}

// rankine compare.

Captured compare(const json& a, const json& b, const std::string& more = "") {
  return run_line("compare " + file_with("a.json", a.dump()) + " " + file_with("b.json", b.dump()) +
                  " " + more);
}

TEST(Compare, SaysWhatIsBeyondNoise) {
  const json a = report({row(8, 1, 0.02), row(16, 1, 0.02), row(32, 1, 0.02), row(64, 9, 0)});
  const json b = report({row(8, 1.03, 0.02), row(16, 1.05, 0.02), row(32, 0.9, 0.02)});
  const json found = json::parse(compare(a, b, "--json").out);
  ASSERT_EQ(found.at("rows").size(), 3U);
  EXPECT_EQ(found.at("rows")[0].at("verdict"), "same");
  EXPECT_EQ(found.at("rows")[1].at("verdict"), "slower");
  EXPECT_EQ(found.at("rows")[2].at("verdict"), "faster");
  EXPECT_NEAR(found.at("rows")[1].at("noise"), 0.04, 1e-12);
  EXPECT_NEAR(found.at("geometric_mean"), std::cbrt(1.03 * 1.05 * 0.9), 1e-12);
  EXPECT_EQ(found.at("slower"), 1);
  EXPECT_EQ(found.at("only_a"), json({"64 f32 sum out of place"}));
  EXPECT_TRUE(has(compare(a, b).out, "1 faster, 1 slower, 1 not"));
  // Without a spread, nothing is known of noise.
  json bare = row(8, 1, 0);
  bare["out_of_place"].erase("spread");
  EXPECT_TRUE(has(compare(report({bare}), report({bare})).out, "?: "));
}

TEST(Compare, FailsOnlyAboveTheRatioAndBeyondNoise) {
  const json a = report({row(8, 1, 0.01), row(16, 1, 0.2)});
  const json b = report({row(8, 1.06, 0.01), row(16, 1.3, 0.2)});
  const Captured failed = compare(a, b, "--fail-above 1.05");
  EXPECT_EQ(failed.exit, 1);
  EXPECT_TRUE(has(failed.err, "1 row is slower than 1.05 x"));
  EXPECT_EQ(compare(a, b, "--fail-above 1.07").exit, 0);
  EXPECT_EQ(compare(b, a, "--fail-above 1.05").exit, 0);
}

TEST(Compare, SeveralAlgorithmsAreToldApartAndCyclesCountAsOne) {
  const auto parsed = [](const std::vector<json>& rows) {
    return PerfFile::parse("it", report(rows).dump());
  };
  const auto a = parsed({row(8, 1, 0), row(8, 2, 0, "chain"), row(8, 3, 0), row(8, 5, 0)}).value();
  ASSERT_EQ(a.times.size(), 2U);
  EXPECT_EQ(a.times[0].us, 3);
  EXPECT_NEAR(a.times[0].spread.value(), 1.0 / 3, 1e-12);  // from 1, 3 and 5
  const auto both = compare_files(a, *parsed({row(8, 4, 0, "chain"), row(8, 3, 0)})).value();
  ASSERT_EQ(both.rows.size(), 2U);
  EXPECT_EQ(both.rows[0].ratio, 1);
  EXPECT_EQ(both.rows[1].ratio, 2);
  // The engine may have chosen another algorithm; the row is still compared.
  EXPECT_TRUE(compare_files(*parsed({row(8, 4, 0)}), *parsed({row(8, 4, 0, "tree")})).ok());
}

TEST(Compare, ReadsReportsOfNcclTestsAndOfPerf) {
  const std::string theirs = R"({"version":1,"config":{"nthreads":1},"results":[{"size":8,
    "count":2,"type":"float","redop":"sum","root":"    -1","out_of_place":{"time":2.0,
    "alg_bw":1,"bus_bw":1,"nwrong":0},"out_of_place_per_iter":{"cv_pct":3.0},"in_place":null}]})";
  const auto file = PerfFile::parse("theirs", theirs).value();
  ASSERT_EQ(file.times.size(), 1U);
  EXPECT_EQ(file.times[0].row, "8 f32 sum out of place");
  EXPECT_NEAR(file.times[0].spread.value(), 0.03, 1e-12);
  EXPECT_TRUE(has(compare(json::parse(theirs), report({row(8, 1, 0.01)})).out, "0.500"));
  const std::string ours = file_with("perf.json", "");
  output_of("perf all_reduce -t 2 -n 3 -b 8 -e 16 -J " + ours);
  const json found = json_of("compare " + ours + " " + ours + " --json");
  EXPECT_EQ(found.at("same"), 4);
  EXPECT_EQ(found.at("geometric_mean"), 1);
  EXPECT_TRUE(found.at("rows")[0].at("noise").is_number());
}

TEST(Compare, WrongFilesAreNamed) {
  const json good = report({row(8, 1, 0)});
  for (const auto& [text, part] :
       {std::pair("", "JSON"), std::pair("[1]", "JSON"), std::pair("{}", "'results'"),
        std::pair(R"({"results": []})", "times"), std::pair(R"({"results": [3]})", "'size'"),
        std::pair(R"({"results": [{"size": -1}]})", "'size'"),
        std::pair(R"({"results": [{"size": 8, "out_of_place": {"time": "x"}}]})", "'time'")}) {
    const Captured run = run_line("compare " + file_with("good.json", good.dump()) + " " +
                                  file_with("bad.json", text));
    EXPECT_EQ(run.exit, 2) << run.out;
    EXPECT_TRUE(has(run.err, "bad.json") && has(run.err, part)) << run.err;
  }
  json other = good;
  other["config"]["collective"] = "broadcast";
  EXPECT_TRUE(has(compare(good, other).err, "broadcast"));
  other = good;
  other["config"]["ranks"] = 4;
  EXPECT_TRUE(has(compare(good, other).err, "among 4"));
  EXPECT_EQ(compare(good, report({row(16, 1, 0)})).exit, 2);
  EXPECT_TRUE(has(compare(good, good, "--fail-above -1").err, "--fail-above is '-1'"));
}

}  // namespace
}  // namespace rankine::tools
