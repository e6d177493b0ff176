#include "algorithms/formula.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace rankine::formulas {
namespace {

// The exact result if both are exact and 128 bits hold it.
template <class Compute>
std::optional<Rational> exactly(const Value& a, const Value& b, const Compute& compute) {
  if (!a.exact() || !b.exact()) return std::nullopt;
  try {
    return compute(a.rational(), b.rational());
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

// The exact root of a square, found from its approximation; nullopt if `a` is no square.
std::optional<Int128> whole_root(Int128 a) {
  const auto root = static_cast<Int128>(std::llround(std::sqrt(static_cast<long double>(a))));
  Int128 square = 0;
  if (__builtin_mul_overflow(root, root, &square) || square != a) return std::nullopt;
  return root;
}

}  // namespace

Value Value::real(long double value) {
  Value out;
  out.number_ = value;
  return out;
}

long double Value::approximate() const {
  if (!exact()) return std::get<long double>(number_);
  return static_cast<long double>(rational().top()) / static_cast<long double>(rational().bottom());
}

Value Value::operator+(const Value& b) const {
  const auto sum = exactly(*this, b, [](const Rational& x, const Rational& y) { return x + y; });
  return sum ? Value(*sum) : real(approximate() + b.approximate());
}

Value Value::operator*(const Value& b) const {
  const auto product =
      exactly(*this, b, [](const Rational& x, const Rational& y) { return x * y; });
  return product ? Value(*product) : real(approximate() * b.approximate());
}

Value Value::operator/(const Value& b) const {
  if (b.approximate() == 0) throw std::domain_error("a division by zero");
  return *this * (b.exact() ? Value(Rational(1) / b.rational()) : real(1 / b.approximate()));
}

Value Value::floor() const {
  if (exact()) return rational().floor();
  const long double whole = std::floor(approximate() + kRounding);
  constexpr long double kMost = 9e18L;
  return std::fabs(whole) < kMost ? Value(static_cast<long long>(whole)) : real(whole);
}

bool equal(const Value& a, const Value& b) {
  if (a.exact() && b.exact()) return a.rational() == b.rational();
  const long double x = a.approximate(), y = b.approximate();
  return std::fabs(x - y) <= kRounding * std::max(std::fabs(x), std::fabs(y));
}

bool less(const Value& a, const Value& b) {
  if (equal(a, b)) return false;
  const Value difference = a - b;
  return difference.approximate() < 0;
}

Value square_root(const Value& a) {
  if (a.approximate() < 0) throw std::domain_error("the root of a negative number");
  if (a.exact()) {
    const auto top = whole_root(a.rational().top()), bottom = whole_root(a.rational().bottom());
    if (top && bottom) return Rational(*top, *bottom);
  }
  return Value::real(std::sqrt(a.approximate()));
}

Value logarithm(const Value& a, int base) {
  if (a.approximate() <= 0) throw std::domain_error("the logarithm of zero or less");
  if (a.exact() && (a.rational().top() == 1 || a.whole())) {
    Int128 of = a.whole() ? a.rational().top() : a.rational().bottom();
    int k = 0;
    for (; of % base == 0; of /= base) ++k;
    if (of == 1) return a.whole() ? k : -k;
  }
  return Value::real(std::log(a.approximate()) / std::log(static_cast<long double>(base)));
}

Value whole_logarithm(const Value& a, int base, bool up) {
  if (less(a, 1)) return 0;
  const Value n = up ? a.ceil() : a.floor();
  if (!n.whole()) return up ? logarithm(n, base).ceil() : logarithm(n, base).floor();
  int k = 0;
  for (Int128 left = n.rational().top(); left >= base; left /= base) ++k;
  return up && !equal(power(base, k), n) ? k + 1 : k;
}

Value power(const Value& a, const Value& b) {
  constexpr int kLargest = 256;
  if (!b.whole() || std::fabs(b.approximate()) > kLargest) {
    return Value::real(std::pow(a.approximate(), b.approximate()));
  }
  const auto times = static_cast<int>(b.rational().top());
  Value out = 1;
  for (int i = std::abs(times); i > 0; --i) out = out * a;
  return times < 0 ? Value(1) / out : out;
}

std::string to_string(const Value& value) {
  constexpr Int128 kLongTop = 1'000'000'000, kLongPart = 10'000;
  if (value.exact()) {
    const Int128 top = value.rational().top(), bottom = value.rational().bottom();
    const bool short_top = top > -kLongTop && top < (bottom == 1 ? kLongTop : kLongPart);
    if (short_top && bottom < kLongPart) return value.rational().to_string();
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.6Lg", value.approximate());
  return text;
}

namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool truth(const Value& value) { return !equal(value, 0); }

int base_of(const Value& b) {
  constexpr int kMostBase = 1 << 20;
  if (!b.whole() || less(b, 2) || less(kMostBase, b)) {
    throw std::domain_error("a logarithm with a base that is no whole number from 2 on");
  }
  return static_cast<int>(b.rational().top());
}

bool is_power(const Value& a, int base) {
  return a.whole() && !less(a, 1) && equal(power(base, whole_logarithm(a, base, false)), a);
}

// Bit i is set in the second half of every 2^(i + 1) numbers.
Value ones_below(const Value& a) {
  Value ones;
  for (Value half = 1; less(half, a); half = half * 2) {
    const Value periods = (a / (half * 2)).floor(), rest = a - periods * half * 2;
    ones = ones + periods * half + (less(half, rest) ? rest - half : Value(0));
  }
  return ones;
}

Value remainder(const Value& a, const Value& b) { return a - b * (a / b).floor(); }

struct Function {
  std::string_view name;
  std::size_t arguments;
  Value (*of)(const Value* a);
};
constexpr Function kFunctions[] = {
    {"if", 3, [](const Value* a) { return truth(a[0]) ? a[1] : a[2]; }},
    {"min", 2, [](const Value* a) { return less(a[0], a[1]) ? a[0] : a[1]; }},
    {"max", 2, [](const Value* a) { return less(a[0], a[1]) ? a[1] : a[0]; }},
    {"and", 2, [](const Value* a) { return Value(truth(a[0]) && truth(a[1])); }},
    {"or", 2, [](const Value* a) { return Value(truth(a[0]) || truth(a[1])); }},
    {"floor", 1, [](const Value* a) { return a[0].floor(); }},
    {"ceil", 1, [](const Value* a) { return a[0].ceil(); }},
    {"abs", 1, [](const Value* a) { return less(a[0], 0) ? Value() - a[0] : a[0]; }},
    {"mod", 2, [](const Value* a) { return remainder(a[0], a[1]); }},
    {"divides", 2,
     [](const Value* a) { return Value(truth(a[0]) && !truth(remainder(a[1], a[0]))); }},
    {"pow", 2, [](const Value* a) { return power(a[0], a[1]); }},
    {"sqrt", 1, [](const Value* a) { return square_root(a[0]); }},
    {"log2", 1, [](const Value* a) { return logarithm(a[0], 2); }},
    {"log3", 1, [](const Value* a) { return logarithm(a[0], 3); }},
    {"flog2", 1, [](const Value* a) { return whole_logarithm(a[0], 2, false); }},
    {"clog2", 1, [](const Value* a) { return whole_logarithm(a[0], 2, true); }},
    {"flog3", 1, [](const Value* a) { return whole_logarithm(a[0], 3, false); }},
    {"clog3", 1, [](const Value* a) { return whole_logarithm(a[0], 3, true); }},
    {"flog", 2, [](const Value* a) { return whole_logarithm(a[1], base_of(a[0]), false); }},
    {"clog", 2, [](const Value* a) { return whole_logarithm(a[1], base_of(a[0]), true); }},
    {"pow2", 1, [](const Value* a) { return Value(is_power(a[0], 2)); }},
    {"pow3", 1, [](const Value* a) { return Value(is_power(a[0], 3)); }},
    {"ones", 1, [](const Value* a) { return ones_below(a[0]); }},
};

// Recursive descent over the grammar in the header.
class Parser {
 public:
  Parser(std::string_view text, const Lookup& lookup, std::span<const int> sizes)
      : text_(text), lookup_(lookup), sizes_(sizes) {}

  Value whole_text() {
    const Value value = comparison();
    skip_blanks();
    if (at_ != text_.size()) fail("the end");
    return value;
  }

 private:
  Value comparison() {
    const Value left = sum();
    skip_blanks();
    const std::string_view rest = text_.substr(at_);
    for (const std::string_view sign : {"!=", ">=", "<=", "=", ">", "<"}) {
      if (!rest.starts_with(sign)) continue;
      at_ += sign.size();
      const Value right = sum();
      if (sign == "=") return equal(left, right);
      if (sign == "!=") return !equal(left, right);
      if (sign == ">=") return !less(left, right);
      if (sign == "<=") return !less(right, left);
      return sign == ">" ? less(right, left) : less(left, right);
    }
    return left;
  }

  Value sum() {
    Value value = product();
    for (;;) {
      if (take('+')) {
        value = value + product();
      } else if (take('-')) {
        value = value - product();
      } else {
        return value;
      }
    }
  }

  Value product() {
    Value value = factor();
    for (;;) {
      if (take('*')) {
        value = value * factor();
      } else if (take('/')) {
        value = value / factor();
      } else {
        return value;
      }
    }
  }

  Value factor() {
    // Limits on nesting and on the number of terms protect the stack and bound the time.
    constexpr int kDeepest = 100, kMostSteps = 500'000;
    if (++depth_ > kDeepest) fail("at most " + std::to_string(kDeepest) + " nested terms");
    if (++steps_ > kMostSteps) fail("at most " + std::to_string(kMostSteps) + " steps");
    const Value value = single();
    --depth_;
    return value;
  }

  Value single() {
    if (take('-')) return Value() - factor();
    if (take('(')) {
      const Value value = comparison();
      expect(')');
      return value;
    }
    skip_blanks();
    if (at_ < text_.size() && is_digit(text_[at_])) return number();
    const std::string_view name = this->name();
    if (name.empty()) fail("a number, a letter or a function");
    if (take('(')) {
      if (name == "sum") return sum_over();
      if (name == "each" || name == "times" || name == "most" || name == "next")
        return over_sizes(name);
      return call(name);
    }
    if (const auto bound = bound_.find(name); bound != bound_.end()) return bound->second;
    if (const auto known = lookup_(name, {})) return *known;
    fail("a known letter; '" + std::string(name) + "' is unknown");
  }

  Value number() {
    Int128 digits = 0;
    int exponent = 0;
    bool point = false;
    for (; at_ < text_.size(); ++at_) {
      if (is_digit(text_[at_])) {
        if (__builtin_mul_overflow(digits, Int128{10}, &digits) ||
            __builtin_add_overflow(digits, Int128{text_[at_] - '0'}, &digits)) {
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
        constexpr int kMostExponent = 4000;  // the range of a long double
        if (more > kMostExponent) fail("an exponent up to " + std::to_string(kMostExponent));
      }
      exponent += negative ? -more : more;
    }
    return Value(Rational(digits, 1)) * power(10, exponent);
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

  Value call(std::string_view name) {
    std::vector<Value> values{comparison()};
    while (take(',')) values.push_back(comparison());
    expect(')');
    for (const Function& function : kFunctions) {
      if (function.name != name) continue;
      if (values.size() != function.arguments)
        fail(std::to_string(function.arguments) + " arguments");
      return function.of(values.data());
    }
    if (const auto known = lookup_(name, values)) return *known;
    std::string known = "sum, each, times, most, next";
    for (const Function& function : kFunctions) known += ", " + std::string(function.name);
    fail("a known function; '" + std::string(name) + "' is unknown; allowed are " + known);
  }

  // Evaluates the text from `start` once more, with that value for the letter.
  Value with(std::string_view letter, const Value& value, std::size_t start) {
    at_ = start;
    const auto [bound, fresh] = bound_.try_emplace(std::string(letter), value);
    const Value hidden = std::exchange(bound->second, value);
    const Value result = comparison();
    if (fresh) {
      bound_.erase(bound);
    } else {
      bound->second = hidden;
    }
    return result;
  }

  // After "sum(". The text is read over once if there is no term.
  Value sum_over() {
    const std::string_view letter = name();
    expect(',');
    const Value first = comparison();
    expect(',');
    const Value last = comparison();
    expect(',');
    const std::size_t start = at_;
    Value total;
    if (less(last, first)) with(letter, first, start);
    for (Value k = first; !less(last, k); k = k + 1) total = total + with(letter, k, start);
    expect(')');
    return total;
  }

  // After "each(", "times(", "most(" or "next(".
  Value over_sizes(std::string_view name) {
    if (bound_.contains("a")) fail("no function over sizes inside another one");
    const std::size_t start = at_;
    Value total, product = 1, most, next;
    for (const int size : sizes_) {
      const Value value = with("a", size, start);
      total = total + value;
      product = product * value;
      next = less(most, value) ? most : less(next, value) ? value : next;
      most = less(most, value) ? value : most;
    }
    expect(')');
    if (name == "each" || name == "times") return name == "each" ? total : product;
    return name == "most" ? most : next;
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) fail("'" + std::string(1, c) + "'");
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw std::logic_error("formula '" + std::string(text_) + "', character " +
                           std::to_string(at_ + 1) + ": expected " + expected);
  }

  const std::string_view text_;
  const Lookup& lookup_;
  const std::span<const int> sizes_;
  std::size_t at_ = 0;
  Letters bound_;  // letters of the enclosing sums
  int depth_ = 0, steps_ = 0;
};

}  // namespace

Value evaluate(std::string_view text, const Lookup& lookup, std::span<const int> sizes) {
  return Parser(text, lookup, sizes).whole_text();
}

Value evaluate(std::string_view text, const Letters& letters) {
  return evaluate(
      text, [&](std::string_view name, std::span<const Value> arguments) -> std::optional<Value> {
        if (!arguments.empty()) return std::nullopt;
        if (const auto found = letters.find(name); found != letters.end()) return found->second;
        std::string known;
        for (const auto& [letter, value] : letters) known += (known.empty() ? "" : ", ") + letter;
        throw std::logic_error("formula '" + std::string(text) + "': '" + std::string(name) +
                               "' is not known; letters here are " +
                               (known.empty() ? "none" : known));
      });
}

}  // namespace rankine::formulas
