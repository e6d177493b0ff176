// Tests of failed output, of interruptions, and of the examples in documents.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/console.h"
#include "tests/engine/cli/tool_fixtures.h"

// A failed write of the output is an error; written files are complete; and an interrupted tool
// reports its results so far.

namespace rankine::tools {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string new_folder() {
  std::string folder = testing::TempDir() + "/output_XXXXXX";
  return mkdtemp(folder.data()) != nullptr ? folder : "";
}

std::string report_file() {
  const std::string path = testing::TempDir() + "/compared.json";
  std::ofstream(path) << R"({"results": [{"size": 8, "in_place": {"time": 1}}]})";
  return path;
}

std::string question_file() {
  const std::string path = testing::TempDir() + "/question.json";
  std::ofstream(path) << R"({"ask": "catalogue"})" << '\n';
  return path;
}

// One quick question to each subcommand; a new subcommand needs a line here.
const std::map<std::string, std::vector<std::string>>& questions() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"list", {}},
      {"verify", {"--ranks", "4", "--algo", "ring"}},
      {"show", {"all_reduce", "--algo", "ring", "--ranks", "4"}},
      {"perf", {"all_reduce", "-t", "2", "-b", "8", "-e", "8", "--time", "1ms"}},
      {"compare", {report_file(), report_file()}},
      {"topo", {"--synthetic", "pu:4"}},
      {"choose", {"all_reduce", "--ranks", "4", "--bytes", "1K", "--network", "scale_out"}},
      {"map", {"all_reduce", "--ranks", "2,4", "-e", "128"}},
      {"network", {"torus"}},
      {"simulate", {"all_reduce", "--algo", "ring", "--ranks", "4", "--bytes", "1K"}},
      {"cost", {"all_reduce", "--algo", "ring", "--ranks", "4"}},
      {"gaps", {"all_gather", "--algo", "ring", "--ranks-to", "4"}},
      {"run", {"all_reduce", "--algo", "ring", "--ranks", "2", "--bytes", "8"}},
      {"claims", {"lu-5.2", "--no-execute"}},
      {"skips", {"--ranks", "7"}},
      {"reproduce", {"traff"}},
      {"plan", {"gpt2", "--dp", "2"}},
      {"step", {"gpt2", "--dp", "2"}},
      {"buckets", {"--ranks", "2", "--tensors", "4"}},
      {"page", {"--ask", question_file()}},
      {"check", {"--tasks"}},
      {"lesson", {"-o", new_folder()}},
      {"tune", {"--ranks", "3", "--collectives", "gather", "-e", "8", "--rounds", "1"}},
      {"faults", {"--list"}},
      {"completion", {"bash"}},
      {"manual", {"perf"}},
  };
  return all;
}

std::vector<std::string> command(const std::string& name) {
  std::vector<std::string> words = {name};
  const auto found = questions().find(name);
  if (found != questions().end()) {
    words.insert(words.end(), found->second.begin(), found->second.end());
  }
  return words;
}

// The write end of a pipe without a reader.
int unread_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  close(ends[0]);
  return ends[1];
}

class Output : public testing::TestWithParam<std::string> {
 protected:
  // The tables that `tune` makes stay in this folder.
  void SetUp() override { setenv("RANKINE_TUNING", (new_folder() + "/t.json").c_str(), 1); }
};

TEST_P(Output, HasAQuestionHere) { EXPECT_TRUE(questions().contains(GetParam())); }

TEST_P(Output, ThatDoesNotFitIsAnErrorWithItsReason) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  ToolProcess tool(command(GetParam()), full);
  EXPECT_EQ(tool.wait(), 3);
  EXPECT_THAT(tool.err(),
              HasSubstr("standard output cannot be written: No space left on device\n"));
  close(full);
}

TEST_P(Output, OfHelpIsOutput) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC), unread = unread_pipe();
  const struct {
    int out;
    const char* why;
  } kCases[] = {{full, "No space left on device"},
                {unread, "Broken pipe"},
                {ToolProcess::kClosed, "Bad file descriptor"}};
  for (const auto& [out, why] : kCases) {
    ToolProcess tool({GetParam(), "--help"}, out);
    EXPECT_EQ(tool.wait(), 3) << why;
    EXPECT_EQ(tool.err(), "rankine: standard output cannot be written: " + std::string(why) + "\n");
  }
  close(full);
  close(unread);
}

INSTANTIATE_TEST_SUITE_P(Of, Output, testing::ValuesIn(subcommand_names(&laboratory())),
                         [](const auto& each) { return each.param; });

TEST(OutputOf, TheToolItself) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  for (const char* option : {"--help", "--version"}) {
    ToolProcess tool({option}, full);
    EXPECT_EQ(tool.wait(), 3) << option;
  }
  close(full);
  ToolProcess tool({"--version"});
  EXPECT_THAT(tool.rest(), StartsWith("rankine "));
  EXPECT_EQ(tool.wait(), 0);
  EXPECT_THAT(tool.err(), IsEmpty());
}

// Tests run in runfiles, like programs under 'bazel run'.
TEST(WorkingDirectory, FilesLandWhereTheUserStands) {
  ASSERT_THAT(std::filesystem::current_path().string(), HasSubstr(".runfiles/"));
  const std::string user = new_folder(), bazel = new_folder();
  const auto measure = [](const std::string& file) {
    ToolProcess tool({"perf", "barrier", "-t", "1", "-n", "1", "-J", file});
    tool.rest();
    EXPECT_EQ(tool.wait(), 0) << tool.err();
  };
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", bazel.c_str(), 1), 0);
  measure("one.json");
  EXPECT_TRUE(std::filesystem::exists(bazel + "/one.json"));
  ASSERT_EQ(setenv("RANKINE_WITH_WORKING_DIRECTORY", user.c_str(), 1), 0);
  measure("two.json");
  EXPECT_TRUE(std::filesystem::exists(user + "/two.json"));
  EXPECT_FALSE(std::filesystem::exists(bazel + "/two.json"));
  // A directory that no longer exists causes no failure.
  ASSERT_EQ(setenv("RANKINE_WITH_WORKING_DIRECTORY", (user + "/gone").c_str(), 1), 0);
  measure("three.json");
  EXPECT_TRUE(std::filesystem::exists(bazel + "/three.json"));
  unsetenv("RANKINE_WITH_WORKING_DIRECTORY");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

// The tool stops measuring when its reader is gone.
TEST(OutputOf, PerfEndsWithItsReader) {
  ToolProcess tool({"perf", "all_reduce", "-t", "2", "-b", "8", "-e", "64M", "--time", "20ms"});
  EXPECT_THAT(tool.line(), StartsWith("# rankine"));
  tool.close_out();
  EXPECT_EQ(tool.wait(), 3);
  EXPECT_EQ(tool.err(), "rankine perf: standard output cannot be written: Broken pipe\n");
}

TEST(DescriptorBuffer, WritesWhatIsFlushedAndMoreThanItHolds) {
  const std::string path = new_folder() + "/file";
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  DescriptorBuffer buffer(file, "it");
  std::ostream out(&buffer);
  out << "begun";
  EXPECT_EQ(text_of(path), "");
  out << std::flush;
  EXPECT_EQ(text_of(path), "begun");
  const std::string much(200'000, 'x');
  out << much << 'y' << std::flush;
  EXPECT_EQ(text_of(path), "begun" + much + "y");
  EXPECT_TRUE(out.good());
  close(file);
}

TEST(DescriptorBuffer, SaysWhyAndDropsWhatItCannotWrite) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  DescriptorBuffer buffer(full, "it");
  std::ostream out(&buffer);
  out.exceptions(std::ios::badbit);
  out << "text";
  try {
    out << std::flush;
    FAIL() << "nothing was thrown";
  } catch (const OutputError& error) {
    EXPECT_STREQ(error.what(), "it cannot be written: No space left on device");
  }
  EXPECT_TRUE(out.bad());
  out.exceptions(std::ios::goodbit);
  out << "more" << std::flush;  // later text is dropped as well
  EXPECT_TRUE(out.bad());
  close(full);
}

// --- Interrupted -------------------------------------------------------------------------------

TEST(Interrupt, IsNotedOnceAndGivenBack) {
  const auto handler = [](int signal) {
    struct sigaction now {};
    sigaction(signal, nullptr, &now);
    return now.sa_handler;
  };
  const auto before = handler(SIGINT);
  {
    const InterruptGuard guard;
    EXPECT_EQ(interruption(), 0);
    EXPECT_NE(handler(SIGINT), before);
    raise(SIGINT);
    EXPECT_EQ(interruption(), SIGINT);
    EXPECT_EQ(exit_of_interruption(), Exit::interrupted);
    EXPECT_EQ(handler(SIGINT), SIG_DFL);  // a second one ends the process
    raise(SIGTERM);
    EXPECT_EQ(exit_of_interruption(), Exit::terminated);
  }
  EXPECT_EQ(handler(SIGINT), before);
  std::signal(SIGTERM, SIG_IGN);
  {
    const InterruptGuard guard;
    EXPECT_EQ(interruption(), 0);
    EXPECT_EQ(handler(SIGTERM), SIG_IGN);  // ignored before, for example by nohup
  }
  std::signal(SIGTERM, SIG_DFL);
}

TEST(Interrupt, PerfTellsTheRowsThatItHas) {
  const std::string file = new_folder() + "/perf.json";
  std::ofstream(file) << "old";
  ToolProcess tool(
      {"perf", "all_reduce", "-t", "2", "-b", "8", "-e", "64M", "--time", "100ms", "--json", file});
  std::size_t rows = 0;
  while (rows < 2) {
    const std::string line = tool.line();
    ASSERT_FALSE(line.empty()) << tool.err();
    rows += line.starts_with("#") ? 0 : 1;
  }
  EXPECT_EQ(text_of(file), "old");
  tool.signal(SIGINT);
  const std::string rest = tool.rest();
  EXPECT_EQ(tool.wait(), 130);
  EXPECT_THAT(rest, HasSubstr("# interrupted after "));
  EXPECT_THAT(tool.err(), HasSubstr("rankine perf: interrupted after "));
  const json report = json::parse(text_of(file));
  EXPECT_FALSE(report.at("complete").get<bool>());
  EXPECT_THAT(report.at("errors").at(0).get<std::string>(), HasSubstr(" of 24 rows"));
  EXPECT_GE(report.at("results").size(), 2u);
  EXPECT_LT(report.at("results").size(), 24u);
  EXPECT_GT(report.at("results").at(1).at("out_of_place").at("time"), 0);
}

// The signal comes in the middle of the first row, which would take minutes.
TEST(Interrupt, WithoutARowTheOldFileStays) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string folder = new_folder(), file = folder + "/perf.json";
    std::ofstream(file) << "old";
    ToolProcess tool({"perf", "all_reduce", "-t", "2", "-b", "64K", "-e", "64K", "--time", "5min",
                      "--json", file});
    for (std::string line; line.find("(elements)") == std::string::npos;) {
      line = tool.line();
      ASSERT_FALSE(line.empty()) << tool.err();
    }
    tool.signal(signal);
    EXPECT_EQ(tool.wait(), 128 + signal);
    EXPECT_EQ(text_of(file), "old");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  }
}

}  // namespace
}  // namespace rankine::tools

// The README and the pages of the guide show the output that the tool prints today.
//
// Every shown command with "rankine" in it is run, in a folder with the files that the document
// shows by cat. "..." stands for lines, or for the end of a line.

namespace {

using Lines = std::vector<std::string>;

struct Example {
  int line = 0;
  std::string command;
  Lines shown;
};

std::string trimmed(std::string line) {
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

Lines lines_of(std::istream& in) {
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(trimmed(line));
  return lines;
}

// Commands stand in fenced blocks, behind "$ ".
std::vector<Example> examples_of(const std::string& path) {
  std::ifstream in(path);
  std::vector<Example> examples;
  bool fenced = false, shows = false;
  int number = 0;
  for (const std::string& line : lines_of(in)) {
    ++number;
    if (line.starts_with("```")) {
      fenced = !fenced;
      shows = false;
    } else if (fenced && line.starts_with("$ ")) {
      examples.push_back({number, line.substr(2), {}});
      shows = true;
    } else if (shows) {
      examples.back().shown.push_back(line);
    }
  }
  return examples;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// False for commands that take minutes, depend on a measured table, or need a wall clock that a
// busy machine cannot keep.
bool is_run(std::string_view command) {
  if (!has(command, "rankine ") || has(command, "third_party/")) return false;
  for (const std::string_view left_out :
       {"rankine verify", "rankine claims", "rankine reproduce", "rankine faults", "rankine tune",
        "rankine choose all_reduce --ranks 2 --bytes 64K", "--clock wall"}) {
    if (has(command, left_out)) return false;
  }
  return true;
}

Lines output_of(const std::string& folder, const std::string& command) {
  const std::string all = "cd '" + folder + "' && { " + command + "; } 2>&1";
  std::FILE* pipe = popen(all.c_str(), "r");
  std::string text;
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = fread(part.data(), 1, part.size(), pipe)) > 0;) {
    text.append(part.data(), got);
  }
  EXPECT_NE(pclose(pipe), -1);  // the guide shows errors, too
  std::istringstream in(text);
  return lines_of(in);
}

bool fits(const std::string& shown, const std::string& printed) {
  const std::size_t dots = shown.find("...");
  return dots == std::string::npos ? shown == printed : printed.starts_with(shown.substr(0, dots));
}

bool fits(const Lines& shown, const Lines& printed, std::size_t s = 0, std::size_t p = 0) {
  if (s == shown.size()) return p == printed.size();
  if (shown[s] == "...") {
    for (std::size_t skipped = p; skipped <= printed.size(); ++skipped) {
      if (fits(shown, printed, s + 1, skipped)) return true;
    }
    return false;
  }
  return p < printed.size() && fits(shown[s], printed[p]) && fits(shown, printed, s + 1, p + 1);
}

// For measurements, compares only lines without digits: the heads of tables. A machine may print
// more lines.
bool has_heads(const Lines& shown, const Lines& printed) {
  auto at = printed.begin();
  for (const std::string& line : shown) {
    if (line == "..." || line.find_first_of("0123456789") != std::string::npos) continue;
    at = std::find_if(at, printed.end(), [&](const std::string& one) { return fits(line, one); });
    if (at == printed.end()) return false;
    ++at;
  }
  return true;
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += "  | " + line + "\n";
  return text;
}

// A heading as links name it: "### A page" is "a-page".
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto letter = static_cast<unsigned char>(c);
    if (c == ' ' || c == '-') anchor += '-';
    if (std::isalnum(letter) != 0 || c == '_') anchor += static_cast<char>(std::tolower(letter));
  }
  return anchor;
}

// The texts between a link's `begin` and its closing bracket.
std::vector<std::string> links_of(const std::string& document, std::string_view begin) {
  std::ifstream in(document);
  std::vector<std::string> links;
  for (const std::string& line : lines_of(in)) {
    for (std::size_t at = 0; (at = line.find(begin, at)) != line.npos;) {
      at += begin.size();
      links.push_back(line.substr(at, line.find(')', at) - at));
    }
  }
  return links;
}

class Documents : public testing::Test {
 protected:
  void SetUp() override {
    namespace fs = std::filesystem;
    folder_ = fs::path(testing::TempDir()) / "documents";
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "bin");
    fs::create_directory_symlink(fs::current_path() / "engine", folder_ / "engine");
    fs::create_symlink(fs::current_path() / "engine/cli/rankine", folder_ / "bin/rankine");
    setenv("PATH", (folder_ / "bin:").string().append(getenv("PATH")).c_str(), 1);
    setenv("RANKINE_TUNING", "off", 1);
    unsetenv("COLUMNS");
  }

  // Returns the number of examples that were run.
  int check(const std::string& document) {
    int run = 0;
    for (Example& example : examples_of(document)) {
      SCOPED_TRACE(document + ":" + std::to_string(example.line) + ": " + example.command);
      while (!example.shown.empty() && example.shown.back().empty()) example.shown.pop_back();
      constexpr std::string_view kCat = "cat ", kEdit = "sed -i ";
      const bool file = example.command.starts_with(kCat) && !has(example.command, "/");
      if (file) {
        std::ofstream out(folder_ / example.command.substr(kCat.size()));
        for (const std::string& line : example.shown) out << line << '\n';
      } else if (example.command.starts_with(kEdit)) {
        EXPECT_TRUE(output_of(folder_, example.command).empty());
      } else if (is_run(example.command)) {
        ++run;
        compare(example);
      }
    }
    return run;
  }

 private:
  void compare(const Example& example) {
    Lines printed = output_of(folder_, example.command);
    while (!printed.empty() && printed.back().empty()) printed.pop_back();
    const bool good = has(example.command, "rankine perf") ? has_heads(example.shown, printed)
                                                           : fits(example.shown, printed);
    EXPECT_TRUE(good) << "shown:\n" << text_of(example.shown) << "printed:\n" << text_of(printed);
  }

  std::filesystem::path folder_;
};

TEST_F(Documents, ReadmeShowsWhatIsPrinted) { EXPECT_GE(check("README.md"), 2); }

// The pages of the guide below engine/.
constexpr const char* kPages[] = {"engine/GUIDE.md",  "engine/algorithms.md", "engine/benchmark.md",
                                  "engine/cpp.md",    "engine/mpi.md",        "engine/networks.md",
                                  "engine/python.md", "engine/server.md",     "engine/teaching.md",
                                  "engine/torch.md",  "engine/training.md"};

TEST_F(Documents, GuideShowsWhatIsPrinted) {
  int run = 0;
  for (const char* page : kPages) run += check(page);
  EXPECT_GE(run, 25);
}

std::vector<std::string> anchors_of(const std::string& document) {
  std::ifstream in(document);
  std::vector<std::string> anchors;
  for (const std::string& line : lines_of(in)) {
    const std::size_t title = line.find_first_not_of('#');
    if (title != line.npos && title > 0) anchors.push_back(anchor_of(line.substr(title + 1)));
  }
  return anchors;
}

TEST_F(Documents, LinksLeadToHeadings) {
  std::map<std::string, std::vector<std::string>> anchors;
  for (const char* page : kPages) anchors[page] = anchors_of(page);
  anchors["README.md"] = anchors_of("README.md");
  int checked = 0;
  for (const auto& [document, own] : anchors) {
    const auto folder = std::filesystem::path(document).parent_path();
    for (const std::string& link : links_of(document, "](")) {
      const std::size_t hash = link.find('#');
      if (hash == link.npos) continue;
      const std::string path = link.substr(0, hash);
      const std::string target =
          path.empty() ? document : (folder / path).lexically_normal().string();
      if (!anchors.contains(target)) continue;
      EXPECT_THAT(anchors.at(target), testing::Contains(link.substr(hash + 1))) << document;
      ++checked;
    }
  }
  EXPECT_GE(checked, 10);
}

// An error lists the variables; the guide explains each.
TEST_F(Documents, GuideHasEveryVariable) {
  const Lines told = output_of(".", "RANKINE_ALGOS=1 rankine perf barrier -t 1 -n 1");
  ASSERT_EQ(told.size(), 1U);
  constexpr std::string_view kKnown = "allowed are ";
  ASSERT_TRUE(has(told[0], kKnown)) << told[0];
  std::istringstream names(told[0].substr(told[0].find(kKnown) + kKnown.size()));
  std::ifstream in("engine/GUIDE.md");
  const std::string guide = text_of(lines_of(in));
  int count = 0;
  for (std::string name; names >> name; ++count) {
    if (name.ends_with(',')) name.pop_back();
    EXPECT_TRUE(has(guide, "| `" + name + "=")) << name;
  }
  EXPECT_GE(count, 8);
}

// The comparison also fails for wrong output.
TEST(Comparison, KnowsWhatIsMissing) {
  EXPECT_TRUE(fits(Lines{"a", "...", "d e..."}, Lines{"a", "b", "c", "d e f"}));
  EXPECT_TRUE(fits(Lines{"a", "..."}, Lines{"a"}));
  EXPECT_FALSE(fits(Lines{"a", "..."}, Lines{"b", "a"}));
  EXPECT_FALSE(fits(Lines{"a"}, Lines{"a", "b"}));
  EXPECT_FALSE(fits(Lines{"a", "b"}, Lines{"a"}));
  EXPECT_FALSE(fits(Lines{"a  b"}, Lines{"a b"}));
  EXPECT_TRUE(has_heads(Lines{"a", "1", "b"}, Lines{"more", "a", "2", "3", "b"}));
  EXPECT_FALSE(has_heads(Lines{"a", "1", "b"}, Lines{"b", "a"}));
}

}  // namespace
