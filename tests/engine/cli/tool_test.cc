#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/cli/arguments.h"
#include "engine/cli/laboratory.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/papers/runs.h"
#include "engine/read/sweep.h"
#include "tests/engine/cli/tool_fixtures.h"

namespace rankine::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseWhole, StaysWithinItsEnds) {
  EXPECT_EQ(*parse_whole("--ranks", "1", 1, 1024), 1);
  EXPECT_EQ(*parse_whole("--ranks", "1024", 1, 1024), 1024);
  EXPECT_EQ(*parse_whole("--x", "-3", -5, 5), -3);
  for (const char* text : {"0", "1025", "-1", "x", "", "1.5", "2x", "99999999999999999999"}) {
    const auto value = parse_whole("--ranks", text, 1, 1024);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().text(),
              "--ranks is '" + std::string(text) + "'; allowed are whole numbers from 1 to 1024");
  }
}

TEST(ParseWholeList, ReadsRangesAndSorts) {
  EXPECT_THAT(*parse_whole_list("--ranks", "3", 1, 130), ElementsAre(3));
  EXPECT_THAT(*parse_whole_list("--ranks", "8,2,2..4", 1, 130), ElementsAre(2, 3, 4, 8));
  EXPECT_EQ(parse_whole_list("--ranks", "1..130", 1, 130)->size(), 130U);
  for (const char* text : {"", "0", "4..2", "1..", "..3", "1,,2", "1-3", "131", "a..b"}) {
    EXPECT_THAT(parse_whole_list("--ranks", text, 1, 130).status().text(),
                HasSubstr("allowed are whole numbers from 1 to 130"))
        << text;
  }
}

TEST(UnknownName, OffersAWayOut) {
  constexpr std::array<std::string_view, 2> kNames = {"ring", "direct"};
  EXPECT_EQ(unknown_name("--algo", "rnig", kNames).text(),
            "--algo is 'rnig'; allowed are ring, direct; did you mean 'ring'?");
  EXPECT_EQ(unknown_name("--algo", "tree9", kNames).text(),
            "--algo is 'tree9'; allowed are ring, direct");
}

TEST(Errors, ShowWhatIsLegibleOfAnything) {
  const std::string_view kNames[] = {"ring"};
  EXPECT_EQ(unknown_name("it", "a\x1b[2J\n\x7f", kNames).text(),
            "it is 'a?[2J?\?'; allowed are ring");
  EXPECT_EQ(unknown_name("it", std::string(1'000'000, 'y'), kNames).text(),
            "it is '" + std::string(80, 'y') + " ...'; allowed are ring");
  EXPECT_EQ(unknown_name("it", "Müller", kNames).text(), "it is 'Müller'; allowed are ring");
  EXPECT_LT(parse_whole("n", std::string(1000, '9'), 1, 2).status().text().size(), 200U);
  EXPECT_LT(parse_whole_list("n", std::string(1000, '9'), 1, 2).status().text().size(), 400U);
}

}  // namespace

// Arguments, errors and the shape of reports; no measurements.

namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Misuse {
  std::vector<std::string> arguments;
  std::vector<std::string> says;  // argument, value, allowed values
};

// Without a terminal, progress is printed as separate lines, and rarely.
TEST(Progress, WithoutATerminalIsLinesAfterAWhile) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err, .progress_after = 1e-9};
  Progress progress(console);
  while (err.str().empty()) progress.show("1 of 2");
  EXPECT_EQ(err.str(), "1 of 2\n");
  Console silent{.out = out, .err = err};
  Progress none(silent);
  none.show("2 of 2");
  EXPECT_EQ(err.str(), "1 of 2\n");
}

TEST(Names, AreReadAsPeopleTypeThem) {
  const auto shown = [](const char* collective, const char* algorithm) {
    const Captured run = run_captured({"show", collective, "--algo", algorithm, "--ranks", "4"});
    EXPECT_EQ(run.exit, 0) << run.err;
    return run.out;
  };
  const std::string tree = shown("all_reduce", "double_tree");
  EXPECT_THAT(tree, StartsWith("double_tree"));
  for (const char* typed : {"Tree", "tree", "DoubleTree", "double-tree"}) {
    EXPECT_EQ(shown("AllReduce", typed), tree) << typed;
  }
  // Several algorithms are in the catalogue's order, and each occurs once. Without a collective,
  // all collectives with the name count.
  const auto some = read_algorithms("--algo", "tree,Ring,double_tree", Collective::all_reduce);
  ASSERT_TRUE(some.ok()) << some.status().text();
  EXPECT_THAT(*some, testing::ElementsAre(find_algorithm(Collective::all_reduce, "ring"),
                                          find_algorithm(Collective::all_reduce, "double_tree")));
  const auto everywhere = read_algorithms("--algo", "NVLS", std::nullopt);
  ASSERT_TRUE(everywhere.ok()) << everywhere.status().text();
  EXPECT_GT(everywhere->size(), 2u);
  for (const Algorithm* entry : *everywhere) EXPECT_EQ(entry->name, "switch");
  // The target of an alias may be missing in a collective.
  EXPECT_THAT(read_algorithms("--algo", "tree", Collective::all_gather).status().text(),
              StartsWith("--algo for all_gather is 'tree'; allowed are "));
}

TEST(Misuse, NamesArgumentValueAndWhatIsAllowed) {
  const std::vector<Misuse> cases = {
      {{}, {"a subcommand is needed", "list, verify", "perf"}},
      {{"pref"}, {"'pref'", "allowed are", "did you mean 'perf'"}},
      {{"-x"}, {"-x is no option", "rankine --help"}},
      {{"-t", "4", "list"}, {"rankine: -t is no option", "options of 'rankine list' stand behind"}},
      {{"help", "lits"}, {"rankine: subcommand is 'lits'", "did you mean 'list'"}},
      {{"lits", "list"}, {"rankine: subcommand is 'lits'", "did you mean 'list'"}},
      {{"perf"}, {"collective is required, as in 'rankine perf all_reduce'"}},
      {{"gaps"}, {"collective is required, as in 'rankine gaps all_reduce --algo trivance"}},
      {{"simulate"}, {"collective is required", "as in 'rankine simulate all_reduce"}},
      {{"list", "--short", "--json"},
       {"--short has names and summaries only; --json asks for more"}},
      {{"show", "all_reduce", "--svg", "x.jpg"}, {"--svg is 'x.jpg'", ".svg, .png, .pdf or .eps"}},
      {{"perf", "all_reduce", "--plot", "x.gif"}, {"--plot is 'x.gif'", ".svg, .png"}},
      {{"perf", "allreduse"}, {"collective is 'allreduse'", "did you mean 'all_reduce'"}},
      {{"perf", "all_reduce", "extra"}, {"'extra'", "too many"}},
      {{"perf", "all_reduce", "--rank", "3"}, {"--rank ", "did you mean '--ranks'"}},
      {{"perf", "all_reduce", "--ranks", "0"}, {"--ranks is '0'", "1 to 1024"}},
      {{"perf", "all_reduce", "--ranks"}, {"--ranks needs a value"}},
      {{"perf", "all_reduce", "-b", "8Q"}, {"--minbytes is '8Q'", "64MiB"}},
      {{"perf", "all_reduce", "-e", "99999999T"}, {"--maxbytes is '99999999T'", "63 bits"}},
      {{"perf", "all_reduce", "-b", "1M", "-e", "1K"}, {"--minbytes is 1M", "--maxbytes", "1K"}},
      {{"perf", "all_reduce", "-f", "0"}, {"--stepfactor is '0'", "1 to 1024"}},
      {{"perf", "all_reduce", "-i", "0"}, {"--stepbytes is '0'", "from 1"}},
      {{"perf", "all_reduce", "-i", "1"}, {"--stepbytes is 1", "100000 sizes"}},
      {{"perf", "all_reduce", "-d", "f33"}, {"--datatype is 'f33'", "bf16", "'f32'?"}},
      {{"perf", "all_reduce", "-d", ""}, {"--datatype is ''", "bf16"}},
      {{"perf", "all_reduce", "-o", "sun"}, {"--op is 'sun'", "prod", "did you mean 'sum'"}},
      {{"perf", "all_reduce", "-o", "bor"},
       {"--op is 'bor'", "'f32'", "f32 takes sum, prod, min, max and avg"}},
      {{"perf", "reduce", "-t", "2", "-r", "2"}, {"--root is '2'", "0 to 1", "all"}},
      {{"perf", "all_reduce", "--algo", "rnig"}, {"--algo", "'rnig'", "did you mean 'ring'"}},
      {{"perf", "all_reduce", "--algo", ","}, {"--algo", "''", "ring"}},
      {{"perf", "all_reduce", "--transport", "dircet"}, {"--transport is 'dircet'", "'direct'?"}},
      {{"perf", "all_reduce", "--placement", "compcat"}, {"--placement is 'compcat'", "scatter"}},
      {{"perf", "all_reduce", "--wait", "sleep"}, {"--wait is 'sleep'", "park"}},
      {{"perf", "all_reduce", "--timeout", "0"}, {"--timeout is '0'", "500ms"}},
      {{"perf", "all_reduce", "--timeout", "10us"}, {"--timeout is '10us'", "whole milliseconds"}},
      {{"perf", "all_reduce", "--min-busbw", "x"}, {"--min-busbw is 'x'", "GB/s"}},
      {{"perf", "all_reduce", "--min-busbw", "inf"}, {"--min-busbw is 'inf'", "GB/s"}},
      {{"perf", "all_reduce", "-f", "4", "-i", "8"}, {"--stepfactor and --stepbytes are given"}},
      {{"perf", "all_reduce", "-n", "5", "--time", "1s"}, {"--iters and --time are given"}},
      {{"perf", "all_reduce", "--stats", "-I", "0"}, {"--stats and --per_iter_timing are given"}},
      {{"perf", "all_reduce", "--csv", "--json", "-"}, {"--json is '-'", "--csv"}},
      {{"perf", "all_reduce", "--json", "x", "--plot", "x"}, {"--plot is 'x'", "so is --json"}},
      {{"perf", "all_reduce", "--json", "--csv"}, {"--json needs a value, FILE", "'--csv' is an"}},
      {{"perf", "all_reduce", "--algo", "-b", "8"}, {"--algo needs a value", "'-b' is an option"}},
      {{"perf", "all_reduce", "--network", "scale-out"}, {"'scale-out'", "mean 'scale_out'?"}},
      {{"perf", "all_reduce", "--plot", "-"}, {"--plot is '-'", "names of files"}},
      {{"perf", "all_reduce", "--algo", ""}, {"--algo is ''", "needs a value, LIST"}},
      {{"perf", "all_reduce", "--json", ""}, {"--json is ''", "needs a value, FILE"}},
      {{"list", "all_reduc"}, {"collective is 'all_reduc'", "did you mean 'all_reduce'"}},
      {{"list", "--ranks", "-1"}, {"--ranks is '-1'", "from 1"}},
      {{"list", "--json=x"}, {"--json is 'x'; it takes no value"}},
      {{"verify", "--ranks", "5..2"}, {"--ranks is '5..2'", "1 to 1048576"}},
      {{"verify", "broadcast", "--collective", "reduce"},
       {"collective and --collective are given"}},
      {{"faults", "--collective", "reduce", "gather"}, {"collective and --collective are given"}},
      {{"verify", "broadcast", "--root", "5", "--ranks", "4"}, {"--ranks is 4, --root is '5': "}},
      {{"verify", "--roots", "some"}, {"--roots is 'some'", "or all"}},
      {{"verify", "--segments", "0"}, {"--segments is '0'", "from 1"}},
      {{"verify", "--algo", "bruk"}, {"--algo is 'bruk'", "did you mean 'bruck'"}},
      {{"verify", "--collective", "barrier", "--algo", "ring"}, {"--algo for barrier is 'ring'"}},
      {{"show", "all_reduce"}, {"--algo is needed", "ring"}},
      {{"show", "all_reduce", "--algo", "ring,direct_one_shot"}, {"one algorithm is allowed"}},
      {{"show", "all_reduce", "--algo", "ring", "--ranks", "129"},
       {"--ranks is '129'", "1 to 128"}},
      {{"show", "all_reduce", "--algo", "ring", "--round", "6"}, {"--round is 6", "0 to 5"}},
      {{"show", "broadcast", "--algo", "chain", "--root", "4"}, {"root is 4", "0 to 3"}},
      {{"show", "all_reduce", "--algo", "ring", "--utf8", "si"}, {"--utf8 is 'si'", "never"}},
      {{"show", "all_reduce", "--algo", "ring", "--svg", ""}, {"--svg is ''", "a value, FILE"}},
      {{"show", "all_reduce", "--algo", "ring", "--svg", "-"}, {"--svg is '-'", "names of files"}},
      {{"show", "all_reduce", "--algo", "ring", "--json", "--text"},
       {"--json and --text are given"}},
      {{"show", "all_reduce", "--algo", "ring", "--svg", "x", "--json"},
       {"--svg and --json are given"}},
      {{"show", "all_reduce", "--algo", "ring", "--text", "--round", "1"},
       {"--round is 1", "whole"}},
      {{"show", "all_reduce", "--algo", "ring", "--json", "--transfers"},
       {"--transfers", "--json"}},
      {{"show", "all_reduce", "--algo", "chain", "--segments", "auto"},
       {"--segments is 'auto'", "whole numbers from 1"}},
      {{"choose", "all_reduce", "--sync", "rounds"}, {"--sync is rounds", "modelled networks"}},
      {{"run", "all_reduce", "--algo", "ring", "--dilate", "5"}, {"--dilate is 5", "--clock wall"}},
      {{"faults", "--list", "--json"}, {"--list is given", "--json"}},
      {{"simulate", "all_reduce", "--algo", "ring", "--skips", ""}, {"--skips is ''", "LIST"}},
      {{"simulate", "all_reduce", "--algo", "ring", "--counts", ""}, {"--counts is ''", "SIZES"}},
      {{"simulate", "all_reduce", "--algo", "ring", "--goal", "-"}, {"--goal is '-'", "files"}},
      {{"simulate", "all_reduce", "--algo", "ring", "--trace", "x.json", "--goal", "x.json"},
       {"--goal is 'x.json'", "so is --trace"}},
      {{"map", "all_reduce", "--svg", "x", "--png", "x"}, {"--png is 'x'", "so is --svg"}},
      {{"map", "barrier"}, {"collective is barrier, which has no sizes"}},
      {{"buckets", "--algo", "rnig"}, {"--algo for all_reduce is 'rnig'", "mean 'ring'?"}},
      {{"claims", "--html", "x", "--markdown", "x"}, {"--html is 'x'", "so is --markdown"}},
      {{"plan", "gpt2", "--svg", "x", "--trace", "x"}, {"--trace is 'x'", "so is --svg"}},
      {{"plan", "gpt2", "--trace", "-"}, {"--trace is '-'", "names of files"}},
      {{"plan", "llama3-8b"}, {"model is 'llama3-8b'", "did you mean 'llama3_8b'?"}},
      {{"plan", "gpt2", "--dp", "8", "--batch", "9"}, {"--batch is 9", "the nearest"}},
      {{"train", "--dp", "8"}, {"engine/api/python/examples/train.py has its --tp, --dp"}},
      {{"simulate", "all_reduce", "--batch", "x"}, {"--batch is 'x'", "leave out all others"}},
      {{"simulate", "--batch", "x", "--ranks", "4"}, {"--batch is 'x'", "leave out all others"}},
      {{"simulate", "--batch", "x", "--network", "torus"},
       {"--batch is 'x'", "leave out all others"}},
      {{"topo", "--synthetic", "nonsense"}, {"--synthetic", "\"nonsense\"", "pack:2"}},
      {{"topo", "--synthetic", "pu:4", "--placement", "0,9"}, {"--placement", "CPU 9", "0-3"}},
  };
  for (const Misuse& misuse : cases) {
    std::string command = "rankine";
    for (const std::string& argument : misuse.arguments) command += " '" + argument + "'";
    SCOPED_TRACE(command);
    const Captured captured = run_captured(misuse.arguments);
    EXPECT_EQ(captured.exit, 2);
    EXPECT_THAT(captured.out, IsEmpty());
    EXPECT_THAT(captured.err, AllOf(HasSubstr("rankine"), EndsWith("\n")));
    for (const std::string& part : misuse.says) EXPECT_THAT(captured.err, HasSubstr(part));
  }
}

TEST(Tool, HelpsAndSaysItsVersion) {
  EXPECT_THAT(run_captured({"--version"}).out, StartsWith("rankine 0."));
  for (const char* name : {"list", "verify", "show", "perf", "topo"}) {
    EXPECT_THAT(run_captured({"--help"}).out, HasSubstr(name));
    const Captured help = run_captured({name, "--help"});
    EXPECT_EQ(help.exit, 0);
    EXPECT_THAT(help.out, HasSubstr("Examples:\n  rankine " + std::string(name)));
    EXPECT_THAT(help.out, HasSubstr("--json"));
    EXPECT_THAT(help.err, IsEmpty());
  }
}

TEST(Tool, HelpsWhoeverAsksWhateverElseIsWrong) {
  const std::string help = run_captured({"show", "--help"}).out;
  ASSERT_THAT(help, StartsWith("draw an algorithm"));
  for (const std::vector<std::string>& asked :
       std::vector<std::vector<std::string>>{{"help", "show"},
                                             {"show", "nothing", "--help"},
                                             {"show", "--help", "--ranks", "x"},
                                             {"show", "all_reduce", "--json", "--text", "-h"},
                                             {"show", "--jsn", "-h"}}) {
    const Captured run = run_captured(asked);
    EXPECT_EQ(run.exit, 0) << asked.back();
    EXPECT_EQ(run.out, help) << run.err;
  }
  EXPECT_EQ(run_captured({"help"}).out, run_captured({"--help"}).out);
}

TEST(Tool, HelpSaysWhatThereIs) {
  for (const std::string& name : subcommand_names(&laboratory())) {
    const std::string help = run_captured({name, "--help"}).out;
    if (help.find("--ranks ") != std::string::npos) {
      EXPECT_THAT(help, HasSubstr("  -t,--ranks ")) << name;
    }
    // Subcommands for one algorithm say so.
    if (help.find("a name of the catalogue") != std::string::npos) {
      EXPECT_THAT(help, HasSubstr("--algo NAME")) << name;
    }
    EXPECT_EQ(help.find("--search") != std::string::npos, name == "plan") << name;
  }
}

// The product's table of them is what rankine-lab registers.
TEST(Laboratory, HasTheSubcommandsThatTheProductNames) {
  std::vector<std::string> names;
  for (const LaboratoryCommand& known : laboratory_commands()) names.emplace_back(known.name);
  std::vector<std::string> all = subcommand_names(&laboratory());
  const std::vector<std::string> product = subcommand_names();
  ASSERT_EQ(all.size(), product.size() + names.size());
  EXPECT_TRUE(std::equal(product.begin(), product.end(), all.begin()));
  EXPECT_TRUE(std::equal(names.rbegin(), names.rend(), all.rbegin()));

  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  EXPECT_EQ(run_tool({"--help"}, console), Exit::ok);
  EXPECT_EQ(out.str(), run_captured({"--help"}).out);
  EXPECT_THAT(out.str(), HasSubstr("\nLaboratory:\n  map "));
}

TEST(Laboratory, IsStartedByTheProduct) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"cost", "all_gather", "--algo", "ring", "--ranks", "4"},
        {"help", "gaps"},
        {"plan", "--help"},
        {"manual", "step"},
        {"check", "--task", "ring_bytes"},
        {"check", "--tasks", "--json"}}) {
    ToolProcess tool(words);
    tool.close_in();
    const Captured there = run_captured(words);
    EXPECT_EQ(tool.rest(), there.out) << words[0];
    EXPECT_EQ(tool.err(), there.err) << words[0];
    EXPECT_EQ(tool.wait(), there.exit) << words[0];
  }
  ToolProcess order({"check", "-"});
  ASSERT_TRUE(order.ask("pipeline 1 micro_batches 1\n0: F0 B0\n"));
  order.close_in();
  EXPECT_THAT(order.rest(), HasSubstr("gpipe"));
  EXPECT_EQ(order.wait(), 0);
}

TEST(Laboratory, IsMissedWithTheCommandThatBuildsIt) {
  const std::string folder = testing::TempDir() + "/alone";
  const std::string shell = "mkdir -p '" + folder + "' && cp -L engine/cli/rankine '" + folder +
                            "' && PATH=/usr/bin:/bin '" + folder + "/rankine' claims 2>&1";
  FILE* pipe = popen(shell.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string said;
  for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  EXPECT_EQ(WEXITSTATUS(pclose(pipe)), 2);
  EXPECT_THAT(said, HasSubstr("third_party/bazel build //engine/lab:rankine-lab"));
}

TEST(List, HasEveryLineWithEveryField) {
  const Captured captured = run_captured({"list", "--json"});
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const json lines = json::parse(captured.out);
  ASSERT_EQ(lines.size(), catalogue().size());
  for (const json& line : lines) {
    for (const char* key : {"collective", "name", "allowed_when", "needs", "rounds", "sent",
                            "received", "send_ports", "receive_ports", "summary", "citation"}) {
      EXPECT_TRUE(line.at(key).is_string()) << key;
    }
    EXPECT_TRUE(line.at("parameters").is_array());
    EXPECT_FALSE(line.contains("at"));
  }
  const std::string table = run_captured({"list"}).out;
  for (const Algorithm& entry : catalogue()) EXPECT_THAT(table, HasSubstr(std::string(entry.name)));
}

TEST(List, ComputesFormulas) {
  const json lines = json::parse(run_captured({"list", "AllReduce", "--ranks", "8", "--json"}).out);
  for (const json& line : lines) {
    EXPECT_EQ(line.at("collective"), "all_reduce");
    if (line.at("name") != "ring") continue;
    EXPECT_EQ(line.at("at").at("rounds"), "14");
    EXPECT_EQ(line.at("at").at("sent"), "7/4");
  }
  EXPECT_THAT(run_captured({"list", "all_reduce", "--ranks", "8"}).out, HasSubstr("14"));
}

TEST(Verify, ProvesAndCounts) {
  const Captured captured = run_captured({"verify", "--ranks", "1..9", "--algo", "ring", "--json"});
  ASSERT_EQ(captured.exit, 0) << captured.out;
  const json report = json::parse(captured.out);
  EXPECT_EQ(report.at("ranks"), "1-9");
  EXPECT_GT(report.at("cases"), 0);
  EXPECT_EQ(report.at("proved"), report.at("cases"));
  EXPECT_EQ(report.at("failed"), 0);
  EXPECT_GE(report.at("seconds"), 0);
  EXPECT_TRUE(report.at("failures").empty());
  EXPECT_TRUE(report.at("left_out").empty());
  std::size_t cases = 0;
  for (const json& one : report.at("collectives")) {
    EXPECT_EQ(one.at("algorithms"), json({"ring"}));
    cases += one.at("cases").get<std::size_t>();
  }
  EXPECT_EQ(report.at("cases"), cases);
}

TEST(Verify, TakesListsOfRanksRootsAndSegments) {
  const auto cases = [](const std::vector<std::string>& more) {
    std::vector<std::string> arguments = {"verify", "--collective", "broadcast", "--algo",
                                          "chain",  "--ranks",      "12,16",     "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json::parse(run_captured(arguments).out).at("cases").get<int>();
  };
  EXPECT_EQ(cases({"--roots", "all", "--segments", "1"}), 12 + 16);
  EXPECT_EQ(cases({"--roots", "all", "--segments", "1,2,3,7"}), 4 * (12 + 16));
  EXPECT_EQ(cases({"--roots", "0", "--segments", "1"}), 3 + 3);
  EXPECT_THAT(run_captured({"verify", "--ranks", "4"}).out, HasSubstr("cases proved, N = 4, in "));
}

TEST(Verify, SaysWhatIsTooLarge) {
  const Captured captured =
      run_captured({"verify", "--collective", "all_to_all", "--algo", "ring", "--ranks", "16384"});
  EXPECT_EQ(captured.exit, 3);
  EXPECT_THAT(captured.err, AllOf(HasSubstr("--ranks is 16384"), HasSubstr("too_large")));
}

TEST(Show, DrawsAllRoundsOrOne) {
  const std::vector<std::string> ring = {"show", "all_gather", "--algo", "ring", "--ranks", "4"};
  const Captured all = run_captured(ring);
  ASSERT_EQ(all.exit, 0) << all.err;
  EXPECT_THAT(all.out, AllOf(HasSubstr("round 0"), HasSubstr("round 1"), HasSubstr("round 2")));
  for (int k = 0; k < 3; ++k) {
    std::vector<std::string> one = ring;
    one.insert(one.end(), {"--round", std::to_string(k)});
    const Captured captured = run_captured(one);
    EXPECT_EQ(captured.exit, 0);
    for (int other = 0; other < 3; ++other) {
      const std::string title = "  round " + std::to_string(other) + "   ";
      EXPECT_EQ(captured.out.find(title) != std::string::npos, other == k) << captured.out;
    }
    EXPECT_THAT(captured.out, HasSubstr("round " + std::to_string(k) + " of 3"));
    EXPECT_THAT(captured.out, Not(HasSubstr("\x01")));
  }
}

TEST(Show, GivesTransfersAndHoldings) {
  const Captured captured =
      run_captured({"show", "all_reduce", "--algo", "ring", "--ranks", "3", "--json"});
  const json report = json::parse(captured.out);
  EXPECT_EQ(report.at("algorithm"), "ring");
  EXPECT_EQ(report.at("rounds"), 4);
  const json& views = report.at("views");
  ASSERT_EQ(views.size(), 5U);  // the initial state, then every round
  EXPECT_EQ(views[0].at("round"), -1);
  for (std::size_t v = 1; v < views.size(); ++v) {
    EXPECT_EQ(views[v].at("round"), v - 1);
    ASSERT_EQ(views[v].at("transfers").size(), 3U);
    for (const json& transfer : views[v].at("transfers")) {
      for (const char* key : {"from", "to", "what", "where"}) {
        EXPECT_TRUE(transfer.at(key).is_array());
      }
      EXPECT_EQ(transfer.at("act"), v <= 2 ? "reduce" : "copy");
    }
    ASSERT_EQ(views[v].at("holdings").size(), 3U);
  }
  for (const json& rank : views.back().at("holdings")) {
    for (const json& place : rank.at("places")) EXPECT_TRUE(place.at("complete").get<bool>());
  }
}

TEST(Topo, DrawsAMachineThatNeedNotExist) {
  const Captured captured = run_captured({"topo", "--synthetic", "pack:2 [numa] l3:1 core:2 pu:2",
                                          "--ranks", "5", "--placement", "scatter"});
  ASSERT_EQ(captured.exit, 0) << captured.err;
  EXPECT_THAT(captured.out, AllOf(HasSubstr("2 packages"), HasSubstr("package 1"),
                                  HasSubstr("node 1"), HasSubstr("rank 4")));
  const json report = json::parse(
      run_captured({"topo", "--synthetic", "pack:2 [numa] core:2 pu:2", "--ranks", "9", "--json"})
          .out);
  EXPECT_EQ(report.at("topology").at("packages"), 2);
  EXPECT_EQ(report.at("cpus").size(), 8U);
  EXPECT_EQ(report.at("ranks").size(), 9U);
  EXPECT_TRUE(report.at("oversubscribed").get<bool>());
  EXPECT_EQ(report.at("cpus")[0].at("ranks"), json({0, 8}));
  EXPECT_FALSE(report.contains("communicator"));
}

}  // namespace

// Completion and manual pages have every subcommand and every option of --help.

namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// The options in the lines of --help that begin with options: "-b,--minbytes SIZE   smallest size".
std::vector<std::string> options_of(const std::string& command) {
  std::vector<std::string> arguments = {"--help"};
  if (!command.empty()) arguments.insert(arguments.begin(), command);
  std::istringstream lines(run_captured(arguments).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream first(line.substr(2, line.find(' ', 2) - 2));
    for (std::string name; std::getline(first, name, ',');) names.push_back(name);
  }
  EXPECT_FALSE(names.empty()) << command;
  return names;
}

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '-' ? "\\-" : std::string(1, c);
  return text;
}

std::string line_with(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(Completion, HasWhatTheHelpShows) {
  const std::string bash = run_captured({"completion", "bash"}).out;
  const std::string fish = run_captured({"completion", "fish"}).out;
  const std::string first = line_with(bash, "    words='list");
  for (const std::string& option : options_of("")) EXPECT_THAT(first, HasSubstr(" " + option));
  for (const std::string& command : subcommand_names(&laboratory())) {
    EXPECT_THAT(first + " ", testing::ContainsRegex("[' ]" + command + " "));
    EXPECT_THAT(fish, HasSubstr("__fish_use_subcommand -f -a " + command + " -d '"));
    const std::string words = line_with(bash, "      " + command + ":*:-*) words='");
    for (const std::string& option : options_of(command)) {
      EXPECT_THAT(words, testing::ContainsRegex("[' ]" + option + "[' ]")) << command;
      const std::string name = option.starts_with("--") ? " -l " + option.substr(2) + " "
                                                        : " -s " + option.substr(1) + " ";
      EXPECT_THAT(fish, HasSubstr(name)) << command;
    }
  }
  EXPECT_THAT(line_with(bash, "      perf:--algo:*)"), HasSubstr(" ring "));
  EXPECT_THAT(line_with(bash, "      perf:*)"), HasSubstr(" all_reduce "));
}

TEST(Completion, OfZshIsBashsForItsOwnFile) {
  const std::string zsh = run_captured({"completion", "zsh"}).out;
  EXPECT_THAT(zsh, StartsWith("#compdef rankine\n"));
  EXPECT_THAT(zsh, testing::EndsWith(run_captured({"completion", "bash"}).out));
}

TEST(Completion, NamesTheShellsThatThereAre) {
  const Captured refused = run_captured({"completion", "bsh"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("shell is 'bsh'; allowed are bash, zsh, fish"));
  EXPECT_EQ(run_captured({"completion"}).exit, 2);
}

TEST(Manual, HasWhatTheHelpShows) {
  for (const std::string& command : subcommand_names(&laboratory())) {
    const Captured page = run_captured({"manual", command});
    EXPECT_EQ(page.exit, 0);
    EXPECT_THAT(page.err, IsEmpty());
    EXPECT_THAT(page.out, StartsWith(".TH RANKINE\\-"));
    for (const std::string& option : options_of(command)) {
      EXPECT_THAT(page.out, HasSubstr("\\fB" + escaped(option) + "\\fR")) << command;
    }
    EXPECT_THAT(run_captured({"manual"}).out, HasSubstr("\\fBrankine\\-" + command + "\\fR(1)\n"));
  }
}

// Text in a line that begins with a dot would be lost, unless the line is one of these macros.
TEST(Manual, HasNoMacrosButItsOwn) {
  std::vector<std::string> commands = subcommand_names(&laboratory());
  commands.push_back("");
  const std::set<std::string> known = {".TH", ".SH", ".TP", ".nf", ".fi"};
  for (const std::string& command : commands) {
    std::vector<std::string> arguments = {"manual"};
    if (!command.empty()) arguments.push_back(command);
    std::istringstream lines(run_captured(arguments).out);
    int sections = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
      if (!line.starts_with('.')) continue;
      EXPECT_TRUE(known.contains(line.substr(0, line.find(' ')))) << line;
      if (line.starts_with(".SH")) ++sections;
    }
    EXPECT_GE(sections, 4) << command;
  }
}

TEST(Manual, NamesTheSubcommandsThatThereAre) {
  const Captured refused = run_captured({"manual", "pref"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("did you mean 'perf'?"));
}

}  // namespace

// A new parameter needs one edit, its row. All subcommands take the parameter from the row, and
// algorithms that do not take it refuse it everywhere.

namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 8;

// A value that differs from the default of Params, for kRanks ranks.
std::string some_text(const Parameter& row) {
  if (row.name == "ranks") return std::to_string(kRanks);
  if (row.number != nullptr) return "2";
  return row.text(resolved({.ranks = kRanks}));
}

Params some_params(const Parameter& row) {
  Params params{.ranks = kRanks};
  EXPECT_TRUE(row.read(some_text(row), params)) << row.name;
  EXPECT_EQ(row.text(params), some_text(row));
  EXPECT_TRUE(row.name == "ranks" || !row.open(params)) << row.name;
  return params;
}

// An algorithm that takes the parameter, or one that does not. It uses messages only, so every
// network can run it.
const Algorithm& some_algorithm(const Parameter& row, bool takes) {
  for (const Algorithm& entry : catalogue()) {
    if (entry.takes(row.name) != takes || entry.name == "switch" ||
        entry.name == "binomial_multicast") {
      continue;
    }
    if (!takes || !entry.refusal(some_params(row))) return entry;
  }
  throw std::logic_error("no algorithm for " + std::string(row.name));
}

std::vector<std::string> command(const std::string& subcommand, const Algorithm& entry,
                                 const Parameter& row) {
  std::vector<std::string> out = {subcommand, std::string(name_of(entry.collective)),
                                  "--algo",   std::string(entry.name),
                                  "--ranks",  std::to_string(kRanks)};
  if (row.name == "ranks") return out;
  out.insert(out.end(), {"--" + std::string(row.name), some_text(row)});
  return out;
}

Json value_of(const Parameter& row) {
  const Params params = some_params(row);
  if (row.number != nullptr) return params.*row.number;
  if (row.kind == Parameter::Kind::torus) return row.text(params);
  return params.*row.list;
}

std::string request(const Algorithm& entry, const Parameter& row, const Json& value) {
  Json asked = {{"collective", name_of(entry.collective)},
                {"algorithm", entry.name},
                {"ranks", kRanks},
                {"bytes", 4096}};
  (row.in_request ? asked : asked["params"])[std::string(row.name)] = value;
  return asked.dump();
}

const std::vector<Parameter>& rows() {
  static const std::vector<Parameter> all(parameters().begin(), parameters().end());
  return all;
}

TEST(Parameters, AreFlagsOfEverySubcommandThatAsksAQuestion) {
  for (const char* subcommand : {"perf", "run", "show", "simulate", "cost", "verify"}) {
    const Captured help = run_captured({subcommand, "--help"});
    for (const Parameter& row : rows()) {
      EXPECT_THAT(help.out, HasSubstr("--" + std::string(row.name) + " ")) << subcommand;
    }
    EXPECT_THAT(help.out, AllOf(HasSubstr("collective NAME"), HasSubstr("--algo ")));
  }
}

TEST(Parameters, AreReadAndPrintedInJson) {
  for (const Parameter& row : rows()) {
    SCOPED_TRACE(row.name);
    const Algorithm& entry = some_algorithm(row, true);
    const std::string name(row.name);
    const BatchAnswer taken = answer_request(request(entry, row, value_of(row)), 1);
    EXPECT_TRUE(taken.ok) << taken.line;
    const BatchAnswer wrong = answer_request(request(entry, row, -7), 1);
    EXPECT_FALSE(wrong.ok);
    EXPECT_THAT(wrong.line, AllOf(HasSubstr(name + " is -7; allowed are ")));
    for (const char* subcommand : {"simulate", "cost", "show"}) {
      std::vector<std::string> arguments = command(subcommand, entry, row);
      arguments.emplace_back("--json");
      const Captured run = run_captured(arguments);
      ASSERT_EQ(run.exit, 0) << run.err;
      const Json asked = Json::parse(run.out);
      const Json& place =
          row.in_request || subcommand != std::string("simulate") ? asked : asked.at("params");
      EXPECT_EQ(place.at(name), value_of(row)) << subcommand;
    }
  }
}

TEST(Parameters, HaveLettersThatFormulasKnow) {
  for (const Parameter& row : rows()) {
    if (row.letter.empty()) continue;
    EXPECT_NO_THROW(evaluate(row.letter, some_params(row))) << row.name;
    if (row.number == nullptr) continue;
    EXPECT_EQ(evaluate(row.letter, some_params(row)), Rational(row.count(some_params(row))));
  }
}

TEST(Parameters, AreOptionsOfTheRunsOfClaims) {
  for (const Parameter& row : rows()) {
    if (row.name == "ranks") continue;
    const auto rounds = [&row](const Algorithm& entry) {
      claims::Runs runs;
      const std::string text =
          std::string(name_of(entry.collective)) + " " + std::string(entry.name) +
          "; ranks=8; bytes=4096; alpha=1; beta=1; " + std::string(row.name) + "=" + some_text(row);
      return runs.quantity(claims::read_runs(text, ""), {}, "rounds");
    };
    EXPECT_TRUE(rounds(some_algorithm(row, true)).has_value()) << row.name;
    EXPECT_THROW(rounds(some_algorithm(row, false)), std::logic_error) << row.name;
  }
}

TEST(Parameters, AreTriedBySweeps) {
  for (const Parameter& row : rows()) {
    const Algorithm& entry = some_algorithm(row, true);
    SweepOptions options;
    options.collective = entry.collective;
    options.algorithm = entry.name;
    options.ranks_from = options.ranks_to = kRanks;
    const std::vector<SweepResult> cases = sweep_cases(options);
    const bool tried = std::any_of(cases.begin(), cases.end(), [&row](const SweepResult& one) {
      return row.name == "ranks" || !row.open(one.params);
    });
    EXPECT_TRUE(tried) << row.name;
  }
}

TEST(Parameters, AreRefusedByAlgorithmsThatDoNotTakeThem) {
  for (const Parameter& row : rows()) {
    if (row.name == "ranks") continue;
    SCOPED_TRACE(row.name);
    const Algorithm& entry = some_algorithm(row, false);
    const std::string who = std::string(name_of(entry.collective)) + " '" + std::string(entry.name);
    const std::string what = std::string(row.name) + " is " + some_text(row);
    for (const char* subcommand : {"simulate", "cost", "show", "run", "perf"}) {
      const Captured run = run_captured(command(subcommand, entry, row));
      EXPECT_EQ(run.exit, 2) << subcommand;
      if (subcommand == std::string("perf") && row.name == "root") continue;  // another error text
      EXPECT_THAT(run.err, AllOf(HasSubstr(who), HasSubstr(what), HasSubstr("it takes ")));
    }
    EXPECT_EQ(run_captured(command("verify", entry, row)).exit, 2);
    const BatchAnswer answer = answer_request(request(entry, row, value_of(row)), 1);
    EXPECT_FALSE(answer.ok);
    EXPECT_THAT(answer.line, AllOf(HasSubstr(who), HasSubstr(what), HasSubstr("it takes ")));
  }
}

TEST(Parameters, AreOptionsOfCalls) {
  auto team = Team::create({.ranks = 2});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (const Parameter& row : rows()) {
    if (row.name == "ranks" || row.name == "root" || row.name == "peer") continue;
    const auto has_name = [&row](const CallParameter& option) { return option.name == row.name; };
    ASSERT_TRUE(std::any_of(std::begin(kCallParameters), std::end(kCallParameters), has_name));
    const Params params = some_params(row);
    const Status status = (*team)->run([&](Member& me) {
      std::vector<float> x(16, 1.0F);
      Call call{.in = x.data(), .out = x.data(), .count = x.size()};
      set_parameters(params, call.options);
      call.options.algorithm = "ring";
      const Status refused = me.call(call);
      EXPECT_EQ(refused.code(), Code::invalid_argument);
      EXPECT_THAT(std::string(refused.text()),
                  AllOf(HasSubstr("all_reduce 'ring'"), HasSubstr(std::string(row.name) + " is ")));
      EXPECT_EQ(x, std::vector<float>(16, 1.0F));
      call.options.algorithm = {};  // the engine's choice takes it or not
      me.call(call).throw_if_error();
      EXPECT_EQ(x, std::vector<float>(16, 2.0F));
    });
    EXPECT_TRUE(status.ok()) << row.name << ": " << status.text();
  }
}

TEST(Parameters, OfSomeOfSeveralLeaveTheOthersOut) {
  for (const char* algorithms : {"all", "ring,chain"}) {
    const Captured run = run_captured(
        {"simulate", "all_reduce", "--algo", algorithms, "--ranks", "4", "--segments", "3"});
    EXPECT_EQ(run.exit, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("left out: all_reduce 'ring': segments is 3"));
    EXPECT_THAT(run.out, AllOf(testing::ContainsRegex("\n([*] |  )?chain "),
                               testing::Not(testing::ContainsRegex("\n([*] |  )?ring "))));
  }
  // With auto the reader chooses the number, so no algorithm is left out.
  const Captured automatic = run_captured(
      {"simulate", "all_reduce", "--algo", "ring,chain", "--ranks", "4", "--segments", "auto"});
  EXPECT_EQ(automatic.err, "");
  // A torus's sizes are the network's, too.
  EXPECT_EQ(run_captured({"simulate", "all_reduce", "--algo", "ring", "--ranks", "8", "--network",
                          "torus", "--dims", "2x4"})
                .exit,
            0);
}

}  // namespace
}  // namespace rankine::tools
