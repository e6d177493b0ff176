#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <ostream>
#include <sstream>
#include <system_error>
#include <utility>

#include "engine/base/files.h"
#include "engine/cli/arguments.h"
#include "engine/cli/judge.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/lab/commands.h"
#include "engine/lab/lesson/course.h"
#include "engine/lab/lesson/formula_tasks.h"
#include "engine/lab/lesson/written_order.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kPrompt = "$ rankine ", kHead = " | head -";

std::string first_lines(const std::string& text, int lines) {
  std::size_t at = 0;
  for (int i = 0; i < lines && at < text.size(); ++i) {
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  return text.substr(0, at);
}

Result<std::string> answer_to(std::string_view line, const AnswerCommand& answer) {
  if (!line.starts_with(kPrompt)) {
    return invalid_argument(
        fmt::format("'{}' is not a command; commands begin with '{}'", line, kPrompt));
  }
  std::string_view command = line.substr(kPrompt.size());
  int lines = 0;
  if (const std::size_t head = command.find(kHead); head != command.npos) {
    const auto asked = parse_whole("head", command.substr(head + kHead.size()), 1, 1000);
    if (!asked.ok()) return asked.status();
    lines = *asked;
    command = command.substr(0, head);
  }
  auto said = answer(command_words(command));
  if (!said.ok()) {
    return Status(said.status().code(), fmt::format("'{}': {}", line, said.status().text()));
  }
  return lines > 0 ? first_lines(*said, lines) : std::move(*said);
}

}  // namespace

std::vector<EmbeddedFile> course_files() {
  std::vector<EmbeddedFile> files;
  for (EmbeddedFile& file : course_texts()) {
    if (!file.name.ends_with(".txt")) {
      files.push_back(std::move(file));
      continue;
    }
    // tasks.txt and answers.txt: files of a folder, each below its name in brackets.
    const std::string folder = file.name.substr(0, file.name.size() - 4) + "/";
    std::istringstream text(file.text);
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with('[')) {
        files.push_back({folder + line.substr(1, line.size() - 2), {}});
      } else {
        files.back().text += fmt::format("{}\n", line);
      }
    }
  }
  for (EmbeddedFile& file : check_files()) {
    files.push_back({"examples/" + file.name, std::move(file.text)});
  }
  return files;
}

std::vector<std::string> command_words(std::string_view command) {
  std::vector<std::string> words;
  bool quoted = false, inside = false;  // inside quotes; inside a word
  for (const char c : command) {
    if (c == '\'') {
      quoted = !quoted;
    } else if (c == ' ' && !quoted) {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (c != '\'') words.back() += c;
  }
  return words;
}

Result<std::string> with_answers(std::string_view markdown, const AnswerCommand& answer) {
  std::string out;
  bool commands = false, first = true;  // inside a block of commands; before its first answer
  for (std::size_t at = 0; at < markdown.size();) {
    const std::size_t end = std::min(markdown.find('\n', at), markdown.size());
    const std::string_view line = markdown.substr(at, end - at);
    at = end + 1;
    const bool fence = line.starts_with("```");
    if (commands && !fence && !first) out += '\n';
    out += fmt::format("{}\n", line);
    if (commands && !fence) {
      const auto said = answer_to(line, answer);
      if (!said.ok()) return said.status();
      out += *said;
      first = false;
    }
    if (!fence) continue;
    commands = !commands && line == "```console";
    first = true;
  }
  return out;
}

namespace {

namespace fs = std::filesystem;

// Makes the folder; refuses a folder with files, so that no learner's answers are lost.
Status make_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    if (!fs::is_directory(folder, error)) {
      return invalid_argument(fmt::format(
          "--output is '{}', which is not a folder; allowed are new and empty folders", folder));
    }
    if (!fs::is_empty(folder, error)) {
      return invalid_argument(fmt::format(
          "--output is '{}', which contains files; allowed are new and empty folders", folder));
    }
  }
  if (!error) fs::create_directories(folder, error);
  if (!error) return {};
  return Status(Code::system, fmt::format("--output is '{}': {}", folder, error.message()));
}

Status write_file(const std::string& path, std::string_view text) {
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  return of_option("--output", replace_file(path, text));
}

// A command's word with the folder's path before it if the word names a file of the course.
std::string in_folder(const std::string& word, const std::string& folder) {
  constexpr std::array<std::string_view, 3> kFolders = {"tasks/", "answers/", "examples/"};
  const bool names = std::any_of(kFolders.begin(), kFolders.end(),
                                 [&](std::string_view each) { return word.starts_with(each); });
  return names ? folder + "/" + word : word;
}

Result<std::string> said_by(std::vector<std::string> words, const std::string& folder) {
  for (std::string& word : words) word = in_folder(word, folder);
  std::ostringstream said;
  Console console{.out = said, .err = said};
  const Exit exit = run_lab(words, console);  // the engine answers as it is now
  // Exit::wrong is allowed, because it can be a verdict; an error of the command is not.
  if (exit == Exit::ok || exit == Exit::wrong) return said.str();
  return Status(Code::system, said.str());
}

Result<Exit> run_lesson(const std::string& folder, Console& console) {
  if (folder.empty()) return invalid_argument("--output is ''; allowed are names of folders");
  if (Status status = make_folder(folder); !status.ok()) return status;
  const std::vector<EmbeddedFile> files = course_files();
  const auto is_lesson = [](const EmbeddedFile& file) { return file.name.ends_with(".md"); };
  for (const EmbeddedFile& file : files) {
    if (is_lesson(file)) continue;
    if (Status status = write_file(folder + "/" + file.name, file.text); !status.ok()) {
      return status;
    }
  }
  // Lessons come last, because their commands read the other files.
  Progress progress(console);
  for (const EmbeddedFile& file : files) {
    if (!is_lesson(file)) continue;
    progress.show(file.name);
    const auto text = with_answers(
        file.text, [&](const std::vector<std::string>& words) { return said_by(words, folder); });
    if (!text.ok()) {
      return Status(text.status().code(), fmt::format("{}: {}", file.name, text.status().text()));
    }
    if (Status status = write_file(folder + "/" + file.name, *text); !status.ok()) return status;
  }
  progress.clear();
  const std::vector<EmbeddedFile> page = built_page();
  for (const EmbeddedFile& file : page) {
    if (Status status = write_file(folder + "/" + file.name, file.text); !status.ok()) {
      return status;
    }
  }
  console.out << fmt::format("{} files in {}; begin with README.md\n", files.size() + page.size(),
                             folder);
  if (page.empty()) {
    console.err << "rankine lesson: the page is not in this build, so rankine.html is not there; "
                   "in Rankine's sources third_party/page --to FILE writes it\n";
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_lesson(Command tool) {
  auto folder = std::make_shared<std::string>();
  const Command app = tool.add_subcommand(
      "lesson", "write a course of six lessons with tasks, and the page: a folder to learn from");
  add_text(app, "-o,--output", *folder, "FOLDER", "a new folder for the course").required();
  app.footer(
      "Lessons are Markdown; the engine computes every figure in them while they are "
      "written.\n'rankine check' checks the tasks; the folder also contains answers.\n"
      "Examples:\n"
      "  rankine lesson -o course\n"
      "Exit codes: 0 written, 2 usage, 3 files that cannot be written.");
  return {app, [folder](Console& console) { return run_lesson(*folder, console); }};
}

namespace {

void print_task(const FormulaTask& task, Console& console) {
  console.out << fmt::format("{}\n\n", task.question);
  for (const TaskLetter& one : task.letters) {
    console.out << fmt::format("  {}  {}, from {} to {}\n", one.letter, one.meaning,
                               formulas::to_string(Rational(one.lowest) * one.unit),
                               formulas::to_string(Rational(one.highest) * one.unit));
  }
}

Result<Exit> list_tasks(bool json, Console& console) {
  for (const FormulaTask& task : formula_tasks()) {
    if (json) {
      console.out << Json{{"task", task.name}, {"question", task.question}}.dump() << '\n';
    } else {
      console.out << fmt::format("{:<19} {}\n", task.name, task.question);
    }
  }
  return Exit::ok;
}

Result<Exit> check_formula(const FormulaArguments& a, bool json, Console& console) {
  if (a.list) return list_tasks(json, console);
  const auto task = find_formula_task("--task", a.task);
  if (!task.ok()) return task.status();
  if (a.formula.empty()) {
    print_task(**task, console);
    return Exit::ok;
  }
  const std::uint64_t seed = a.seed.value_or(1);
  const auto miss = judge_formula(**task, a.formula, seed);
  if (!miss.ok()) return of_option("--formula", miss.status());
  const bool right = !miss->has_value();
  if (json) {
    console.out << formula_json(**task, a.formula, seed, *miss).dump() << '\n';
  } else if (right) {
    console.out << fmt::format("right: equal to the engine's value at {} inputs drawn by seed {}\n",
                               kFormulaTrials, seed);
  } else {
    console.out << fmt::format("wrong at {}:\n  the formula says {}, the engine {}\n",
                               letters_text(**task, (*miss)->letters),
                               formulas::to_string((*miss)->said),
                               formulas::to_string((*miss)->right));
  }
  return right ? Exit::ok : Exit::wrong;
}

Result<Exit> check_order(std::string_view text, bool json, Console& console) {
  const auto written = read_order(text);
  if (!written.ok()) return written.status();
  const OrderJudgement judged = judge_order(*written);
  console.out << (json ? order_json(*written, judged).dump() + "\n" : order_text(*written, judged));
  return judged.fault ? Exit::wrong : Exit::ok;
}

}  // namespace

const CheckLaboratory kCheckLaboratory = {.formula = check_formula, .order = check_order};

}  // namespace rankine::tools
