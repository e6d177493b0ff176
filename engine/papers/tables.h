// Tables 1 and 2 of Trivance, computed from the schedules: the rounds, the bytes and the time on
// the busiest links of an algorithm, as multiples of the optimum.
//
//   Lambda  rounds with messages over log3 n
//   Delta   bytes that the busiest rank sends, over 2 m
//   Theta   sum over the rounds of the load of the busiest link, over m / D
//
// Each found value stands beside the entry that the paper prints, which is the limit for many
// ranks, and beside the exact sum for this number of ranks that its text derives (appendices B.1
// and B.2).
//   n ranks    D dimensions    a = n^(1/D) the size of each
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/formula.h"
#include "engine/papers/profiles.h"

namespace rankine::reproduce {

using formulas::Value;

// The formulas of one quantity in n, D and a (algorithms/formula.h).
struct Formulas {
  std::string_view printed;          // in the table, for one dimension; empty: none
  std::string_view closed{};         // table 2, column "closed form"; empty: as printed
  std::string_view columns[3] = {};  // table 2, columns D = 2, 3, 4
  std::string_view derived{};        // in the text, for each n
};

struct TableLine {
  std::string_view name;  // "Rec.Doub. (B)"
  std::string_view line;  // of all_reduce
  int base;               // the formulas are for sizes that are powers of it; 0: any
  Routing routing = Routing::minimal;
  Formulas lambda, delta, theta;
  // The reason why the derived sum of Theta differs from the schedule; empty: it does not. For one
  // dimension, and for several.
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
  std::string_view why{};  // the line's reason if theta is not exact
};

// The rounds and the delay that the tables print for a line of all_reduce, as a profile: the
// closed forms for many ranks, at this size.
Profile formula_profile(std::string_view line, const std::vector<int>& dims);

// The keys of the profiles that table_rows() uses.
std::vector<ProfileKey> table_keys();
// Table 1 on rings of 64 to 256 ranks, table 2 on tori of two, three and four dimensions, with
// sizes that the line's formulas allow.
std::vector<TableRow> table_rows(Profiles& profiles);

}  // namespace rankine::reproduce
