// What the grammars of formulas here have in common (formula.h, engine/papers): sums of
// products of factors, brackets that end, and errors that name the character.
//
//   sum      product, then + or - and another, as often as there are
//   product  factor, then * or / and another, as often as there are
//
// A grammar derives from it, passes itself as `Grammar`, and says what a factor is: single().
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace rankine {

template <class Value, class Grammar>
class Arithmetic {
 protected:
  // `blanks`: characters that mean nothing between others. Both texts outlive the parser.
  Arithmetic(std::string_view text, std::string_view blanks) : text_(text), blanks_(blanks) {}

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

  // Nobody nests so deep; the stack has an end.
  Value factor() {
    constexpr int kDeepest = 100;
    if (++depth_ > kDeepest) fail("less that is nested");
    const Value value = static_cast<Grammar&>(*this).single();
    --depth_;
    return value;
  }

  void skip_blanks() {
    while (at_ < text_.size() && blanks_.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void fail(const char* expected) const {
    throw std::logic_error("formula '" + std::string(text_) + "', character " +
                           std::to_string(at_ + 1) + ": expected " + expected);
  }

  const std::string_view text_;
  std::size_t at_ = 0;

 private:
  const std::string_view blanks_;
  int depth_ = 0;
};

}  // namespace rankine
