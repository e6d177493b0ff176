// rankine lesson: every command of every lesson is run as a reader would, and says what is printed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "engine/tools/lesson/course.h"
#include "engine/tools/lesson/formula_tasks.h"
#include "tests/engine/tools/captured_tool.h"

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
  std::string printed;  // below it
};
struct Commands {
  std::vector<Command> answered, for_the_shell;
};

Commands commands_of(const std::string& markdown) {
  Commands out;
  std::string block;
  bool first = true;  // command of it
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
      // An empty line stands between two.
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

// The course, once; and what a shell in it says.
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
    const std::string programs = fs::absolute("engine/tools").string();
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
  ASSERT_EQ(lessons().size(), 8u);  // and the overview, and the answers
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
  // As programs of their own, which print what is judged.
  for (const std::string& program :
       {std::string("g++ -std=c++17 -o all_gather examples/all_gather.cc && ./all_gather 6"),
        std::string("python3 examples/schedule_to_check.py examples/all_gather.py 6")}) {
    const Said said = shell(program + " | rankine check -");
    EXPECT_EQ(said.exit, 0) << program << "\n" << said.text;
  }
  // What the lesson has the reader try.
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
  EXPECT_THAT(taken.err, HasSubstr("in which there are files"));
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
}  // namespace rankine::tools
