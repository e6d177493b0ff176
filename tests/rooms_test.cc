// Includes between the rooms. Arrows go down only, never to tests or bench; the product includes
// nothing of the laboratory; engine/run includes no schedule, program or algorithm; public
// headers show nothing of the inside.

#include <cctype>
#include <regex>

#include "tests/testing.h"

namespace rankine {
namespace {

namespace fs = std::filesystem;

// From the ground up. The product ends with engine/cli; the other rooms are the laboratory.
const std::vector<std::string> kRooms = {
    "algorithms", "engine/base", "numa",       "engine/run",    "engine/compile", "engine/network",
    "engine/api", "engine/read", "engine/cli", "engine/papers", "engine/faults",  "engine/lab"};
constexpr std::ptrdiff_t kProductEnds = 8;  // engine/cli, the last room of the product
constexpr std::size_t kMostArrows = 46;     // between the rooms above

std::string room_of(const std::string& path) {
  for (const std::string& room : kRooms) {
    if (path.starts_with(room + "/")) return room;
  }
  return {};
}

// Tests, benchmarks and unknown files are above all rooms.
std::ptrdiff_t floor_of(const std::string& room) {
  return std::find(kRooms.begin(), kRooms.end(), room) - kRooms.begin();
}

// The includes of each source file by paths of the tree. Bazel starts a test in the folder that
// holds the sources.
using Includes = std::map<std::string, std::set<std::string>>;
const Includes& includes() {
  static const Includes all = [] {
    Includes found;
    for (const char* root : {"algorithms", "numa", "engine"}) {
      for (const auto& entry : fs::recursive_directory_iterator(root)) {
        const std::string extension = entry.path().extension().string();
        if (extension != ".h" && extension != ".cc") continue;
        auto& of_file = found[entry.path().string()];
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) {
          constexpr std::string_view kBegin = "#include \"";
          if (!line.starts_with(kBegin)) continue;
          const std::string path = line.substr(kBegin.size(), line.rfind('"') - kBegin.size());
          of_file.insert(path);
        }
      }
    }
    return found;
  }();
  return all;
}

// Everything that a file sees, itself included.
std::set<std::string> seen_from(const std::string& file) {
  std::set<std::string> seen = {file};
  std::vector<std::string> todo = {file};
  while (!todo.empty()) {
    const std::string next = todo.back();
    todo.pop_back();
    const auto found = includes().find(next);
    if (found == includes().end()) continue;
    for (const std::string& path : found->second) {
      if (seen.insert(path).second) todo.push_back(path);
    }
  }
  return seen;
}

TEST(Rooms, AreAllThere) {
  for (const std::string& room : kRooms) {
    std::size_t files = 0;
    for (const auto& [file, unused] : includes()) files += room_of(file) == room ? 1 : 0;
    EXPECT_GE(files, 5u) << room;
  }
}

TEST(Rooms, EveryArrowGoesDown) {
  std::set<std::pair<std::string, std::string>> arrows;
  for (const auto& [file, paths] : includes()) {
    for (const std::string& path : paths) {
      const std::string from = room_of(file), to = room_of(path);
      if (from == to) continue;
      arrows.emplace(from, to);
      EXPECT_LT(floor_of(to), floor_of(from)) << file << " includes " << path;
    }
  }
  EXPECT_LE(arrows.size(), kMostArrows);
}

TEST(Rooms, TheProductSeesNothingOfTheLaboratory) {
  for (const auto& [file, unused] : includes()) {
    if (floor_of(room_of(file)) > kProductEnds) continue;
    for (const std::string& path : seen_from(file)) {
      EXPECT_LE(floor_of(room_of(path)), kProductEnds) << file << " sees " << path;
    }
  }
}

TEST(Rooms, WhatRunsACallSeesNoScheduleNoProgramAndNoAlgorithm) {
  for (const auto& [file, unused] : includes()) {
    if (room_of(file) != "engine/run") continue;
    for (const std::string& path : seen_from(file)) {
      EXPECT_NE(room_of(path), "engine/compile") << file << " sees " << path;
      // engine/run sees two headers of algorithms: the names of ranks, blocks and collectives.
      const bool words =
          path == "algorithms/schedule/blocks.h" || path == "algorithms/schedule/collective.h";
      EXPECT_TRUE(room_of(path) != "algorithms" || words) << file << " sees " << path;
    }
  }
}

// The class that a header's line defines in its namespace; empty: none. Nested ones are indented.
std::string defined_class(const std::string& line) {
  static const std::regex kDefinition(
      R"(^(?:struct|class|union|enum class) (?:alignas\([^)]*\) |\[\[\w+\]\] )*([\w:]*\w)( .*|)$)");
  std::smatch parts;
  if (line.ends_with(";") || !std::regex_match(line, parts, kDefinition)) return {};
  return parts[1];
}

// The linker takes one of two destructors of the same name for both: a crash where it was the other
// one's, or none as long as compilers inline them.
TEST(Rooms, NoClassIsDefinedTwice) {
  std::map<std::string, std::string> defined_in;
  for (const auto& [file, unused] : includes()) {
    if (!file.ends_with(".h")) continue;
    std::ifstream lines(file);
    std::string space;
    for (std::string line; std::getline(lines, line);) {
      constexpr std::string_view kBegin = "namespace ";
      if (line.starts_with(kBegin)) space = line.substr(kBegin.size());
      const std::string name = defined_class(line);
      if (name.empty()) continue;
      const auto [first, is_new] = defined_in.emplace(space + " " + name, file);
      EXPECT_TRUE(is_new) << name << " is defined in " << first->second << " and in " << file;
    }
  }
  EXPECT_GE(defined_in.size(), 300u);
}

// A privileged program must not obey its user's variables, so one place decides.
TEST(Rooms, TheEnvironmentIsReadAtOnePlace) {
  std::set<std::string> readers;
  for (const auto& [file, unused] : includes()) {
    std::ifstream lines(file);
    for (std::string line; std::getline(lines, line);) {
      const std::string code = line.substr(0, line.find("//"));
      const std::size_t environ = code.find("environ");
      const bool is_word = environ != std::string::npos && !std::isalpha(code[environ + 7]);
      if (is_word || code.find("getenv(") != std::string::npos) readers.insert(file);
    }
  }
  EXPECT_EQ(readers, std::set<std::string>{"engine/base/files.cc"});
}

TEST(Rooms, PublicHeadersShowNoInside) {
  for (const char* header : {"engine/api/communicator.h", "engine/api/member.h",
                             "engine/api/team.h", "engine/api/call.h", "engine/api/active.h",
                             "engine/api/buckets.h", "engine/api/network.h"}) {
    ASSERT_TRUE(includes().contains(header)) << header;
    for (const std::string& path : seen_from(header)) {
      EXPECT_NE(room_of(path), "engine/compile") << header << " shows " << path;
      for (const char* inside : {"algorithms/schedule/schedule.h", "algorithms/catalogue.h",
                                 "engine/run/plan.h", "engine/run/rank_control.h"}) {
        EXPECT_NE(path, inside) << header;
      }
    }
  }
}

// --- functions that C calls ---------------------------------------------------------------------

std::string without_comments(const std::string& file) {
  std::ifstream lines(file);
  std::string text;
  for (std::string line; std::getline(lines, line);) text += line.substr(0, line.find("//")) + "\n";
  return text;
}

// Behind the bracket that closes the one at `begin`.
std::size_t end_of(const std::string& text, std::size_t begin) {
  const char open = text[begin], close = open == '{' ? '}' : ')';
  int depth = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text[i] == open) ++depth;
    if (text[i] == close && --depth == 0) return i + 1;
  }
  return text.size();
}

// The calls in a function's body outside the guards that stop exceptions.
std::set<std::string> unguarded_calls(std::string body) {
  static const std::regex guard("\\b(guarded|start_mpi)\\s*\\("), call("(\\w+)\\s*\\(");
  for (std::smatch found; std::regex_search(body, found, guard);) {
    const auto begin = static_cast<std::size_t>(found.position());
    const auto bracket = begin + static_cast<std::size_t>(found.length()) - 1;
    body.erase(begin, end_of(body, bracket) - begin);
  }
  std::set<std::string> calls;
  for (std::sregex_iterator at(body.begin(), body.end(), call), end; at != end; ++at)
    calls.insert((*at)[1]);
  return calls;
}

// A program in C, Fortran or Python cannot catch what is thrown. (JavaScript can.)
TEST(Rooms, NothingIsThrownAtC) {
  // MPI's own functions, what is noexcept or guarded itself, words of the language, and the macros
  // that give lists of parameters.
  const std::regex may_be_called(
      "P?MPI_\\w*|call|tell|told|give|move_on|move_on_until_over|move_on_in_mpi|requests|"
      "reinterpret_cast|static_cast|RANKINE_\\w*|PARAMETERS|sizeof|if|for|while|return");
  int functions = 0;
  for (const auto& [file, unused] : includes()) {
    if (floor_of(room_of(file)) > kProductEnds) continue;
    const std::string text = without_comments(file);
    for (std::size_t at = 0; (at = text.find("extern \"C\" {", at)) != std::string::npos;) {
      const std::size_t end = end_of(text, text.find('{', at));
      std::size_t next = text.find('{', at) + 1, begin = next;
      for (; next < end; ++next) {
        if (text[next] == ';' || text[next] == '}') begin = next + 1;
        if (text[next] != '{') continue;
        const std::string header = text.substr(begin, next - begin);
        const std::size_t behind = end_of(text, next);
        const std::string body = text.substr(next, behind - next);
        begin = behind;
        next = behind - 1;
        static const std::regex is_type("\\b(struct|enum|union)\\b[^()]*$");
        if (std::regex_search(header, is_type)) continue;
        ++functions;
        if (header.find("noexcept") != std::string::npos) continue;
        for (const std::string& called : unguarded_calls(body)) {
          EXPECT_TRUE(std::regex_match(called, may_be_called))
              << file << ": " << called << "() may throw, and is not in guarded():" << header;
        }
      }
      at = end;
    }
  }
  EXPECT_GE(functions, 100);
}

// --- algorithms
// -----------------------------------------------------------------------------------

std::vector<std::string> lines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> out;
  for (std::string line; std::getline(file, line);) out.push_back(line);
  return out;
}

TEST(Fence, AlgorithmsKnowNoThreadsAndNoClock) {
  for (const auto& [file, unused] : includes()) {
    if (room_of(file) != "algorithms") continue;
    for (const std::string& line : lines(file)) {
      if (!line.starts_with("#include")) continue;
      for (const char* word : {"<thread>", "<atomic>", "<mutex>", "<condition_variable>",
                               "<chrono>", "<future>", "<ctime>"}) {
        EXPECT_EQ(line.find(word), std::string::npos) << file << ": " << line;
      }
    }
  }
}

// A file holds one family and reads like its papers, except the catalogue, which is a table, and
// the reader of formulas. The language of schedules, in algorithms/schedule, is no algorithm.
TEST(Fence, AFamilyOfAlgorithmsHasFewerThan400Lines) {
  const std::set<std::string> others = {"catalogue.cc", "formula.cc"};
  int files = 0;
  for (const auto& [file, unused] : includes()) {
    const fs::path path = file;
    if (path.parent_path() != "algorithms" || others.contains(path.filename())) continue;
    EXPECT_LT(lines(file).size(), 400u) << file;
    ++files;
  }
  EXPECT_GE(files, 25);
}

}  // namespace
}  // namespace rankine
