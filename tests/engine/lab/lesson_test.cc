// Tests of rankine lesson and rankine check.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "engine/cli/judge.h"
#include "engine/lab/lesson/course.h"
#include "engine/lab/lesson/formula_tasks.h"
#include "engine/lab/lesson/written_order.h"
#include "engine/lab/page/answers.h"
#include "engine/read/verify.h"
#include "tests/engine/cli/tool_fixtures.h"

// rankine lesson: runs every command of every lesson as a reader would, and compares the output
// with the lesson.

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string new_folder() {
  std::string folder = testing::TempDir() + "/lesson_XXXXXX";
  return mkdtemp(folder.data()) != nullptr ? folder : "";
}

struct Command {
  std::string line;     // without its prompt
  std::string printed;  // printed below it
};
struct Commands {
  std::vector<Command> answered, for_the_shell;
};

Commands commands_of(const std::string& markdown) {
  Commands out;
  std::string block;
  bool first = true;  // the first command of the block
  for (std::size_t at = 0; at < markdown.size();) {
    const std::size_t end = markdown.find('\n', at);
    const std::string line = markdown.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("```")) {
      block = block.empty() ? line : "";
      first = true;
    } else if (block == "```sh") {
      out.for_the_shell.push_back({line, ""});
    } else if (block == "```console" && line.starts_with("$ ")) {
      // An empty line separates two commands.
      if (!first) out.answered.back().printed.pop_back();
      first = false;
      out.answered.push_back({line.substr(2), ""});
    } else if (block == "```console") {
      out.answered.back().printed += line + '\n';
    }
  }
  EXPECT_EQ(block, "");
  return out;
}

// Writes the course once, and runs shell commands in its folder.
class Course : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder() = new_folder() + "/course";
    const Captured captured = run_captured({"lesson", "-o", folder()});
    ASSERT_EQ(captured.exit, 0) << captured.err;
    ASSERT_THAT(captured.out, HasSubstr("begin with README.md"));
  }
  static std::string& folder() {
    static std::string name;
    return name;
  }
  static std::vector<fs::path> lessons() {
    std::vector<fs::path> out;
    for (const auto& entry : fs::directory_iterator(folder())) {
      if (entry.path().extension() == ".md") out.push_back(entry.path());
    }
    return out;
  }

  struct Said {
    int exit = -1;
    std::string text;
  };
  static Said shell(const std::string& line) {
    const std::string programs = fs::absolute("engine/cli").string();
    const std::string whole = "cd '" + folder() + "' && PATH='" + programs +
                              "':$PATH && export PATH && { " + line + "\n} 2>&1";
    Said said;
    FILE* pipe = popen(whole.c_str(), "r");
    if (pipe == nullptr) return said;
    for (int c; (c = std::fgetc(pipe)) != EOF;) said.text += static_cast<char>(c);
    const int status = pclose(pipe);
    if (WIFEXITED(status)) said.exit = WEXITSTATUS(status);
    return said;
  }
};

TEST_F(Course, HasSixLessonsWithTasks) {
  ASSERT_EQ(lessons().size(), 8u);  // with the overview and the answers
  int numbered = 0;
  for (const fs::path& lesson : lessons()) {
    const std::string text = text_of(lesson), name = lesson.filename();
    if (name[0] < '1' || name[0] > '6') continue;
    ++numbered;
    int tasks = 0;
    while (text.find("\n## Task " + std::to_string(tasks + 1) + ": ") != text.npos) ++tasks;
    EXPECT_GE(tasks, 4) << name;
    EXPECT_THAT(text_of(folder() + "/README.md"), HasSubstr("(" + name + ")"));
  }
  EXPECT_EQ(numbered, 6);
}

TEST_F(Course, EveryCommandSaysWhatIsPrintedBelowIt) {
  std::size_t commands = 0;
  for (const fs::path& lesson : lessons()) {
    for (const Command& command : commands_of(text_of(lesson)).answered) {
      const Said said = shell(command.line);
      EXPECT_EQ(said.text, command.printed) << lesson << ": " << command.line;
      EXPECT_NE(command.printed, "") << command.line;
      ++commands;
    }
  }
  EXPECT_GT(commands, 60u);
}

TEST_F(Course, EveryLineForTheShellRuns) {
  std::size_t lines = 0;
  for (const fs::path& lesson : lessons()) {
    for (const Command& command : commands_of(text_of(lesson)).for_the_shell) {
      const Said said = shell(command.line);
      EXPECT_EQ(said.exit, 0) << command.line << "\n" << said.text;
      EXPECT_THAT(said.text, HasSubstr("\nproved")) << command.line;
      ++lines;
    }
  }
  EXPECT_GE(lines, 3u);
}

TEST_F(Course, ExamplesAreProvedForAnyNumberOfRanks) {
  for (const std::string name : {"all_gather.py", "all_gather.cc", "alternate_ring.py"}) {
    const Said said = shell("rankine check examples/" + name + " --ranks 1..9,13");
    EXPECT_EQ(said.exit, 0) << name << "\n" << said.text;
    EXPECT_THAT(said.text, HasSubstr("\nproved for N = 1-9,13\n"));
  }
  // As separate programs, which print schedules for rankine check.
  for (const std::string& program :
       {std::string("g++ -std=c++17 -o all_gather examples/all_gather.cc && ./all_gather 6"),
        std::string("python3 examples/schedule_to_check.py examples/all_gather.py 6")}) {
    const Said said = shell(program + " | rankine check -");
    EXPECT_EQ(said.exit, 0) << program << "\n" << said.text;
  }
  // An experiment that the lesson suggests.
  const Said wrong = shell(
      "grep -v other_bits examples/alternate_ring.py > mine.py; rankine check mine.py; "
      "left=$?; rm mine.py; exit $left");
  EXPECT_EQ(wrong.exit, 1) << wrong.text;
  EXPECT_THAT(wrong.text, HasSubstr("other_order"));
}

TEST_F(Course, TasksAreWrongAndTheirAnswersProved) {
  std::set<std::string> tasks, answers;
  for (const auto& entry : fs::directory_iterator(folder() + "/tasks")) {
    tasks.insert(entry.path().filename());
    EXPECT_EQ(run_captured({"check", entry.path()}).exit, 1) << entry.path();
  }
  for (const auto& entry : fs::directory_iterator(folder() + "/answers")) {
    answers.insert(entry.path().filename());
    EXPECT_EQ(run_captured({"check", entry.path()}).exit, 0) << entry.path();
  }
  EXPECT_EQ(tasks, answers);
  EXPECT_GE(tasks.size(), 8u);
  std::string all;
  for (const fs::path& lesson : lessons()) {
    if (lesson.filename() != "answers.md") all += text_of(lesson);
  }
  for (const std::string& task : tasks) EXPECT_THAT(all, HasSubstr("tasks/" + task));
  for (const FormulaTask& task : formula_tasks()) {
    EXPECT_THAT(all, HasSubstr("--task " + std::string(task.name)));
    EXPECT_THAT(text_of(folder() + "/answers.md"),
                HasSubstr("--task " + std::string(task.name) + " --formula"));
  }
  for (const Command& command : commands_of(text_of(folder() + "/answers.md")).answered) {
    EXPECT_EQ(shell(command.line).exit, 0) << command.line;
  }
}

TEST(Lesson, LeavesWhatIsThereAlone) {
  const std::string folder = new_folder();
  std::ofstream(folder + "/mine.txt") << "mine";
  const Captured taken = run_captured({"lesson", "-o", folder});
  EXPECT_EQ(taken.exit, 2);
  EXPECT_THAT(taken.err, HasSubstr("which contains files"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  EXPECT_EQ(run_captured({"lesson", "-o", folder + "/mine.txt"}).exit, 2);
  EXPECT_EQ(run_captured({"lesson", "-o", ""}).exit, 2);
  EXPECT_EQ(run_captured({"lesson"}).exit, 2);
  EXPECT_EQ(run_captured({"lesson", "-o", "/proc/no/such"}).exit, 3);
}

TEST(CourseText, HasItsAnswersBelowItsCommands) {
  const AnswerCommand echo = [](const std::vector<std::string>& words) -> Result<std::string> {
    if (words[0] == "fail") return invalid_argument("it failed");
    std::string out;
    for (const std::string& word : words) out += "<" + word + ">\n";
    return out;
  };
  EXPECT_EQ(*with_answers("a\n```console\n$ rankine x 'y z' ''\n$ rankine b c | head -1\n```\n"
                          "```sh\n$ rankine b\n```\nb",
                          echo),
            "a\n```console\n$ rankine x 'y z' ''\n<x>\n<y z>\n<>\n\n$ rankine b c | head -1\n<b>\n"
            "```\n```sh\n$ rankine b\n```\nb\n");
  for (const char* wrong :
       {"```console\nrankine x\n```\n", "```console\n$ ls\n```\n",
        "```console\n$ rankine x | head -0\n```\n", "```console\n$ rankine fail\n```\n"}) {
    EXPECT_FALSE(with_answers(wrong, echo).ok()) << wrong;
  }
}

}  // namespace

// rankine check of a pipeline's order: the planner's pipeline plays it, and each error has the
// line.

namespace {

using nlohmann::json;
using testing::HasSubstr;

Captured check(const std::string& text, std::vector<std::string> more = {}) {
  const std::string path = testing::TempDir() + "/order.txt";
  std::ofstream(path, std::ios::binary) << text;
  more.insert(more.begin(), {"check", path});
  return run_captured(more);
}

// A named order, written out.
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
       "stage 0 keeps 2 micro-batches at once; it has room for 1",
       {}},
      {"pipeline 2 micro_batches 2 within 9\n0: F0 B0 F1 B1\n1: F0 B0 F1 B1\n",
       "too_slow",
       "the step takes 12 s; allowed are 9 s",
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
    // The page gives the same answer, with the passes that can be played.
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
           {"pipeline 2", "line 1: micro_batches is missing"},
           {"pipeline 0 micro_batches 2", "line 1: the number of stages is '0'"},
           {"pipeline 2 micro_batches 0", "line 1: micro_batches is '0'"},
           {"pipeline 2 micro_batches 2 kept 3", "line 1: a word is 'kept'"},
           {"pipeline 2 micro_batches 2 keep", "line 1: keep needs a number"},
           {"# mine\npipeline 2 micro_batches 2\n2: F0", "line 3: a stage is '2'"},
           {"pipeline 2 micro_batches 2\nF0", "line 2: 'F0' is not a stage"},
           {"pipeline 2 micro_batches 2\n0: W0",
            "line 2: 'W0' is not a pass; allowed are F0 and B0"},
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
  // The exact room and time suffice.
  EXPECT_EQ(check("pipeline 1 micro_batches 2 keep 1 within 6\n0: F0 B0 F1 B1\n").exit, 0);
  const Captured wrong = check("pipeline 1 micro_batches 1\n0: B0 F0\n");
  EXPECT_THAT(wrong.out, HasSubstr("\nwrong: waits_for_ever\n  the rule: F needs"));
  EXPECT_THAT(wrong.out, HasSubstr("\n  line 2\n"));
}

}  // namespace

// rankine check: verdicts, costs beside the catalogue's, and formulas.

namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

json checked(const std::string& text, std::vector<std::string> more = {}) {
  std::vector<std::string> words = {"check", file_with("schedule.txt", text), "--json"};
  words.insert(words.end(), more.begin(), more.end());
  const Captured captured = run_captured(words);
  EXPECT_EQ(captured.err, "") << text;
  const json out = json::parse(captured.out);
  EXPECT_EQ(captured.exit, out["proved"].get<bool>() ? 0 : 1) << captured.out;
  return out;
}

// One schedule for each kind of error that a text can contain.
TEST(Check, NamesWhatBrokeWhere) {
  const struct {
    const char* text;
    const char* kind;
    int round, rank, block;
    std::vector<int> lines;
  } kCases[] = {
      {"broadcast 3\nround\n0 -> 1: 0\nround\n2 -> 1: 0\n", "not_there", 1, 2, 0, {5}},
      {"broadcast 3\nround\n0 -> 1: 0\nround\n1 -> 0: 0\n", "redundant", 1, 0, 0, {5}},
      {"broadcast 3\nround\n0 -> 1: 0\n", "wrong_result", -1, 2, 0, {}},
      {"reduce 3\nround\n1 -> 0: 0 +\nround\n1 -> 0: 0 +\n", "double_count", 1, 0, 0, {5}},
      {"broadcast 3 planes 2\nround\n0 -> 1: 0\nround\n0 -> 2: 0\nround\n0 -> 1: 0 to 1\n",
       "dead",
       2,
       1,
       0,
       {7}},
      {"reduce 3\nround\n1 -> 0: 0\n2 -> 0: 0 +\n", "mixed_acts", 0, 0, 0, {3, 4}},
      {"broadcast 3\nround\n0 -> 1: 0\n0 -> 1: 0\n", "two_copies", 0, 1, 0, {3, 4}},
      {"reduce 3\nround\n1,2 -> 0: 0\n", "many_to_copy", 0, 0, 0, {3}},
      {"all_reduce 3\nround\n0 -> 1: 0 on 0 to 1\n", "bad_index", 0, -1, -1, {}},
  };
  for (const auto& one : kCases) {
    if (std::string(one.kind) == "bad_index") {  // refused by the reader
      EXPECT_EQ(run_captured({"check", file_with("schedule.txt", one.text)}).exit, 2);
      continue;
    }
    const json out = checked(one.text);
    EXPECT_EQ(out["kind"], one.kind) << one.text;
    EXPECT_EQ(out["round"], one.round) << one.text << out;
    EXPECT_EQ(out["rank"], one.rank) << one.text << out;
    EXPECT_EQ(out["block"], one.block) << one.text << out;
    EXPECT_EQ(out["lines"].get<std::vector<int>>(), one.lines) << one.text << out;
    EXPECT_FALSE(out["rule"].get<std::string>().empty());
  }
}

TEST(Check, EveryRuleHasItsWords) {
  std::set<std::string_view> rules;
  for (int kind = 0; kind < kViolationKinds; ++kind) {
    rules.insert(rule_of(static_cast<ViolationKind>(kind)));
  }
  EXPECT_FALSE(rules.contains(""));
  EXPECT_GE(rules.size(), static_cast<std::size_t>(kViolationKinds) - 2);
}

TEST(Check, SaysWhereItIsInWords) {
  const Captured captured = run_captured(
      {"check", file_with("wrong.txt", "all_gather 3\nround\n0 -> 1: 0\nround\n0 -> 2: 1\n")});
  EXPECT_EQ(captured.exit, 1);
  EXPECT_THAT(captured.out, HasSubstr("wrong: not_there at round 1, rank 0, block 1\n"));
  EXPECT_THAT(captured.out, HasSubstr("the rule: only data present at the beginning of the round"));
  EXPECT_THAT(captured.out, HasSubstr("  line 5: 0 -> 2: 1\n"));
}

// A schedule written out from the catalogue costs as much as the catalogue's entry.
TEST(Check, CostsAreTheSimulators) {
  for (const char* algorithm : {"ring", "recursive_doubling", "direct_two_shot", "double_tree"}) {
    const std::vector<std::string> line = {"all_reduce", "--algo", algorithm, "--ranks", "8"};
    std::vector<std::string> show = {"show"}, simulate = {"simulate", "--json", "--bytes", "1M"};
    for (const std::string& word : line) {
      show.push_back(word);
      simulate.push_back(word);
    }
    show.push_back("--text");
    for (const char* network : {"plain", "torus", "two_level"}) {
      simulate.resize(9);
      simulate.insert(simulate.end(), {"--network", network});
      const json there = json::parse(run_captured(simulate).out);
      const json here = checked(run_captured(show).out, {"--network", network});
      EXPECT_EQ(here["time"], there["time"]) << algorithm << " " << network;
      EXPECT_EQ(here["rounds"], there["rounds"]);
      EXPECT_EQ(here["bytes"].get<double>(), there["sent_max"].get<double>());
      EXPECT_LE(here["best"]["time"].get<double>(), here["time"].get<double>() * (1 + 1e-3));
      EXPECT_GE(here["rounds"], here["least_rounds"]);
      EXPECT_GE(here["bytes"].get<double>(), here["least_bytes"].get<double>());
    }
  }
}

TEST(Check, TheBestIsThatOfChoose) {
  const json here = checked("broadcast 3 root 2\nround\n2 -> 0: 0\nround\n2 -> 1: 0\n",
                            {"--network", "scale_out", "--bytes", "64"});
  const Captured chosen = run_captured(
      {"choose", "broadcast", "--ranks", "3", "--bytes", "64", "--network", "scale_out", "--json"});
  EXPECT_THAT(chosen.out, HasSubstr(here["best"]["algorithm"].get<std::string>()));
  EXPECT_EQ(here["least_rounds"], 2);
  EXPECT_EQ(here["send_ports"], 1);
}

TEST(Check, ASwitchsTransferNeedsANetworkThatCan) {
  const std::string file = file_with("switch.txt", "broadcast 4\nround\n0 -> 1..3: 0\n");
  const Captured refused = run_captured({"check", file});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("multicast"));
  EXPECT_EQ(run_captured({"check", file, "--multicast"}).exit, 0);
  EXPECT_EQ(run_captured({"check", file, "--lower"}).exit, 0);
}

TEST(Check, ReadsStandardInput) {
  ToolProcess tool({"check", "-"});
  ASSERT_TRUE(tool.ask("all_gather 2\nround\n0 <-> 1: 0\n"));
  tool.close_in();
  EXPECT_THAT(tool.rest(), HasSubstr("wrong: not_there at round 0, rank 1, block 0"));
  EXPECT_EQ(tool.wait(), 1);
}

TEST(Check, OneRankHasNothingToDo) {
  const json out = checked("all_reduce 1\n");
  EXPECT_EQ(out["least_rounds"], 0);
  EXPECT_EQ(out["bytes"], 0);
  EXPECT_EQ(checked("all_gather 2\nround\n0 -> 1: 0\n1 -> 0: 1\n", {"--bytes", "0"})["bytes"], 0);
}

TEST(Check, SaysWhatItNeeds) {
  const auto refused = [](std::vector<std::string> words, int exit) {
    words.insert(words.begin(), "check");
    const Captured captured = run_captured(words);
    EXPECT_EQ(captured.exit, exit) << captured.out;
    EXPECT_EQ(captured.out, "");
    return captured.err;
  };
  EXPECT_THAT(refused({}, 2), HasSubstr("FILE, --task and --tasks is needed"));
  EXPECT_THAT(refused({"x", "--tasks"}, 2), HasSubstr("allowed is one"));
  EXPECT_THAT(refused({"no such file"}, 3), HasSubstr("FILE is 'no such file'"));
  EXPECT_THAT(refused({"/dev/zero"}, 3), HasSubstr("character device"));
  EXPECT_THAT(refused({"--task", "ring"}, 2), HasSubstr("--task is 'ring'; allowed are"));
  EXPECT_THAT(refused({"--tasks", "--formula", "N"}, 2), HasSubstr("--formula or --seed is given"));
  const std::vector<std::string> formulas = {"N +",
                                             "X",
                                             "1/(N-N)",
                                             "sum(k,1,1e30,k)",
                                             "log2(0-N)",
                                             std::string(401, '('),
                                             std::string(300, '(')};
  for (const std::string& formula : formulas) {
    const std::string said = refused({"--task", "ring_bytes", "--formula", formula}, 2);
    EXPECT_THAT(said, HasSubstr("--formula")) << formula;
  }
}

// The formulas that readers of the lesson must find.
TEST(Formulas, OfTheCourseAreRightAndWhatIsNearThemIsWrong) {
  const std::vector<std::pair<std::string, std::string>> right = {
      {"ring_bytes", "2*(N-1)/N*S"},
      {"ring_time", "2*(N-1)*A + 2*(N-1)/N*S/W"},
      {"alternate_ring", "(N-1)*S/W"},
      {"tree_rounds", "clog2(N)"},
      {"chain_broadcast", "(N-1)*(A+S/W)"},
      {"tree_broadcast", "clog2(N)*(A+S/W)"},
      {"pipeline_broadcast", "(N-2+K)*(A+S/(K*W))"},
      {"torus_rounds", "4*(D-1)"},
      {"crossover", "A*W*(2*(pow2n-1)-E)/(E-2*(pow2n-1)/pow2n)"},
      {"dp_bytes", "2*(N-1)/N*S"},
      {"fsdp_bytes", "3*(N-1)/N*S"},
      {"tp_bytes", "4*2*(N-1)/N*2*T*H"},
      {"accumulation_bytes", "3*K*(N-1)/N*S"},
      {"bubble", "(P-1)*(F+B)"},
  };
  ASSERT_EQ(right.size(), formula_tasks().size());
  for (const auto& [name, text] : right) {
    std::string formula = text;
    for (std::size_t at; (at = formula.find("pow2n")) != std::string::npos;) {
      formula.replace(at, 5, "pow(2,E)");
    }
    const FormulaTask& task = **find_formula_task("it", name);
    for (const std::uint64_t seed : {0, 1, 2}) {
      const auto miss = judge_formula(task, formula, seed);
      ASSERT_TRUE(miss.ok()) << name << ": " << miss.status().text();
      EXPECT_FALSE(*miss) << name << " at " << letters_text(task, (*miss)->letters) << ": "
                          << to_string((*miss)->said) << ", " << to_string((*miss)->right);
    }
    // A slightly wrong formula is refused, and so is a formula that holds at one input only.
    for (const std::string& wrong : {"(" + formula + ")*1.001", formula + "+1e-9*" + formula,
                                     std::string("0"), std::string("1")}) {
      const auto miss = judge_formula(task, wrong, 1);
      ASSERT_TRUE(miss.ok());
      EXPECT_TRUE(*miss) << name << ": " << wrong;
    }
  }
}

TEST(Formulas, AreJudgedWithTheInputThatShowsIt) {
  const Captured wrong =
      run_captured({"check", "--task", "dp_bytes", "--formula", "2*S", "--seed", "7"});
  EXPECT_EQ(wrong.exit, 1);
  EXPECT_THAT(wrong.out, HasSubstr("wrong at N = 2, S = 1:\n  the formula says 2, the engine 1\n"));
  const Captured right = run_captured(
      {"check", "--task", "dp_bytes", "--formula", "2*S*(N-1)/N", "--seed", "7", "--json"});
  EXPECT_EQ(right.exit, 0);
  EXPECT_TRUE(json::parse(right.out)["right"].get<bool>());
  const Captured shown = run_captured({"check", "--task", "dp_bytes"});
  EXPECT_THAT(shown.out, HasSubstr("  N  ranks, from 2 to 33\n"));
  const Captured all = run_captured({"check", "--tasks"});
  for (const FormulaTask& task : formula_tasks()) {
    EXPECT_THAT(all.out, HasSubstr(std::string(task.name) + " "));
  }
}

}  // namespace
}  // namespace rankine::tools
