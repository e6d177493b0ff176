// A quantitative claim of a paper, as data: what it says, where, and how the engine finds out.
//
// Formulas are in the paper's own letters (algorithms/formula.h reads them). A claim is tried on
// parameter sets; the verdict comes from comparing both sides in every one of them, never from the
// table.
//
//   stated    what the paper says, as a formula; or
//   printed   a number as it stands in the paper, "35.3 MB": half a unit of its last digit is
//             allowed, and behind "~" its trailing zeros do not count as digits
//   found     what it is compared with: quantities of `runs` and arithmetic. With `printed`, the
//             stated formula and `found` must both round to it (either may be missing)
//   runs      what is simulated, one after the other with "|" between them (runs.h)
//   sets      "N=2..17,64; M=1000000" (parameter_sets.h)
//   relation  of stated to found: = <= >= < >, or "~ x": they differ by at most x, an expression in
//             the same letters, where `stated` and `found` are letters too
#pragma once

#include <span>
#include <string_view>

namespace rankine::claims {

struct Claim {
  std::string_view id;     // never changes: "lu-ring-ar-time"
  std::string_view where;  // "5.1", "Appendix C.5"
  std::string_view text;   // the claim, quoted or in short
  std::string_view printed{};
  std::string_view stated{};
  std::string_view runs{};
  std::string_view found{};
  std::string_view sets{};
  std::string_view relation = "=";
  std::string_view when{};   // a condition to try before those of condition.h, an expression
  std::string_view why{};    // what explains the verdict, for people
  std::string_view needs{};  // what is missing to check it: then it is not evaluated at all
  bool reproduced = false;   // a statement of engine/papers of the same id says what is found
};

struct Paper {
  std::string_view key;  // "lu"
  std::string_view title;
  std::string_view letters;  // what they mean, for people
  std::string_view runs;     // options that every run begins with: "ranks=N; bytes=M; ..."
  std::span<const Claim> claims;
};

std::span<const Paper> papers();
const Paper* find_paper(std::string_view key);

// The papers' tables, one file each.
extern const Paper kLesson, kChapter, kLu, kTraff, kTrivance;

}  // namespace rankine::claims
