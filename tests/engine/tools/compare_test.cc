#include "engine/tools/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
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
  EXPECT_NEAR(a->times[0].spread.value(), 1.0 / 3, 1e-12);  // of 1, 3 and 5
  const auto b = PerfFile::parse("b", report({row(8, 4, 0, "chain"), row(8, 3, 0, "ring")}).dump());
  const auto both = compare_files(*a, *b);
  ASSERT_TRUE(both.ok());
  ASSERT_EQ(both->rows.size(), 2U);
  EXPECT_EQ(both->rows[0].ratio, 1);
  EXPECT_EQ(both->rows[1].ratio, 2);
  // The engine may have chosen otherwise: the row is the same.
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
