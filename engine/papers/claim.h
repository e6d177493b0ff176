// The papers' files as they stand here, compiled in (BUILD.bazel).
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankine::claims {

std::span<const std::string_view> paper_texts();

}  // namespace rankine::claims

// What Trivance's text says of its evaluation, number by number, as data: rows [[statement]] of
// trivance.toml, with the fields of Statement under their names. Sizes are texts ("8 MiB"), ends of
// a range that has none are inf and -inf, percents are percents.

namespace rankine::reproduce {

enum class Measure : unsigned char {
  // By how much Trivance is faster than the fastest of the others, T / T of Trivance - 1, at every
  // size of the figures between `from` and `to`.
  gain,
  greatest_gain,     // the largest of these in each panel
  latency_gain,      // like gain, (L) forms among themselves
  spread,            // the most that gains at one size differ from panel to panel
  overtaken,         // the size from which on one of the others is faster for good, in every panel
  latest_overtaken,  // the largest of these
  shift,             // overtaken, each panel over the one before
  wins_from,         // the size from which on the one other is the fastest of all
  change_of_form,    // the size where the one other goes over from (L) to (B), over Trivance's
  delay,             // Theta of the one other, each form, over that of Trivance
};
std::string_view name_of(Measure measure);
std::optional<Measure> parse_measure(std::string_view text);

enum class Unit : unsigned char { percent, bytes, factor };
std::string_view name_of(Unit unit);
Unit unit_of(Measure measure);

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

struct Statement {
  std::string id;  // never changes
  std::string where;
  std::string text;  // quoted or in short; in brackets how it is taken
  Measure measure;
  std::string panels;       // "6a 6b"; "8" stands for all of figure 8
  std::string others;       // "Swing, Bruck"; empty: all
  double from = 0, to = 0;  // bytes; of gains
  // The paper's range.
  double low = 0, high = kNoLimit;
  // How far outside is still agreement: percentage points, or the larger over the smaller.
  double allowed = 0;
  std::string why{};  // for people, where it is known
  // The paper contradicts it elsewhere, by a formula or a number of its own. Else a difference says
  // that this model is not the paper's simulator of packets.
  bool contradicted = false;
  bool as_printed = false;  // with the paper's own distances (printed_trivance.h)
  // Where Eq. (1) does not find it: as flows and as packets too, which are nearer to that
  // simulator.
  bool judged_again = false;
};

}  // namespace rankine::reproduce

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
