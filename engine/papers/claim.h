// A quantitative claim of a paper, as data: what it says, where, and how the engine finds out.
//
// Each paper is a file, <key>.toml, beside this one. Its rows, [[claim]], have the fields of Claim,
// all of them texts; "$name" stands for what the file's table [names] has under it. Formulas are in
// the paper's own letters (algorithms/formula.h reads them). A claim is tried on parameter sets;
// the verdict comes from comparing both sides in every one of them, never from the file.
//
//   text       the sentence, quoted or in short; in brackets how it is taken
//   printed    a number as it stands in the paper, "35.3 MB": half a unit of its last digit is
//              allowed; behind "~" a whole one, and trailing zeros do not count as digits
//   stated     what the paper says, as a formula
//   found      what it is compared with: quantities of `runs` and arithmetic. With `printed`, the
//              stated formula and `found` must both round to it (either may be missing)
//   runs       what is simulated, one after the other with "|" between them (runs.h)
//   sets       "N=2..17,64; M=1000000" (parameter_sets.h)
//   relation   of stated to found: = <= >= < >, or "~ x": they differ by at most x, an expression
//              in the same letters, where `stated` and `found` are letters too
//   own        which sets are the paper's own parameters: an expression, told first
//   degenerate which sets prove nothing where they agree (two ranks, a tiny vector): an expression
//   when       when it holds, an expression to try before those of condition.h ...
//   condition  ... and how people say that
//   kind       "definition" or "own_formula" (see Kind); else it follows from `runs`
//   why        what explains the verdict, for people
//   needs      what is missing to check it: then it is not evaluated at all
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/statement.h"

namespace rankine::claims {

// What it takes to check a claim; only what a schedule has to show can surprise.
enum class Kind : unsigned char {
  executed,     // schedules of the catalogue: simulated, and executed by live ranks where N allows
  arithmetic,   // the paper's own formulas and numbers, with each other
  definition,   // restates the network's model, which says so itself
  own_formula,  // ours, in the place of one of the paper that does not hold
};
inline constexpr int kKinds = 4;
std::string_view name_of(Kind kind);  // "executed", "arithmetic", "definition", "own_formula"

struct Claim {
  std::string id;     // never changes: "lu-ring-ar-time"
  std::string where;  // "5.1", "Appendix C.5"
  std::string text;
  std::string printed{};
  std::string stated{};
  std::string runs{};
  std::string found{};
  std::string sets{};
  std::string relation = "=";
  std::string own{};
  std::string degenerate{};
  std::string when{};
  std::string condition{};
  std::string why{};
  std::string needs{};
  Kind kind = Kind::executed;
  bool reproduced = false;  // a statement of statement.h of the same id says what is found
};

struct Paper {
  std::string key;  // "lu"
  std::string title;
  std::string letters;              // what they mean, for people
  std::string runs;                 // options that every run begins with: "ranks=N; bytes=M; ..."
  std::string own{}, degenerate{};  // of claims that say nothing else, where they have the letters
  std::vector<Claim> claims{};      // statements too, as claims
  std::vector<reproduce::Statement> statements{};
};

// Read once, when first asked for; a mistake in a file throws std::logic_error, which names the
// row.
std::span<const Paper> papers();
const Paper* find_paper(std::string_view key);

// A paper from such a text.
Paper read_paper(std::string_view toml);

}  // namespace rankine::claims
