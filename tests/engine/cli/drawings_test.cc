// Tests of the drawings of list, show and topo, and of the memory that a process may take.

#include <nlohmann/json.hpp>

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
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using json = nlohmann::json;

TEST(ReadableFormula, IsWhatPeopleWrite) {
  for (const auto& [formula, shown] :
       {std::pair("2*(N-1)/N", "2(N-1)/N"), std::pair("clog2(N)", "ceil(log2 N)"),
        std::pair("2*flog2(N)+P-1", "2 floor(log2 N)+P-1"),
        std::pair("clog2(N/G)", "ceil(log2(N/G))"),
        std::pair("if(N-1,2*(clog2(N)+P-1),0)", "2(ceil(log2 N)+P-1) if N>1, else 0"),
        std::pair("1+if(and(N>=5,P>=3),3,min(2,N-1))", "1+(3 if N>=5 and P>=3, else min(2,N-1))"),
        std::pair("if(pow2(N),1,2)", "1 if N is a power of 2, else 2"), std::pair("", "")}) {
    EXPECT_EQ(readable_formula(formula), shown);
  }
  for (const Algorithm& entry : catalogue()) {
    for (const std::string_view formula : {entry.rounds, entry.sent, entry.send_ports}) {
      const std::string shown = readable_formula(formula);
      EXPECT_EQ(count_of(shown, "("), count_of(shown, ")")) << shown;
      EXPECT_FALSE(has(shown, "if(")) << formula;
    }
  }
}

TEST(Terminal, WrapsAndFills) {
  for (const auto& [columns, least, most] :
       {std::tuple("57", 57, 57), {"", 20, 9999}, {"x", 20, 9999}, {"5", 20, 9999}}) {
    const ScopedEnv env("COLUMNS", columns);
    EXPECT_GE(terminal_width(80), least) << columns;
    EXPECT_LE(terminal_width(80), most) << columns;
  }
  EXPECT_EQ(wrapped("one two  three", 10, 2), "  one two\n  three\n");
  EXPECT_EQ(wrapped("incomprehensible", 4, 0), "incomprehensible\n");
  EXPECT_EQ(wrapped("", 10, 2), "");
  EXPECT_EQ(filled("one two three\n\nfour", 8), "one two\nthree\n\nfour\n");
  EXPECT_EQ(filled("  rankine list --ranks 8\n", 8), "  rankine list --ranks 8\n");
  EXPECT_EQ(filled("  a  one two\n", 9), "  a  one\n     two\n");
}

// Lines of help end at the terminal's width, not at the width of the source text.
TEST(Help, IsAsWideAsTheTerminal) {
  constexpr std::size_t kNarrow = 60, kBeside = 20;  // column of options' descriptions
  for (const std::string& name : subcommand_names(&laboratory())) {
    SCOPED_TRACE(name);
    const auto help = [&name](const char* columns) {
      const ScopedEnv env("COLUMNS", columns);
      return lines_of(output_of(name + " --help"));
    };
    for (const std::string& line : help("60")) {
      const std::size_t begin = line.find_first_not_of(' ');
      if (begin != 0 && begin != kBeside) continue;  // examples to be copied
      const bool one_word = line.find(' ', begin) == std::string::npos;
      EXPECT_TRUE(line.size() <= kNarrow || one_word || line.starts_with("Usage:")) << line;
    }
    bool after_usage = false;
    for (const std::string& line : help("2000")) {
      const bool text = after_usage && !line.empty() && line.front() != ' ';
      EXPECT_TRUE(!text || line.ends_with('.') || line.ends_with(':')) << line;
      after_usage |= line.starts_with("Usage:");
    }
  }
}

TEST(List, FitsTheTerminal) {
  for (const char* width : {"60", "120"}) {
    const ScopedEnv columns("COLUMNS", width);
    const std::string text = output_of("list");
    for (const Algorithm& entry : catalogue()) {
      EXPECT_TRUE(has(text, "  " + std::string(entry.name) + "\n")) << entry.name;
    }
    const std::size_t legend = text.find("\nN ranks, P segments");
    ASSERT_NE(legend, std::string::npos);
    for (const std::string& line : lines_of(text.substr(0, legend))) {
      EXPECT_FALSE(has(line, "rounds  ") && has(line, "...")) << line;  // formulas are whole
      if (line.find(' ', line.find_first_not_of(' ')) == std::string::npos) continue;  // one word
      EXPECT_LE(line.size(), std::stoul(width)) << line;
    }
  }
}

// For all algorithms with trees, a drawing equals the schedule: each rank occurs once below a root.
TEST(Show, TreesHoldEveryRankOnce) {
  int trees = 0;
  for (const Algorithm& entry : catalogue()) {
    const Params params = entry.only_taken({.ranks = 7});
    if (entry.refusal(params)) continue;
    const Schedule schedule = entry.make(params);
    std::vector<bool> seen;
    for (const std::string& each :
         lines_of(trees_text(schedule, goal_of(entry, params, schedule), false))) {
      const std::size_t digit = each.find_first_of("0123456789");
      if (has(each, " tree")) {
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
  EXPECT_TRUE(has(output_of("show broadcast --algo binomial_far --ranks 8 --utf8 always"),
                  "│  │  └─ 7 (round 2)\n"));
  EXPECT_FALSE(has(output_of("show all_reduce --algo ring --ranks 8"), " the tree"));
}

TEST(Show, CutsLongDrawingsAndSaysHow) {
  const std::string line = "show all_reduce --algo ring --ranks 32 --width 80";
  const std::string cut = output_of(line), whole = output_of(line + " --all");
  EXPECT_LT(lines_of(cut).size(), 210U);
  const std::size_t hint = cut.rfind("... ");
  EXPECT_TRUE(whole.starts_with(cut.substr(0, hint)));
  const std::size_t left = lines_of(whole).size() - lines_of(cut.substr(0, hint)).size();
  EXPECT_TRUE(has(cut.substr(hint), std::to_string(left))) << cut.substr(hint);
  EXPECT_TRUE(has(cut.substr(hint), "--all"));
}

TEST(Show, HasColoursWhereTheTerminalHasThem) {
  const auto coloured = [](const char* without, const char* terminal) {
    const ScopedEnv no_color("NO_COLOR", without), term("TERM", terminal);
    std::ostringstream out, err;
    Console console{.out = out, .err = err, .out_is_terminal = true};
    run_tool({"show", "all_reduce", "--algo", "ring", "--ranks", "3"}, console);
    return has(out.str(), "\x1b[");
  };
  EXPECT_TRUE(coloured("", "xterm"));
  EXPECT_FALSE(coloured("1", "xterm"));
  EXPECT_FALSE(coloured("", "dumb"));
}

TEST(Show, PicturesHaveAnArrowPerMessageAndNoWordOnAnother) {
  const std::string file = file_with("show.svg", "");
  const auto picture = [&file](const std::string& more) {
    EXPECT_EQ(output_of("show all_reduce --svg " + file + " --algo " + more), "");
    EXPECT_TRUE(is_well_formed(text_of(file))) << more;
    return text_of(file);
  };
  const auto arrows = [](const std::string& svg) { return count_of(svg, "marker-end"); };
  EXPECT_EQ(arrows(picture("ring --ranks 4")), 4U * 6);
  EXPECT_EQ(arrows(picture("ring --ranks 4 --round 2")), 4U);
  EXPECT_TRUE(has(picture("direct_one_shot_push --ranks 3"), "<circle"));
  EXPECT_EQ(arrows(picture("ring --ranks 1")), 0U);
  EXPECT_EQ(arrows(picture("ring --ranks 40 --all")), 40U * 78);
  EXPECT_EQ(arrows(picture("ring --ranks 40")), 40U * 60);
  const std::string tree = picture("double_tree --ranks 8");
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
}

TEST(TimeLeft, IsAsLongAgainPerCase) {
  EXPECT_EQ(time_left(0, 10, 5), "");
  EXPECT_EQ(time_left(10, 10, 5), "");
  EXPECT_EQ(time_left(11, 10, 5), "");
  EXPECT_EQ(time_left(5, 10, 0.5), "");
  EXPECT_EQ(time_left(5, 10, 20), ", 20 s left");
  EXPECT_EQ(time_left(1, 1001, 36), ", 10.0 h left");
}

// rankine topo: pictures of fictional machines, and reports on this machine with a kernel that
// refuses requests or places pages elsewhere.

TopoView view_of(const Topology& topology, int ranks, PlacementPolicy::Kind kind) {
  return {.topology = topology,
          .ranks = ranks,
          .policy = {kind, {}},
          .placement = place_ranks(topology, ranks, {kind, {}}),
          .real = std::nullopt};
}

std::string picture(const char* machine, int ranks,
                    PlacementPolicy::Kind kind = PlacementPolicy::Kind::compact) {
  const auto topology = Topology::synthetic(machine);
  EXPECT_TRUE(topology.ok()) << topology.error;
  const std::string svg = to_svg(view_of(*topology.topology, ranks, kind));
  EXPECT_TRUE(is_well_formed(svg));
  return svg;
}

TEST(TopoPicture, ShowsEveryPartOnceAndEveryRank) {
  const std::string svg = picture("pack:2 numa:4 core:8 pu:2", 36, PlacementPolicy::Kind::scatter);
  for (const auto& [part, count, end] : {std::tuple(">package ", 2, "<"),
                                         {">node ", 8, ","},
                                         {">cpu ", 128, "<"},
                                         {">rank ", 36, "<"}}) {
    for (int i = 0; i < count; ++i) EXPECT_EQ(count_of(svg, part + std::to_string(i) + end), 1U);
  }
  EXPECT_TRUE(has(svg, ">memory of ranks 0,8,16,24,32<"));
  const std::string shared = picture("core:2 pu:2", 3);
  EXPECT_EQ(count_of(picture("core:2 pu:2", 2), "fill=\"#d55e00\""), 0U);
  EXPECT_EQ(count_of(shared, "fill=\"#d55e00\""), 2U) << "both threads of the core";
  EXPECT_EQ(count_of(shared, "fill=\"#0072b2\""), 1U);
  EXPECT_TRUE(has(picture("pu:1", 30), ">0-29<"));
  EXPECT_TRUE(has(picture("core:3 pu:1", 30), ">10 ranks<"));
  EXPECT_TRUE(has(picture("pack:2 [numa] [numa] core:2 pu:1", 2), "memory only"));
}

// Cores with different L3 sizes, or without L3.
TEST(TopoPicture, EveryL3HasItsOwnSize) {
  const CapturedWarnings captured;
  const std::string file = write_file(testing::TempDir() + "/mixed.xml", mixed_caches_xml());
  const ScopedEnv env("HWLOC_XMLFILE", file.c_str());
  const Topology topology = Topology::detect();
  const TopoView view = view_of(topology, 2, PlacementPolicy::Kind::compact);
  std::ostringstream text;
  print(view, text);
  for (const char* part : {"L3 0, 16 MiB<", "L3 1, 8 MiB<", "no L3<"}) {
    EXPECT_EQ(count_of(to_svg(view), std::string(">") + part), 1U);
  }
  for (const char* part : {"    L3 0  16 MiB\n      core 0", "    L3 1  8 MiB\n      core 2",
                           "    no L3\n      core 4"}) {
    EXPECT_TRUE(has(text.str(), part)) << text.str();
  }
  const json report = to_json(view);
  EXPECT_EQ(report.at("topology").at("l3_groups"), 2);
  EXPECT_EQ(report.at("cpus")[1].at("l3_bytes"), 16 << 20);
  EXPECT_EQ(report.at("cpus")[2].at("l3_bytes"), 8 << 20);
  EXPECT_TRUE(report.at("cpus")[5].at("l3").is_null());
}

class TopoHere : public testing::Test {
 protected:
  static std::string text(TopoOptions options) {
    std::ostringstream out, err;
    Console console{out, err};
    const Result<Exit> result = topo(options, console);
    EXPECT_TRUE(result.ok() && *result == Exit::ok) << result.status().text();
    return out.str();
  }
  static json report(TopoOptions options) {
    options.json = true;
    return json::parse(text(options));
  }
  ScopedEnv no_synthetic_{"HWLOC_SYNTHETIC", nullptr};
  CapturedWarnings captured_;
  SystemCalls calls_ = real_system_calls();
};

TEST_F(TopoHere, PagesThatLieElsewhereShow) {
  calls_.move_pages = [](int, unsigned long count, void**, const int*, int* status, int) -> long {
    std::fill_n(status, count, 7);
    return 0;
  };
  ScopedSystemCalls scope(calls_);
  EXPECT_EQ(count_of(text({.ranks = 3}), "not on its node"), 3U);
  const json told = report({.ranks = 3});
  for (const json& rank : told.at("ranks")) {
    EXPECT_GT(rank.at("memory").at("misplaced_bytes"), 0);
    EXPECT_EQ(rank.at("memory").at("mailboxes").at("on_nodes")[0].at("node"), 7);
  }
}

TEST_F(TopoHere, DistancesOfNodesAreReported) {
  const PretendedMachine machine({.text = "numa:2 core:2 pu:1", .distances = {10, 21, 22, 10}});
  const json told = report({.ranks = 2});
  EXPECT_EQ(told.at("nodes")[0].at("distances"), json({10, 21}));
  EXPECT_EQ(told.at("nodes")[1].at("distances"), json({22, 10}));
}

TEST_F(TopoHere, RefusalsOfTheKernelAreNamed) {
  calls_.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                    unsigned) -> long { return errno = EPERM, -1; };
  calls_.mlock2 = [](const void*, std::size_t, unsigned) { return errno = ENOMEM, -1; };
  calls_.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
    return errno = EINVAL, -1;
  };
  ScopedSystemCalls scope(calls_);
  const json told = report({.ranks = 2, .lock_memory = true});
  EXPECT_EQ(captured_.lines.size(), 3U) << "one warning each";
  const json& rank = told.at("ranks")[1];
  EXPECT_EQ(rank.at("pin").at("errno"), EINVAL);
  EXPECT_EQ(rank.at("binding").at("errno"), EPERM);
  EXPECT_EQ(rank.at("locking").at("errno"), ENOMEM);
  EXPECT_EQ(told.at("staging").at("interleaving").at("state"), "refused");
}

TEST_F(TopoHere, AKernelThatDoesNotTellIsNotBelieved) {
  calls_.move_pages = [](int, unsigned long, void**, const int*, int*, int) -> long {
    return errno = EPERM, -1;
  };
  ScopedSystemCalls scope(calls_);
  const json mailboxes = report({.ranks = 2}).at("ranks")[0].at("memory").at("mailboxes");
  EXPECT_TRUE(mailboxes.at("on_nodes").is_null());
  EXPECT_EQ(mailboxes.at("errno"), EPERM);
  EXPECT_FALSE(has(text({.ranks = 2}), "not on its node"));
}

TEST_F(TopoHere, ThePartsAddUp) {
  const json told = report({.ranks = 4});
  const json& all = told.at("communicator");
  std::size_t sum = 0;
  for (const char* part : {"plan_bytes", "flight_record_bytes", "table_bytes"}) {
    sum += all.at(part).get<std::size_t>();
  }
  for (const json& rank : told.at("ranks")) {
    for (const char* part : {"lines", "mailboxes", "scratch"}) {
      sum += rank.at("memory").at(part).at("bytes").get<std::size_t>();
    }
    EXPECT_EQ(rank.at("memory").at("mailboxes_from"), 3);
  }
  EXPECT_EQ(sum, all.at("bytes_after_use"));
  EXPECT_GT(all.at("bytes_after_use"), all.at("bytes_when_made"));
  const std::string file = new_folder() + "/topo.svg";
  text({.ranks = 2, .svg = file});
  EXPECT_TRUE(is_well_formed(text_of(file)) && has(text_of(file), "mailboxes: "));
}

TEST(AvailableMemory, IsTheLeastThatKernelAndContainerTell) {
  EXPECT_GT(available_memory().bytes, 1U << 20);
  const TempTree nothing;
  EXPECT_EQ(available_memory(nothing.root()).bytes, 9223372036854775807U);
  const TempTree tree;
  const auto bytes = [&tree](const std::string& file, const std::string& text) {
    tree.write(file, text);
    return available_memory(tree.root()).bytes;
  };
  EXPECT_EQ(bytes("/proc/meminfo", "MemFree: 10 kB\nMemAvailable:    400 kB\n"), 400U * 1024);
  EXPECT_EQ(bytes("/sys/fs/cgroup/memory.max", "max\n"), 400U * 1024);
  bytes("/sys/fs/cgroup/memory.current", "200000\n");
  EXPECT_EQ(bytes("/sys/fs/cgroup/memory.max", "300000\n"), 100'000U);
  EXPECT_EQ(bytes("/sys/fs/cgroup/memory.stat", "anon 1000\ninactive_file 50000\n"), 150'000U);
  const TempTree old;
  old.write("/proc/meminfo", "MemAvailable: 400 kB\n");
  old.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(available_memory(old.root()).bytes, 400U * 1024);
  old.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  old.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(available_memory(old.root()).bytes, 0U);
}

}  // namespace
}  // namespace rankine::tools
