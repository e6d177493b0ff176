// What list, show and simulate draw for a terminal, and show as a picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/tools/console.h"
#include "engine/tools/readable_formula.h"
#include "engine/tools/terminal.h"
#include "engine/tools/trees_text.h"
#include "tests/engine/tools/captured_tool.h"
#include "tests/engine/tools/well_formed.h"
#include "tests/numa/scoped_env.h"

namespace rankine::tools {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST(ReadableFormula, IsWhatPeopleWrite) {
  EXPECT_EQ(readable_formula("2*(N-1)/N"), "2(N-1)/N");
  EXPECT_EQ(readable_formula("clog2(N)"), "ceil(log2 N)");
  EXPECT_EQ(readable_formula("2*flog2(N)+P-1"), "2 floor(log2 N)+P-1");
  EXPECT_EQ(readable_formula("clog2(N/G)"), "ceil(log2(N/G))");
  EXPECT_EQ(readable_formula("if(N-1,2*(clog2(N)+P-1),0)"), "2(ceil(log2 N)+P-1) if N>1, else 0");
  EXPECT_EQ(readable_formula("1+if(and(N>=5,P>=3),3,min(2,N-1))"),
            "1+(3 if N>=5 and P>=3, else min(2,N-1))");
  EXPECT_EQ(readable_formula("if(pow2(N),1,2)"), "1 if N is a power of 2, else 2");
  EXPECT_EQ(readable_formula("computed"), "computed");
  EXPECT_EQ(readable_formula(""), "");
  for (const Algorithm& line : catalogue()) {
    for (const std::string_view formula : {line.rounds, line.sent, line.send_ports}) {
      const std::string shown = readable_formula(formula);
      EXPECT_EQ(std::count(shown.begin(), shown.end(), '('),
                std::count(shown.begin(), shown.end(), ')'))
          << shown;
      EXPECT_THAT(shown, Not(HasSubstr("if("))) << formula;
    }
  }
}

TEST(Terminal, ColumnsAndWords) {
  {
    const ScopedEnv columns("COLUMNS", "57");
    EXPECT_EQ(terminal_width(80), 57);
  }
  for (const char* wrong : {"", "x", "-3", "5", "80x"}) {
    const ScopedEnv columns("COLUMNS", wrong);
    EXPECT_GE(terminal_width(80), 20) << wrong;
  }
  EXPECT_EQ(wrapped("one two  three", 10, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("incomprehensible", 4, 0), "incomprehensible\n");
  EXPECT_EQ(wrapped("", 10, 2), "");
}

TEST(Terminal, FillsParagraphsAndKeepsWhatIsCopied) {
  EXPECT_EQ(filled("one two three\n\nfour", 8), "one two\nthree\n\nfour\n");
  EXPECT_EQ(filled("  rankine list --ranks 8\n", 8), "  rankine list --ranks 8\n");
  EXPECT_EQ(filled("  a  one two\n", 9), "  a  one\n     two\n");
}

// Lines of help end where the terminal does, and not where somebody's editor had it.
TEST(Help, IsAsWideAsTheTerminal) {
  constexpr std::size_t kNarrow = 60, kBeside = 20;  // where options' descriptions stand
  for (const std::string& name : subcommand_names()) {
    SCOPED_TRACE(name);
    {
      const ScopedEnv columns("COLUMNS", "60");
      for (const std::string& line : lines_of(run_captured({name, "--help"}).out)) {
        const std::size_t begin = line.find_first_not_of(' ');
        if (begin != 0 && begin != kBeside) continue;  // to be copied
        const bool one_word = line.find(' ', begin) == std::string::npos;
        EXPECT_TRUE(line.size() <= kNarrow || one_word || line.starts_with("Usage:")) << line;
      }
    }
    const ScopedEnv columns("COLUMNS", "2000");
    bool after_usage = false;
    for (const std::string& line : lines_of(run_captured({name, "--help"}).out)) {
      const bool text = after_usage && !line.empty() && line.front() != ' ';
      EXPECT_TRUE(!text || line.ends_with('.') || line.ends_with(':')) << line;
      after_usage |= line.starts_with("Usage:");
    }
  }
}

TEST(List, FitsTheTerminal) {
  for (const int width : {60, 80, 120}) {
    const ScopedEnv columns("COLUMNS", std::to_string(width).c_str());
    const std::string text = run_captured({"list"}).out;
    for (const Algorithm& line : catalogue()) {
      EXPECT_THAT(text, HasSubstr("  " + std::string(line.name) + "\n"));
    }
    for (const std::string& line : lines_of(text)) {  // formulas are whole
      if (line.find("rounds  ") != std::string::npos) {
        EXPECT_THAT(line, Not(HasSubstr("...")));
      }
    }
    const std::size_t legend = text.find("\nN ranks, P segments");
    ASSERT_NE(legend, std::string::npos);
    for (const std::string& line : lines_of(text.substr(0, legend))) {
      if (line.find(' ', line.find_first_not_of(' ')) == std::string::npos) continue;  // one word
      EXPECT_LE(line.size(), static_cast<std::size_t>(width)) << line;
    }
  }
}

TEST(Show, DrawsTreesAsTrees) {
  const std::string tree =
      run_captured({"show", "broadcast", "--algo", "binomial_far", "--ranks", "8"}).out;
  EXPECT_THAT(tree, HasSubstr("block 0 down the tree\n"
                              "0\n"
                              "|- 4 (round 0)\n"
                              "|  |- 6 (round 1)\n"
                              "|  |  `- 7 (round 2)\n"
                              "|  `- 5 (round 2)\n"
                              "|- 2 (round 1)\n"
                              "|  `- 3 (round 2)\n"
                              "`- 1 (round 2)\n"));
  EXPECT_THAT(run_captured({"show", "broadcast", "--algo", "binomial_far", "--ranks", "8", "--utf8",
                            "always"})
                  .out,
              HasSubstr("│  │  └─ 7 (round 2)\n"));
  const std::string both =
      run_captured({"show", "all_reduce", "--algo", "double_tree", "--ranks", "8"}).out;
  EXPECT_THAT(both, AllOf(HasSubstr(" up the tree\n"), HasSubstr(" down the tree\n")));
  for (const char* no_tree : {"ring", "recursive_doubling", "direct_one_shot"}) {
    EXPECT_THAT(run_captured({"show", "all_reduce", "--algo", no_tree, "--ranks", "8"}).out,
                Not(HasSubstr(" the tree")))
        << no_tree;
  }
}

// What is drawn is what the schedule says, for all that makes trees at all: no edge is invented,
// and nobody stands twice under the same root.
TEST(Show, TreesHoldEveryRankOnce) {
  int trees = 0;
  for (const Algorithm& line : catalogue()) {
    const Params params = line.only_taken({.ranks = 7});
    if (line.refusal(params)) continue;
    const Schedule schedule = line.make(params);
    const std::string text = trees_text(schedule, goal_of(line, params, schedule), false);
    std::vector<bool> seen;
    for (const std::string& each : lines_of(text)) {
      const std::size_t digit = each.find_first_of("0123456789");
      if (each.find(" tree") != std::string::npos) {
        seen.assign(7, false);
        ++trees;
        continue;
      }
      if (digit == std::string::npos || seen.empty() || each.starts_with("and ")) continue;
      const auto rank = static_cast<std::size_t>(std::stoi(each.substr(digit)));
      ASSERT_LT(rank, seen.size()) << line.name << ": " << each;
      EXPECT_FALSE(seen[rank]) << line.name << ": " << each;
      seen[rank] = true;
    }
  }
  EXPECT_GT(trees, 10);
}

TEST(Show, CutsLongDrawingsAndSaysHow) {
  const std::vector<std::string> command = {"show",    "all_reduce", "--algo",  "ring",
                                            "--ranks", "32",         "--width", "80"};
  const std::string cut = run_captured(command).out;
  EXPECT_THAT(cut, HasSubstr("lines more: --all shows them"));
  EXPECT_LT(lines_of(cut).size(), 210U);
  std::vector<std::string> all = command;
  all.push_back("--all");
  const std::string whole = run_captured(all).out;
  EXPECT_THAT(whole, Not(HasSubstr("lines more")));
  const std::size_t hint = cut.rfind("... ");
  EXPECT_THAT(whole, StartsWith(cut.substr(0, hint)));
  EXPECT_THAT(cut.substr(hint),
              StartsWith("... " + std::to_string(lines_of(whole).size() -
                                                 lines_of(cut.substr(0, hint)).size())));
}

TEST(Show, HasColoursWhereTheTerminalHasThem) {
  const auto coloured = [](const char* without, const char* terminal) {
    const ScopedEnv no_color("NO_COLOR", without), term("TERM", terminal);
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .out_is_terminal = true};
    run_tool({"show", "all_reduce", "--algo", "ring", "--ranks", "3"}, console);
    return out.str().find("\x1b[") != std::string::npos;
  };
  EXPECT_TRUE(coloured("", "xterm"));
  EXPECT_FALSE(coloured("1", "xterm"));
  EXPECT_FALSE(coloured("", "dumb"));
}

TEST(Show, WritesPictures) {
  const auto file = std::filesystem::path(testing::TempDir()) / "show.svg";
  const auto picture = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"show", "all_reduce", "--svg", file.string()};
    command.insert(command.end(), more.begin(), more.end());
    const Captured run = run_captured(command);
    EXPECT_EQ(run.exit, 0) << run.err;
    EXPECT_EQ(run.out, "");
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    EXPECT_EQ(why_not_well_formed(text.str()), "");
    return text.str();
  };
  const auto arrows = [](const std::string& svg) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = svg.find("marker-end", at)) != std::string::npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(arrows(picture({"--algo", "ring", "--ranks", "4"})), 4U * 6);
  EXPECT_EQ(arrows(picture({"--algo", "ring", "--ranks", "4", "--round", "2"})), 4U);
  EXPECT_THAT(picture({"--algo", "direct_one_shot_push", "--ranks", "3"}), HasSubstr("<circle"));
  EXPECT_EQ(arrows(picture({"--algo", "ring", "--ranks", "1"})), 0U);
  // No word is over another.
  const std::string tree = picture({"--algo", "double_tree", "--ranks", "8"});
  std::vector<std::pair<int, int>> words;
  for (std::size_t at = 0; (at = tree.find("paint-order", at)) != std::string::npos; ++at) {
    int x = 0, y = 0;
    const std::size_t text = tree.rfind("<text", at);
    ASSERT_EQ(std::sscanf(tree.c_str() + text, "<text x=\"%d\" y=\"%d\"", &x, &y), 2);
    for (const auto& [other_x, other_y] : words) {
      EXPECT_TRUE(std::abs(x - other_x) >= 17 || std::abs(y - other_y) >= 12) << x << ", " << y;
    }
    words.emplace_back(x, y);
  }
  EXPECT_EQ(words.size(), arrows(tree));
  EXPECT_EQ(arrows(picture({"--algo", "ring", "--ranks", "40", "--all"})), 40U * 78);
  EXPECT_EQ(arrows(picture({"--algo", "ring", "--ranks", "40"})), 40U * 60);
  const Captured nowhere =
      run_captured({"show", "all_reduce", "--algo", "ring", "--svg", "/nonexistent/x.svg"});
  EXPECT_EQ(nowhere.exit, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("--svg: '/nonexistent/x.svg' cannot be written"));
}

TEST(Simulate, TheFastestComesFirstAndIsMarked) {
  const std::string text =
      run_captured({"simulate", "all_reduce", "--algo", "ring,recursive_doubling,halving_doubling",
                    "--ranks", "16", "--bytes", "1M", "--network", "scale_out"})
          .out;
  const std::size_t first = text.find("* halving_doubling");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_LT(first, text.find("  ring "));
  EXPECT_LT(text.find("  ring "), text.find("  recursive_doubling "));
  EXPECT_THAT(text, HasSubstr("  " + std::string(20, '#') + "  "));  // the slowest
  EXPECT_THAT(text, HasSubstr("* the fastest"));
  const std::string alone =
      run_captured({"simulate", "all_reduce", "--algo", "ring", "--ranks", "16"}).out;
  EXPECT_THAT(alone, AllOf(Not(HasSubstr("#")), Not(HasSubstr("* "))));
}

// A push adds up where it was stored: as much as the pull does.
TEST(Simulate, PushesSayWhatTheyAdd) {
  for (const char* name : {"direct_one_shot", "direct_two_shot"}) {
    const auto reduced = [&](const std::string& algorithm, const char* command) {
      const std::string json =
          run_captured({command, "all_reduce", "--algo", algorithm, "--ranks", "4", "--json"}).out;
      const std::string key = command == std::string("cost") ? "\"reduced\":" : "\"reduced_max\":";
      const std::size_t at = json.find(key);
      EXPECT_NE(at, std::string::npos) << json;
      return std::stod(json.substr(at + key.size()));
    };
    for (const char* command : {"simulate", "cost"}) {
      EXPECT_GT(reduced(name, command), 0);
      EXPECT_EQ(reduced(std::string(name) + "_push", command), reduced(name, command)) << command;
    }
  }
}

TEST(TimeLeft, IsAsLongAgainPerCase) {
  EXPECT_EQ(time_left(0, 10, 5), "");
  EXPECT_EQ(time_left(10, 10, 5), "");
  EXPECT_EQ(time_left(11, 10, 5), "");
  EXPECT_EQ(time_left(5, 10, 0.5), "");
  EXPECT_EQ(time_left(5, 10, 20), ", 20 s left");
  EXPECT_EQ(time_left(1, 11, 30), ", 5 min left");
  EXPECT_EQ(time_left(1, 1001, 36), ", 10.0 h left");
}

}  // namespace
}  // namespace rankine::tools
