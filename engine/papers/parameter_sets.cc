#include "engine/papers/parameter_sets.h"

#include <stdexcept>

namespace rankine::formulas {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split_outside(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] == separator && depth == 0) {
      parts.push_back(trimmed(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  const std::string_view last = trimmed(text.substr(start));
  if (!last.empty() || !parts.empty()) parts.push_back(last);
  return parts;
}

ParameterSets parameter_sets(std::string_view text) {
  ParameterSets out{{}, {Letters{}}};
  for (const std::string_view assignment : split_outside(text, ';')) {
    const std::size_t sign = assignment.find('=');
    if (sign == std::string_view::npos) {
      throw std::logic_error("'" + std::string(assignment) + "' is no assignment");
    }
    const std::string letter(trimmed(assignment.substr(0, sign)));
    out.order.push_back(letter);
    std::vector<Letters> longer;
    for (const Letters& before : out.sets) {
      const auto add = [&](const Value& value) {
        constexpr std::size_t kMostSets = 1 << 16;
        if (longer.size() == kMostSets) {
          throw std::logic_error("'" + std::string(text) + "' stands for more sets than are meant");
        }
        longer.push_back(before);
        longer.back()[letter] = value;
      };
      for (const std::string_view part : split_outside(assignment.substr(sign + 1), ',')) {
        const std::size_t dots = part.find("..");
        if (dots == std::string_view::npos) {
          add(evaluate(part, before));
          continue;
        }
        const Value last = evaluate(part.substr(dots + 2), before);
        for (Value v = evaluate(part.substr(0, dots), before); !less(last, v); v = v + 1) add(v);
      }
    }
    out.sets = std::move(longer);
  }
  return out;
}

}  // namespace rankine::formulas
