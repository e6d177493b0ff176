#include "algorithms/formula.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "algorithms/arithmetic.h"
#include "algorithms/catalogue.h"
#include "algorithms/levels.h"
#include "algorithms/skips.h"
#include "algorithms/trivance.h"

namespace rankine {
namespace {

[[noreturn]] void too_large() { throw std::overflow_error("a number beyond 64 bits"); }

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) too_large();
  return product;
}
std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t total;
  if (__builtin_add_overflow(a, b, &total)) too_large();
  return total;
}

// How many ones the binary numbers 0 ... n - 1 have together: bit i is set in the second half of
// every 2^(i + 1) of them.
std::int64_t ones_below(std::int64_t n) {
  std::int64_t ones = 0;
  for (std::int64_t half = 1; half < n; half *= 2) {
    ones += n / (2 * half) * half + std::max<std::int64_t>(0, n % (2 * half) - half);
  }
  return ones;
}

int most_at_once(const std::vector<int>& dims) {
  std::vector<int> messages;  // by round
  for (const int size : dims) {
    const RunPlan plan = trivance_plan(size);
    messages.resize(std::max(messages.size(), plan.size()), 0);
    for (std::size_t k = 0; k < plan.size(); ++k) messages[k] += static_cast<int>(plan[k].size());
  }
  return messages.empty() ? 0 : *std::max_element(messages.begin(), messages.end());
}

int messages_of(const RunPlan& plan) {
  int messages = 0;
  for (const auto& round : plan) messages += static_cast<int>(round.size());
  return messages;
}

// Recursive descent over the grammar in the header.
class Parser : private Arithmetic<Fraction, Parser> {
 public:
  Parser(std::string_view text, const Params& params) : Arithmetic(text, " "), params_(params) {}

  Fraction whole_text() {
    const Fraction value = comparison();
    if (at_ != text_.size()) fail("end of formula");
    return value;
  }

 private:
  friend Arithmetic;

  Fraction comparison() {
    const Fraction left = sum();
    if (!take('>')) return left;
    if (at_ < text_.size() && text_[at_] == '=') {
      ++at_;
      return left < sum() ? 0 : 1;
    }
    return sum() < left ? 1 : 0;
  }

  Fraction single() {
    skip_blanks();
    if (take('-')) return Fraction(0) - factor();
    if (take('(')) {
      const Fraction value = comparison();
      if (!take(')')) fail("')'");
      return value;
    }
    if (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      std::int64_t value = 0;
      while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
        value = plus(times(value, 10), text_[at_++] - '0');
      }
      return value;
    }
    std::string name;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0)) {
      name += text_[at_++];
    }
    if (take('(')) {
      if (name == "each" || name == "most") return over_dimensions(name == "each");
      std::vector<Fraction> arguments{comparison()};
      while (take(',')) arguments.push_back(comparison());
      if (!take(')')) fail("')'");
      return call(name, arguments);
    }
    if (name == "Q") return 1 << floor_log2(params_.ranks);
    if (name == "H") return params_.root == params_.peer ? 0 : 1;
    if (name == "T") return most_at_once(resolved(params_).dims);
    if (name == "W") return circulant().hops();
    if (name == "V") return circulant().most_through_one();
    if (name == "C") return circulant().most_added_to_one();
    if (name == "L") return levels().rounds();
    if (name == "J") return most_neighbours(levels());
    if (name == "a" && dimension_ > 0) return dimension_;
    for (const Parameter& row : parameters()) {
      if (!name.empty() && name == row.letter) return row.count(params_);
    }
    fail("a number, a letter or a function");
  }

  CirculantRounds circulant() const { return {params_.ranks, resolved(params_).skips}; }

  Tree levels() const { return level_tree(params_.ranks, params_.root, resolved(params_).levels); }

  // The same text once for every dimension.
  Fraction over_dimensions(bool sum_up) {
    if (dimension_ > 0) fail("no dimensions of a dimension");
    const std::size_t begin = at_;
    Fraction total = 0;
    for (const int size : resolved(params_).dims) {
      at_ = begin;
      dimension_ = size;
      const Fraction value = comparison();
      total = sum_up ? total + value : total < value ? value : total;
    }
    dimension_ = 0;
    if (!take(')')) fail("')'");
    return total;
  }

  Fraction call(const std::string& name, const std::vector<Fraction>& a) {
    const auto arity = [&](std::size_t n) {
      if (a.size() != n) fail("another number of arguments");
    };
    if (name == "min" || name == "max") {
      arity(2);
      return (a[0] < a[1]) == (name == "min") ? a[0] : a[1];
    }
    if (name == "if") {
      arity(3);
      return a[0] == 0 ? a[2] : a[1];
    }
    if (name == "and" || name == "or") {
      arity(2);
      const int holds = (a[0] == 0 ? 0 : 1) + (a[1] == 0 ? 0 : 1);
      return holds == 2 || (holds == 1 && name == "or") ? 1 : 0;
    }
    if (name == "divides") {
      arity(2);
      return a[0] == 0 || (a[1] / a[0]).bottom() != 1 ? 0 : 1;
    }
    arity(1);
    const std::int64_t whole = a[0].floor();
    if (name == "floor") return whole;
    if (name == "ceil") return -(Fraction(0) - a[0]).floor();
    constexpr std::int64_t kMost = std::numeric_limits<int>::max();
    if (whole < -kMost || whole > kMost) too_large();
    const int n = static_cast<int>(whole);
    if (name == "log2") return n < 1 ? 0 : floor_log2(n);
    if (name == "clog2") return ceil_log2(n);
    if (name == "exp2") {
      if (n < -62 || n > 62) too_large();
      return n < 0 ? Fraction(1, std::int64_t{1} << -n) : std::int64_t{1} << n;
    }
    if (name == "pow2") return is_power_of_two(n) ? 1 : 0;
    if (name == "ones") return ones_below(whole);
    if (name == "log3") return floor_log3(n);
    if (name == "clog3") return ceil_log3(n);
    if (name == "exp3") {
      if (n > 19) too_large();  // for power_of_three()
      return power_of_three(n);
    }
    if (name == "pow3") return n == power_of_three(floor_log3(n)) ? 1 : 0;
    if (name == "children") return most_children(levels(), n);
    if (name == "messages") {
      constexpr int kLargest = 4096;  // as far as plans are wanted
      if (n > kLargest) fail("a dimension of at most 4096");
      return messages_of(trivance_plan(n));
    }
    fail("a function of formula.h");
  }

  const Params& params_;
  int dimension_ = 0;  // its size, where each() or most() is at work
};

}  // namespace

Fraction::Fraction(std::int64_t top, std::int64_t bottom) : top_(top), bottom_(bottom) {
  if (bottom_ == 0) throw std::logic_error("a fraction with denominator 0");
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();  // has no negative
  if (top_ == kLeast || bottom_ == kLeast) too_large();
  const std::int64_t divisor = std::gcd(top_, bottom_) * (bottom_ < 0 ? -1 : 1);
  top_ /= divisor;
  bottom_ /= divisor;
}
Fraction Fraction::operator+(Fraction b) const {
  return {plus(times(top_, b.bottom_), times(b.top_, bottom_)), times(bottom_, b.bottom_)};
}
Fraction Fraction::operator-(Fraction b) const { return *this + Fraction(-1) * b; }
Fraction Fraction::operator*(Fraction b) const {
  return {times(top_, b.top_), times(bottom_, b.bottom_)};
}
Fraction Fraction::operator/(Fraction b) const {
  return {times(top_, b.bottom_), times(bottom_, b.top_)};
}
bool Fraction::operator<(Fraction b) const {
  return times(top_, b.bottom_) < times(b.top_, bottom_);
}
std::int64_t Fraction::floor() const {
  const std::int64_t quotient = top_ / bottom_;
  return top_ % bottom_ < 0 ? quotient - 1 : quotient;
}
std::string Fraction::to_string() const {
  return bottom_ == 1 ? std::to_string(top_) : std::to_string(top_) + "/" + std::to_string(bottom_);
}

Fraction evaluate(std::string_view formula, const Params& params) {
  return Parser(formula, params).whole_text();
}

}  // namespace rankine
