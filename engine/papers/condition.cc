#include "engine/papers/condition.h"

#include <algorithm>
#include <functional>
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
          throw std::logic_error("'" + std::string(text) + "' has more than " +
                                 std::to_string(kMostSets) + " sets");
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

namespace rankine::claims {
namespace {

// A simple condition in words, and its truth for each set.
struct Condition {
  std::string text;
  std::vector<bool> truth;
};

bool whole_above(const Value& value, int above) { return value.whole() && less(above, value); }

std::vector<Condition> conditions(const std::vector<std::string>& order,
                                  const std::vector<Letters>& sets) {
  std::vector<Condition> out;
  const auto add = [&](std::string text, const std::function<bool(const Letters&)>& test) {
    std::vector<bool> truth;
    for (const Letters& letters : sets) truth.push_back(test(letters));
    // A condition that is always true, or never, separates nothing.
    if (std::count(truth.begin(), truth.end(), truth.front()) ==
        static_cast<std::ptrdiff_t>(truth.size())) {
      return;
    }
    out.push_back({std::move(text), std::move(truth)});
  };
  for (const std::string& letter : order) {
    std::vector<Value> values;
    for (const Letters& letters : sets) {
      const Value& value = letters.at(letter);
      const auto same = [&value](const Value& other) { return equal(value, other); };
      if (std::none_of(values.begin(), values.end(), same)) values.push_back(value);
    }
    std::sort(values.begin(), values.end(), formulas::less);
    const bool counts =
        std::all_of(values.begin(), values.end(), [](const Value& v) { return whole_above(v, 0); });
    if (counts && values.size() > 2) {
      add(letter + " is a power of two",
          [&letter](const Letters& letters) { return logarithm(letters.at(letter), 2).whole(); });
      add(letter + " is a power of three",
          [&letter](const Letters& letters) { return logarithm(letters.at(letter), 3).whole(); });
      add(letter + " is even", [&letter](const Letters& letters) {
        return equal((letters.at(letter) / 2).floor() * 2, letters.at(letter));
      });
      add(letter + " is odd", [&letter](const Letters& letters) {
        return !equal((letters.at(letter) / 2).floor() * 2, letters.at(letter));
      });
    }
    for (const Value& value : values) {
      add(letter + " = " + to_string(value),
          [&](const Letters& letters) { return equal(letters.at(letter), value); });
    }
    for (std::size_t i = 1; i < values.size(); ++i) {
      add(letter + " >= " + to_string(values[i]),
          [&](const Letters& letters) { return !less(letters.at(letter), values[i]); });
      add(letter + " <= " + to_string(values[i - 1]),
          [&](const Letters& letters) { return !less(values[i - 1], letters.at(letter)); });
    }
  }
  return out;
}

}  // namespace

std::string describe(const std::vector<std::string>& order, const Letters& letters) {
  std::string text;
  for (const std::string& letter : order) {
    text += (text.empty() ? "" : ", ") + letter + " = " + to_string(letters.at(letter));
  }
  return text;
}

std::string condition_of(const std::vector<std::string>& order, const std::vector<Letters>& sets,
                         const std::vector<bool>& holds) {
  const std::vector<Condition> known = conditions(order, sets);
  for (const Condition& c : known) {
    if (c.truth == holds) return c.text;
  }
  const auto joined = [&](const Condition& a, const Condition& b, bool both) {
    for (std::size_t i = 0; i < holds.size(); ++i) {
      if ((both ? a.truth[i] && b.truth[i] : a.truth[i] || b.truth[i]) != holds[i]) return false;
    }
    return true;
  };
  for (const bool both : {true, false}) {
    for (std::size_t a = 0; a < known.size(); ++a) {
      for (std::size_t b = a + 1; b < known.size(); ++b) {
        if (joined(known[a], known[b], both)) {
          return known[a].text + (both ? " and " : " or ") + known[b].text;
        }
      }
    }
  }
  // Letters with the same value in all sets are left out.
  std::vector<std::string> varying;
  for (const std::string& letter : order) {
    for (const Letters& letters : sets) {
      if (equal(letters.at(letter), sets.front().at(letter))) continue;
      varying.push_back(letter);
      break;
    }
  }
  constexpr std::size_t kMostListed = 12;
  std::string text;
  std::size_t listed = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    if (!holds[i]) continue;
    if (listed++ == kMostListed) {
      text += " ...";
      break;
    }
    text += (text.empty() ? "" : "; ") + describe(varying, sets[i]);
  }
  return text;
}

}  // namespace rankine::claims
