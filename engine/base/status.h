// Status is an error as a value: planning and calls return it, and nothing in the engine throws
// across a call. The text of an error names the argument or rank, its value, and the allowed
// values.
//
// A program that prefers exceptions writes call(...).throw_if_error() and create(...).value(), and
// catches one type, Error, which has the code:
//
//   try {
//     auto comm = rankine::Communicator::create({.ranks = 2}).value();
//     ...
//     me.all_reduce(std::span(x)).throw_if_error();
//   } catch (const rankine::Error& e) {
//     if (!rankine::goes_on(e.code())) ...  // e.what(): "timeout: no answer within ..."
//   }
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace rankine {

enum class Code : unsigned char {
  ok,
  invalid_argument,  // the call had no effect; the communicator goes on
  mismatch,          // ranks called different collectives; the communicator is finished
  timeout,           // a deadline passed; finished
  rank_lost,         // a rank left while others needed it; finished
  remote_error,      // another rank's function threw; finished
  aborted,           // abort() was called; finished
  out_of_memory,     // the call needs more memory; finished
  system,            // the operating system refused something that we need; finished
  forked,            // this process is a fork of the ranks' process; finished in it
};
inline constexpr int kCodes = 10;

std::string_view name_of(Code code);

// True if the communicator can be used after a call with this code. Otherwise all its calls end
// with that error, on every rank, and the process can make a new communicator.
constexpr bool goes_on(Code code) { return code == Code::ok || code == Code::invalid_argument; }

// A failure as an exception: "timeout: no answer within ...".
class Error : public std::runtime_error {
 public:
  Error(Code code, const std::string& text)
      : std::runtime_error(std::string(name_of(code)) + ": " + text), code_(code) {}
  Code code() const noexcept { return code_; }

 private:
  Code code_;
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string text) : code_(code), text_(std::move(text)) {}
  // Copies must not throw when memory is short: then the copy has no text.
  Status(const Status& other) noexcept : code_(other.code_) { copy_text(other); }
  Status& operator=(const Status& other) noexcept {
    code_ = other.code_;
    copy_text(other);
    return *this;
  }
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return code_ == Code::ok; }
  Code code() const { return code_; }
  const std::string& text() const { return text_; }

  // Throws an Error unless ok.
  void throw_if_error() const {
    if (!ok()) throw Error(code_, text_);
  }

 private:
  void copy_text(const Status& other) noexcept {
    try {
      text_ = other.text_;
    } catch (const std::bad_alloc&) {
      text_.clear();
    }
  }

  Code code_ = Code::ok;
  std::string text_;
};

// An error with the text text(); without a text if memory for it is missing.
template <class Text>
Status make_error(Code code, const Text& text) noexcept {
  try {
    return {code, text()};
  } catch (const std::bad_alloc&) {
    return {code, {}};
  }
}

// A value, or the error that prevented it.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: values convert
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: errors convert
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& operator*() { return *value_; }
  const T& operator*() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  // The value; throws an Error if there is no value.
  T& value() & {
    status_.throw_if_error();
    return *value_;
  }
  const T& value() const& {
    status_.throw_if_error();
    return *value_;
  }
  T&& value() && {
    status_.throw_if_error();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
  Status status_;
};

inline Status invalid_argument(std::string text) {
  return {Code::invalid_argument, std::move(text)};
}

// Numbers of things, in English.

// "1 rank", "8 ranks". `many`: the plural, if it is not `one` with an s.
template <std::integral Whole>
std::string counted(Whole number, std::string_view one, std::string_view many = "") {
  std::string text = std::to_string(number) + " ";
  if (number == 1) return text.append(one);
  return many.empty() ? text.append(one).append("s") : text.append(many);
}

// The text of every call that has timed out: its time limit, and the wait.

// "no answer within 200 ms: rank 0 was still planning its call"
inline std::string no_answer_within(std::int64_t timeout_ns, std::string_view waiting) {
  return "no answer within " + std::to_string(timeout_ns / 1'000'000) +
         " ms: " + std::string(waiting);
}

// Suggestions for a misspelt name.

// The number of letters to insert, remove, replace or swap with a neighbour to turn a into b
// (Damerau's distance, restricted). Takes time proportional to a.size() * b.size().
std::size_t edit_distance(std::string_view a, std::string_view b);

// The name in `names` that was probably meant, or "".
std::string_view closest(std::string_view name, std::span<const std::string_view> names);

// "; did you mean 'ring'?", for the end of an error, or "".
std::string did_you_mean(std::string_view name, std::span<const std::string_view> names);

}  // namespace rankine
