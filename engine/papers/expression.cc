#include "engine/papers/expression.h"

#include <cctype>
#include <stdexcept>

#include "algorithms/arithmetic.h"

namespace rankine::expressions {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Recursive descent over the grammar in the header.
class Parser : private Arithmetic<Value, Parser> {
 public:
  Parser(std::string_view text, const Lookup& lookup) : Arithmetic(text, " \n"), lookup_(lookup) {}

  Value whole_text() {
    const Value value = comparison();
    skip_blanks();
    if (at_ != text_.size()) fail("the end");
    return value;
  }

 private:
  friend Arithmetic;

  Value comparison() {
    const Value left = sum();
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view sign : {"!=", ">=", "<=", "=", ">", "<"}) {
      if (!rest.starts_with(sign)) continue;
      at_ += sign.size();
      const Value right = sum();
      if (sign == "=") return equal(left, right) ? 1 : 0;
      if (sign == "!=") return equal(left, right) ? 0 : 1;
      if (sign == ">=") return less(left, right) ? 0 : 1;
      if (sign == "<=") return less(right, left) ? 0 : 1;
      return (sign == ">" ? less(right, left) : less(left, right)) ? 1 : 0;
    }
    return left;
  }

  Value single() {
    // Nobody sums up so much; patience has an end.
    constexpr int kMostSteps = 500'000;
    if (++steps_ > kMostSteps) fail("fewer terms");
    if (take('-')) return Value() - factor();
    if (take('(')) {
      const Value value = comparison();
      if (!take(')')) fail("')'");
      return value;
    }
    skip_blanks();
    if (at_ < text_.size() && is_digit(text_[at_])) return number();
    const std::string_view name = this->name();
    if (name.empty()) fail("a number, a letter or a function");
    if (take('(')) return name == "sum" ? sum_over() : call(name, arguments());
    if (const auto bound = bound_.find(name); bound != bound_.end()) return bound->second;
    if (const auto known = lookup_(name)) return *known;
    fail(("a letter that is known; '" + std::string(name) + "' is not").c_str());
  }

  Value number() {
    Wide digits = 0;
    int exponent = 0;
    bool point = false;
    for (; at_ < text_.size(); ++at_) {
      if (is_digit(text_[at_])) {
        if (__builtin_mul_overflow(digits, Wide{10}, &digits) ||
            __builtin_add_overflow(digits, Wide{text_[at_] - '0'}, &digits)) {
          fail("a number of at most 38 digits");
        }
        exponent -= point ? 1 : 0;
      } else if (text_[at_] == '.' && !point && at_ + 1 < text_.size() &&
                 is_digit(text_[at_ + 1])) {
        point = true;
      } else {
        break;
      }
    }
    if (at_ < text_.size() && text_[at_] == 'e') {
      ++at_;
      const bool negative = at_ < text_.size() && text_[at_] == '-';
      if (negative) ++at_;
      int more = 0;
      if (at_ >= text_.size() || !is_digit(text_[at_])) fail("an exponent");
      for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
        more = more * 10 + (text_[at_] - '0');
        constexpr int kMostExponent = 4000;  // a long double has no more
        if (more > kMostExponent) fail("a smaller exponent");
      }
      exponent += negative ? -more : more;
    }
    return Value::fraction(digits, 1) * power(10, exponent);
  }

  std::string_view name() {
    skip_blanks();
    const std::size_t first = at_;
    if (at_ < text_.size() && is_letter(text_[at_])) {
      while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]) ||
                                    text_[at_] == '_' || text_[at_] == '.')) {
        ++at_;
      }
    }
    return text_.substr(first, at_ - first);
  }

  std::vector<Value> arguments() {
    std::vector<Value> values{comparison()};
    while (take(',')) values.push_back(comparison());
    if (!take(')')) fail("')'");
    return values;
  }

  // After "sum(".
  Value sum_over() {
    const std::string letter(name());
    if (!take(',')) fail("','");
    const Value first = comparison();
    if (!take(',')) fail("','");
    const Value last = comparison();
    if (!take(',')) fail("','");
    const std::size_t start = at_;
    const auto outer = bound_.find(letter);
    const std::optional<Value> hidden =
        outer == bound_.end() ? std::nullopt : std::optional(outer->second);
    Value total;
    // Once more than needed where there is no term: the text must be read over.
    bool any = false;
    for (Value k = first; !less(last, k) || !any; k = k + 1) {
      at_ = start;
      bound_[letter] = k;
      const Value term = comparison();
      any = true;
      if (!less(last, k)) total = total + term;
    }
    bound_.erase(letter);
    if (hidden) bound_[letter] = *hidden;
    if (!take(')')) fail("')'");
    return total;
  }

  Value call(std::string_view name, const std::vector<Value>& a) {
    const auto arity = [&](std::size_t n) {
      if (a.size() != n) fail("another number of arguments");
    };
    const auto truth = [](const Value& v) { return !equal(v, 0); };
    if (name == "if") {
      arity(3);
      return truth(a[0]) ? a[1] : a[2];
    }
    if (name == "min" || name == "max") {
      arity(2);
      return less(a[0], a[1]) == (name == "min") ? a[0] : a[1];
    }
    if (name == "and" || name == "or") {
      arity(2);
      return (name == "and" ? truth(a[0]) && truth(a[1]) : truth(a[0]) || truth(a[1])) ? 1 : 0;
    }
    if (name == "divides" || name == "mod") {
      arity(2);
      const Value rest =
          a[name == "mod" ? 0 : 1] -
          a[name == "mod" ? 1 : 0] * (a[name == "mod" ? 0 : 1] / a[name == "mod" ? 1 : 0]).floor();
      return name == "mod" ? rest : Value(equal(rest, 0) ? 1 : 0);
    }
    if (name == "pow") {
      arity(2);
      return power(a[0], a[1]);
    }
    arity(1);
    if (name == "abs") return less(a[0], 0) ? Value() - a[0] : a[0];
    if (name == "floor") return a[0].floor();
    if (name == "ceil") return a[0].ceil();
    if (name == "sqrt") return square_root(a[0]);
    if (name == "log2") return logarithm(a[0], 2);
    if (name == "log3") return logarithm(a[0], 3);
    if (name == "clog2") return logarithm(a[0], 2).ceil();
    if (name == "clog3") return logarithm(a[0], 3).ceil();
    if (name == "flog2") return logarithm(a[0], 2).floor();
    if (name == "flog3") return logarithm(a[0], 3).floor();
    if (name == "pow2") return logarithm(a[0], 2).whole() ? 1 : 0;
    if (name == "pow3") return logarithm(a[0], 3).whole() ? 1 : 0;
    fail("a function of expression.h");
  }

  const Lookup& lookup_;
  Letters bound_;  // of the sums that we are in
  int steps_ = 0;
};

}  // namespace

Value evaluate(std::string_view text, const Lookup& lookup) {
  return Parser(text, lookup).whole_text();
}

Value evaluate(std::string_view text, const Letters& letters) {
  return evaluate(text, Lookup([&letters](std::string_view name) -> std::optional<Value> {
                    const auto found = letters.find(name);
                    if (found == letters.end()) return std::nullopt;
                    return found->second;
                  }));
}

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

}  // namespace rankine::expressions
