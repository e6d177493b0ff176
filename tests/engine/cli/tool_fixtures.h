// Fixtures of the tool's tests: run_line() runs a command line inside the test, ToolProcess runs
// the program as a child process. Further functions read files, JSON and the XML of pictures.
#pragma once

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "engine/cli/tool.h"
#include "engine/lab/commands.h"
#include "engine/lab/lesson/course.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace rankine::tools {

using testing_processes::Spawned;

struct Captured {
  int exit = -1;
  std::string out, err;
};

inline Captured run_captured(const std::vector<std::string>& arguments) {
  std::ostringstream out, err;
  Console console{.out = out, .err = err};
  const int exit = static_cast<int>(run_lab(arguments, console));
  return {exit, out.str(), err.str()};
}

// Words between blanks, as a shell reads them; single quotes hold blanks.
inline std::vector<std::string> words_of(std::string_view line) { return command_words(line); }

inline Captured run_line(const std::string& line) { return run_captured(words_of(line)); }

// The lines of a text without their ends.
inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The output of a command that must succeed.
inline std::string output_of(const std::string& line) {
  const Captured run = run_line(line);
  EXPECT_EQ(run.exit, 0) << line << ": " << run.err;
  return run.out;
}
// The JSON of such a command, or the JSON of its lines.
inline nlohmann::ordered_json json_of(const std::string& line) {
  return nlohmann::ordered_json::parse(output_of(line), nullptr, false);
}
inline std::vector<nlohmann::ordered_json> json_lines_of(const std::string& line) {
  std::vector<nlohmann::ordered_json> all;
  for (const std::string& one : lines_of(output_of(line))) {
    all.push_back(nlohmann::ordered_json::parse(one, nullptr, false));
  }
  return all;
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}
inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; at += part.size()) ++count;
  return count;
}

inline std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
// A file in the test's folder; returns its path.
inline std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}
inline std::string new_folder() {
  std::string folder = testing::TempDir() + "/folder_XXXXXX";
  return mkdtemp(folder.data()) != nullptr ? folder : "";
}

// RANKINE_TUNING during its lifetime: by default a new file, so the user's cache stays as it is;
// afterwards "off", as third_party/test sets it. A process reads its table once.
class OwnTuning {
 public:
  explicit OwnTuning(std::string value = new_folder() + "/tuning.json") : file(std::move(value)) {
    set(file);
  }
  ~OwnTuning() { set("off"); }
  OwnTuning(const OwnTuning&) = delete;
  OwnTuning& operator=(const OwnTuning&) = delete;
  static void set(const std::string& value) { setenv("RANKINE_TUNING", value.c_str(), 1); }

  const std::string file;
};

struct Shell {
  int exit = -1;
  std::string text;  // standard output and standard error
};
inline Shell run_shell(const std::string& line) {
  Spawned shell({"sh", "-c", "{ " + line + "\n} 2>&1"});
  shell.close_in();
  std::string text = shell.rest(Spawned::kPatience);
  return {shell.wait(), std::move(text)};
}

// What a document shows of a command: standard output, and errors if it fails. A slow machine also
// prints progress.
inline std::string shown_by(const std::string& line) {
  return run_shell("{ errors=$({ " + line +
                   "\n} 2>&1 1>&3); } 3>&1 || [ -z \"$errors\" ] || "
                   "echo \"$errors\"")
      .text;
}

inline bool is_well_formed(const std::string& xml) {
  const std::string file = file_with("picture.xml", xml);
  return run_shell("python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' " + file)
             .exit == 0;
}

// The program `rankine` as a child process.
struct ToolProcess : Spawned {
  explicit ToolProcess(std::vector<std::string> arguments, int out = kPipe)
      : Spawned(with_program(std::move(arguments)), {}, out) {}

 private:
  static std::vector<std::string> with_program(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "engine/cli/rankine");
    return arguments;
  }
};

}  // namespace rankine::tools
