// Runs the commands, requests and texts of answers.txt and refusals.txt; the files describe their
// lines.

#include <nlohmann/json.hpp>

#include "engine/cli/judge.h"
#include "engine/cli/question.h"
#include "engine/lab/page/answers.h"
#include "tests/engine/cli/tool_fixtures.h"
#include "tests/testing.h"

namespace rankine::tools {
namespace {

using nlohmann::json;

struct Case {
  int line = 0;
  std::string section, input;
  std::vector<std::string> parts;
};

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != text.npos; at += with.size()) {
    text.replace(at, what.size(), with);
  }
  return text;
}

std::vector<Case> cases_of(const std::string& file) {
  std::vector<Case> all;
  std::string section, begin;
  int number = 0;
  for (const std::string& line : lines_of(text_of(file))) {
    ++number;
    if (line.empty() || (line.starts_with("# ") && line.ends_with('.'))) continue;
    if (line.starts_with('[') && line.ends_with(']') && std::islower(line[1]) != 0) {
      const std::size_t end = line.find_first_of(" ]");
      section = line.substr(1, end - 1);
      begin = line[end] == ' ' ? line.substr(end + 1, line.size() - end - 2) : "";
      continue;
    }
    Case one{.line = number, .section = section, .input = {}, .parts = {}};
    std::string rest = " " + line;
    for (std::size_t bar; (bar = rest.rfind(" | ")) != rest.npos; rest.resize(bar)) {
      one.parts.insert(one.parts.begin(), rest.substr(bar + 3));
    }
    one.input = rest.size() > 1 ? rest.substr(1) : "";
    if (one.input.starts_with(',')) one.input = begin + one.input + "}";
    if (section != "commands") {
      one.input = replaced(replaced(one.input, "\\n", "\n"), "\\xff", "\xff");
    }
    all.push_back(one);
  }
  EXPECT_GT(all.size(), 100U) << file;
  return all;
}

std::string judged(const Case& one, const char* more, Captured& run) {
  run = run_line("check " + file_with("it.txt", one.input + "\n") + more);
  return run.out;
}

TEST(Cases, AreRefusedWithArgumentAndValue) {
  const OwnTuning tuning;  // for tune
  for (Case& one : cases_of("tests/engine/cli/refusals.txt")) {
    SCOPED_TRACE("refusals.txt:" + std::to_string(one.line) + ": " + one.input);
    Captured run;
    if (one.section == "commands") {
      const bool environment = one.input.starts_with("3: ");
      const std::vector<std::string> words = words_of(one.input.substr(environment ? 3 : 0));
      if (one.parts.empty() && words.size() > 1 && words[words.size() - 2].starts_with('-')) {
        one.parts = {words[words.size() - 2] + " is '" + words.back() + "'"};
      }
      run = run_captured(words);
      EXPECT_EQ(run.exit, environment ? 3 : 2);
      EXPECT_TRUE(has(run.err, "rankine")) << run.err;
    } else if (one.section == "requests") {
      const BatchAnswer answer = answer_request(one.input, 7);
      EXPECT_FALSE(answer.ok);
      const json told = json::parse(answer.line);
      EXPECT_EQ(told["line"], 7);
      EXPECT_FALSE(told.contains("messages"));
      run.err = told.value("error", "");
      const json asked = json::parse(one.input, nullptr, false);
      if (asked.is_object() && asked.contains("id")) {
        EXPECT_EQ(told["id"], asked["id"]);
      }
    } else if (one.section == "page") {
      const PageAnswer answer = answer_page(one.input);
      EXPECT_TRUE(answer.numbers.empty());
      run.err = json::parse(answer.json).value("error", "");
    } else {
      judged(one, "", run);
      EXPECT_EQ(run.exit, 2);
    }
    EXPECT_EQ(run.out, "");
    EXPECT_NE(run.err, "");
    for (const std::string& part : one.parts) EXPECT_TRUE(has(run.err, part)) << run.err;
  }
}

bool is_near(const json& a, const json& b) {
  if (a.is_array() && b.is_array()) {
    bool all = a.size() == b.size();
    for (std::size_t i = 0; all && i < a.size(); ++i) all = is_near(a[i], b[i]);
    return all;
  }
  if (!a.is_number() || !b.is_number()) return a == b;
  return std::fabs(a.get<double>() - b.get<double>()) <= 1e-12 * std::fabs(b.get<double>());
}

TEST(Cases, AreAnsweredWithTheirValues) {
  for (const Case& one : cases_of("tests/engine/cli/answers.txt")) {
    SCOPED_TRACE("answers.txt:" + std::to_string(one.line) + ": " + one.input);
    Captured run{.exit = 0, .out = {}, .err = {}};
    const bool is_command = one.section == "commands";
    const std::string text = is_command                  ? output_of(one.input)
                             : one.section == "requests" ? answer_request(one.input, 1).line
                                                         : judged(one, " --json", run);
    const json told = json::parse(text, nullptr, false);
    ASSERT_TRUE(told.is_object() || told.is_array()) << text;
    if (run.out != "") {
      EXPECT_EQ(run.exit, told["proved"].get<bool>() ? 0 : 1);
    }
    for (const std::string& part : one.parts) {
      const std::size_t blank = part.find(' ');
      const json::json_pointer pointer(part.substr(0, blank));
      const std::string value = blank == part.npos ? "" : part.substr(blank + 1);
      const bool there = told.contains(pointer);
      if (value == "absent" || !there || value.empty()) {
        EXPECT_EQ(there, value != "absent") << part << " in " << text;
      } else if (value.starts_with("size ")) {
        EXPECT_EQ(told[pointer].size(), std::stoul(value.substr(5))) << part << " in " << text;
      } else {
        EXPECT_TRUE(is_near(told[pointer], json::parse(value))) << part << " in " << text;
      }
    }
  }
}

}  // namespace
}  // namespace rankine::tools
