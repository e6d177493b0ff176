// rankine check: verdicts, costs beside the catalogue's, and formulas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/read/verify.h"
#include "engine/tools/lesson/formula_tasks.h"
#include "engine/tools/lesson/judge.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/tool_process.h"

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

json checked(const std::string& text, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"check", file_with("schedule.txt", text), "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const Captured captured = run_captured(words);
  EXPECT_EQ(captured.err, "") << text;
  const json out = json::parse(captured.out);
  EXPECT_EQ(captured.exit, out["proved"].get<bool>() ? 0 : 1) << captured.out;
  return out;
}

// One schedule for each way to be wrong that can be written down.
TEST(Check, NamesWhatBrokeWhere) {
  const struct {
    const char* text;
    const char* kind;
    int round, rank, block;
    std::vector<int> lines;
  } kCases[] = {
      {"broadcast 3\nround\n0 -> 1: 0\nround\n2 -> 1: 0\n", "not_there", 1, 2, 0, {5}},
      {"broadcast 3\nround\n0 -> 1: 0\nround\n1 -> 0: 0\n", "redundant", 1, 0, 0, {5}},
      {"broadcast 3\nround\n0 -> 1: 0\n", "wrong_result", -1, 2, 0, {}},
      {"reduce 3\nround\n1 -> 0: 0 +\nround\n1 -> 0: 0 +\n", "double_count", 1, 0, 0, {5}},
      {"broadcast 3 planes 2\nround\n0 -> 1: 0\nround\n0 -> 2: 0\nround\n0 -> 1: 0 to 1\n",
       "dead",
       2,
       1,
       0,
       {7}},
      {"reduce 3\nround\n1 -> 0: 0\n2 -> 0: 0 +\n", "mixed_acts", 0, 0, 0, {3, 4}},
      {"broadcast 3\nround\n0 -> 1: 0\n0 -> 1: 0\n", "two_copies", 0, 1, 0, {3, 4}},
      {"reduce 3\nround\n1,2 -> 0: 0\n", "many_to_copy", 0, 0, 0, {3}},
      {"all_reduce 3\nround\n0 -> 1: 0 on 0 to 1\n", "bad_index", 0, -1, -1, {}},
  };
  for (const auto& one : kCases) {
    if (std::string(one.kind) == "bad_index") {  // refused where it is read
      EXPECT_EQ(run_captured({"check", file_with("schedule.txt", one.text)}).exit, 2);
      continue;
    }
    const json out = checked(one.text);
    EXPECT_EQ(out["kind"], one.kind) << one.text;
    EXPECT_EQ(out["round"], one.round) << one.text << out;
    EXPECT_EQ(out["rank"], one.rank) << one.text << out;
    EXPECT_EQ(out["block"], one.block) << one.text << out;
    EXPECT_EQ(out["lines"].get<std::vector<int>>(), one.lines) << one.text << out;
    EXPECT_FALSE(out["rule"].get<std::string>().empty());
  }
}

TEST(Check, EveryRuleHasItsWords) {
  std::set<std::string_view> rules;
  for (int kind = 0; kind < kViolationKinds; ++kind) {
    rules.insert(rule_of(static_cast<ViolationKind>(kind)));
  }
  EXPECT_FALSE(rules.contains(""));
  EXPECT_GE(rules.size(), static_cast<std::size_t>(kViolationKinds) - 2);
}

TEST(Check, SaysWhereItIsInWords) {
  const Captured captured = run_captured(
      {"check", file_with("wrong.txt", "all_gather 3\nround\n0 -> 1: 0\nround\n0 -> 2: 1\n")});
  EXPECT_EQ(captured.exit, 1);
  EXPECT_THAT(captured.out, HasSubstr("wrong: not_there at round 1, rank 0, block 1\n"));
  EXPECT_THAT(captured.out, HasSubstr("the rule: nothing is read that is not there"));
  EXPECT_THAT(captured.out, HasSubstr("  line 5: 0 -> 2: 1\n"));
}

// What the catalogue writes costs what the catalogue's line does.
TEST(Check, CostsAreTheSimulators) {
  for (const char* algorithm : {"ring", "recursive_doubling", "direct_two_shot", "double_tree"}) {
    const std::vector<std::string> line = {"all_reduce", "--algo", algorithm, "--ranks", "8"};
    std::vector<std::string> show = {"show"}, simulate = {"simulate", "--json", "--bytes", "1M"};
    for (const std::string& word : line) {
      show.push_back(word);
      simulate.push_back(word);
    }
    show.push_back("--text");
    for (const char* network : {"plain", "torus", "two_level"}) {
      simulate.resize(9);
      simulate.insert(simulate.end(), {"--network", network});
      const json there = json::parse(run_captured(simulate).out);
      const json here = checked(run_captured(show).out, {"--network", network});
      EXPECT_EQ(here["time"], there["time"]) << algorithm << " " << network;
      EXPECT_EQ(here["rounds"], there["rounds"]);
      EXPECT_EQ(here["bytes"].get<double>(), there["sent_max"].get<double>());
      EXPECT_LE(here["best"]["time"].get<double>(), here["time"].get<double>() * (1 + 1e-3));
      EXPECT_GE(here["rounds"], here["least_rounds"]);
      EXPECT_GE(here["bytes"].get<double>(), here["least_bytes"].get<double>());
    }
  }
}

TEST(Check, TheBestIsThatOfChoose) {
  const json here = checked("broadcast 3 root 2\nround\n2 -> 0: 0\nround\n2 -> 1: 0\n",
                            {"--network", "scale_out", "--bytes", "64"});
  const Captured chosen = run_captured(
      {"choose", "broadcast", "--ranks", "3", "--bytes", "64", "--network", "scale_out", "--json"});
  EXPECT_THAT(chosen.out, HasSubstr(here["best"]["algorithm"].get<std::string>()));
  EXPECT_EQ(here["least_rounds"], 2);
  EXPECT_EQ(here["send_ports"], 1);
}

TEST(Check, ASwitchsTransferNeedsANetworkThatCan) {
  const std::string file = file_with("switch.txt", "broadcast 4\nround\n0 -> 1..3: 0\n");
  const Captured refused = run_captured({"check", file});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("multicast"));
  EXPECT_EQ(run_captured({"check", file, "--multicast"}).exit, 0);
  EXPECT_EQ(run_captured({"check", file, "--lower"}).exit, 0);
}

TEST(Check, ReadsStandardInput) {
  ToolProcess tool({"check", "-"});
  ASSERT_TRUE(tool.ask("all_gather 2\nround\n0 <-> 1: 0\n"));
  tool.close_in();
  EXPECT_THAT(tool.rest(), HasSubstr("wrong: not_there at round 0, rank 1, block 0"));
  EXPECT_EQ(tool.wait(), 1);
}

TEST(Check, OneRankHasNothingToDo) {
  const json out = checked("all_reduce 1\n");
  EXPECT_EQ(out["least_rounds"], 0);
  EXPECT_EQ(out["bytes"], 0);
  EXPECT_EQ(checked("all_gather 2\nround\n0 -> 1: 0\n1 -> 0: 1\n", {"--bytes", "0"})["bytes"], 0);
}

TEST(Check, SaysWhatItNeeds) {
  const auto refused = [](std::vector<std::string> words, int exit) {
    words.insert(words.begin(), "check");
    const Captured captured = run_captured(words);
    EXPECT_EQ(captured.exit, exit) << captured.out;
    EXPECT_EQ(captured.out, "");
    return captured.err;
  };
  EXPECT_THAT(refused({}, 2), HasSubstr("FILE, --task or --tasks is needed"));
  EXPECT_THAT(refused({"x", "--tasks"}, 2), HasSubstr("one of them only"));
  EXPECT_THAT(refused({"no such file"}, 3), HasSubstr("FILE is 'no such file'"));
  EXPECT_THAT(refused({"/dev/zero"}, 3), HasSubstr("character device"));
  EXPECT_THAT(refused({"--task", "ring"}, 2), HasSubstr("--task is 'ring'; allowed are"));
  EXPECT_THAT(refused({"--tasks", "--formula", "N"}, 2), HasSubstr("belong to a --task"));
  const std::vector<std::string> formulas = {"N +",
                                             "X",
                                             "1/(N-N)",
                                             "sum(k,1,1e30,k)",
                                             "log2(0-N)",
                                             std::string(401, '('),
                                             std::string(300, '(')};
  for (const std::string& formula : formulas) {
    const std::string said = refused({"--task", "ring_bytes", "--formula", formula}, 2);
    EXPECT_THAT(said, HasSubstr("--formula")) << formula;
  }
}

// The formulas that the lesson's readers are to find.
TEST(Formulas, OfTheCourseAreRightAndWhatIsNearThemIsWrong) {
  const std::vector<std::pair<std::string, std::string>> right = {
      {"ring_bytes", "2*(N-1)/N*S"},
      {"ring_time", "2*(N-1)*A + 2*(N-1)/N*S/W"},
      {"alternate_ring", "(N-1)*S/W"},
      {"tree_rounds", "clog2(N)"},
      {"chain_broadcast", "(N-1)*(A+S/W)"},
      {"tree_broadcast", "clog2(N)*(A+S/W)"},
      {"pipeline_broadcast", "(N-2+K)*(A+S/(K*W))"},
      {"torus_rounds", "4*(D-1)"},
      {"crossover", "A*W*(2*(pow2n-1)-E)/(E-2*(pow2n-1)/pow2n)"},
      {"dp_bytes", "2*(N-1)/N*S"},
      {"fsdp_bytes", "3*(N-1)/N*S"},
      {"tp_bytes", "4*2*(N-1)/N*2*T*H"},
      {"accumulation_bytes", "3*K*(N-1)/N*S"},
      {"bubble", "(P-1)*(F+B)"},
  };
  ASSERT_EQ(right.size(), formula_tasks().size());
  for (const auto& [name, text] : right) {
    std::string formula = text;
    for (std::size_t at; (at = formula.find("pow2n")) != std::string::npos;) {
      formula.replace(at, 5, "pow(2,E)");
    }
    const FormulaTask& task = **find_formula_task("it", name);
    for (const std::uint64_t seed : {0, 1, 2}) {
      const auto miss = judge_formula(task, formula, seed);
      ASSERT_TRUE(miss.ok()) << name << ": " << miss.status().text();
      EXPECT_FALSE(*miss) << name << " at " << letters_text(task, (*miss)->letters) << ": "
                          << to_string((*miss)->said) << ", " << to_string((*miss)->right);
    }
    // A little off is wrong, and so is what holds at one input only.
    for (const std::string& wrong : {"(" + formula + ")*1.001", formula + "+1e-9*" + formula,
                                     std::string("0"), std::string("1")}) {
      const auto miss = judge_formula(task, wrong, 1);
      ASSERT_TRUE(miss.ok());
      EXPECT_TRUE(*miss) << name << ": " << wrong;
    }
  }
}

TEST(Formulas, AreJudgedWithTheInputThatShowsIt) {
  const Captured wrong =
      run_captured({"check", "--task", "dp_bytes", "--formula", "2*S", "--seed", "7"});
  EXPECT_EQ(wrong.exit, 1);
  EXPECT_THAT(wrong.out, HasSubstr("wrong at N = 2, S = 1:\n  the formula says 2, the engine 1\n"));
  const Captured right = run_captured(
      {"check", "--task", "dp_bytes", "--formula", "2*S*(N-1)/N", "--seed", "7", "--json"});
  EXPECT_EQ(right.exit, 0);
  EXPECT_TRUE(json::parse(right.out)["right"].get<bool>());
  const Captured shown = run_captured({"check", "--task", "dp_bytes"});
  EXPECT_THAT(shown.out, HasSubstr("  N  ranks, from 2 to 33\n"));
  const Captured all = run_captured({"check", "--tasks"});
  for (const FormulaTask& task : formula_tasks()) {
    EXPECT_THAT(all.out, HasSubstr(std::string(task.name) + " "));
  }
}

}  // namespace
}  // namespace rankine::tools
