// Tests of rankine lesson and rankine check.

#include <nlohmann/json.hpp>

#include "engine/cli/judge.h"
#include "engine/lab/lesson/course.h"
#include "engine/lab/lesson/formula_tasks.h"
#include "engine/lab/lesson/written_order.h"
#include "engine/lab/page/answers.h"
#include "engine/read/verify.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

// rankine lesson: runs every command of every lesson as a reader would, and compares the output
// with the lesson.

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
  for (const std::string& line : lines_of(markdown)) {
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
    output_of("lesson -o " + folder());
  }
  static std::string& folder() {
    static std::string name;
    return name;
  }
  static std::vector<std::string> files(const std::string& below) {
    std::vector<std::string> out;
    for (const auto& entry : fs::directory_iterator(folder() + below)) {
      if (entry.is_regular_file()) out.push_back(entry.path());
    }
    return out;
  }
  static std::string in_folder(const std::string& line) {
    return "cd '" + folder() + "' && export PATH='" + fs::absolute("engine/cli").string() +
           "':$PATH && " + line;
  }
  static Shell shell(const std::string& line) { return run_shell(in_folder(line)); }
};

TEST_F(Course, HasSixLessonsWithTasks) {
  // With the overview and the answers; beside rankine.html if the page has been built.
  const auto pages = files("");
  ASSERT_EQ(std::count_if(pages.begin(), pages.end(),
                          [](const std::string& file) { return file.ends_with(".md"); }),
            8);
  int numbered = 0;
  for (const std::string& lesson : files("")) {
    const std::string text = text_of(lesson), name = fs::path(lesson).filename();
    if (name[0] < '1' || name[0] > '6') continue;
    ++numbered;
    EXPECT_GE(count_of(text, "\n## Task "), 4U) << name;
    EXPECT_TRUE(has(text_of(folder() + "/README.md"), "(" + name + ")"));
  }
  EXPECT_EQ(numbered, 6);
}

TEST_F(Course, EveryCommandSaysWhatIsPrintedBelowIt) {
  std::size_t answered = 0, lines = 0;
  for (const std::string& lesson : files("")) {
    const Commands commands = commands_of(text_of(lesson));
    for (const Command& command : commands.answered) {
      EXPECT_EQ(shown_by(in_folder(command.line)), command.printed)
          << lesson << ": " << command.line;
      EXPECT_NE(command.printed, "") << command.line;
      ++answered;
    }
    for (const Command& command : commands.for_the_shell) {
      const Shell said = shell(command.line);
      EXPECT_EQ(said.exit, 0) << command.line << "\n" << said.text;
      EXPECT_TRUE(has(said.text, "\nproved")) << command.line;
      ++lines;
    }
  }
  EXPECT_GT(answered, 60u);
  EXPECT_GE(lines, 3u);
}

TEST_F(Course, ExamplesAreProvedForAnyNumberOfRanks) {
  for (const std::string program :
       {"rankine check examples/all_gather.py --ranks 1..9,13",
        "rankine check examples/all_gather.cc --ranks 1..9,13",
        "rankine check examples/alternate_ring.py --ranks 1..9,13",
        // As separate programs, which print schedules for rankine check.
        "g++ -std=c++17 -o all_gather examples/all_gather.cc && ./all_gather 6 | rankine check -",
        "python3 examples/schedule_to_check.py examples/all_gather.py 6 | rankine check -"}) {
    const Shell said = shell(program);
    EXPECT_EQ(said.exit, 0) << program << "\n" << said.text;
    EXPECT_TRUE(!has(program, "--ranks") || has(said.text, "\nproved for N = 1-9,13\n"));
  }
  // An experiment that the lesson suggests.
  const Shell wrong = shell(
      "grep -v other_bits examples/alternate_ring.py > mine.py; rankine check mine.py; "
      "left=$?; rm mine.py; exit $left");
  EXPECT_TRUE(has(wrong.text, "other_order")) << wrong.text;
}

TEST_F(Course, TasksAreWrongAndTheirAnswersProved) {
  std::set<std::string> tasks, answers;
  for (const std::string& task : files("/tasks")) {
    tasks.insert(fs::path(task).filename());
    EXPECT_EQ(run_line("check " + task).exit, 1) << task;
  }
  for (const std::string& answer : files("/answers")) {
    answers.insert(fs::path(answer).filename());
    EXPECT_EQ(run_line("check " + answer).exit, 0) << answer;
  }
  EXPECT_EQ(tasks, answers);
  EXPECT_GE(tasks.size(), 8u);
  std::string all;
  const std::string told = text_of(folder() + "/answers.md");
  for (const std::string& lesson : files("")) {
    if (!lesson.ends_with("answers.md")) all += text_of(lesson);
  }
  for (const std::string& task : tasks) EXPECT_TRUE(has(all, "tasks/" + task)) << task;
  for (const FormulaTask& task : formula_tasks()) {
    const std::string option = "--task " + std::string(task.name);
    EXPECT_TRUE(has(all, option) && has(told, option + " --formula")) << option;
  }
  for (const Command& command : commands_of(told).answered) {
    EXPECT_EQ(shell(command.line).exit, 0) << command.line;
  }
}

TEST(Lesson, LeavesWhatIsThereAlone) {
  const std::string folder = new_folder(), file = folder + "/mine.txt";
  std::ofstream(file) << "mine";
  EXPECT_EQ(run_line("lesson -o " + folder).exit, 2);
  EXPECT_EQ(run_line("lesson -o " + file).exit, 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
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

// rankine check; tests/engine/cli/answers.txt has a schedule and an order for each kind of error.

json checked(const std::string& text, const std::string& more = "") {
  const Captured run = run_line("check " + file_with("it.txt", text) + " --json" + more);
  EXPECT_EQ(run.err, "") << text;
  json out = json::parse(run.out);
  EXPECT_EQ(run.exit, out["proved"].get<bool>() ? 0 : 1) << run.out;
  return out;
}

TEST(Orders, ThatHaveNamesTakeWhatTheyTake) {
  for (const auto order : {PipelineOrder::gpipe, PipelineOrder::one_f_one_b, PipelineOrder::zb1p,
                           PipelineOrder::zb2p}) {
    const bool weights = order == PipelineOrder::zb1p || order == PipelineOrder::zb2p;
    for (const int stages : {1, 2, 5}) {
      for (const int micro_batches : {1, 4, 11}) {
        PipelineQuestion question;
        question.order = order;
        question.stages = stages;
        question.micro_batches = micro_batches;
        std::string text = "pipeline " + std::to_string(stages) + " micro_batches " +
                           std::to_string(micro_batches) + " forward 2 backward 3 hop 1" +
                           (weights ? " weights 2\n" : "\n");
        const StageOrders orders = orders_of(question);
        for (std::size_t s = 0; s < orders.size(); ++s) {
          text += std::to_string(s) + ":";
          for (const Task& task : orders[s]) text += " " + task_text(task);
          text += "\n";
        }
        const json said = checked(text);
        EXPECT_EQ(said["tasks"], stages * micro_batches * (weights ? 3 : 2));
        for (const json& named : said["named"]) {
          if (named["order"] != name_of(order)) continue;
          for (const char* member : {"time", "idle", "kept"}) {
            EXPECT_EQ(said["yours"][member], named[member]) << member << " " << said;
          }
        }
      }
    }
  }
}

// The page gives the same answer, with the passes that can be played.
TEST(Orders, AreJudgedByThePageToo) {
  for (const std::string text :
       {"pipeline 2 micro_batches 2\n0: F0..1 B0\n1: F0..1 B0..1\n",
        "pipeline 2 micro_batches 2 within 9\n0: F0 B0 F1 B1\n1: F0 B0 F1 B1\n"}) {
    const json said = checked(text);
    EXPECT_FALSE(said["rule"].get<std::string>().empty());
    const PageAnswer there = answer_page(json{{"ask", "check"}, {"text", text}}.dump());
    json page = json::parse(there.json);
    EXPECT_EQ(page["columns"].size(), 6u);
    page.erase("columns");
    EXPECT_EQ(page, said);
    EXPECT_EQ(there.numbers.empty(), said["kind"] == "missing");
    EXPECT_LE(there.numbers.size(), 6 * said["tasks"].get<std::size_t>());
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

// A schedule written out from the catalogue costs as much as the catalogue's entry.
TEST(Check, CostsAreTheSimulators) {
  for (const char* algorithm : {"ring", "recursive_doubling", "direct_two_shot", "double_tree"}) {
    const std::string line = std::string(" all_reduce --ranks 8 --algo ") + algorithm;
    for (const std::string network : {" --network plain", " --network torus"}) {
      const json there = json_of("simulate --bytes 1M --json" + line + network);
      const json here = checked(output_of("show --format text" + line), network);
      EXPECT_EQ(here["time"], there["time"]) << algorithm << " " << network;
      EXPECT_EQ(here["rounds"], there["rounds"]);
      EXPECT_EQ(here["bytes"].get<double>(), there["sent_max"].get<double>());
      EXPECT_LE(here["best"]["time"].get<double>(), here["time"].get<double>() * (1 + 1e-3));
      EXPECT_GE(here["rounds"], here["least_rounds"]);
      EXPECT_GE(here["bytes"].get<double>(), here["least_bytes"].get<double>());
    }
  }
  const json here = checked("broadcast 3 root 2\nround\n2 -> 0: 0\nround\n2 -> 1: 0\n",
                            " --network scale_out --bytes 64");
  const json chosen =
      json_of("choose broadcast --ranks 3 --bytes 64 --network scale_out --json")["choice"];
  EXPECT_EQ(here["best"]["algorithm"], chosen["algorithm"]);
  EXPECT_EQ(here["least_rounds"], 2);
  EXPECT_EQ(here["send_ports"], 1);
}

TEST(Check, ReadsStandardInputAndSwitches) {
  ToolProcess tool({"check", "-"});
  ASSERT_TRUE(tool.ask("all_gather 2\nround\n0 <-> 1: 0\n"));
  tool.close_in();
  EXPECT_TRUE(has(tool.rest(), "not_there at round 0, rank 1, block 0"));
  EXPECT_EQ(tool.wait(), 1);
  const std::string line = "check " + file_with("switch.txt", "broadcast 4\nround\n0 -> 1..3: 0\n");
  EXPECT_EQ(run_line(line).exit, 2);
  EXPECT_EQ(run_line(line + " --multicast").exit, 0);
  EXPECT_EQ(run_line(line + " --lower").exit, 0);
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
      {"crossover", "A*W*(2*(pow(2,E)-1)-E)/(E-2*(pow(2,E)-1)/pow(2,E))"},
      {"dp_bytes", "2*(N-1)/N*S"},
      {"fsdp_bytes", "3*(N-1)/N*S"},
      {"tp_bytes", "4*2*(N-1)/N*2*T*H"},
      {"accumulation_bytes", "3*K*(N-1)/N*S"},
      {"bubble", "(P-1)*(F+B)"},
  };
  ASSERT_EQ(right.size(), formula_tasks().size());
  for (const auto& [name, formula] : right) {
    const FormulaTask& task = **find_formula_task("it", name);
    for (const std::uint64_t seed : {0, 1, 2}) {
      const auto miss = judge_formula(task, formula, seed);
      ASSERT_TRUE(miss.ok()) << name << ": " << miss.status().text();
      EXPECT_FALSE(*miss) << name << " at " << letters_text(task, (*miss)->letters);
    }
    // A slightly wrong formula is refused, and so is a formula that holds at one input only.
    for (const std::string& wrong : {"(" + formula + ")*1.001", formula + "+1e-9*" + formula,
                                     std::string("0"), std::string("1")}) {
      const auto miss = judge_formula(task, wrong, 1).value();
      EXPECT_TRUE(miss) << name << ": " << wrong;
    }
  }
  const std::string line = "check --task dp_bytes --seed 7 --json --formula ";
  EXPECT_TRUE(json_of(line + "2*S*(N-1)/N")["right"].get<bool>());
  EXPECT_EQ(run_line(line + "2*S").exit, 1);
  for (const std::size_t length : {300, 401}) {
    EXPECT_TRUE(has(run_line(line + std::string(length, '(')).err, "--formula"));
  }
}

}  // namespace
}  // namespace rankine::tools
