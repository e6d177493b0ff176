// Tests of rankine page, of rankine simulate --trace, and of the answers to the page.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/cli/question.h"
#include "engine/lab/page/answers.h"
#include "tests/engine/cli/tool_fixtures.h"

// rankine page, and rankine simulate --trace.

namespace rankine::tools {
namespace {

using nlohmann::json;

std::string file_of_test(const std::string& name) { return ::testing::TempDir() + "/" + name; }
std::string text_of(const std::string& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}
std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) {
    ++count;
  }
  return count;
}

TEST(Page, AnswersAsItsEngineDoes) {
  const std::string file = file_of_test("requests.jsonl");
  const std::string asked =
      R"({"ask":"messages","question":{"collective":"all_gather","algorithm":"ring","ranks":3,"bytes":9}})";
  std::ofstream(file) << asked << "\nnonsense\n";
  const Captured captured = run_captured({"page", "--ask", file});
  EXPECT_EQ(captured.exit, 0) << captured.err;
  std::istringstream lines(captured.out);
  std::string first, second;
  ASSERT_TRUE(std::getline(lines, first) && std::getline(lines, second));
  json whole = json::parse(first);
  const PageAnswer answer = answer_page(asked);
  EXPECT_EQ(whole["numbers"].get<std::vector<double>>(), answer.numbers);
  whole.erase("numbers");
  EXPECT_EQ(whole, json::parse(answer.json));
  EXPECT_TRUE(json::parse(second).contains("error"));
}

TEST(Page, PlansAsThePlannerDoes) {
  const Captured captured = run_captured({"plan", "gpt2", "--tp", "2", "--dp", "2", "--pp", "4",
                                          "--micro-batches", "6", "--order", "gpipe", "--json"});
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const json there = json::parse(captured.out);
  const PageAnswer answer = answer_page(
      R"({"ask":"plan","model":"gpt2","tp":2,"dp":2,"pp":4,"micro_batches":6,"order":"gpipe"})");
  const json here = json::parse(answer.json);
  for (const auto& [name, value] : there.items()) {
    json mine = here[name];
    if (name == "memory") mine.erase("of");
    EXPECT_EQ(mine, value) << name;
  }
  // A forward and a backward pass of each micro-batch on each stage, without overlaps.
  constexpr std::size_t kColumns = 6;
  ASSERT_EQ(answer.numbers.size(), kColumns * 4 * 6 * 2);
  double last = 0;
  for (std::size_t i = 0; i < answer.numbers.size(); i += kColumns) {
    const double* pass = answer.numbers.data() + i;
    if (i > 0 && pass[0] == pass[-static_cast<std::ptrdiff_t>(kColumns)]) {
      EXPECT_GE(pass[4], pass[-1] - 1e-12);
    }
    last = std::max(last, pass[5]);
  }
  EXPECT_EQ(last, here["end"].get<double>());
}

TEST(Page, SaysWhatIsWrongWithAPlan) {
  const auto error = [](const std::string& members) {
    return json::parse(answer_page("{\"ask\":\"plan\"" + members + "}").json).value("error", "");
  };
  EXPECT_EQ(error(""), "");
  EXPECT_TRUE(error(R"(,"model":"gpt2","tp":5)").starts_with("tp is 5"));
  for (const auto& [members, begin] : std::vector<std::pair<const char*, const char*>>{
           {R"(,"model":"gpt3")", "model is \"gpt3\"; allowed are gpt2, "},
           {R"(,"machine":7)", "machine is 7; allowed are a100"},
           {R"(,"dp":0)", "dp is 0; allowed are whole numbers from 1 to "},
           {R"(,"dp":"x")", "dp is \"x\""},
           {R"(,"dp":4096)", "dp is 4096; the axes multiply to more than"},
           {R"(,"order":"2f2b")", "order is \"2f2b\"; allowed are gpipe, 1f1b, zb1p, zb2p, zbv"},
           {R"(,"split_norms":1)", "split_norms is 1"},
           {R"(,"zero":4)", "zero is 4"},
           {R"(,"model":"gpt_175b","pp":96,"micro_batches":4096)", "micro_batches is 4096; "}}) {
    EXPECT_TRUE(error(members).starts_with(begin)) << members << ": " << error(members);
  }
}

// The first stage is compared with the formulas, which describe that stage only.
TEST(Page, KnowsTheMemoryOfEachStage) {
  for (const char* order : {"gpipe", "1f1b", "zb1p", "zb2p", "zbv"}) {
    for (const int interleave : {1, 3}) {
      if (interleave > 1 && std::string_view(order) != "1f1b") continue;
      const json asked = {
          {"ask", "plan"},  {"model", "gpt_175b"},     {"pp", 4}, {"dp", 2}, {"micro_batches", 8},
          {"order", order}, {"interleave", interleave}};
      const json answer = json::parse(answer_page(asked.dump()).json);
      ASSERT_FALSE(answer.contains("error")) << answer;
      const json& stages = answer["stages"];
      ASSERT_EQ(stages.size(), 4U);
      for (const char* part :
           {"all", "layer_state", "embedding_state", "activations", "micro_batches_kept"}) {
        EXPECT_DOUBLE_EQ(stages[0][part], answer["memory"][part]) << order << " " << part;
      }
      EXPECT_EQ(stages[1]["embedding_state"], 0.0);
      const bool has_both_ends = std::string_view(order) == "zbv";
      EXPECT_EQ(stages[3]["embedding_state"],
                has_both_ends ? json(0.0) : stages[0]["embedding_state"]);
      const double last = stages[3]["micro_batches_kept"], before = stages[0]["micro_batches_kept"];
      EXPECT_EQ(last < before, std::string_view(order) == "1f1b") << order;
    }
  }
}

json told_by(std::vector<std::string> arguments, int exit) {
  const Captured captured = run_captured(std::move(arguments));
  EXPECT_EQ(captured.exit, exit) << captured.err;
  return json::parse(captured.out);
}

TEST(Page, JudgesAsCheckDoes) {
  const std::string file = file_of_test("mine.txt");
  for (const auto& [schedule, exit] :
       std::vector<std::pair<std::string, int>>{{"all_gather 2\nround\n0 -> 1: 0\n1 -> 0: 1\n", 0},
                                                {"all_gather 2\nround\n0 <-> 1: 0\n", 1}}) {
    std::ofstream(file) << schedule;
    const json asked = {{"ask", "check"}, {"text", schedule}};
    EXPECT_EQ(json::parse(answer_page(asked.dump()).json),
              told_by({"check", file, "--json"}, exit));
  }
  for (const auto& [formula, exit] :
       std::vector<std::pair<std::string, int>>{{"2*(N-1)/N*S", 0}, {"2*S", 1}}) {
    const json asked = {
        {"ask", "formula"}, {"task", "ring_bytes"}, {"formula", formula}, {"seed", 7}};
    EXPECT_EQ(
        json::parse(answer_page(asked.dump()).json),
        told_by({"check", "--task", "ring_bytes", "--formula", formula, "--seed", "7", "--json"},
                exit));
  }
  const json tasks = json::parse(answer_page(R"({"ask":"formula"})").json)["tasks"];
  const Captured listed = run_captured({"check", "--tasks", "--json"});
  EXPECT_EQ(tasks.size(), count_of(listed.out, "\n"));
  for (const char* wrong : {R"({"ask":"check"})", R"({"ask":"check","text":"all_gather"})",
                            R"({"ask":"formula","task":"none","formula":"1"})",
                            R"({"ask":"formula","task":"ring_bytes","formula":"2*("})",
                            R"({"ask":"formula","task":"ring_bytes","formula":"1","seed":-1})"}) {
    EXPECT_TRUE(json::parse(answer_page(wrong).json).contains("error")) << wrong;
  }
}

TEST(Page, AnswersTheBucketQuestionAsBucketsDoes) {
  const json question = {
      {"collective", "all_reduce"}, {"algorithm", "ring"}, {"ranks", 8}, {"bytes", "4M"}};
  json asked = {{"ask", "buckets"}, {"question", question}, {"backward", "20ms"}};
  const json answer = json::parse(answer_page(asked.dump()).json);
  EXPECT_EQ(answer["rows"], told_by({"buckets", "--algo", "ring", "--ranks", "8", "--tensors", "64",
                                     "--tensor", "4M", "--backward", "20ms", "--json"},
                                    0));
  const json& best = answer["rows"][answer["best"].get<std::size_t>()];
  for (const json& row : answer["rows"]) EXPECT_LE(best["exposed"], row["exposed"]);
  for (const auto& [member, value, begin] : std::vector<std::tuple<const char*, json, const char*>>{
           {"tensors", 0, "tensors is 0;"},
           {"backward", "soon", "backward is 'soon';"},
           {"question", nullptr, "the request is null"}}) {
    json wrong = asked;
    wrong[member] = value;
    const std::string error = json::parse(answer_page(wrong.dump()).json).value("error", "");
    EXPECT_TRUE(error.starts_with(begin)) << error;
  }
}

TEST(Page, SaysWhatItNeeds) {
  EXPECT_EQ(run_captured({"page"}).exit, 2);
  EXPECT_EQ(run_captured({"page", "-o", "x", "--ask", "y"}).exit, 2);
  const Captured missing = run_captured({"page", "--ask", file_of_test("not/there")});
  EXPECT_EQ(missing.exit, 3);
  EXPECT_NE(missing.err.find("--ask"), std::string::npos) << missing.err;
}

TEST(Page, IsWrittenWhereItIsBuiltIn) {
  const std::string file = file_of_test("page.html");
  const Captured captured = run_captured({"page", "-o", file});
  if (captured.exit == 0) {
    EXPECT_TRUE(text_of(file).starts_with("<!doctype html>"));
  } else {
    EXPECT_EQ(captured.exit, 3);
    EXPECT_NE(captured.err.find("third_party/page"), std::string::npos) << captured.err;
  }
}

TEST(Trace, HasEachMessageAtBothEnds) {
  const std::string file = file_of_test("trace.json");
  const Captured captured =
      run_captured({"simulate", "all_reduce", "--algo", "ring", "--ranks", "4", "--bytes", "4000",
                    "--wiring", "ring", "--alpha", "1us", "--trace", file});
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const json trace = json::parse(text_of(file));
  std::size_t sent = 0, received = 0;
  double end = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const json& of = event["args"];
    const bool sends = event["tid"].get<int>() % 2 == 0;
    (sends ? sent : received) += 1;
    EXPECT_EQ(event["pid"], sends ? of["from"] : of["to"]);
    EXPECT_EQ(of["bytes"], 1000.0);
    EXPECT_EQ(of["links"].size(), 1U);
    end = std::max(end, event["ts"].get<double>() + event["dur"].get<double>());
  }
  EXPECT_EQ(sent, 24U);
  EXPECT_EQ(received, 24U);
  const Captured told =
      run_captured({"simulate", "all_reduce", "--algo", "ring", "--ranks", "4", "--bytes", "4000",
                    "--wiring", "ring", "--alpha", "1us", "--json"});
  EXPECT_NEAR(end, json::parse(told.out)["time"].get<double>() * 1e6, 1e-9);
}

TEST(Trace, AsAPictureHasABarForEachMessage) {
  const std::string file = file_of_test("trace.svg");
  const Captured captured = run_captured(
      {"simulate", "broadcast", "--algo", "binomial_near", "--ranks", "8", "--trace", file});
  ASSERT_EQ(captured.exit, 0) << captured.err;
  const std::string picture = text_of(file);
  EXPECT_EQ(count_of(picture, "<title>"), 7U);
  EXPECT_EQ(count_of(picture, ">rank "), 8U);
}

TEST(Trace, RefusesWhatItCannotShow) {
  const auto refused = [](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"simulate", "all_reduce", "--ranks", "8", "--trace"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Captured captured = run_captured(arguments);
    EXPECT_EQ(captured.exit, 2) << captured.err;
    return captured.err;
  };
  const std::string file = file_of_test("never.json");
  EXPECT_NE(refused({"x.txt", "--algo", "ring"}).find("--trace is 'x.txt'"), std::string::npos);
  EXPECT_NE(refused({file, "--algo", "ring,direct_one_shot"}).find("one algorithm"),
            std::string::npos);
  EXPECT_NE(refused({file, "--algo", "ring", "--fidelity", "flow"}).find("--fidelity"),
            std::string::npos);
  EXPECT_NE(refused({file_of_test("x.svg"), "--algo", "ring", "--ranks", "600"}).find("too tall"),
            std::string::npos);
  EXPECT_TRUE(text_of(file).empty());
}

}  // namespace

// The answers to the page, compared with the tool's answers and with the collectives.

namespace {

using nlohmann::json;

struct Told {
  json answer;
  std::vector<double> numbers;
};
Told told(const json& request) {
  PageAnswer answer = answer_page(request.dump());
  return {json::parse(answer.json), std::move(answer.numbers)};
}

json question(const char* collective, const char* algorithm, int ranks) {
  return {
      {"collective", collective}, {"algorithm", algorithm}, {"ranks", ranks}, {"bytes", 100003}};
}

TEST(Answers, SimulateIsWhatABatchSays) {
  for (const Algorithm& entry : catalogue()) {
    const json asked = question(std::string(name_of(entry.collective)).c_str(),
                                std::string(entry.name).c_str(), 6);
    const BatchAnswer batch = answer_request(asked.dump(), 1);
    const json there = json::parse(batch.line);
    const json here = told({{"ask", "simulate"}, {"question", asked}}).answer;
    if (!batch.ok) {
      EXPECT_EQ(here["error"], there["error"]) << entry.name;
      continue;
    }
    for (const char* member : {"time", "busbw", "rounds", "messages", "sent", "sent_max"}) {
      EXPECT_EQ(here[member], there[member]) << entry.name << " " << member;
    }
  }
}

constexpr std::size_t kColumns = 11;
enum Column { round, transfer, from, to, bytes, start, end, send_port, receive_port, hops, far };

// Checks that no two messages share a port at once, and that messages add up to the bytes sent.
void expect_consistent(const json& asked) {
  const Told messages = told({{"ask", "messages"}, {"question", asked}});
  ASSERT_FALSE(messages.answer.contains("error")) << messages.answer;
  ASSERT_EQ(messages.answer["columns"].size(), kColumns);
  ASSERT_EQ(messages.numbers.size() % kColumns, 0U);
  EXPECT_EQ(messages.numbers.size() / kColumns, messages.answer["messages"].get<std::size_t>());
  std::vector<double> sent(asked["ranks"].get<std::size_t>(), 0);
  // Keys: direction, rank and port.
  std::map<std::tuple<int, double, double>, std::vector<std::pair<double, double>>> held;
  double last = 0;
  for (std::size_t i = 0; i < messages.numbers.size(); i += kColumns) {
    const double* m = messages.numbers.data() + i;
    sent[static_cast<std::size_t>(m[from])] += m[bytes];
    EXPECT_LT(m[start], m[end]);
    for (const auto& [side, rank, port] :
         {std::tuple(0, m[from], m[send_port]), std::tuple(1, m[to], m[receive_port])}) {
      EXPECT_GE(port, 0);
      EXPECT_LT(port, messages.answer["ports"].get<double>());
      held[{side, rank, port}].emplace_back(m[start], m[end]);
    }
    last = std::max(last, m[end]);
  }
  EXPECT_DOUBLE_EQ(last, messages.answer["time"].get<double>());
  EXPECT_EQ(json(sent), messages.answer["sent"].get<std::vector<double>>());
  for (auto& [port, times] : held) {
    std::sort(times.begin(), times.end());
    for (std::size_t i = 1; i < times.size(); ++i) {
      EXPECT_GE(times[i].first, times[i - 1].second) << asked;
    }
  }
}

TEST(Answers, MessagesHoldTheirPortsAlone) {
  for (const char* algorithm : {"ring", "double_tree", "direct_two_shot", "trivance"}) {
    for (const int ports : {1, 2, 5}) {
      for (const char* sync : {"dataflow", "rounds"}) {
        json asked = question("all_reduce", algorithm, 9);
        asked["ports"] = ports;
        asked["sync"] = sync;
        expect_consistent(asked);
      }
    }
  }
}

TEST(Answers, ASwitchsTransferIsAMessageForEachPair) {
  json asked = question("broadcast", "switch", 5);
  asked["network"] = {{"multicast", true}, {"alpha_switch", "1us"}};
  const Told messages = told({{"ask", "messages"}, {"question", asked}});
  ASSERT_EQ(messages.numbers.size(), 4 * kColumns) << messages.answer;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(messages.numbers[i * kColumns + start], 0);
    EXPECT_EQ(messages.numbers[i * kColumns + from], 0);
    EXPECT_EQ(messages.numbers[i * kColumns + to], static_cast<double>(i + 1));
  }
}

// Flags of states.cc.
constexpr std::uint32_t kComplete = 1, kNeeded = 2;

TEST(Answers, WhatIsPlayedEndsComplete) {
  for (const Algorithm& entry : catalogue()) {
    const json asked = question(std::string(name_of(entry.collective)).c_str(),
                                std::string(entry.name).c_str(), 5);
    const Told play = told({{"ask", "play"}, {"question", asked}});
    if (play.answer.contains("error")) continue;  // not for 5 ranks
    EXPECT_TRUE(play.answer["proof"]["proved"].get<bool>()) << entry.name;
    const std::size_t width = 1 + play.answer["words"].get<std::size_t>();
    const std::size_t state = play.numbers.size() / (play.answer["transfers"].size() + 1);
    std::size_t needed = 0;
    for (std::size_t at = play.numbers.size() - state; at < play.numbers.size(); at += width) {
      const auto flags = static_cast<std::uint32_t>(play.numbers[at]);
      if ((flags & kNeeded) == 0) continue;
      ++needed;
      EXPECT_NE(flags & kComplete, 0U) << entry.name;
    }
    EXPECT_TRUE(needed > 0 || entry.collective == Collective::barrier) << entry.name;
  }
}

TEST(Edits, NoTransferOfARingCanBeLeftOutOrDoneTwice) {
  const json asked = question("all_reduce", "ring", 4);
  for (const char* what : {"delete", "double"}) {
    for (int k = 0; k < 6; ++k) {
      for (int i = 0; i < 4; ++i) {
        const Told play = told({{"ask", "play"},
                                {"question", asked},
                                {"edits", {{{"do", what}, {"round", k}, {"transfer", i}}}}});
        ASSERT_FALSE(play.answer.contains("error")) << play.answer;
        EXPECT_FALSE(play.answer["proof"]["proved"].get<bool>()) << what << k << " " << i;
        EXPECT_EQ(play.answer["transfers"][static_cast<std::size_t>(k)].size(),
                  what[1] == 'e' ? 3U : 5U);
      }
    }
  }
}

TEST(Edits, AreDoneOneAfterTheOther) {
  const Told play = told({{"ask", "play"},
                          {"question", question("broadcast", "linear", 4)},
                          {"edits",
                           {{{"do", "delete"}, {"round", 0}, {"transfer", 0}},
                            {{"do", "move"}, {"round", 1}, {"transfer", 0}, {"into", 0}},
                            {{"do", "redirect"}, {"round", 0}, {"transfer", 0}, {"to", 1}}}}});
  ASSERT_FALSE(play.answer.contains("error")) << play.answer;
  const json& transfers = play.answer["transfers"];
  EXPECT_EQ(transfers[0].size(), 1U);
  EXPECT_TRUE(transfers[1].empty());
  EXPECT_EQ(transfers[0][0]["to"], json({1}));
}

TEST(Edits, ChanceIsTheSameForTheSameSeedAndTriesEveryWay) {
  const json asked = question("all_reduce", "ring", 5);
  std::set<std::string> ways, changes;
  for (int seed = 0; seed < 64; ++seed) {
    const json request = {
        {"ask", "play"}, {"question", asked}, {"edits", {{{"do", "chance"}, {"seed", seed}}}}};
    const Told once = told(request), again = told(request);
    ASSERT_FALSE(once.answer.contains("error")) << once.answer;
    EXPECT_EQ(once.answer, again.answer);
    const json edit = once.answer["edits"][0];
    ways.insert(edit["do"].get<std::string>());
    changes.insert(edit.dump());
    // The change that chance made can be requested as an edit.
    const Told by_hand = told({{"ask", "play"}, {"question", asked}, {"edits", {edit}}});
    EXPECT_EQ(by_hand.answer["proof"], once.answer["proof"]);
  }
  EXPECT_EQ(ways, (std::set<std::string>{"delete", "double", "move", "redirect"}));
  EXPECT_GT(changes.size(), 32U);
}

TEST(Answers, ACurvePassesThroughItsPointsAndSaysWhoIsFastest) {
  json questions = json::array();
  for (const char* algorithm : {"ring", "recursive_doubling", "no_such_thing"}) {
    questions.push_back({{"collective", "all_reduce"}, {"algorithm", algorithm}, {"ranks", 8}});
  }
  const std::vector<std::int64_t> sizes = {64, 1 << 14, 1 << 22, 1 << 28};
  const Told curve =
      told({{"ask", "curve"}, {"over", "bytes"}, {"values", sizes}, {"questions", questions}});
  ASSERT_EQ(curve.numbers.size(), 2 * 3 * sizes.size()) << curve.answer;
  for (std::size_t v = 0; v < sizes.size(); ++v) {
    std::array<double, 2> times{};
    for (std::size_t q = 0; q < 2; ++q) {
      json one = questions[q];
      one["bytes"] = sizes[v];
      times[q] = told({{"ask", "simulate"}, {"question", one}}).answer["time"].get<double>();
      EXPECT_EQ(curve.numbers[q * sizes.size() + v], times[q]);
    }
    EXPECT_EQ(curve.answer["fastest"][v], times[1] < times[0] ? 1 : 0);
    EXPECT_NE(curve.numbers[2 * sizes.size() + v], curve.numbers[2 * sizes.size() + v]);
  }
  EXPECT_EQ(curve.answer["fastest"].front(), 1);
  EXPECT_EQ(curve.answer["fastest"].back(), 0);
  EXPECT_EQ(curve.answer["crossovers"].size(), 2U);
  EXPECT_TRUE(curve.answer["refused"][0].is_null());
  EXPECT_TRUE(curve.answer["refused"][2].is_string());
}

TEST(Answers, WhatIsWrongIsNamed) {
  const json good = question("all_reduce", "ring", 8);
  const auto with = [&good](const json& members) {
    json asked = good;
    asked.update(members);
    return told({{"ask", "messages"}, {"question", asked}}).answer.value("error", "");
  };
  EXPECT_TRUE(with({{"ranks", 0}}).starts_with("ranks is 0;"));
  EXPECT_TRUE(with({{"bytes", "1e99"}}).starts_with("bytes is '1e99', which "));
  EXPECT_TRUE(with({{"fidelity", "flow"}}).starts_with("fidelity is \"flow\""));
  for (const char* text : {"", "null", "7", "[]", "{}", "{\"ask\": 7}", "{\"ask\": \"x\"}", "{",
                           "{\"ask\": \"simulate\"}", "{\"ask\": \"play\", \"question\": []}",
                           "{\"ask\": \"catalogue\", \"ranks\": 1e300}", "\xff"}) {
    const PageAnswer answer = answer_page(text);
    EXPECT_TRUE(json::parse(answer.json).contains("error")) << text;
    EXPECT_TRUE(answer.numbers.empty()) << text;
  }
  // Too many messages to display.
  const Told large = told({{"ask", "play"}, {"question", question("all_to_all", "direct", 300)}});
  EXPECT_NE(large.answer.value("error", "").find("too many"), std::string::npos);
}

}  // namespace
}  // namespace rankine::tools
