#include "engine/tools/lesson/lesson.h"

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
#include "engine/tools/lesson/course.h"
#include "engine/tools/page/built_page.h"

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;

// Where nothing is yet, so that nobody's answers are lost.
Status make_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error)) {
    if (!fs::is_directory(folder, error)) {
      return invalid_argument(fmt::format("--output is '{}', which is no folder", folder));
    }
    if (!fs::is_empty(folder, error)) {
      return invalid_argument(
          fmt::format("--output is '{}', in which there are files; allowed are new and empty "
                      "folders",
                      folder));
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

// The files of the course that a command names are in the folder.
std::string in_folder(const std::string& word, const std::string& folder) {
  constexpr std::array<std::string_view, 3> kFolders = {"tasks/", "answers/", "examples/"};
  const bool names = std::any_of(kFolders.begin(), kFolders.end(),
                                 [&](std::string_view each) { return word.starts_with(each); });
  return names ? folder + "/" + word : word;
}

Result<std::string> said_by(const RunTool& run, std::vector<std::string> words,
                            const std::string& folder) {
  for (std::string& word : words) word = in_folder(word, folder);
  std::ostringstream said;
  Console console{.out = said, .err = said};
  const Exit exit = run(words, console);
  // A verdict may be that something is wrong; a command may not.
  if (exit == Exit::ok || exit == Exit::wrong) return said.str();
  return Status(Code::system, said.str());
}

Result<Exit> run_lesson(const std::string& folder, const RunTool& run, Console& console) {
  if (folder.empty()) return invalid_argument("--output is '', which is no folder's name");
  if (Status status = make_folder(folder); !status.ok()) return status;
  const std::vector<EmbeddedFile> files = course_files();
  const auto is_lesson = [](const EmbeddedFile& file) { return file.name.ends_with(".md"); };
  for (const EmbeddedFile& file : files) {
    if (is_lesson(file)) continue;
    if (Status status = write_file(folder + "/" + file.name, file.text); !status.ok()) {
      return status;
    }
  }
  // Their commands read the others.
  Progress progress(console);
  for (const EmbeddedFile& file : files) {
    if (!is_lesson(file)) continue;
    progress.show(file.name);
    const auto text = with_answers(file.text, [&](const std::vector<std::string>& words) {
      return said_by(run, words, folder);
    });
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

Subcommand add_lesson(Command tool, RunTool run) {
  auto folder = std::make_shared<std::string>();
  const Command app = tool.add_subcommand(
      "lesson", "write a course of six lessons with tasks, and the page: a folder to learn from");
  add_text(app, "-o,--output", *folder, "FOLDER", "where to write it: a new folder").required();
  app.footer(
      "Lessons are Markdown; every figure in them is what the engine says while they are "
      "written.\nTasks are checked by 'rankine check', and answers are there to look at.\n"
      "Examples:\n"
      "  rankine lesson -o course\n"
      "Exit codes: 0 written, 2 usage, 3 files that cannot be written.");
  return {app, [folder, run = std::move(run)](Console& console) {
            return run_lesson(*folder, run, console);
          }};
}

}  // namespace rankine::tools
