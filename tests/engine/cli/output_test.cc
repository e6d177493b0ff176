// Tests of failed output, of interruptions, and of the examples in documents.

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cctype>

#include "engine/cli/console.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

// A failed write of the output is an error; written files are complete; and an interrupted tool
// reports its results so far.

namespace rankine::tools {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// One quick question to each subcommand; a new subcommand needs a line here.
std::string command(const std::string& name) {
  const std::string report =
      file_with("compared.json", R"({"results": [{"size": 8, "in_place": {"time": 1}}]})");
  const std::map<std::string, std::string> all = {
      {"list", ""},
      {"verify", "--ranks 4 --algo ring"},
      {"show", "all_reduce --algo ring --ranks 4"},
      {"perf", "all_reduce -t 2 -b 8 -e 8 --time 1ms"},
      {"compare", report + " " + report},
      {"topo", "--synthetic pu:4"},
      {"choose", "all_reduce --ranks 4 --bytes 1K --network scale_out"},
      {"map", "all_reduce --ranks 2,4 -e 128"},
      {"network", "torus"},
      {"simulate", "all_reduce --algo ring --ranks 4 --bytes 1K"},
      {"cost", "all_reduce --algo ring --ranks 4"},
      {"gaps", "all_gather --algo ring --ranks-to 4"},
      {"run", "all_reduce --algo ring --ranks 2 --bytes 8"},
      {"claims", "lu-5.2 --no-execute"},
      {"skips", "--ranks 7"},
      {"synthesise", "all_gather --ranks 4"},
      {"reproduce", "--help"},
      {"plan", "gpt2 --dp 2"},
      {"step", "gpt2 --dp 2"},
      {"buckets", "--ranks 2 --tensors 4"},
      {"page", "--ask " + file_with("question.json", "{\"ask\": \"catalogue\"}\n")},
      {"check", "--tasks"},
      {"lesson", "-o " + new_folder()},
      {"tune", "--ranks 3 --collectives gather -e 8 --rounds 1"},
      {"faults", "--list"},
      {"soak", "--help"},
      {"top", "--help"},
      {"completion", "bash"},
      {"manual", "perf"},
  };
  EXPECT_TRUE(all.contains(name)) << name << " has no question in this test";
  return all.contains(name) ? name + " " + all.at(name) : name;
}

class Output : public testing::TestWithParam<std::string> {
 protected:
  const OwnTuning tuning_;  // for tune
};

TEST_P(Output, ThatDoesNotFitIsAnErrorWithItsReason) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  int unread[2];
  ASSERT_EQ(pipe2(unread, O_CLOEXEC), 0);
  close(unread[0]);
  const std::string name = GetParam();
  for (const auto& [line, out, reason] :
       {std::tuple(command(name), full, "No space left on device"),
        {name + " --help", full, "No space left on device"},
        {name + " --help", unread[1], "Broken pipe"},
        {name + " --help", ToolProcess::kClosed, "Bad file descriptor"}}) {
    ToolProcess tool(words_of(line), out);
    EXPECT_EQ(tool.wait(), 3) << line;
    EXPECT_TRUE(tool.err().ends_with(": " + std::string(reason) + "\n")) << tool.err();
  }
  close(full);
  close(unread[1]);
}

INSTANTIATE_TEST_SUITE_P(Of, Output, testing::ValuesIn(subcommand_names(&laboratory())),
                         [](const auto& each) { return each.param; });

// Tests run in runfiles, like programs under 'bazel run'.
TEST(WorkingDirectory, FilesLandWhereTheUserStands) {
  ASSERT_TRUE(has(fs::current_path().string(), ".runfiles/"));
  const std::string user = new_folder(), bazel = new_folder();
  const auto measure = [](const std::string& file) {
    ToolProcess tool({"perf", "barrier", "-t", "1", "-n", "1", "-J", file});
    tool.rest();
    EXPECT_EQ(tool.wait(), 0) << tool.err();
  };
  ASSERT_EQ(setenv("BUILD_WORKING_DIRECTORY", bazel.c_str(), 1), 0);
  measure("one.json");
  EXPECT_TRUE(fs::exists(bazel + "/one.json"));
  ASSERT_EQ(setenv("RANKINE_WITH_WORKING_DIRECTORY", user.c_str(), 1), 0);
  measure("two.json");
  EXPECT_TRUE(fs::exists(user + "/two.json"));
  EXPECT_FALSE(fs::exists(bazel + "/two.json"));
  // A directory that no longer exists causes no failure.
  ASSERT_EQ(setenv("RANKINE_WITH_WORKING_DIRECTORY", (user + "/gone").c_str(), 1), 0);
  measure("three.json");
  EXPECT_TRUE(fs::exists(bazel + "/three.json"));
  unsetenv("RANKINE_WITH_WORKING_DIRECTORY");
  unsetenv("BUILD_WORKING_DIRECTORY");
}

// The tool stops measuring when its reader is gone.
TEST(OutputOf, PerfEndsWithItsReader) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(ToolProcess({"--version"}, full).wait(), 3);
  close(full);
  ToolProcess tool({"perf", "all_reduce", "-t", "2", "-b", "8", "-e", "64M", "--time", "20ms"});
  EXPECT_TRUE(tool.line().starts_with("# rankine"));
  tool.close_out();
  EXPECT_EQ(tool.wait(), 3);
  EXPECT_TRUE(has(tool.err(), "Broken pipe"));
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

TEST(DescriptorBuffer, DropsWhatItCannotWrite) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  DescriptorBuffer buffer(full, "it");
  std::ostream out(&buffer);
  out.exceptions(std::ios::badbit);
  out << "text";
  EXPECT_THROW(out << std::flush, OutputError);
  EXPECT_TRUE(out.bad());
  out.exceptions(std::ios::goodbit);
  out << "more" << std::flush;  // later text is dropped as well
  EXPECT_TRUE(out.bad());
  close(full);
}

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
  const std::string file = file_with("perf.json", "old");
  ToolProcess tool(words_of("perf all_reduce -t 2 -b 8 -e 64M --time 100ms --json " + file));
  for (int rows = 0; rows < 2;) {
    const std::string line = tool.line();
    ASSERT_FALSE(line.empty()) << tool.err();
    rows += line.starts_with("#") ? 0 : 1;
  }
  EXPECT_EQ(text_of(file), "old");
  tool.send(SIGINT);
  EXPECT_TRUE(has(tool.rest(), "# interrupted after "));
  EXPECT_EQ(tool.wait(), 130);
  EXPECT_TRUE(has(tool.err(), "rankine perf: interrupted after "));
  const json report = json::parse(text_of(file));
  EXPECT_FALSE(report.at("complete").get<bool>());
  EXPECT_TRUE(has(report.at("errors").at(0).get<std::string>(), " of 24 rows"));
  EXPECT_GE(report.at("results").size(), 2u);
  EXPECT_LT(report.at("results").size(), 24u);
  EXPECT_GT(report.at("results").at(1).at("out_of_place").at("time"), 0);
}

// The signal comes in the middle of the first row, which would take minutes.
TEST(Interrupt, WithoutARowTheOldFileStays) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const std::string folder = new_folder(), file = folder + "/perf.json";
    std::ofstream(file) << "old";
    ToolProcess tool(words_of("perf all_reduce -t 2 -b 64K -e 64K --time 5min --json " + file));
    for (std::string line; line.find("(elements)") == std::string::npos;) {
      line = tool.line();
      ASSERT_FALSE(line.empty()) << tool.err();
    }
    tool.send(signal);
    EXPECT_EQ(tool.wait(), 128 + signal);
    EXPECT_EQ(text_of(file), "old");
    EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
  }
}

// The README and the pages of the guide show the output that the tool prints today.
//
// Every shown command with "rankine" in it is run, in a folder with the files that the document
// shows by cat. "..." stands for lines, or for the end of a line.

using Lines = std::vector<std::string>;

struct Example {
  int line = 0;
  std::string command;
  Lines shown;
};

Lines trimmed(Lines lines) {
  for (std::string& line : lines) line.erase(line.find_last_not_of(' ') + 1);
  return lines;
}

// Commands stand in fenced blocks, behind "$ ".
std::vector<Example> examples_of(const std::string& path) {
  std::vector<Example> examples;
  bool fenced = false, shows = false;
  int number = 0;
  for (const std::string& line : trimmed(lines_of(text_of(path)))) {
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

class Documents : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "documents";
    fs::remove_all(folder_);
    fs::create_directories(folder_ / "bin");
    fs::create_directory_symlink(fs::current_path() / "engine", folder_ / "engine");
    fs::create_symlink(fs::current_path() / "engine/cli/rankine", folder_ / "bin/rankine");
    setenv("PATH", (folder_ / "bin:").string().append(getenv("PATH")).c_str(), 1);
    unsetenv("COLUMNS");
  }

  Lines printed(const std::string& command) const {
    return trimmed(lines_of(shown_by("cd '" + folder_.string() + "' && " + command)));
  }

  // Returns the number of examples that were run.
  int check(const std::string& document) const {
    int run = 0;
    for (Example& example : examples_of(document)) {
      SCOPED_TRACE(document + ":" + std::to_string(example.line) + ": " + example.command);
      while (!example.shown.empty() && example.shown.back().empty()) example.shown.pop_back();
      if (example.command.starts_with("cat ") && !has(example.command, "/")) {
        std::ofstream out(folder_ / example.command.substr(4));
        for (const std::string& line : example.shown) out << line << '\n';
      } else if (example.command.starts_with("sed -i ")) {
        EXPECT_TRUE(printed(example.command).empty());
      } else if (is_run(example.command)) {
        ++run;
        Lines told = printed(example.command);
        while (!told.empty() && told.back().empty()) told.pop_back();
        EXPECT_TRUE(has(example.command, "rankine perf") ? has_heads(example.shown, told)
                                                         : fits(example.shown, told))
            << testing::PrintToString(example.shown) << "\n"
            << testing::PrintToString(told);
      }
    }
    return run;
  }

  const OwnTuning off_{"off"};
  fs::path folder_;
};

constexpr const char* kPages[] = {"README.md",           "engine/GUIDE.md",  "engine/algorithms.md",
                                  "engine/benchmark.md", "engine/cpp.md",    "engine/mpi.md",
                                  "engine/networks.md",  "engine/python.md", "engine/server.md",
                                  "engine/teaching.md",  "engine/torch.md",  "engine/training.md"};

TEST_F(Documents, ShowWhatIsPrinted) {
  int run = 0;
  for (const char* page : kPages) run += check(page);
  EXPECT_GE(run, 27);
}

TEST_F(Documents, LinksLeadToHeadings) {
  std::map<std::string, Lines> anchors;
  for (const char* page : kPages) {
    for (const std::string& line : lines_of(text_of(page))) {
      const std::size_t title = line.find_first_not_of('#');
      if (title != line.npos && title > 0) {
        anchors[page].push_back(anchor_of(line.substr(title + 1)));
      }
    }
  }
  int checked = 0;
  for (const auto& [document, own] : anchors) {
    const std::string text = text_of(document);
    for (std::size_t at = 0; (at = text.find("](", at)) != text.npos;) {
      at += 2;
      const std::string link = text.substr(at, text.find(')', at) - at);
      const std::size_t hash = link.find('#');
      if (hash == link.npos) continue;
      const fs::path page = fs::path(document).parent_path() / link.substr(0, hash);
      const std::string target = hash == 0 ? document : page.lexically_normal().string();
      if (!anchors.contains(target)) continue;
      const Lines& there = anchors.at(target);
      EXPECT_TRUE(std::find(there.begin(), there.end(), link.substr(hash + 1)) != there.end())
          << document << ": " << link;
      ++checked;
    }
  }
  EXPECT_GE(checked, 10);
}

// An error lists the variables; the guide explains each.
TEST_F(Documents, GuideHasEveryVariable) {
  const Lines told = printed("RANKINE_ALGOS=1 rankine perf barrier -t 1 -n 1");
  ASSERT_EQ(told.size(), 1U);
  const std::size_t known = told[0].find("allowed are ");
  ASSERT_NE(known, std::string::npos) << told[0];
  std::istringstream names(told[0].substr(known + 12));
  int count = 0;
  for (std::string name; names >> name; ++count) {
    if (name.ends_with(',')) name.pop_back();
    EXPECT_TRUE(has(text_of("engine/GUIDE.md"), "| `" + name + "=")) << name;
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
  EXPECT_TRUE(has_heads(Lines{"a", "1", "b"}, Lines{"more", "a", "2", "3", "b"}));
  EXPECT_FALSE(has_heads(Lines{"a", "1", "b"}, Lines{"b", "a"}));
}

}  // namespace
}  // namespace rankine::tools
