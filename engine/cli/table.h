// A table is a value: columns and rows of values. The maker of a table gives no padding, quoting or
// line feeds; to_text(), to_csv() and to_json() add them.
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

// The kind of values. Text shows numbers in a format, "{:.4g}", "{:.2f} x", "{:+.1f} %" (for
// fractions: times a hundred), or with a unit, written by a function of units.h. CSV has the
// format's digits alone, but bytes, seconds and fractions in full; JSON has all values in full.
struct As {
  using Print = std::string (*)(double);
  constexpr As(const char* digits = "{}", Print unit = nullptr, bool on_the_left = false)
      : format(digits), print(unit), left(on_the_left) {}
  Column operator()(std::string name, std::string key = "", std::string_view none = "") const;

  std::string_view format;
  Print print;
  bool left;  // for text; numbers are aligned right
};

struct Cell {
  Cell() = default;  // unknown
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
  std::string key;        // in CSV and JSON; "-": left out there; "": the name
  std::string_view none;  // text for unknown values; CSV and JSON have null
  bool shown = true;      // in text
};

namespace as {
inline constexpr As number{}, text{"{}", nullptr, true};
inline constexpr As bytes{"{}", format_bytes};
inline constexpr As model_time{"{}", format_duration}, measured_time{"{}", format_seconds};
inline Column data(std::string key) {
  return number(std::move(key)).when(false);
}  // for CSV and
   // JSON only
}  // namespace as

struct Table {
  explicit Table(std::convertible_to<Column> auto... each) : columns{std::move(each)...} {}

  // Adds a row; returns it, for more cells.
  std::vector<Cell>& add(auto&&... cells) {
    return rows.emplace_back(std::vector<Cell>{Cell(std::forward<decltype(cells)>(cells))...});
  }

  std::string title{};
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows{};  // if a row has fewer cells than columns, the rest is
                                          // unknown
  std::vector<std::string> notes{};       // the lines below
};

// The title and an empty line, if there is a title; the columns' names, if any; the rows and the
// notes. Columns are two blanks apart, and no line ends with a blank.
std::string to_text(const Table& table, std::string_view indent = "");

// The rows in the format of RFC 4180, except that lines end with line feeds.
std::string to_csv(const Table& table, bool header = true);

// An object for each row.
nlohmann::ordered_json to_json(const Table& table);

}  // namespace rankine::tools
