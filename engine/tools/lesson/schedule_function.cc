#include "engine/tools/lesson/schedule_function.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "engine/base/json_text.h"
#include "engine/base/replace_file.h"
#include "engine/base/units.h"
#include "engine/tools/input_stream.h"
#include "engine/tools/lesson/course.h"
#include "engine/tools/lesson/run_program.h"

namespace rankine::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "schedule_to_check.h", kDriver = "schedule_to_check.py";
constexpr ProgramLimits kCompiling = {std::chrono::seconds{120}, std::size_t{1} << 20};
constexpr ProgramLimits kAsking = {std::chrono::seconds{20}, kMostJsonBytes};

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

Result<ScheduleFunction> ScheduleFunction::open(const std::string& path) {
  if (Status status = check_input("FILE", path); !status.ok()) return status;
  const char* const set = std::getenv("TMPDIR");
  const std::string temporary = set != nullptr && *set != 0 ? set : "/tmp";
  std::string name = temporary + "/rankine_check_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    return Status(Code::system, fmt::format("TMPDIR is '{}', where no folder can be made: {}",
                                            temporary, std::strerror(errno)));
  }
  auto folder = std::make_shared<Folder>();
  folder->name = std::move(name);
  const bool python = path.ends_with(".py");
  ScheduleFunction out;
  out.path_ = path;
  out.folder_ = folder;
  const std::string_view example = python ? kDriver : kHeader;
  if (Status status = write_example(folder->name, example); !status.ok()) return status;
  if (python) {
    out.command_ = {"python3", fmt::format("{}/{}", folder->name, kDriver), path};
    return out;
  }
  const std::string program = folder->name + "/schedule";
  const auto compiled = run_program(
      {"c++", "-std=c++17", "-D_GLIBCXX_ASSERTIONS", "-I", folder->name, "-o", program, path},
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
  const auto end = run_program(std::move(words), kAsking);
  if (!end.ok()) return wrong(end.status().code(), end.status().text());
  if (!end->failure.empty()) {
    const std::string said = without_end(end->err);
    return wrong(Code::invalid_argument, said.empty() ? end->failure : said);
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
