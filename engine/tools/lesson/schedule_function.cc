#include "engine/tools/lesson/schedule_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/environment_variable.h"
#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/tools/input_stream.h"
#include "engine/tools/lesson/course.h"
#include "engine/tools/lesson/run_program.h"

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "schedule_to_check.h", kDriver = "schedule_to_check.py";
constexpr ProgramLimits kCompiling = {std::chrono::seconds{120}, std::size_t{1} << 20,
                                      std::size_t{4} << 30};

std::string without_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

Status write_example(const std::string& folder, std::string_view name) {
  const auto files = course_files();
  const auto found = std::find_if(files.begin(), files.end(), [name](const EmbeddedFile& file) {
    return file.name == fmt::format("examples/{}", name);
  });
  return replace_file(fmt::format("{}/{}", folder, name), found->text);
}

}  // namespace

struct ScheduleFunction::Folder {
  std::string name;

  Folder() = default;
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(name, ignored);
  }
};

bool ScheduleFunction::is_named(std::string_view path) {
  constexpr std::array<std::string_view, 4> kEnds = {".py", ".cc", ".cpp", ".cxx"};
  return std::any_of(kEnds.begin(), kEnds.end(),
                     [path](std::string_view end) { return path.ends_with(end); });
}

Result<ScheduleFunction> ScheduleFunction::open(const std::string& path,
                                                const FunctionLimits& limits) {
  if (Status status = check_input("FILE", path); !status.ok()) return status;
  const char* const set = environment_variable("TMPDIR");
  const std::string temporary = set != nullptr && *set != 0 ? set : "/tmp";
  std::string name = temporary + "/rankine_check_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    return Status(Code::system, fmt::format("TMPDIR is '{}', where no folder can be made: {}",
                                            temporary, std::strerror(errno)));
  }
  auto folder = std::make_shared<Folder>();
  folder->name = std::move(name);
  std::error_code error;
  const std::string file = fs::absolute(path, error);  // the program runs in another folder
  if (error) return Status(Code::system, fmt::format("FILE is '{}': {}", path, error.message()));
  const bool python = path.ends_with(".py");
  ScheduleFunction out;
  out.path_ = path;
  out.folder_ = folder;
  out.limits_ = limits;
  const std::string_view example = python ? kDriver : kHeader;
  if (Status status = write_example(folder->name, example); !status.ok()) return status;
  if (python) {
    out.command_ = {"python3", fmt::format("{}/{}", folder->name, kDriver), file};
    return out;
  }
  const std::string program = folder->name + "/schedule";
  const auto compiled = run_program({.words = {"c++", "-std=c++17", "-D_GLIBCXX_ASSERTIONS", "-I",
                                               folder->name, "-o", program, file},
                                     .folder = folder->name,
                                     .variables = {"TMPDIR=" + folder->name}},
                                    kCompiling);
  if (!compiled.ok()) return compiled.status();
  if (!compiled->failure.empty()) {
    return invalid_argument(
        fmt::format("{} does not compile:\n{}", path, without_end(compiled->err)));
  }
  out.command_ = {program};
  return out;
}

Result<WrittenSchedule> ScheduleFunction::schedule(int ranks) const {
  const auto wrong = [&](Code code, std::string_view text) {
    return Status(code, fmt::format("{}, at N = {}: {}", path_, ranks, text));
  };
  std::vector<std::string> words = command_;
  words.push_back(std::to_string(ranks));
  const auto end =
      run_program({.words = std::move(words), .folder = folder_->name},
                  {.time = limits_.time, .bytes = kMostJsonBytes, .memory = limits_.memory});
  if (!end.ok()) {
    const bool beyond = end.status().code() == Code::invalid_argument;
    return wrong(end.status().code(),
                 end.status().text() + (beyond ? "; --seconds sets its time" : ""));
  }
  if (!end->failure.empty()) {
    const std::string said = without_end(end->err);
    // As Python and C++ name it.
    const bool no_memory = said.find("MemoryError") != std::string::npos ||
                           said.find("bad_alloc") != std::string::npos;
    return wrong(Code::invalid_argument,
                 (said.empty() ? end->failure : said) +
                     (no_memory ? fmt::format("; it has {}, and --memory sets how much",
                                              format_bytes(limits_.memory))
                                : ""));
  }
  auto written = read_schedule(end->out);
  if (!written.ok()) return wrong(written.status().code(), written.status().text());
  if (written->goal.ranks != ranks) {
    return wrong(Code::invalid_argument,
                 "the schedule is one of " + counted(written->goal.ranks, "rank"));
  }
  return written;
}

}  // namespace rankine::tools
