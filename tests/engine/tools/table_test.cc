#include "engine/tools/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Rows of fields by RFC 4180, with line feeds for ends of lines; fails the test where it is not.
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

// A report of perf whose texts have everything in them that CSV quotes.
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
  // What to ask of each, so that there are rows, and where texts can have commas such rows.
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
  for (const std::string& name : subcommand_names()) {
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
}  // namespace rankine::tools
