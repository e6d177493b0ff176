#include "engine/tools/readable_formula.h"

#include <cctype>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

namespace rankine::tools {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// What stands between the parenthesis at `open` and its partner, between commas; `open` goes behind
// the partner.
std::vector<std::string_view> arguments_at(std::string_view text, std::size_t& open) {
  std::vector<std::string_view> parts;
  std::size_t begin = ++open;
  for (int depth = 0; open < text.size(); ++open) {
    if (text[open] == '(') ++depth;
    if (text[open] == ')' && depth-- == 0) break;
    if (text[open] != ',' || depth != 0) continue;
    parts.push_back(text.substr(begin, open - begin));
    begin = open + 1;
  }
  parts.push_back(text.substr(begin, open - begin));
  if (open < text.size()) ++open;
  return parts;
}

// A number that is not 0 is a condition that holds.
std::string condition(std::string_view text) {
  if (text == "N-1") return "N>1";
  if (text == "pow2(N)") return "N is a power of 2";
  const std::string shown = readable_formula(text);
  const bool compares = text.find_first_of("<>=") != std::string_view::npos;
  return compares ? shown : shown + " is not 0";
}

std::string call(std::string_view name, const std::vector<std::string_view>& arguments,
                 bool whole) {
  if (name == "if" && arguments.size() == 3) {
    const std::string text = fmt::format("{} if {}, else {}", readable_formula(arguments[1]),
                                         condition(arguments[0]), readable_formula(arguments[2]));
    return whole ? text : "(" + text + ")";
  }
  if ((name == "and" || name == "or") && arguments.size() == 2) {
    const std::string text =
        fmt::format("{} {} {}", condition(arguments[0]), name, condition(arguments[1]));
    return whole ? text : "(" + text + ")";
  }
  std::string inside;
  for (const std::string_view each : arguments) {
    inside += (inside.empty() ? "" : ",") + readable_formula(each);
  }
  if (name == "clog2" || name == "flog2") {
    const bool simple = inside.size() == 1;
    return fmt::format("{}(log2{}{}{})", name == "clog2" ? "ceil" : "floor", simple ? " " : "(",
                       inside, simple ? "" : ")");
  }
  return fmt::format("{}({})", name, inside);
}

}  // namespace

std::string readable_formula(std::string_view formula) {
  std::string out;
  for (std::size_t at = 0; at < formula.size();) {
    const char c = formula[at];
    if (is_letter(c) && (at == 0 || !is_word(formula[at - 1]))) {
      const std::size_t begin = at;
      while (at < formula.size() && is_word(formula[at])) ++at;
      const std::string_view name = formula.substr(begin, at - begin);
      if (at == formula.size() || formula[at] != '(') {
        out += name;
        continue;
      }
      const auto arguments = arguments_at(formula, at);
      out += call(name, arguments, begin == 0 && at == formula.size());
      continue;
    }
    // A number before a parenthesis or a name multiplies it.
    const bool factor = c == '*' && at > 0 && at + 1 < formula.size() &&
                        std::isdigit(static_cast<unsigned char>(formula[at - 1])) != 0 &&
                        (formula[at + 1] == '(' || is_letter(formula[at + 1]));
    if (!factor) {
      out += c;
    } else if (formula[at + 1] != '(') {
      out += ' ';
    }
    ++at;
  }
  return out;
}

}  // namespace rankine::tools
