#include "engine/cli/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>

namespace rankine::tools {
namespace {

std::string number_text(double number, const As& as, bool people) {
  const bool parts = as.format.ends_with('%');
  if (people && as.print != nullptr) return as.print(number);
  if (people) return fmt::format(fmt::runtime(as.format), parts ? 100 * number : number);
  const std::size_t from = as.format.find('{');
  const std::string_view digits = as.format.substr(from, as.format.find('}') + 1 - from);
  return fmt::format(fmt::runtime(parts ? "{}" : digits), number);
}

std::string text_of(const Cell& cell, const Column& column, bool people) {
  const As& as = column.as;
  const bool exactly = as.format == "{}" && !(people && as.print != nullptr);
  if (const auto* text = std::get_if<std::string>(&cell.value)) return *text;
  if (const auto* is = std::get_if<bool>(&cell.value)) return *is ? "true" : "false";
  if (const auto* real = std::get_if<double>(&cell.value)) return number_text(*real, as, people);
  if (const auto* whole = std::get_if<std::int64_t>(&cell.value)) {
    return exactly ? std::to_string(*whole) : number_text(static_cast<double>(*whole), as, people);
  }
  if (const auto* part = std::get_if<Rational>(&cell.value)) {
    return exactly && people ? part->to_string() : number_text(part->to_double(), as, people);
  }
  return std::string(people ? column.none : "");
}

// Empty: left out of CSV and JSON.
std::string key_of(const Column& column) {
  std::string key = column.key.empty() ? column.name : column.key;
  std::replace(key.begin(), key.end(), ' ', '_');
  return key == "-" ? "" : key;
}

// Row 0 has the columns' names, row 1 the first values.
std::string text_at(const Table& table, std::size_t r, std::size_t i, bool people) {
  const Column& column = table.columns[i];
  if (r == 0) return people ? column.name : key_of(column);
  const std::vector<Cell>& row = table.rows[r - 1];
  return text_of(i < row.size() ? row[i] : Cell(), column, people);
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

}  // namespace

Column As::operator()(std::string name, std::string key, std::string_view none) const {
  return {std::move(name), *this, std::move(key), none};
}

std::string to_text(const Table& table, std::string_view indent) {
  std::vector<std::string> lines(table.rows.size() + 1);
  bool named = false;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (!table.columns[i].shown) continue;
    std::size_t width = 0;
    std::vector<std::string> cells;
    for (std::size_t r = 0; r < lines.size(); ++r) {
      width = std::max(width, cells.emplace_back(text_at(table, r, i, true)).size());
    }
    named |= !cells[0].empty();
    for (std::size_t r = 0; r < lines.size(); ++r) {
      const std::string blanks(width - cells[r].size(), ' ');
      (lines[r] += indent) += table.columns[i].as.left ? cells[r] + blanks : blanks + cells[r];
    }
    indent = "  ";  // before the next column
  }
  if (!named) lines.erase(lines.begin());
  std::string out = table.title.empty() ? "" : table.title + "\n\n";
  for (std::string& line : lines) {
    std::replace(line.begin(), line.end(), '\n', ' ');
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  for (const std::string& note : table.notes) out += note + "\n";
  return out;
}

std::string to_csv(const Table& table, bool header) {
  std::string out;
  for (std::size_t r = header ? 0 : 1; r <= table.rows.size(); ++r) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      if (!key_of(table.columns[i]).empty()) out += quoted(text_at(table, r, i, false)) + ",";
    }
    out.back() = '\n';
  }
  return out;
}

nlohmann::ordered_json to_json(const Table& table) {
  auto out = nlohmann::ordered_json::array();
  for (const std::vector<Cell>& row : table.rows) {
    auto& object = out.emplace_back(nlohmann::ordered_json::object());
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const std::string key = key_of(table.columns[i]);
      if (key.empty()) continue;
      const auto value = i < row.size() ? row[i].value : Cell().value;
      const auto write = [&](const auto& known) {
        if constexpr (requires { object[key] = known; }) object[key] = known;
        if constexpr (requires { known.to_double(); }) object[key] = known.to_double();
      };
      std::visit(write, value);
      if (value.index() == 0 && !table.columns[i].none.empty()) object[key] = nullptr;
    }
  }
  return out;
}

}  // namespace rankine::tools
