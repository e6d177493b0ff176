// Tables 1 and 2 of Trivance, from the schedules: how many times the optimum an algorithm takes of
// rounds, of bytes and of time on the busiest links.
//
//   Lambda  rounds with messages over log3 n
//   Delta   bytes that the busiest rank sends, over 2 m
//   Theta   sum over the rounds of the load of the busiest link, over m / D
//
// Next to what a schedule comes to stand the entry that the paper prints, which is the limit for
// many ranks, and what its text derives for just so many: the sums of appendices B.1 and B.2.
//   n ranks    D dimensions    a = n^(1/D) the size of each
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/formula.h"
#include "engine/papers/profiles.h"

namespace rankine::reproduce {

using formulas::Value;

// A quantity of the tables, as formulas in n, D and a (algorithms/formula.h).
struct Formulas {
  std::string_view printed;          // of the table, for one dimension; empty: none
  std::string_view closed{};         // of table 2's column "closed form"; empty: as printed
  std::string_view columns[3] = {};  // of its columns D = 2, 3, 4
  std::string_view derived{};        // by the text, for every n
};

struct TableLine {
  std::string_view name;  // "Rec.Doub. (B)"
  std::string_view line;  // of all_reduce
  int base;               // the sizes that the formulas are for are powers of it; 0: any
  Routing routing = Routing::minimal;
  Formulas lambda, delta, theta;
  // Why the derived sum of Theta is not what the schedule comes to; empty: it is. For one
  // dimension, and for more.
  std::string_view why{}, why_tori{};
};
std::span<const TableLine> table_lines();

struct TableEntry {
  std::optional<Value> printed{};
  std::optional<Value> derived{};
  Value found{};
  bool exact() const;  // derived and found are equal
};

struct TableRow {
  int table = 1;
  const TableLine* line = nullptr;
  std::vector<int> dims;
  TableEntry lambda{}, delta{}, theta{};
  std::string_view why{};  // of the line, where theta is not exact
};

// What table_rows() needs.
std::vector<ProfileKey> table_keys();
// Table 1 on rings of 64 to 256 ranks, table 2 on tori of two, three and four dimensions: of sizes
// that the line's formulas are for.
std::vector<TableRow> table_rows(Profiles& profiles);

}  // namespace rankine::reproduce
