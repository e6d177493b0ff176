// Schedules as people write them: what is read, what is written, and what is refused.
#include "engine/tools/lesson/written_schedule.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/read/verify.h"
#include "engine/tools/page/answers.h"

namespace rankine::tools {
namespace {

std::vector<std::vector<std::string>> texts(const Schedule& schedule) {
  std::vector<std::vector<std::string>> out;
  for (int k = 0; k < schedule.rounds; ++k) {
    out.emplace_back();
    for_each_transfer(schedule, k,
                      [&](const Transfer& t) { out.back().push_back(transfer_text(t)); });
  }
  return out;
}

// Every line of the catalogue, at powers of two and three and at others.
TEST(WrittenSchedule, OfEveryAlgorithmIsReadBack) {
  int lines = 0;
  for (const Algorithm& line : catalogue()) {
    for (const int ranks : {1, 2, 6, 8, 9}) {
      Params params;
      params.ranks = ranks;
      if (has_root(line.collective)) params.root = ranks - 1;
      if (line.refusal(params)) continue;
      params = resolved(params);
      const Schedule schedule = line.make(params);
      const Goal goal = goal_of(line, params, schedule);
      const std::string text = schedule_text(schedule, goal);
      const auto read = read_schedule(text);
      ASSERT_TRUE(read.ok()) << line.name << ": " << read.status().text() << "\n" << text;
      EXPECT_EQ(read->goal.collective, goal.collective);
      EXPECT_EQ(read->goal.root, goal.root);
      EXPECT_EQ(read->goal.same_bits, goal.same_bits);
      const Schedule again = read->schedule();
      EXPECT_EQ(texts(again), texts(schedule)) << line.name;
      EXPECT_FALSE(verify(again, read->goal)) << line.name << " among " << ranks;
      ++lines;
    }
  }
  EXPECT_GT(lines, 300);
}

TEST(WrittenSchedule, AsJsonIsWhatThePlayerHas) {
  for (const char* name : {"ring", "trivance", "direct_one_shot_push", "halving_doubling"}) {
    const nlohmann::json asked = {
        {"ask", "play"},
        {"question",
         {{"collective", "all_reduce"}, {"algorithm", name}, {"ranks", 9}, {"bytes", 9}}}};
    const PageAnswer played = answer_page(asked.dump());
    const auto read = read_schedule(played.json);
    ASSERT_TRUE(read.ok()) << read.status().text();
    Params params;
    params.ranks = 9;
    EXPECT_EQ(texts(read->schedule()),
              texts(find_algorithm(Collective::all_reduce, name)->make(resolved(params))));
  }
}

TEST(WrittenSchedule, HasRemarksEmptyLinesAndShortForms) {
  const auto read = read_schedule(
      "\xef\xbb\xbf# mine\n\n all_reduce 4 blocks 6\tplanes 2 # six\r\nround\n0 <-> 1: 0..2,5 +\nround 1\n"
      "2 -> 2: 3 on 1 to 0 +\n0 -> 1..3: 4 on 1\nround");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(texts(read->schedule()),
            (std::vector<std::vector<std::string>>{{"0 -> 1: 0..2,5 +", "1 -> 0: 0..2,5 +"},
                                                   {"2 -> 2: 3 on 1 to 0 +", "0 -> 1..3: 4 on 1"},
                                                   {}}));
  EXPECT_EQ(read->rounds[0][1].line, 5);
  EXPECT_EQ(read->rounds[1][0].line, 7);
}

TEST(WrittenSchedule, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    const char* text;
    const char* error;
  } kCases[] = {
      {"", "there is no schedule"},
      {"# nothing\n\n", "there is no schedule"},
      {"all_gahter 4", "line 1: the collective is 'all_gahter'"},
      {"all_gather", "line 1: the number of ranks is missing"},
      {"all_gather 0", "line 1: the number of ranks is '0'"},
      {"all_gather 1000000", "line 1: the number of ranks is '1000000'"},
      {"all_gather 4 root 1", "line 1: all_gather has no root"},
      {"all_gather 4 blocks 6", "line 1: blocks is 6; allowed are multiples of 4"},
      {"all_gather 4 blocks 0", "line 1: blocks is 0"},
      {"all_gather 4 blocks", "line 1: blocks needs a number"},
      {"all_gather 4 bloks 8", "did you mean 'blocks'"},
      {"all_gather 4 other_bits", "line 1: other_bits means nothing to all_gather"},
      {"all_to_all 4096", "has 16777216 blocks; at most"},
      {"broadcast 4 root 4", "line 1: root is 4; allowed are 0 to 3"},
      {"all_gather 4 planes 0", "line 1: planes is 0"},
      {"all_gather 4\n0 -> 1: 0", "line 2: a transfer before the first round"},
      {"all_gather 4\nround 1", "line 2: round is '1'"},
      {"all_gather 4\nround 0 a", "line 2: 'a' is one word too many"},
      {"all_gather 4\nround\n0 -> 4: 0", "line 3: a receiver is '4'"},
      {"all_gather 4\nround\n-1 -> 0: 0", "line 3: a sender is '-1'"},
      {"all_gather 4\nround\n0 -> 1: 4", "line 3: a block is '4'"},
      {"all_gather 4\nround\n0 -> 1: 3..2", "line 3: a block is '2'"},
      {"all_gather 4\nround\n0 -> 1: 0,", "line 3: a block is ''"},
      {"all_gather 4\nround\n0 -> 1 0", "line 3: '0 -> 1 0' has no colon after the receiver; write "
                                        "'0 -> 1: 0'"},
      {"all_gather 4\nround\nsend 0 1", "line 3: 'send' is no transfer"},
      {"all_gather 4\nround\n0 -> 1: 0 on 1", "line 3: a plane is '1'"},
      {"all_gather 4\nround\n0 -> 1: 0 + +", "line 3: '+' after the blocks"},
      {"all_gather 4\nround\n0 -> 1: 0 to", "line 3: 'to' after the blocks"},
      {"all_reduce 4096 blocks 1048576\nround\n0 -> 0..4095: 0..1048575", "too many"},
      {"{", "the schedule is not JSON"},
      {"{}", "collective is null"},
      {R"({"collective": 7})", "collective is 7"},
      {R"({"collective": "barrier", "ranks": 1e3})", "ranks is 1000.0"},
      {R"({"collective": "barrier", "ranks": 2})", "transfers is null"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [7]})", "round 0 is 7"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [[7]]})",
       "round 0, transfer 0: a transfer is 7"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [[{"from": 0}]]})", "to is missing"},
      {R"({"collective": "barrier", "ranks": 2, "transfers": [[{"from": 0, "to": [], "what": 0}]]})",
       "to is []"},
      {R"({"collective": "barrier", "ranks": 2,
           "transfers": [[{"from": 0, "to": 1, "what": 0, "act": "add"}]]})",
       "act is \"add\""},
  };
  for (const auto& [text, error] : kCases) {
    const auto read = read_schedule(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), Code::invalid_argument);
    const bool found = read.status().text().find(error) != std::string::npos ||
                       (std::string(error) == "too many" &&
                        read.status().text().find("more than") != std::string::npos);
    EXPECT_TRUE(found) << text << "\n" << read.status().text();
  }
}

}  // namespace
}  // namespace rankine::tools
