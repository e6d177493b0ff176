// rankine check of a pipeline's order: played by the planner's own pipeline, and what is wrong with
// one has its line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/tools/lesson/judge_order.h"
#include "engine/tools/page/answers.h"
#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Captured check(const std::string& text, std::vector<std::string> more = {}) {
  const std::string path = testing::TempDir() + "/order.txt";
  std::ofstream(path, std::ios::binary) << text;
  more.insert(more.begin(), {"check", path});
  return run_captured(more);
}

// An order that has a name, written out.
std::string text_of(PipelineOrder order, int stages, int micro_batches, const std::string& head) {
  PipelineQuestion question;
  question.order = order;
  question.stages = stages;
  question.micro_batches = micro_batches;
  std::string out = "pipeline " + std::to_string(stages) + " micro_batches " +
                    std::to_string(micro_batches) + head + "\n";
  const StageOrders orders = orders_of(question);
  for (std::size_t s = 0; s < orders.size(); ++s) {
    out += std::to_string(s) + ":";
    for (const Task& task : orders[s]) out += " " + task_text(task);
    out += "\n";
  }
  return out;
}

TEST(Orders, ThatHaveNamesTakeWhatTheyTake) {
  for (const auto order : {PipelineOrder::gpipe, PipelineOrder::one_f_one_b, PipelineOrder::zb1p,
                           PipelineOrder::zb2p}) {
    const bool weights = order == PipelineOrder::zb1p || order == PipelineOrder::zb2p;
    for (const int stages : {1, 2, 5}) {
      for (const int micro_batches : {1, 4, 11}) {
        const std::string head =
            std::string(" forward 2 backward 3 hop 1") + (weights ? " weights 2" : "");
        const Captured captured = check(text_of(order, stages, micro_batches, head), {"--json"});
        ASSERT_EQ(captured.exit, 0) << captured.out << captured.err;
        const json said = json::parse(captured.out);
        EXPECT_EQ(said["tasks"], stages * micro_batches * (weights ? 3 : 2));
        json named;
        for (const json& one : said["named"]) {
          if (one["order"] == name_of(order)) named = one;
        }
        for (const char* member : {"time", "idle", "kept"}) {
          EXPECT_EQ(said["yours"][member], named[member]) << member << " " << captured.out;
        }
      }
    }
  }
  const json said = json::parse(
      check("pipeline 2 micro_batches 2\n0: F0..1 B0..1\n1: F0 B0 F1 B1\n", {"--json"}).out);
  EXPECT_EQ(said["yours"], json::parse(R"({"order":"yours","time":9.0,"idle":3.0,"kept":[2,1]})"));
}

TEST(Orders, AreWrongAtTheirLines) {
  const struct {
    const char *text, *kind, *said;
    std::vector<int> lines;
  } kCases[] = {
      {"pipeline 2 micro_batches 2\n0: F0..1 B0\n1: F0..1 B0..1\n",
       "missing",
       "stage 0 never does B1",
       {}},
      {"pipeline 2 micro_batches 2\n0: F0..1 B0..1\n\n0: F1\n1: F0..1 B0..1\n",
       "twice",
       "stage 0 does F1 twice",
       {2, 4}},
      {"pipeline 2 micro_batches 1\n0: B0 F0\n1: F0 B0\n",
       "waits_for_ever",
       "stage 0 waits for ever before B0",
       {2}},
      {"pipeline 2 micro_batches 2\n0: F0 B0 F1 B1\n1: F0\n1: F1 B0..1\n",
       "waits_for_ever",
       "stage 0 waits for ever before B0",
       {2}},
      {"pipeline 2 micro_batches 2 keep 1\n0: F0..1 B0..1\n1: F0 B0 F1 B1\n",
       "keeps_too_much",
       "stage 0 keeps 2 micro-batches at once, and has room for 1",
       {}},
      {"pipeline 2 micro_batches 2 within 9\n0: F0 B0 F1 B1\n1: F0 B0 F1 B1\n",
       "too_slow",
       "it takes 12 s, and may take 9 s",
       {}},
  };
  for (const auto& one : kCases) {
    const Captured captured = check(one.text, {"--json"});
    EXPECT_EQ(captured.exit, 1) << one.text << captured.err;
    const json said = json::parse(captured.out);
    EXPECT_FALSE(said["proved"]);
    EXPECT_EQ(said["kind"], one.kind) << one.text;
    EXPECT_EQ(said["text"], one.said) << one.text;
    EXPECT_EQ(said["lines"].get<std::vector<int>>(), one.lines) << one.text;
    EXPECT_FALSE(said["rule"].get<std::string>().empty());
    // On the page the same, with the passes that can be played.
    const PageAnswer there = answer_page(json{{"ask", "check"}, {"text", one.text}}.dump());
    json page = json::parse(there.json);
    EXPECT_EQ(page["columns"].size(), 6u);
    page.erase("columns");
    EXPECT_EQ(page, said);
    const bool counted = said["kind"] != "missing" && said["kind"] != "twice";
    EXPECT_LE(there.numbers.size(), 6 * said["tasks"].get<std::size_t>());
    EXPECT_EQ(there.numbers.size() > 0,
              counted && std::string(one.text).find("B0 F0\n") == std::string::npos)
        << one.text;
  }
}

TEST(Orders, ThatCannotBeReadAreRefusedWithTheirLine) {
  for (const auto& [text, said] : std::vector<std::pair<std::string, std::string>>{
           {"pipeline", "line 1: the number of stages is missing"},
           {"pipeline 2", "line 1: micro_batches, their number, is missing"},
           {"pipeline 0 micro_batches 2", "line 1: the number of stages is '0'"},
           {"pipeline 2 micro_batches 0", "line 1: micro_batches is '0'"},
           {"pipeline 2 micro_batches 2 kept 3", "line 1: a word is 'kept'"},
           {"pipeline 2 micro_batches 2 keep", "line 1: keep needs a number"},
           {"# mine\npipeline 2 micro_batches 2\n2: F0", "line 3: a stage is '2'"},
           {"pipeline 2 micro_batches 2\nF0", "line 2: 'F0' is no stage"},
           {"pipeline 2 micro_batches 2\n0: W0", "line 2: 'W0' is no pass; allowed are F0 and B0"},
           {"pipeline 2 micro_batches 2\n0: F", "line 2: a micro-batch is empty"},
           {"pipeline 2 micro_batches 2\n0: F0..2", "line 2: a micro-batch is '0..2'"}}) {
    const Captured captured = check(text + "\n");
    EXPECT_EQ(captured.exit, 2) << text;
    EXPECT_THAT(captured.err, HasSubstr(said)) << text;
  }
}

TEST(Orders, AreToldInWords) {
  const Captured right = check("pipeline 1 micro_batches 2 # one stage\n0: F0 B0 F1 B1\n");
  EXPECT_EQ(right.exit, 0);
  EXPECT_THAT(right.out, HasSubstr("a pipeline: stages 1, micro-batches 2, passes 4\nright: "));
  EXPECT_THAT(right.out, HasSubstr("\n  yours     6     0  1\n"));
  // No more room or time than it takes.
  EXPECT_EQ(check("pipeline 1 micro_batches 2 keep 1 within 6\n0: F0 B0 F1 B1\n").exit, 0);
  const Captured wrong = check("pipeline 1 micro_batches 1\n0: B0 F0\n");
  EXPECT_THAT(wrong.out, HasSubstr("\nwrong: waits_for_ever\n  the rule: F needs"));
  EXPECT_THAT(wrong.out, HasSubstr("\n  line 2\n"));
}

}  // namespace
}  // namespace rankine::tools
