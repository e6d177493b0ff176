// Every memory order in the production code that the scenarios go through, weakened one at a time:
// each such mutant must fail in some scenario, or it stands in the table of those that may not be
// needed, with the reason. The list of orders comes from the executions themselves, and is compared
// with the source text, so that none is forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/models/explorer.h"
#include "tests/models/scenarios.h"

namespace rankine::model {
namespace {

const std::vector<std::string> kSources = {
    "engine/run/crossbar.h",   "engine/run/crossbar.cc",       "engine/run/wait.h",
    "engine/run/wait.cc",      "engine/run/mailbox.h",         "engine/run/walk.h",
    "engine/run/interpret_some.cc"};

// Orders whose weakening no scenario shows, and why that is right. `text` is on the line.
struct Justified {
  std::string_view file, text;
  std::memory_order to;
  std::string_view why;
};
const std::vector<Justified> kJustified = {};

std::string plain(std::string file) {
  if (file.starts_with("./")) file.erase(0, 2);
  return file;
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  EXPECT_TRUE(in) << file;
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct Source {
  std::map<std::string, std::vector<std::string>> files;
  Source() {
    for (const std::string& file : kSources) files[file] = lines_of(file);
  }
  std::string line(const Use& use) const {
    const auto found = files.find(plain(use.file));
    if (found == files.end() || use.line > found->second.size()) return {};
    const std::string& text = found->second[use.line - 1];
    return text.substr(std::min(text.size(), text.find_first_not_of(' ')));
  }
};

std::string place(const Use& use) { return plain(use.file) + ":" + std::to_string(use.line); }

// A scenario as it is, explored to the end: what it uses, and how long that took.
struct Explored {
  Scenario scenario;
  std::set<Use> uses;
  std::uint64_t executions = 0;
};

// The shortest first, since a mutant is done with at the first scenario that fails.
const std::vector<Explored>& explored() {
  static const std::vector<Explored> all = [] {
    std::vector<Explored> out;
    for (Scenario& scenario : scenarios()) {
      if (scenario.is_large) continue;
      Explorer explorer({.may_time_out = scenario.may_time_out});
      const Explorer::Outcome outcome = explorer.explore(scenario.play);
      EXPECT_TRUE(outcome.fault.empty() && outcome.exhausted) << scenario.name;
      Explored one{std::move(scenario), {}, outcome.executions + outcome.cut};
      for (const auto& [use, times] : explorer.uses()) one.uses.insert(use);
      out.push_back(std::move(one));
    }
    std::ranges::stable_sort(out, {}, &Explored::executions);
    return out;
  }();
  return all;
}

std::set<Use> all_uses() {
  std::set<Use> uses;
  for (const Explored& one : explored()) uses.insert(one.uses.begin(), one.uses.end());
  return uses;
}

TEST(MemoryOrders, EachIsNeededOrJustified) {
  const Source source;
  std::set<const Justified*> used;
  int mutants = 0, killed = 0;
  for (const Use& use : all_uses()) {
    if (!source.files.contains(plain(use.file))) continue;
    for (const std::memory_order to : weaker(use.kind, use.order)) {
      ++mutants;
      std::string verdict;
      for (const auto& [scenario, uses, executions] : explored()) {
        // What no execution comes to changes none of them: this one has been explored.
        if (!uses.contains(use)) continue;
        Explorer explorer(
            {.may_time_out = scenario.may_time_out, .weakened = use, .weakened_to = to});
        const Explorer::Outcome outcome = explorer.explore(scenario.play);
        if (outcome.fault.empty()) continue;
        verdict = "killed by '" + scenario.name + "', execution " +
                  std::to_string(outcome.executions) + ": " + outcome.fault;
        ++killed;
        break;
      }
      const std::string line = source.line(use);
      const Justified* reason = nullptr;
      for (const Justified& justified : kJustified) {
        if (plain(use.file) == justified.file && line.find(justified.text) != std::string::npos &&
            to == justified.to) {
          reason = &justified;
        }
      }
      if (reason != nullptr) used.insert(reason);
      const std::string mutant =
          place(use) + " " + name_of(use.order) + " -> " + name_of(to) + "  " + line;
      EXPECT_EQ(verdict.empty(), reason != nullptr)
          << mutant << "\n"
          << (verdict.empty() ? "survives every scenario" : "is justified, but " + verdict);
      if (verdict.empty() && reason != nullptr) verdict = "lives: " + std::string(reason->why);
      std::printf("%s\n    %s\n", mutant.c_str(), verdict.c_str());
    }
  }
  for (const Justified& justified : kJustified) {
    EXPECT_TRUE(used.contains(&justified)) << "no such mutant: " << justified.text;
  }
  std::printf("%d mutants, %d killed, %d justified\n", mutants, killed, mutants - killed);
}

// Whatever order stands in the source was tried.
TEST(MemoryOrders, NoneIsLeftOut) {
  const Source source;
  std::set<std::pair<std::string, unsigned>> tried;
  for (const Use& use : all_uses()) tried.insert({plain(use.file), use.line});
  const std::regex order("memory_order_(acquire|release|acq_rel|seq_cst)");
  for (const auto& [file, lines] : source.files) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!std::regex_search(lines[i], order)) continue;
      // The call may begin on a line before.
      bool found = false;
      for (unsigned back = 0; back < 3 && back <= i; ++back) {
        found = found || tried.contains({file, static_cast<unsigned>(i + 1 - back)});
      }
      EXPECT_TRUE(found) << file << ":" << i + 1 << " is in no scenario: " << lines[i];
    }
  }
}

}  // namespace
}  // namespace rankine::model
