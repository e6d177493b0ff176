// Tests of rankine page and of the answers to the page: they equal the tool's answers.

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "engine/cli/question.h"
#include "engine/lab/page/answers.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using json = nlohmann::ordered_json;

struct Told {
  json answer;
  std::vector<double> numbers;
};
Told told(const json& request) {
  PageAnswer answer = answer_page(request.dump());
  return {json::parse(answer.json), std::move(answer.numbers)};
}
Told told(const char* ask, const json& question) {
  return told({{"ask", ask}, {"question", question}});
}

json question(std::string_view collective, std::string_view algorithm, int ranks) {
  return {
      {"collective", collective}, {"algorithm", algorithm}, {"ranks", ranks}, {"bytes", 100003}};
}

TEST(Page, IsAskedOrWrittenByTheTool) {
  const std::string asked =
      R"({"ask":"messages","question":{"collective":"all_gather","algorithm":"ring","ranks":3,"bytes":9}})";
  const auto lines =
      json_lines_of("page --ask " + file_with("requests.jsonl", asked + "\nnonsense\n"));
  ASSERT_EQ(lines.size(), 2U);
  json whole = lines[0];
  const PageAnswer answer = answer_page(asked);
  EXPECT_EQ(whole["numbers"].get<std::vector<double>>(), answer.numbers);
  whole.erase("numbers");
  EXPECT_EQ(whole, json::parse(answer.json));
  EXPECT_TRUE(lines[1].contains("error"));
  const std::string file = file_with("page.html", "");
  const Captured written = run_line("page -o " + file);
  EXPECT_TRUE(written.exit == 0 ? text_of(file).starts_with("<!doctype html>")
                                : written.exit == 3 && has(written.err, "third_party/page"));
}

TEST(Page, PlansAsThePlannerDoes) {
  const json there =
      json_of("plan gpt2 --tp 2 --dp 2 --pp 4 --micro-batches 6 --order gpipe --json");
  const Told plan =
      told(json::parse(R"({"ask":"plan","model":"gpt2","tp":2,"dp":2,"pp":4,"micro_batches":6,)"
                       R"("order":"gpipe"})"));
  for (const auto& [name, value] : there.items()) {
    json mine = plan.answer[name];
    if (name == "memory") mine.erase("of");
    EXPECT_EQ(mine, value) << name;
  }
  // A forward and a backward pass of each micro-batch on each stage, without overlaps.
  constexpr std::size_t kColumns = 6;
  ASSERT_EQ(plan.numbers.size(), kColumns * 4 * 6 * 2);
  double last = 0;
  for (std::size_t i = 0; i < plan.numbers.size(); i += kColumns) {
    const double* pass = plan.numbers.data() + i;
    if (i > 0 && pass[0] == pass[-static_cast<std::ptrdiff_t>(kColumns)]) {
      EXPECT_GE(pass[4], pass[-1] - 1e-12);
    }
    last = std::max(last, pass[5]);
  }
  EXPECT_EQ(last, plan.answer["end"].get<double>());
}

// The first stage is compared with the formulas, which describe that stage only.
TEST(Page, KnowsTheMemoryOfEachStage) {
  for (const std::string order : {"gpipe", "1f1b", "zb1p", "zb2p", "zbv"}) {
    for (const int interleave : {1, 3}) {
      if (interleave > 1 && order != "1f1b") continue;
      const json answer = told({{"ask", "plan"},
                                {"model", "gpt_175b"},
                                {"pp", 4},
                                {"dp", 2},
                                {"micro_batches", 8},
                                {"order", order},
                                {"interleave", interleave}})
                              .answer;
      ASSERT_FALSE(answer.contains("error")) << answer;
      const json& stages = answer["stages"];
      ASSERT_EQ(stages.size(), 4U);
      for (const char* part :
           {"all", "layer_state", "embedding_state", "activations", "micro_batches_kept"}) {
        EXPECT_DOUBLE_EQ(stages[0][part], answer["memory"][part]) << order << " " << part;
      }
      EXPECT_EQ(stages[1]["embedding_state"], 0.0);
      EXPECT_EQ(stages[3]["embedding_state"],
                order == "zbv" ? json(0.0) : stages[0]["embedding_state"]);  // both ends of a V
      EXPECT_EQ(stages[3]["micro_batches_kept"] < stages[0]["micro_batches_kept"], order == "1f1b");
    }
  }
}

TEST(Page, JudgesAsCheckDoes) {
  for (const std::string schedule :
       {"all_gather 2\nround\n0 -> 1: 0\n1 -> 0: 1\n", "all_gather 2\nround\n0 <-> 1: 0\n"}) {
    const Captured there = run_line("check --json " + file_with("mine.txt", schedule));
    EXPECT_EQ(told({{"ask", "check"}, {"text", schedule}}).answer, json::parse(there.out));
  }
  for (const std::string formula : {"2*(N-1)/N*S", "2*S"}) {
    const Captured there = run_line("check --task ring_bytes --seed 7 --json --formula " + formula);
    const json asked = {
        {"ask", "formula"}, {"task", "ring_bytes"}, {"formula", formula}, {"seed", 7}};
    EXPECT_EQ(told(asked).answer, json::parse(there.out));
  }
  EXPECT_EQ(told(json{{"ask", "formula"}}).answer["tasks"].size(),
            json_lines_of("check --tasks --json").size());
}

TEST(Page, AnswersTheBucketQuestionAsBucketsDoes) {
  json asked = {{"ask", "buckets"}, {"question", question("all_reduce", "ring", 8)}};
  asked["question"]["bytes"] = "4M";
  asked["backward"] = "20ms";
  const json answer = told(asked).answer;
  EXPECT_EQ(answer["rows"], json_of("buckets --algo ring --ranks 8 --tensors 64 --tensor 4M "
                                    "--backward 20ms --json"));
  const json& best = answer["rows"][answer["best"].get<std::size_t>()];
  for (const json& row : answer["rows"]) EXPECT_LE(best["exposed"], row["exposed"]);
}

TEST(Answers, SimulateIsWhatABatchSays) {
  for (const Algorithm& entry : catalogue()) {
    const json asked = question(name_of(entry.collective), entry.name, 6);
    const BatchAnswer batch = answer_request(asked.dump(), 1);
    const json there = json::parse(batch.line);
    const json here = told("simulate", asked).answer;
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

// No two messages share a port at once, and messages add up to the bytes sent.
TEST(Answers, MessagesHoldTheirPortsAlone) {
  for (const auto& [algorithm, ports, sync] : {std::tuple("ring", 1, "dataflow"),
                                               {"ring", 2, "rounds"},
                                               {"double_tree", 1, "rounds"},
                                               {"double_tree", 5, "dataflow"},
                                               {"direct_two_shot", 1, "dataflow"},
                                               {"direct_two_shot", 2, "rounds"},
                                               {"trivance", 2, "dataflow"},
                                               {"trivance", 5, "rounds"}}) {
    json asked = question("all_reduce", algorithm, 9);
    asked["ports"] = ports;
    asked["sync"] = sync;
    SCOPED_TRACE(asked);
    const Told messages = told("messages", asked);
    ASSERT_EQ(messages.answer["columns"].size(), kColumns) << messages.answer;
    EXPECT_EQ(messages.numbers.size(), kColumns * messages.answer["messages"].get<std::size_t>());
    std::vector<double> sent(9, 0);
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
    EXPECT_EQ(sent, messages.answer["sent"].get<std::vector<double>>());
    for (auto& [port, times] : held) {
      std::sort(times.begin(), times.end());
      for (std::size_t i = 1; i < times.size(); ++i) {
        EXPECT_GE(times[i].first, times[i - 1].second);
      }
    }
  }
  // A switch's transfer is a message for each pair.
  json asked = question("broadcast", "switch", 5);
  asked["network"] = {{"multicast", true}, {"alpha_switch", "1us"}};
  const Told messages = told("messages", asked);
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
    const Told play = told("play", question(name_of(entry.collective), entry.name, 5));
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

Told edited(const json& asked, const json& edits) {
  Told play = told({{"ask", "play"}, {"question", asked}, {"edits", edits}});
  EXPECT_FALSE(play.answer.contains("error")) << play.answer;
  return play;
}

TEST(Edits, NoTransferOfARingCanBeLeftOutOrDoneTwice) {
  for (const std::string what : {"delete", "double"}) {
    for (std::size_t k = 0; k < 6; ++k) {
      for (int i = 0; i < 4; ++i) {
        const Told play = edited(question("all_reduce", "ring", 4),
                                 json::array({{{"do", what}, {"round", k}, {"transfer", i}}}));
        EXPECT_FALSE(play.answer["proof"]["proved"].get<bool>()) << what << k << " " << i;
        EXPECT_EQ(play.answer["transfers"][k].size(), what == "delete" ? 3U : 5U);
      }
    }
  }
  // Edits are done one after the other.
  const Told play =
      edited(question("broadcast", "linear", 4),
             json::array({{{"do", "delete"}, {"round", 0}, {"transfer", 0}},
                          {{"do", "move"}, {"round", 1}, {"transfer", 0}, {"into", 0}},
                          {{"do", "redirect"}, {"round", 0}, {"transfer", 0}, {"to", 1}}}));
  const json& transfers = play.answer["transfers"];
  EXPECT_EQ(transfers[0].size(), 1U);
  EXPECT_TRUE(transfers[1].empty());
  EXPECT_EQ(transfers[0][0]["to"], json::array({1}));
}

TEST(Edits, ChanceIsTheSameForTheSameSeedAndTriesEveryWay) {
  const json asked = question("all_reduce", "ring", 5);
  std::set<std::string> ways, changes;
  for (int seed = 0; seed < 64; ++seed) {
    const json chance = json::array({{{"do", "chance"}, {"seed", seed}}});
    const Told once = edited(asked, chance);
    EXPECT_EQ(once.answer, edited(asked, chance).answer);
    const json edit = once.answer["edits"][0];
    ways.insert(edit["do"].get<std::string>());
    changes.insert(edit.dump());
    // The change that chance made can be requested as an edit.
    EXPECT_EQ(edited(asked, json::array({edit})).answer["proof"], once.answer["proof"]);
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
      times[q] = told("simulate", one).answer["time"].get<double>();
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

}  // namespace
}  // namespace rankine::tools
