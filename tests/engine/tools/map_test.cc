// rankine choose and rankine map: what they print and draw, and what they refuse.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/tools/winner_map.h"
#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
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

// However long names and refusals are, columns stay two blanks apart and one below the other.
TEST(Choose, ExplainKeepsItsColumnsApart) {
  const Captured run = run_captured({"choose", "all_reduce", "--ranks", "12", "--bytes", "1M",
                                     "--network", "scale_out", "--explain"});
  ASSERT_EQ(run.exit, 0) << run.err;
  std::istringstream lines(run.out);
  std::string line;
  std::getline(lines, line);
  std::getline(lines, line);
  const std::size_t ends = line.find("time") + 4;  // of times and of their heading
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
}  // namespace rankine::tools
