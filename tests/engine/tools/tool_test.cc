// Arguments, errors and the shape of reports: everything but measuring.
#include "engine/tools/tool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "engine/tools/arguments.h"
#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
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
  std::vector<std::string> says;  // argument, value, what is allowed
};

// Where nobody sees a line that is rewritten, there are lines, and seldom ones.
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
  // Several in the catalogue's order and each once; without a collective those of all that have it.
  const auto some = read_algorithms("--algo", "tree,Ring,double_tree", Collective::all_reduce);
  ASSERT_TRUE(some.ok()) << some.status().text();
  EXPECT_THAT(*some, testing::ElementsAre(find_algorithm(Collective::all_reduce, "ring"),
                                          find_algorithm(Collective::all_reduce, "double_tree")));
  const auto everywhere = read_algorithms("--algo", "NVLS", std::nullopt);
  ASSERT_TRUE(everywhere.ok()) << everywhere.status().text();
  EXPECT_GT(everywhere->size(), 2u);
  for (const Algorithm* line : *everywhere) EXPECT_EQ(line->name, "switch");
  // What an alias stands for need not be there.
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
      {{"list", "--short", "--json"}, {"--short has names and summaries only; --json asks for more"}},
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
      {{"perf", "all_reduce", "-f", "4", "-i", "8"},
       {"--stepfactor and --stepbytes exclude each other"}},
      {{"perf", "all_reduce", "-n", "5", "--time", "1s"}, {"--iters and --time exclude"}},
      {{"perf", "all_reduce", "--stats", "-I", "0"}, {"--stats and --per_iter_timing exclude"}},
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
      {{"verify", "broadcast", "--collective", "reduce"}, {"collective and --collective exclude"}},
      {{"faults", "--collective", "reduce", "gather"}, {"collective and --collective exclude"}},
      {{"verify", "broadcast", "--root", "5", "--ranks", "4"}, {"--ranks is 4, --root is '5': "}},
      {{"verify", "--roots", "some"}, {"--roots is 'some'", "or all"}},
      {{"verify", "--segments", "0"}, {"--segments is '0'", "from 1"}},
      {{"verify", "--algo", "bruk"}, {"--algo is 'bruk'", "did you mean 'bruck'"}},
      {{"verify", "--collective", "barrier", "--algo", "ring"}, {"--algo for barrier is 'ring'"}},
      {{"show", "all_reduce"}, {"--algo is needed", "ring"}},
      {{"show", "all_reduce", "--algo", "ring,direct_one_shot"}, {"one algorithm is allowed"}},
      {{"show", "all_reduce", "--algo", "ring", "--ranks", "129"}, {"--ranks is '129'", "1 to 128"}},
      {{"show", "all_reduce", "--algo", "ring", "--round", "6"}, {"--round is 6", "0 to 5"}},
      {{"show", "broadcast", "--algo", "chain", "--root", "4"}, {"root is 4", "0 to 3"}},
      {{"show", "all_reduce", "--algo", "ring", "--utf8", "si"}, {"--utf8 is 'si'", "never"}},
      {{"show", "all_reduce", "--algo", "ring", "--svg", ""}, {"--svg is ''", "a value, FILE"}},
      {{"show", "all_reduce", "--algo", "ring", "--svg", "-"}, {"--svg is '-'", "names of files"}},
      {{"show", "all_reduce", "--algo", "ring", "--json", "--text"}, {"--json and --text exclude"}},
      {{"show", "all_reduce", "--algo", "ring", "--svg", "x", "--json"}, {"--svg and --json excl"}},
      {{"show", "all_reduce", "--algo", "ring", "--text", "--round", "1"},
       {"--round is 1", "whole"}},
      {{"show", "all_reduce", "--algo", "ring", "--json", "--transfers"},
       {"--transfers", "--json"}},
      {{"show", "all_reduce", "--algo", "chain", "--segments", "auto"},
       {"--segments is 'auto'", "whole numbers from 1"}},
      {{"choose", "all_reduce", "--sync", "rounds"}, {"--sync is rounds", "modelled networks"}},
      {{"run", "all_reduce", "--algo", "ring", "--dilate", "5"}, {"--dilate is 5", "--clock wall"}},
      {{"faults", "--list", "--json"}, {"--list is text", "--json"}},
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
      {{"train", "--dp", "8", "--batch", "8"}, {"--batch is 8", "the nearest is 16"}},
      {{"simulate", "all_reduce", "--batch", "x"}, {"--batch is 'x'", "no other argument"}},
      {{"simulate", "--batch", "x", "--ranks", "4"}, {"--batch is 'x'", "no other argument"}},
      {{"simulate", "--batch", "x", "--network", "torus"}, {"--batch is 'x'", "no other"}},
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
  for (const std::string& name : subcommand_names()) {
    const std::string help = run_captured({name, "--help"}).out;
    if (help.find("--ranks ") != std::string::npos) {
      EXPECT_THAT(help, HasSubstr("  -t,--ranks ")) << name;
    }
    // What takes one algorithm says so.
    if (help.find("a name of the catalogue") != std::string::npos) {
      EXPECT_THAT(help, HasSubstr("--algo NAME")) << name;
    }
    EXPECT_EQ(help.find("--search") != std::string::npos, name == "plan") << name;
  }
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
  for (const Algorithm& line : catalogue()) EXPECT_THAT(table, HasSubstr(std::string(line.name)));
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
  ASSERT_EQ(views.size(), 5U);  // what is there at first, then every round
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
}  // namespace rankine::tools
