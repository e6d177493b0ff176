// What the README and the guide show is what the tool prints today.
//
// Every command that is shown with "rankine" in it is run, in a folder where the files are that the
// document shows by cat. "..." stands for lines, or for the end of one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

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

// What takes minutes, what depends on a table that was measured, and what waits for a wall clock
// that a busy machine cannot honour.
bool is_run(std::string_view command) {
  if (!has(command, "rankine ") || has(command, "third_party/")) return false;
  for (const std::string_view left_out :
       {"rankine verify", "rankine claims", "rankine reproduce", "rankine faults", "rankine tune",
        "rankine train", "rankine choose all_reduce --ranks 2 --bytes 64K", "--clock wall"}) {
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

// Of what is measured, the lines without a figure: the heads of tables. A machine may print more.
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

// What stands between a link's `begin` and the bracket that closes it.
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
    fs::create_symlink(fs::current_path() / "engine/tools/rankine", folder_ / "bin/rankine");
    setenv("PATH", (folder_ / "bin:").string().append(getenv("PATH")).c_str(), 1);
    setenv("RANKINE_TUNING", "off", 1);
    unsetenv("COLUMNS");
  }

  // How many examples were run.
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

TEST_F(Documents, GuideShowsWhatIsPrinted) { EXPECT_GE(check("engine/GUIDE.md"), 35); }

TEST_F(Documents, LinksLeadToHeadings) {
  std::ifstream in("engine/GUIDE.md");
  std::vector<std::string> headings;
  for (const std::string& line : lines_of(in)) {
    const std::size_t title = line.find_first_not_of('#');
    if (title != line.npos && title > 0) headings.push_back(anchor_of(line.substr(title + 1)));
  }
  std::vector<std::string> links = links_of("README.md", "](engine/GUIDE.md#");
  EXPECT_GE(links.size(), 10U);
  for (const std::string& link : links_of("engine/GUIDE.md", "](#")) links.push_back(link);
  for (const std::string& link : links) EXPECT_THAT(headings, testing::Contains(link));
}

// An error lists the variables; the guide says what they do.
TEST_F(Documents, GuideHasEveryVariable) {
  const Lines told = output_of(".", "RANKINE_ALGOS=1 rankine perf barrier -t 1 -n 1");
  ASSERT_EQ(told.size(), 1U);
  constexpr std::string_view kKnown = "known are ";
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

// A comparison that everything passes would be none.
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
