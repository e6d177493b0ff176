// Tests of the command line: parsers, help, the laboratory, list, verify, show, completion, manual
// pages and parameters.

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/cli/arguments.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/papers/runs.h"
#include "engine/read/sweep.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;
using List = std::vector<int>;

TEST(Parsers, StayWithinTheirEnds) {
  EXPECT_EQ(*parse_whole("--ranks", "1", 1, 1024), 1);
  EXPECT_EQ(*parse_whole("--ranks", "1024", 1, 1024), 1024);
  EXPECT_EQ(*parse_whole("--x", "-3", -5, 5), -3);
  for (const char* text : {"0", "1025", "-1", "x", "", "1.5", "2x", "99999999999999999999"}) {
    EXPECT_TRUE(has(parse_whole("--n", text, 1, 1024).status().text(), text)) << text;
  }
  EXPECT_EQ(*parse_whole_list("--ranks", "3", 1, 130), List{3});
  EXPECT_EQ(*parse_whole_list("--ranks", "8,2,2..4", 1, 130), (List{2, 3, 4, 8}));
  EXPECT_EQ(parse_whole_list("--ranks", "1..130", 1, 130)->size(), 130U);
  for (const char* text : {"", "0", "4..2", "1..", "..3", "1,,2", "1-3", "131", "a..b"}) {
    EXPECT_TRUE(has(parse_whole_list("--n", text, 1, 130).status().text(), "1 to 130")) << text;
  }
}

TEST(Errors, AreLegibleWhateverTheyQuote) {
  const std::string_view names[] = {"ring"};
  EXPECT_TRUE(has(unknown_name("it", "rnig", names).text(), "it is 'rnig'"));
  EXPECT_TRUE(has(unknown_name("it", "rnig", names).text(), "'ring'?"));
  EXPECT_FALSE(has(unknown_name("it", "tree9", names).text(), "?"));
  EXPECT_TRUE(has(unknown_name("it", "a\x1b[2J\n\x7f", names).text(), "'a?[2J?\?'"));
  EXPECT_TRUE(has(unknown_name("it", std::string(1'000'000, 'y'), names).text(),
                  "'" + std::string(80, 'y') + " ...'"));
  EXPECT_TRUE(has(unknown_name("it", "Müller", names).text(), "'Müller'"));
  EXPECT_LT(parse_whole("n", std::string(1000, '9'), 1, 2).status().text().size(), 200U);
  EXPECT_LT(parse_whole_list("n", std::string(1000, '9'), 1, 2).status().text().size(), 400U);
}

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
  const std::string tree = output_of("show all_reduce --algo double_tree --ranks 4");
  for (const std::string typed : {"Tree", "tree", "DoubleTree", "double-tree"}) {
    EXPECT_EQ(output_of("show AllReduce --algo " + typed + " --ranks 4"), tree) << typed;
  }
  // Several algorithms are in the catalogue's order, and each occurs once. Without a collective,
  // all collectives with the name count.
  const auto some =
      read_algorithms("--algo", "tree,Ring,double_tree", Collective::all_reduce).value();
  EXPECT_EQ(some, (std::vector{find_algorithm(Collective::all_reduce, "ring"),
                               find_algorithm(Collective::all_reduce, "double_tree")}));
  const auto everywhere = read_algorithms("--algo", "NVLS", std::nullopt).value();
  EXPECT_GT(everywhere.size(), 2u);
  for (const Algorithm* entry : everywhere) EXPECT_EQ(entry->name, "switch");
  // The target of an alias may be missing in a collective.
  EXPECT_FALSE(read_algorithms("--algo", "tree", Collective::all_gather).ok());
}

TEST(Tool, HelpsWhateverElseIsWrong) {
  EXPECT_TRUE(output_of("--version").starts_with("rankine 0."));
  EXPECT_EQ(output_of("help"), output_of("--help"));
  const std::string help = output_of("show --help");
  for (const char* asked : {"help show", "show nothing --help", "show --help --ranks x",
                            "show all_reduce --json --text -h", "show --jsn -h"}) {
    EXPECT_EQ(output_of(asked), help) << asked;
  }
  for (const std::string& name : subcommand_names(&laboratory())) {
    const std::string text = output_of(name + " --help");
    EXPECT_TRUE(has(output_of("--help"), "  " + name + " ")) << name;
    EXPECT_TRUE(!has(text, "--ranks ") || has(text, "  -t,--ranks ")) << name;
    // Subcommands for one algorithm say so.
    EXPECT_TRUE(!has(text, "a name of the catalogue") || has(text, "--algo NAME")) << name;
  }
}

// The product's table of them is what rankine-lab registers.
TEST(Laboratory, HasTheSubcommandsThatTheProductNames) {
  std::vector<std::string> names = subcommand_names();
  for (const LaboratoryCommand& known : laboratory_commands()) names.emplace_back(known.name);
  EXPECT_EQ(subcommand_names(&laboratory()), names);
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  EXPECT_EQ(run_tool({"--help"}, console), Exit::ok);
  EXPECT_EQ(out.str(), output_of("--help"));
}

TEST(Laboratory, IsStartedByTheProduct) {
  for (const char* line : {"cost all_gather --algo ring --ranks 4", "help gaps", "plan --help",
                           "manual step", "check --task ring_bytes", "check --tasks --json"}) {
    ToolProcess tool(words_of(line));
    tool.close_in();
    const Captured there = run_line(line);
    EXPECT_EQ(tool.rest(), there.out) << line;
    EXPECT_EQ(tool.err(), there.err) << line;
    EXPECT_EQ(tool.wait(), there.exit) << line;
  }
  ToolProcess order({"check", "-"});
  ASSERT_TRUE(order.ask("pipeline 1 micro_batches 1\n0: F0 B0\n"));
  order.close_in();
  EXPECT_TRUE(has(order.rest(), "gpipe"));
  EXPECT_EQ(order.wait(), 0);
}

TEST(Laboratory, IsMissedWithTheCommandThatBuildsIt) {
  const std::string alone = new_folder() + "/rankine";
  const Shell said =
      run_shell("cp -L engine/cli/rankine " + alone + "; PATH=/usr/bin:/bin " + alone + " claims");
  EXPECT_EQ(said.exit, 2);
  EXPECT_TRUE(has(said.text, "third_party/bazel build //engine/lab:rankine-lab")) << said.text;
}

TEST(List, HasEveryLineWithEveryField) {
  const Json lines = json_of("list --json");
  ASSERT_EQ(lines.size(), catalogue().size());
  for (const Json& line : lines) {
    for (const char* key : {"collective", "name", "allowed_when", "needs", "rounds", "sent",
                            "received", "send_ports", "receive_ports", "summary", "citation"}) {
      EXPECT_TRUE(line.at(key).is_string()) << key;
    }
    EXPECT_TRUE(line.at("parameters").is_array());
    EXPECT_FALSE(line.contains("at"));
  }
  for (const Json& line : json_of("list AllReduce --ranks 8 --json")) {
    EXPECT_EQ(line.at("collective"), "all_reduce");
    if (line.at("name") != "ring") continue;
    EXPECT_EQ(line.at("at").at("rounds"), "14");
    EXPECT_EQ(line.at("at").at("sent"), "7/4");
  }
}

TEST(Verify, CasesAreThoseOfTheCollectives) {
  const Json report = json_of("verify --ranks 1..9 --algo ring --json");
  std::size_t cases = 0;
  for (const Json& one : report.at("collectives")) cases += one.at("cases").get<std::size_t>();
  EXPECT_GT(cases, 0U);
  EXPECT_EQ(report.at("cases"), cases);
  EXPECT_EQ(report.at("proved"), cases);
}

TEST(Show, DrawsOneRoundWhereOneIsAsked) {
  for (int k = 0; k < 3; ++k) {
    const std::string drawn =
        output_of("show all_gather --algo ring --ranks 4 --round " + std::to_string(k));
    for (int other = 0; other < 3; ++other) {
      EXPECT_EQ(has(drawn, "  round " + std::to_string(other) + "   "), other == k) << drawn;
    }
    EXPECT_FALSE(has(drawn, "\x01"));
  }
}

// The options in the lines of --help that begin with options: "-b,--minbytes SIZE   smallest size".
std::vector<std::string> options_of(const std::string& command) {
  std::vector<std::string> names;
  for (const std::string& line : lines_of(output_of(command + " --help"))) {
    if (!line.starts_with("  -")) continue;
    std::istringstream first(line.substr(2, line.find(' ', 2) - 2));
    for (std::string name; std::getline(first, name, ',');) names.push_back(name);
  }
  EXPECT_FALSE(names.empty()) << command;
  return names;
}

// The words that complete the last one of a line.
std::string words_after(const std::string& line) {
  std::string words = " ";
  for (const std::string& each : lines_of(output_of("completion words " + line))) {
    words += each.substr(0, each.find('\t')) + " ";
  }
  return words;
}

// Catches a subcommand or option without completion, and values offered for another option.
TEST(Completion, HasWhatTheHelpShows) {
  const std::string first = words_after("ver");
  for (const std::string& option : options_of("")) EXPECT_TRUE(has(first, " " + option + " "));
  for (const std::string& command : subcommand_names(&laboratory())) {
    EXPECT_TRUE(has(first, " " + command + " ")) << command;
    const std::string words = words_after(command + " -");
    for (const std::string& option : options_of(command)) {
      EXPECT_TRUE(has(words, " " + option + " ")) << command << " " << option;
    }
  }
  EXPECT_TRUE(has(words_after("perf --algo r"), " ring "));
  EXPECT_TRUE(has(words_after("perf a"), " all_reduce "));
  EXPECT_EQ(words_after("list --ranks 4"), " ");
  EXPECT_EQ(words_after("perf --json -"), " ");
}

// Catches a script that calls another command or keeps the help beside the words.
TEST(Completion, BashAsksTheTool) {
  const std::string script = output_of("completion bash") +
                             "COMP_WORDS=(engine/cli/rankine perf --minb) COMP_CWORD=2\n"
                             "_rankine\necho \"${COMPREPLY[*]}\"\n";
  EXPECT_EQ(run_shell("bash " + file_with("completes.bash", script)).text, "--minbytes\n");
  EXPECT_TRUE(output_of("completion zsh").ends_with(output_of("completion bash")));
  EXPECT_TRUE(output_of("completion zsh").starts_with("#compdef rankine\n"));
  EXPECT_TRUE(has(output_of("completion fish"), "rankine completion words"));
}

// Catches a macro in a text: a line that begins with a dot would be lost, unless it is one of the
// page's own macros.
TEST(Manual, HasWhatTheHelpShowsAndNoMacrosButItsOwn) {
  for (const std::string& command : subcommand_names(&laboratory())) {
    const std::string page = output_of("manual " + command);
    std::string macros;
    for (const std::string& line : lines_of(page)) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
      if (line.starts_with('.')) macros += line.substr(0, line.find(' '));
    }
    EXPECT_EQ(macros, ".TH.SH.SH.SH.nf.fi.SH") << command;
    EXPECT_TRUE(page.starts_with(".TH rankine\\-" + command + " 1 "));
    for (const std::string& option : options_of(command)) {
      std::string text;
      for (const char c : option) text += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_TRUE(has(page, text)) << command << " " << option;
    }
  }
  EXPECT_TRUE(output_of("manual").starts_with(".TH rankine 1 "));
}

// A new parameter needs one edit, its row. All subcommands take the parameter from the row, and
// algorithms that do not take it refuse it everywhere.

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

std::string question_of(const Algorithm& entry) {
  return std::string(name_of(entry.collective)) + " --algo " + std::string(entry.name) +
         " --ranks " + std::to_string(kRanks);
}

std::string flag_of(const Parameter& row) {
  return row.name == "ranks" ? "" : " --" + std::string(row.name) + " " + some_text(row);
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

class ParametersOf : public testing::TestWithParam<Parameter> {
 protected:
  const Parameter& row_ = GetParam();
  const std::string name_{row_.name};
};

TEST_P(ParametersOf, AreReadAndPrinted) {
  const Algorithm& entry = some_algorithm(row_, true);
  const BatchAnswer taken = answer_request(request(entry, row_, value_of(row_)), 1);
  EXPECT_TRUE(taken.ok) << taken.line;
  const BatchAnswer wrong = answer_request(request(entry, row_, -7), 1);
  EXPECT_FALSE(wrong.ok);
  EXPECT_TRUE(has(wrong.line, name_ + " is -7"));
  for (const std::string subcommand : {"simulate", "cost", "show"}) {
    const Json asked = json_of(subcommand + " " + question_of(entry) + flag_of(row_) + " --json");
    const Json& place = row_.in_request || subcommand != "simulate" ? asked : asked.at("params");
    EXPECT_EQ(place.at(name_), value_of(row_)) << subcommand;
  }
  for (const std::string subcommand : {"perf", "run", "show", "simulate", "cost", "verify"}) {
    EXPECT_TRUE(has(output_of(subcommand + " --help"), "--" + name_ + " ")) << subcommand;
  }
}

TEST_P(ParametersOf, HaveLettersThatFormulasKnow) {
  if (row_.letter.empty()) return;
  EXPECT_NO_THROW(evaluate(row_.letter, some_params(row_)));
  if (row_.number == nullptr) return;
  EXPECT_EQ(evaluate(row_.letter, some_params(row_)), Rational(row_.count(some_params(row_))));
}

TEST_P(ParametersOf, AreTriedBySweeps) {
  const Algorithm& entry = some_algorithm(row_, true);
  SweepOptions options;
  options.collective = entry.collective;
  options.algorithm = entry.name;
  options.ranks_from = options.ranks_to = kRanks;
  const std::vector<SweepResult> cases = sweep_cases(options);
  EXPECT_TRUE(std::any_of(cases.begin(), cases.end(), [this](const SweepResult& one) {
    return row_.name == "ranks" || !row_.open(one.params);
  }));
}

TEST_P(ParametersOf, AreRefusedByAlgorithmsThatDoNotTakeThem) {
  if (row_.name == "ranks") return;
  const Algorithm& entry = some_algorithm(row_, false);
  const std::string name = std::string(name_of(entry.collective)) + " '" + std::string(entry.name);
  const std::string value = name_ + " is " + some_text(row_);
  for (const std::string subcommand : {"simulate", "cost", "show", "run", "perf", "verify"}) {
    const Captured run = run_line(subcommand + " " + question_of(entry) + flag_of(row_));
    EXPECT_EQ(run.exit, 2) << subcommand;
    if (subcommand == "verify" || (subcommand == "perf" && row_.name == "root")) continue;
    EXPECT_TRUE(has(run.err, name) && has(run.err, value)) << run.err;
  }
  const BatchAnswer answer = answer_request(request(entry, row_, value_of(row_)), 1);
  EXPECT_FALSE(answer.ok);
  EXPECT_TRUE(has(answer.line, name) && has(answer.line, value)) << answer.line;
  // In the runs of claims, too.
  const auto rounds = [this](const Algorithm& of) {
    claims::Runs runs;
    const std::string text = std::string(name_of(of.collective)) + " " + std::string(of.name) +
                             "; ranks=8; bytes=4096; alpha=1; beta=1; " + name_ + "=" +
                             some_text(row_);
    return runs.quantity(claims::read_runs(text, ""), {}, "rounds");
  };
  EXPECT_TRUE(rounds(some_algorithm(row_, true)).has_value());
  EXPECT_THROW(rounds(entry), std::logic_error);
}

TEST_P(ParametersOf, AreOptionsOfCalls) {
  if (row_.name == "ranks" || row_.name == "root" || row_.name == "peer") return;
  EXPECT_TRUE(std::any_of(std::begin(kCallParameters), std::end(kCallParameters),
                          [this](const CallParameter& one) { return one.name == row_.name; }));
  const Params params = some_params(row_);
  auto team = Team::create({.ranks = 2}).value();
  const Status status = team->run([&](Member& me) {
    std::vector<float> x(16, 1.0F);
    Call call{.in = x.data(), .out = x.data(), .count = x.size()};
    set_parameters(params, call.options);
    call.options.algorithm = "ring";
    const Status refused = me.call(call);
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_TRUE(has(refused.text(), name_ + " is ")) << refused.text();
    EXPECT_EQ(x, std::vector<float>(16, 1.0F));
    call.options.algorithm = {};  // the engine's choice takes it or not
    me.call(call).throw_if_error();
    EXPECT_EQ(x, std::vector<float>(16, 2.0F));
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

INSTANTIATE_TEST_SUITE_P(Each, ParametersOf,
                         testing::ValuesIn(parameters().begin(), parameters().end()),
                         [](const auto& each) { return std::string(each.param.name); });

TEST(Parameters, OfSomeOfSeveralLeaveTheOthersOut) {
  for (const std::string algorithms : {"all", "ring,chain"}) {
    const std::string line =
        "simulate all_reduce --ranks 4 --segments 3 --csv --algo " + algorithms;
    EXPECT_TRUE(has(run_line(line).err, "left out: all_reduce 'ring'"));
    EXPECT_TRUE(has(output_of(line), "chain,"));
    EXPECT_FALSE(has(output_of(line), "\nring,"));
  }
  // With auto the reader chooses the number, so no algorithm is left out.
  EXPECT_EQ(run_line("simulate all_reduce --algo ring,chain --ranks 4 --segments auto").err, "");
  // A torus's sizes are the network's, too.
  EXPECT_EQ(run_line("simulate all_reduce --algo ring --network torus --dims 2x4").exit, 0);
}

}  // namespace
}  // namespace rankine::tools
