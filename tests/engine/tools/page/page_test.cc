// rankine page, and rankine simulate --trace.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/tools/page/answers.h"
#include "tests/engine/tools/captured_tool.h"

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
  // A forward and a backward pass of each micro-batch on each stage, none beside another.
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
  EXPECT_EQ(error(R"(,"model":"gpt2","tp":5)"),
            "tp is 5; it must divide heads, which is 12: the nearest are 4 or 6");
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

// The first stage by the formulas, which know no other.
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
}  // namespace rankine::tools
