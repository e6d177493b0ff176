// Tests of the drawings of list, show, simulate and topo.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/cli/console.h"
#include "engine/cli/drawing.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "numa/system_calls.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/numa/fixtures.h"
#include "tests/numa/machines.h"

// Drawings of list, show and simulate for a terminal, and pictures of show.

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
  for (const Algorithm& entry : catalogue()) {
    for (const std::string_view formula : {entry.rounds, entry.sent, entry.send_ports}) {
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

// Lines of help end at the terminal's width, not at the width of the source text.
TEST(Help, IsAsWideAsTheTerminal) {
  constexpr std::size_t kNarrow = 60, kBeside = 20;  // column of options' descriptions
  for (const std::string& name : subcommand_names(&laboratory())) {
    SCOPED_TRACE(name);
    {
      const ScopedEnv columns("COLUMNS", "60");
      for (const std::string& line : lines_of(run_captured({name, "--help"}).out)) {
        const std::size_t begin = line.find_first_not_of(' ');
        if (begin != 0 && begin != kBeside) continue;  // examples to be copied
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
    for (const Algorithm& entry : catalogue()) {
      EXPECT_THAT(text, HasSubstr("  " + std::string(entry.name) + "\n"));
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

// For all algorithms with trees, a drawing equals the schedule: each edge exists, and each rank
// occurs once below a root.
TEST(Show, TreesHoldEveryRankOnce) {
  int trees = 0;
  for (const Algorithm& entry : catalogue()) {
    const Params params = entry.only_taken({.ranks = 7});
    if (entry.refusal(params)) continue;
    const Schedule schedule = entry.make(params);
    const std::string text = trees_text(schedule, goal_of(entry, params, schedule), false);
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
      ASSERT_LT(rank, seen.size()) << entry.name << ": " << each;
      EXPECT_FALSE(seen[rank]) << entry.name << ": " << each;
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
    EXPECT_EQ(xml_error(text.str()), "");
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
  // No word overlaps another.
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

// The reduced bytes of a push count its additions at the place of the stores, as many as in the
// pull.
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

// rankine topo: pictures of fictional machines, and reports on this machine with a kernel that
// refuses requests or places pages elsewhere.

namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using json = nlohmann::json;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

// --- Pictures of fictional machines.

std::string picture(const char* machine, int ranks, PlacementPolicy::Kind kind) {
  const auto topology = Topology::synthetic(machine);
  EXPECT_TRUE(topology.ok()) << topology.error;
  const TopoView view{.topology = *topology.topology,
                      .ranks = ranks,
                      .policy = {kind, {}},
                      .placement = place_ranks(*topology.topology, ranks, {kind, {}}),
                      .real = std::nullopt};
  const std::string svg = to_svg(view);
  EXPECT_EQ(xml_error(svg), "");
  return svg;
}

TEST(TopoPicture, ShowsEveryPartOnceAndEveryRank) {
  const std::string svg = picture("pack:2 numa:4 core:8 pu:2", 36, PlacementPolicy::Kind::scatter);
  for (int package = 0; package < 2; ++package) {
    EXPECT_EQ(count_of(svg, ">package " + std::to_string(package) + "<"), 1U);
  }
  for (int node = 0; node < 8; ++node) {
    EXPECT_EQ(count_of(svg, ">node " + std::to_string(node) + ","), 1U);
  }
  for (int cpu = 0; cpu < 128; ++cpu) {
    EXPECT_EQ(count_of(svg, ">cpu " + std::to_string(cpu) + "<"), 1U);
  }
  for (int rank = 0; rank < 36; ++rank) {
    EXPECT_EQ(count_of(svg, ">rank " + std::to_string(rank) + "<"), 1U) << rank;
  }
  EXPECT_THAT(svg, AllOf(HasSubstr(">memory of ranks 0,8,16,24,32<"),
                         HasSubstr("36 ranks, scatter"), HasSubstr("a synthetic machine")));
}

TEST(TopoPicture, SharedCoresAndMemoryOnlyNodesShow) {
  const std::string own = picture("core:2 pu:2", 2, PlacementPolicy::Kind::compact);
  const std::string shared = picture("core:2 pu:2", 3, PlacementPolicy::Kind::compact);
  EXPECT_EQ(count_of(own, "fill=\"#d55e00\""), 0U);
  EXPECT_EQ(count_of(shared, "fill=\"#d55e00\""), 2U) << "both threads of the core";
  EXPECT_EQ(count_of(shared, "fill=\"#0072b2\""), 1U);
  EXPECT_THAT(picture("pu:1", 30, PlacementPolicy::Kind::compact), HasSubstr(">0-29<"));
  EXPECT_THAT(picture("core:3 pu:1", 30, PlacementPolicy::Kind::compact), HasSubstr(">10 ranks<"));
  EXPECT_THAT(picture("pack:2 [numa] [numa] core:2 pu:1", 2, PlacementPolicy::Kind::compact),
              HasSubstr("memory only"));
}

// The picture shows cores with different L3 sizes, or without L3.
TEST(TopoPicture, EveryL3HasItsOwnSize) {
  const CapturedWarnings captured;
  const std::string file = write_file(testing::TempDir() + "/mixed.xml", mixed_caches_xml());
  const ScopedEnv env("HWLOC_XMLFILE", file.c_str());
  const Topology topology = Topology::detect();
  const TopoView view{.topology = topology,
                      .ranks = 2,
                      .policy = {},
                      .placement = place_ranks(topology, 2),
                      .real = std::nullopt};
  const std::string svg = to_svg(view);
  EXPECT_EQ(count_of(svg, ">L3 0, 16 MiB<"), 1U);
  EXPECT_EQ(count_of(svg, ">L3 1, 8 MiB<"), 1U);
  EXPECT_EQ(count_of(svg, ">no L3<"), 1U);
  std::ostringstream text;
  print(view, text);
  EXPECT_THAT(text.str(), AllOf(HasSubstr("L3 16 MiB and 8 MiB; pages"),
                                HasSubstr("    L3 0  16 MiB\n      core 0"),
                                HasSubstr("    L3 1  8 MiB\n      core 2"),
                                HasSubstr("    no L3\n      core 4"), HasSubstr("2 L3 groups")));
  const json report = to_json(view);
  EXPECT_EQ(report.at("topology").at("l3_groups"), 2);
  EXPECT_EQ(report.at("cpus")[1].at("l3_bytes"), 16 << 20);
  EXPECT_EQ(report.at("cpus")[2].at("l3"), 1);
  EXPECT_EQ(report.at("cpus")[2].at("l3_bytes"), 8 << 20);
  EXPECT_TRUE(report.at("cpus")[5].at("l3").is_null());
}

// --- This machine.

struct Told {
  Exit exit = Exit::wrong;
  std::string out, error;
};

Told tell(const TopoOptions& options) {
  std::ostringstream out, err;
  Console console{out, err};
  const Result<Exit> result = topo(options, console);
  return {result.ok() ? *result : Exit::wrong, out.str(), std::string(result.status().text())};
}

class TopoHere : public testing::Test {
 protected:
  ScopedEnv no_synthetic_{"HWLOC_SYNTHETIC", nullptr};
  CapturedWarnings captured_;
  SystemCalls calls_ = real_system_calls();
};

long pages_on_node_7(int, unsigned long count, void**, const int*, int* status, int) {
  for (unsigned long i = 0; i < count; ++i) status[i] = 7;
  return 0;
}

TEST_F(TopoHere, PagesThatLieElsewhereShow) {
  calls_.move_pages = pages_on_node_7;
  ScopedSystemCalls scope(calls_);
  const Told text = tell({.ranks = 3});
  ASSERT_EQ(text.exit, Exit::ok) << text.error;
  EXPECT_THAT(text.out, HasSubstr("pages lie on"));
  EXPECT_EQ(count_of(text.out, "not on its node"), 3U);
  const json report = json::parse(tell({.ranks = 3, .json = true}).out);
  for (const json& rank : report.at("ranks")) {
    const json& memory = rank.at("memory");
    EXPECT_GT(memory.at("misplaced_bytes"), 0);
    EXPECT_EQ(memory.at("mailboxes").at("on_nodes")[0].at("node"), 7);
  }
}

TEST_F(TopoHere, DistancesOfNodesAreReported) {
  const PretendedMachine machine({.text = "numa:2 core:2 pu:1", .distances = {10, 21, 22, 10}});
  const json report = json::parse(tell({.ranks = 2, .json = true}).out);
  EXPECT_EQ(report.at("nodes")[0].at("distances"), json({10, 21}));
  EXPECT_EQ(report.at("nodes")[1].at("distances"), json({22, 10}));
}

TEST_F(TopoHere, AKernelThatDoesNotTellIsNotBelievedEither) {
  calls_.move_pages = [](int, unsigned long, void**, const int*, int*, int) -> long {
    errno = EPERM;
    return -1;
  };
  ScopedSystemCalls scope(calls_);
  const Told text = tell({.ranks = 2});
  EXPECT_THAT(text.out, AllOf(HasSubstr("unknown: move_pages: Operation not permitted"),
                              Not(HasSubstr("not on its node"))));
  const json report = json::parse(tell({.ranks = 2, .json = true}).out);
  const json& mailboxes = report.at("ranks")[0].at("memory").at("mailboxes");
  EXPECT_TRUE(mailboxes.at("on_nodes").is_null());
  EXPECT_EQ(mailboxes.at("errno"), EPERM);
}

TEST_F(TopoHere, WhatIsRefusedIsNamed) {
  calls_.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                    unsigned) -> long {
    errno = EPERM;
    return -1;
  };
  calls_.mlock2 = [](const void*, std::size_t, unsigned) {
    errno = ENOMEM;
    return -1;
  };
  calls_.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
    errno = EINVAL;
    return -1;
  };
  ScopedSystemCalls scope(calls_);
  const Told text = tell({.ranks = 2, .lock_memory = true});
  ASSERT_EQ(text.exit, Exit::ok) << text.error;
  EXPECT_THAT(text.out, AllOf(HasSubstr("not everything"), HasSubstr("not pinned: "),
                              HasSubstr("memory not bound: "), HasSubstr("memory not locked: "),
                              HasSubstr("memory not interleaved: mbind: Operation not permitted")));
  EXPECT_EQ(captured_.lines.size(), 3U) << "one warning each";
  const json report = json::parse(tell({.ranks = 2, .lock_memory = true, .json = true}).out);
  const json& rank = report.at("ranks")[1];
  EXPECT_EQ(rank.at("pin").at("errno"), EINVAL);
  EXPECT_EQ(rank.at("binding").at("errno"), EPERM);
  EXPECT_EQ(rank.at("locking").at("errno"), ENOMEM);
  EXPECT_EQ(report.at("staging").at("interleaving").at("state"), "refused");
}

TEST_F(TopoHere, ThePartsAddUp) {
  const json report = json::parse(tell({.ranks = 4, .json = true}).out);
  const json& all = report.at("communicator");
  std::size_t sum = all.at("plan_bytes").get<std::size_t>() +
                    all.at("flight_record_bytes").get<std::size_t>() +
                    all.at("table_bytes").get<std::size_t>();
  for (const json& rank : report.at("ranks")) {
    for (const char* part : {"lines", "mailboxes", "scratch"}) {
      sum += rank.at("memory").at(part).at("bytes").get<std::size_t>();
    }
    EXPECT_EQ(rank.at("memory").at("mailboxes_from"), 3);
  }
  EXPECT_EQ(sum, all.at("bytes_after_use"));
  EXPECT_GT(all.at("bytes_after_use"), all.at("bytes_when_made"));
}

TEST_F(TopoHere, DrawsIntoAFile) {
  std::string folder = (std::filesystem::temp_directory_path() / "rankine.XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/topo.svg";
  EXPECT_EQ(tell({.ranks = 2, .svg = file}).exit, Exit::ok);
  std::ifstream stream(file);
  const std::string svg(std::istreambuf_iterator<char>(stream), {});
  EXPECT_EQ(xml_error(svg), "");
  EXPECT_THAT(svg, AllOf(HasSubstr("<svg"), HasSubstr("mailboxes: ")));
  std::filesystem::remove_all(folder);
  EXPECT_THAT(tell({.ranks = 2, .svg = file}).error, AllOf(HasSubstr("--svg"), HasSubstr(file)));
}

}  // namespace

namespace {

namespace fs = std::filesystem;

class AvailableMemoryTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::path(testing::TempDir()) /
            testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  void write(const std::string& file, const std::string& text) {
    const fs::path path = root_ / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  AvailableMemory read() const { return available_memory(root_.string()); }

  fs::path root_;
};

TEST_F(AvailableMemoryTest, NobodyTells) {
  EXPECT_EQ(read().bytes, 9223372036854775807U);
  EXPECT_EQ(read().why, "unknown");
}

TEST_F(AvailableMemoryTest, TheKernelTells) {
  write("proc/meminfo", "MemTotal:       1000 kB\nMemFree: 10 kB\nMemAvailable:    400 kB\n");
  EXPECT_EQ(read().bytes, 400U * 1024);
}

TEST_F(AvailableMemoryTest, AContainerMayHaveLess) {
  write("proc/meminfo", "MemAvailable: 400 kB\n");
  write("sys/fs/cgroup/memory.max", "300000\n");
  write("sys/fs/cgroup/memory.current", "200000\n");
  EXPECT_EQ(read().bytes, 100'000U);
  write("sys/fs/cgroup/memory.stat", "anon 1000\ninactive_file 50000\n");
  EXPECT_EQ(read().bytes, 150'000U);
  EXPECT_NE(read().why.find("memory.max"), std::string::npos);
}

TEST_F(AvailableMemoryTest, NoLimitIsNone) {
  write("proc/meminfo", "MemAvailable: 400 kB\n");
  write("sys/fs/cgroup/memory.max", "max\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(read().bytes, 400U * 1024);
}

TEST_F(AvailableMemoryTest, MoreUsedThanAllowedIsNothing) {
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(read().bytes, 0U);
}

TEST(AvailableMemory, OfThisMachineIsThere) { EXPECT_GT(available_memory().bytes, 1U << 20); }

}  // namespace
}  // namespace rankine::tools
