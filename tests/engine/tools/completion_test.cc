// Completion and manual pages have every subcommand and every option that --help shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/engine/tools/captured_tool.h"

namespace rankine::tools {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

// Of the lines of --help that begin with options: "-b,--minbytes SIZE   smallest size".
std::vector<std::string> options_of(const std::string& command) {
  std::vector<std::string> arguments = {"--help"};
  if (!command.empty()) arguments.insert(arguments.begin(), command);
  std::istringstream lines(run_captured(arguments).out);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  -")) continue;
    std::istringstream first(line.substr(2, line.find(' ', 2) - 2));
    for (std::string name; std::getline(first, name, ',');) names.push_back(name);
  }
  EXPECT_FALSE(names.empty()) << command;
  return names;
}

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '-' ? "\\-" : std::string(1, c);
  return text;
}

std::string line_with(const std::string& text, const std::string& begin) {
  const std::size_t at = text.find(begin);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(Completion, HasWhatTheHelpShows) {
  const std::string bash = run_captured({"completion", "bash"}).out;
  const std::string fish = run_captured({"completion", "fish"}).out;
  const std::string first = line_with(bash, "    words='list");
  for (const std::string& option : options_of("")) EXPECT_THAT(first, HasSubstr(" " + option));
  for (const std::string& command : subcommand_names()) {
    EXPECT_THAT(first + " ", testing::ContainsRegex("[' ]" + command + " "));
    EXPECT_THAT(fish, HasSubstr("__fish_use_subcommand -f -a " + command + " -d '"));
    const std::string words = line_with(bash, "      " + command + ":*:-*) words='");
    for (const std::string& option : options_of(command)) {
      EXPECT_THAT(words, testing::ContainsRegex("[' ]" + option + "[' ]")) << command;
      const std::string name = option.starts_with("--") ? " -l " + option.substr(2) + " "
                                                        : " -s " + option.substr(1) + " ";
      EXPECT_THAT(fish, HasSubstr(name)) << command;
    }
  }
  EXPECT_THAT(line_with(bash, "      perf:--algo:*)"), HasSubstr(" ring "));
  EXPECT_THAT(line_with(bash, "      perf:*)"), HasSubstr(" all_reduce "));
}

TEST(Completion, OfZshIsBashsForItsOwnFile) {
  const std::string zsh = run_captured({"completion", "zsh"}).out;
  EXPECT_THAT(zsh, StartsWith("#compdef rankine\n"));
  EXPECT_THAT(zsh, testing::EndsWith(run_captured({"completion", "bash"}).out));
}

TEST(Completion, NamesTheShellsThatThereAre) {
  const Captured refused = run_captured({"completion", "bsh"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("shell is 'bsh'; allowed are bash, zsh, fish"));
  EXPECT_EQ(run_captured({"completion"}).exit, 2);
}

TEST(Manual, HasWhatTheHelpShows) {
  for (const std::string& command : subcommand_names()) {
    const Captured page = run_captured({"manual", command});
    EXPECT_EQ(page.exit, 0);
    EXPECT_THAT(page.err, IsEmpty());
    EXPECT_THAT(page.out, StartsWith(".TH RANKINE\\-"));
    for (const std::string& option : options_of(command)) {
      EXPECT_THAT(page.out, HasSubstr("\\fB" + escaped(option) + "\\fR")) << command;
    }
    EXPECT_THAT(run_captured({"manual"}).out, HasSubstr("\\fBrankine\\-" + command + "\\fR(1)\n"));
  }
}

// A line that begins with a dot and is none of these would be text that is lost.
TEST(Manual, HasNoMacrosButItsOwn) {
  std::vector<std::string> commands = subcommand_names();
  commands.push_back("");
  const std::set<std::string> known = {".TH", ".SH", ".TP", ".nf", ".fi"};
  for (const std::string& command : commands) {
    std::vector<std::string> arguments = {"manual"};
    if (!command.empty()) arguments.push_back(command);
    std::istringstream lines(run_captured(arguments).out);
    int sections = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_FALSE(line.starts_with('\'')) << line;
      if (!line.starts_with('.')) continue;
      EXPECT_TRUE(known.contains(line.substr(0, line.find(' ')))) << line;
      if (line.starts_with(".SH")) ++sections;
    }
    EXPECT_GE(sections, 4) << command;
  }
}

TEST(Manual, NamesTheSubcommandsThatThereAre) {
  const Captured refused = run_captured({"manual", "pref"});
  EXPECT_EQ(refused.exit, 2);
  EXPECT_THAT(refused.err, HasSubstr("did you mean 'perf'?"));
}

}  // namespace
}  // namespace rankine::tools
