// rankine reproduce: what it prints and draws, and what it refuses.
#include "engine/tools/reproduce.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/well_formed.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::json;

std::filesystem::path folder(const std::string& name) {
  const char* root = std::getenv("TEST_TMPDIR");
  return std::filesystem::path(root != nullptr ? root : ".") / name;
}

void expect_members(const Json& json, std::initializer_list<const char*> names) {
  for (const char* name : names) EXPECT_TRUE(json.contains(name)) << name << " in " << json;
}

// One run of everything; what is there is looked at piece by piece.
TEST(Reproduce, JsonAndPicturesHaveEverything) {
  const auto pictures = folder("figures");
  const Captured run = run_captured({"reproduce", "--json", "--svg", pictures.string()});
  ASSERT_EQ(run.exit, 0) << run.err;
  const Json papers = Json::parse(run.out).at("papers");
  ASSERT_EQ(papers.size(), 2u);

  const Json& trivance = papers.at(0);
  EXPECT_EQ(trivance.at("paper"), "trivance");
  for (const Json& row : trivance.at("tables")) {
    expect_members(row, {"table", "algorithm", "line", "routing", "dims", "why"});
    for (const char* quantity : {"lambda", "delta", "theta"}) {
      expect_members(row.at(quantity), {"printed", "derived", "found", "exact"});
      EXPECT_TRUE(row.at(quantity).at("found").at("number").is_number());
    }
  }
  for (const Json& figure : trivance.at("figures")) {
    expect_members(figure, {"id", "title", "dims", "gigabits_per_second", "crossovers"});
    const std::size_t sizes = figure.at("sizes").size();
    EXPECT_EQ(sizes, 23u);
    EXPECT_EQ(figure.at("curves").back().at("algorithm"), "Trivance");
    for (const Json& curve : figure.at("curves")) {
      expect_members(curve, {"algorithm", "change_of_form_bytes"});
      for (const char* series : {"seconds", "gain_percent", "form"}) {
        EXPECT_EQ(curve.at(series).size(), sizes) << series;
      }
    }
  }
  std::size_t agree = 0;
  for (const Json& row : trivance.at("statements")) {
    expect_members(row, {"id", "where", "statement", "measure", "unit", "panels", "others",
                         "stated", "found", "allowed", "distance", "verdict", "why"});
    expect_members(row.at("stated"), {"text", "low", "high"});
    expect_members(row.at("found"), {"text", "low", "low_at", "high", "high_at"});
    agree += row.at("verdict") == "agrees" ? 1 : 0;
  }
  EXPECT_EQ(trivance.at("agree"), agree);

  const Json& traff = papers.at(1);
  EXPECT_EQ(traff.at("paper"), "traff");
  agree = 0;
  for (const Json& row : traff.at("statements")) {
    expect_members(row, {"id", "where", "statement", "processors", "cases", "agreeing", "stated",
                         "found", "verdict", "why"});
    agree += row.at("verdict") == "agrees" ? 1 : 0;
  }
  EXPECT_EQ(traff.at("agree"), agree);

  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(pictures)) {
    std::ifstream file(entry.path());
    const std::string svg{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(why_not_well_formed(svg), "") << entry.path();
    ++files;
  }
  EXPECT_EQ(files, 7u);
}

TEST(Reproduce, TextEndsWithHowManyAgree) {
  const Captured run = run_captured({"reproduce", "traff"});
  ASSERT_EQ(run.exit, 0) << run.err;
  EXPECT_NE(run.out.find("traff-reproduce-theorem1-rounds  [Theorem 1]"), std::string::npos);
  EXPECT_TRUE(run.out.ends_with(" statements agree\n")) << run.out.substr(run.out.size() - 80);
  EXPECT_EQ(run.out.find("Trivance"), std::string::npos);
}

TEST(Reproduce, WrongArgumentsAreNamedWithWhatIsAllowed) {
  const auto refused = [](const std::vector<std::string>& more, const std::string& part, int exit) {
    std::vector<std::string> arguments = {"reproduce"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured run = run_captured(arguments);
    EXPECT_EQ(run.exit, exit) << run.out;
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  };
  refused({"trivanse"},
          "paper is 'trivanse'; allowed are trivance, traff; did you mean 'trivance'?", 2);
  refused({"trivance", "--svg"}, "--svg needs a value", 2);
  refused({"traff", "--svg", "pictures"}, "--svg is 'pictures' and the paper is traff", 2);
  refused({"trivance", "--png", "x"}, "--png is no option", 2);
  // A file stands where the folder would be.
  const auto file = folder("a_file");
  std::ofstream(file) << "x";
  refused({"trivance", "--svg", file.string()}, "--svg is '" + file.string() + "'", 3);
  refused({"trivance", "--svg", (file / "below").string()}, "cannot be written", 3);
}

}  // namespace
}  // namespace rankine::tools
