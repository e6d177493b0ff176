// A table as a value: what its columns are, and rows of values. Whoever makes one says nothing of
// padding, quoting and line feeds; they are the business of to_text(), to_csv() and to_json().
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "algorithms/rational.h"
#include "engine/base/units.h"

namespace rankine::tools {

struct Column;

// What values are. People have numbers in a format, "{:.4g}", "{:.2f} x", "{:+.1f} %" (of parts of
// one: a hundredfold), or with a unit, as a function of units.h writes them. CSV has the format's
// digits and nothing around them, but bytes, seconds and parts of one in full; JSON all of them.
struct As {
  using Print = std::string (*)(double);
  constexpr As(const char* digits = "{}", Print unit = nullptr, bool on_the_left = false)
      : format(digits), print(unit), left(on_the_left) {}
  Column operator()(std::string name, std::string key = "", std::string_view none = "") const;

  std::string_view format;
  Print print;
  bool left;  // where text stands; numbers are on the right
};

struct Cell {
  Cell() = default;  // nothing is known
  Cell(const std::convertible_to<std::string_view> auto& text)
      : value(std::string(std::string_view(text))) {}
  Cell(bool is) : value(is) {}
  Cell(std::integral auto whole) : value(static_cast<std::int64_t>(whole)) {}
  Cell(double real) : value(real) {}
  Cell(const Rational& exact) : value(exact) {}
  template <class T>
  Cell(const std::optional<T>& known) : Cell(known ? Cell(*known) : Cell()) {}

  std::variant<std::monostate, std::string, bool, std::int64_t, double, Rational> value;
};

struct Column {
  Column(const char* number) : name(number) {}
  Column(std::string n, As a, std::string k, std::string_view unknown)
      : name(std::move(n)), as(a), key(std::move(k)), none(unknown) {}
  Column when(bool is_shown) && { return shown = is_shown, std::move(*this); }

  std::string name;
  As as;
  std::string key;        // for programs, "-": they do not get it; "": the name
  std::string_view none;  // for people, where nothing is known; programs have null then
  bool shown = true;      // to people
};

namespace as {
inline constexpr As number{}, text{"{}", nullptr, true};
inline constexpr As bytes{"{}", format_bytes};
inline constexpr As model_time{"{}", format_duration}, measured_time{"{}", format_seconds};
inline Column data(std::string key) { return number(std::move(key)).when(false); }  // for programs
}  // namespace as

struct Table {
  explicit Table(std::convertible_to<Column> auto... each) : columns{std::move(each)...} {}

  // A row; returns it, for more cells.
  std::vector<Cell>& add(auto&&... cells) {
    return rows.emplace_back(std::vector<Cell>{Cell(std::forward<decltype(cells)>(cells))...});
  }

  std::string title{};
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows{};  // fewer cells than columns: nothing is known of the rest
  std::vector<std::string> notes{};       // the lines below
};

// The title and an empty line, where there is a title; the columns' names, where they have any; the
// rows and the notes. Columns are two blanks apart, and no line ends with a blank.
std::string to_text(const Table& table, std::string_view indent = "");

// The rows, as RFC 4180 has them but for the ends of lines, which are line feeds.
std::string to_csv(const Table& table, bool header = true);

// An object for each row.
nlohmann::ordered_json to_json(const Table& table);

}  // namespace rankine::tools
