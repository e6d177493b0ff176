// What the page is told, against what the tool's own answers and the collectives say.
#include "engine/tools/page/answers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/tools/answer.h"

namespace rankine::tools {
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
  for (const Algorithm& line : catalogue()) {
    const json asked =
        question(std::string(name_of(line.collective)).c_str(), std::string(line.name).c_str(), 6);
    const BatchAnswer batch = answer_request(asked.dump(), 1);
    const json there = json::parse(batch.line);
    const json here = told({{"ask", "simulate"}, {"question", asked}}).answer;
    if (!batch.ok) {
      EXPECT_EQ(here["error"], there["error"]) << line.name;
      continue;
    }
    for (const char* member : {"time", "busbw", "rounds", "messages", "sent", "sent_max"}) {
      EXPECT_EQ(here[member], there[member]) << line.name << " " << member;
    }
  }
}

constexpr std::size_t kColumns = 11;
enum Column { round, transfer, from, to, bytes, start, end, send_port, receive_port, hops, far };

// Messages hold their ports alone, and add up to what is sent.
void expect_consistent(const json& asked) {
  const Told messages = told({{"ask", "messages"}, {"question", asked}});
  ASSERT_FALSE(messages.answer.contains("error")) << messages.answer;
  ASSERT_EQ(messages.answer["columns"].size(), kColumns);
  ASSERT_EQ(messages.numbers.size() % kColumns, 0U);
  EXPECT_EQ(messages.numbers.size() / kColumns, messages.answer["messages"].get<std::size_t>());
  std::vector<double> sent(asked["ranks"].get<std::size_t>(), 0);
  // By direction, rank and port.
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

// Flags of states.h.
constexpr std::uint32_t kComplete = 1, kNeeded = 2;

TEST(Answers, WhatIsPlayedEndsComplete) {
  for (const Algorithm& line : catalogue()) {
    const json asked =
        question(std::string(name_of(line.collective)).c_str(), std::string(line.name).c_str(), 5);
    const Told play = told({{"ask", "play"}, {"question", asked}});
    if (play.answer.contains("error")) continue;  // not for 5 ranks
    EXPECT_TRUE(play.answer["proof"]["proved"].get<bool>()) << line.name;
    const std::size_t width = 1 + play.answer["words"].get<std::size_t>();
    const std::size_t state = play.numbers.size() / (play.answer["transfers"].size() + 1);
    std::size_t needed = 0;
    for (std::size_t at = play.numbers.size() - state; at < play.numbers.size(); at += width) {
      const auto flags = static_cast<std::uint32_t>(play.numbers[at]);
      if ((flags & kNeeded) == 0) continue;
      ++needed;
      EXPECT_NE(flags & kComplete, 0U) << line.name;
    }
    EXPECT_TRUE(needed > 0 || line.collective == Collective::barrier) << line.name;
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
    // What it came to is an edit like any other.
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
  // More than anybody could look at.
  const Told large = told({{"ask", "play"}, {"question", question("all_to_all", "direct", 300)}});
  EXPECT_NE(large.answer.value("error", "").find("too many"), std::string::npos);
}

}  // namespace
}  // namespace rankine::tools
