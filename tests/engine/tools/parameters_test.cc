// A new parameter is one edit, its row: whoever asks questions takes it from there, and an
// algorithm that does not take it refuses it everywhere.
#include "algorithms/parameters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/papers/runs.h"
#include "engine/read/sweep.h"
#include "engine/tools/answer.h"
#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;

constexpr int kRanks = 8;

// A value that is not the one that Params begins with, for kRanks ranks.
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

// An algorithm that takes it, or one that does not; on wires, so that every network can run it.
const Algorithm& some_algorithm(const Parameter& row, bool takes) {
  for (const Algorithm& line : catalogue()) {
    if (line.takes(row.name) != takes || line.name == "switch" ||
        line.name == "binomial_multicast") {
      continue;
    }
    if (!takes || !line.refusal(some_params(row))) return line;
  }
  throw std::logic_error("no algorithm for " + std::string(row.name));
}

std::vector<std::string> command(const std::string& subcommand, const Algorithm& line,
                                 const Parameter& row) {
  std::vector<std::string> out = {subcommand, std::string(name_of(line.collective)),
                                  "--algo",   std::string(line.name),
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

std::string request(const Algorithm& line, const Parameter& row, const Json& value) {
  Json json = {{"collective", name_of(line.collective)},
               {"algorithm", line.name},
               {"ranks", kRanks},
               {"bytes", 4096}};
  (row.in_request ? json : json["params"])[std::string(row.name)] = value;
  return json.dump();
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
    const Algorithm& line = some_algorithm(row, true);
    const std::string name(row.name);
    const BatchAnswer taken = answer_request(request(line, row, value_of(row)), 1);
    EXPECT_TRUE(taken.ok) << taken.line;
    const BatchAnswer wrong = answer_request(request(line, row, -7), 1);
    EXPECT_FALSE(wrong.ok);
    EXPECT_THAT(wrong.line, AllOf(HasSubstr(name + " is -7; allowed are ")));
    for (const char* subcommand : {"simulate", "cost", "show"}) {
      std::vector<std::string> arguments = command(subcommand, line, row);
      arguments.emplace_back("--json");
      const Captured run = run_captured(arguments);
      ASSERT_EQ(run.exit, 0) << run.err;
      const Json json = Json::parse(run.out);
      const Json& place =
          row.in_request || subcommand != std::string("simulate") ? json : json.at("params");
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
    const auto rounds = [&row](const Algorithm& line) {
      claims::Runs runs;
      const std::string text = std::string(name_of(line.collective)) + " " +
                               std::string(line.name) + "; ranks=8; bytes=4096; alpha=1; beta=1; " +
                               std::string(row.name) + "=" + some_text(row);
      return runs.quantity(claims::read_runs(text, ""), {}, "rounds");
    };
    EXPECT_TRUE(rounds(some_algorithm(row, true)).has_value()) << row.name;
    EXPECT_THROW(rounds(some_algorithm(row, false)), std::logic_error) << row.name;
  }
}

TEST(Parameters, AreTriedBySweeps) {
  for (const Parameter& row : rows()) {
    const Algorithm& line = some_algorithm(row, true);
    SweepOptions options;
    options.collective = line.collective;
    options.algorithm = line.name;
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
    const Algorithm& line = some_algorithm(row, false);
    const std::string who = std::string(name_of(line.collective)) + " '" + std::string(line.name);
    const std::string what = std::string(row.name) + " is " + some_text(row);
    for (const char* subcommand : {"simulate", "cost", "show", "run", "perf"}) {
      const Captured run = run_captured(command(subcommand, line, row));
      EXPECT_EQ(run.exit, 2) << subcommand;
      if (subcommand == std::string("perf") && row.name == "root") continue;  // see has no root
      EXPECT_THAT(run.err, AllOf(HasSubstr(who), HasSubstr(what), HasSubstr("it takes ")));
    }
    EXPECT_EQ(run_captured(command("verify", line, row)).exit, 2);
    const BatchAnswer answer = answer_request(request(line, row, value_of(row)), 1);
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
      call.options.algorithm = {};  // what the engine chooses takes it or not
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
  // How many is left to the reader, which leaves nobody out.
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
