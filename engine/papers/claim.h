// The papers as data: the texts of their files, the statements of Trivance's evaluation, and the
// claims, with the functions that read them.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rankine::claims {

// The papers' TOML files, compiled in by BUILD.bazel, in the order of the report.
std::span<const std::string_view> paper_texts();

}  // namespace rankine::claims

// Statements: the numbers in the text of Trivance's evaluation as data, rows [statement.ID] of
// trivance.toml (or of lists [[statements]], as below), with the field names of Statement; `sizes`
// has from and to, `range` has low and high. Sizes are texts ("8 MiB"), an open end is inf or -inf,
// percents are percents.

namespace rankine::reproduce {

enum class Measure : unsigned char {
  // T / T of Trivance - 1, with T the time of the fastest other algorithm, at each size of the
  // figures between `from` and `to`.
  gain,
  greatest_gain,     // the largest gain of each panel
  latency_gain,      // like gain, but only between (L) forms
  spread,            // the largest difference between panels of the gains at one size
  overtaken,         // the size from which another algorithm stays faster, in each panel
  latest_overtaken,  // the largest size of these
  shift,             // overtaken of each panel, over overtaken of the panel before
  wins_from,         // the size from which the one other algorithm is the fastest of all
  change_of_form,    // the size of the other's change from (L) to (B), over Trivance's
  delay,             // Theta of the one other algorithm over Theta of Trivance, per form
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
  std::string text;  // quoted or in short; brackets say how it is read
  Measure measure;
  std::string panels;       // "6a 6b"; "8" stands for all of figure 8
  std::string others;       // "Swing, Bruck"; empty: all
  double from = 0, to = 0;  // bytes; only for gains
  // The range that the paper states.
  double low = 0, high = kNoLimit;
  // Allowed distance from the range: percentage points, or a ratio of the larger to the smaller.
  double allowed = 0;
  std::string why{};  // the reason of a difference, if known, for readers
};

}  // namespace rankine::reproduce

// Claims: the quantitative claims of a paper as data: their text, their place, and the expressions
// that check them.
//
// Each paper is a file <key>.toml beside this header. Its rows [claim.ID] have the fields of Claim
// as texts; "$name" is replaced by the entry of that name in the file's table [names]. Formulas use
// the paper's letters (algorithms/formula.h reads them). A claim is tried on parameter sets; the
// verdict always comes from a comparison of both sides in each set, never from the file.
//
// Rows that differ in a few fields only are a list [[claims]]: `columns` names these fields, each
// row is row.ID = [values of the first columns], and all other fields hold for each row.
//
//   where      the place in the paper; by default the place of the row before
//   text       the sentence, quoted or in short; brackets say how it is read
//   printed    a number as printed in the paper, "35.3 MB": half a unit of its last digit is
//              allowed; after "~" a whole unit, and trailing zeros are no digits; a count is exact
//   check      "stated R found" with R one of = <= >= < >, or "stated ~ found within x": they
//              differ by at most x, an expression in the same letters and in the letters `stated`
//              and `found`. The paper's side as a formula, and the engine's side: quantities of
//              `runs` and arithmetic
//   stated     the paper's side, without `check`; with `printed` it must round to that number
//   found      the engine's side, in the same way; either may be missing if `printed` is given
//   runs       the simulated runs, separated by "|" (runs.h)
//   sets       "N=2..17,64; M=1000000" (condition.h); by default the paper's, if there are runs
//   own        an expression, true for the paper's own parameters; the report shows them first
//   degenerate an expression, true for sets in which an agreement proves nothing (two ranks, a tiny
//              vector)
//   when       an expression for the sets in which the claim holds, tried before condition_of()
//   but_where  instead of `when`: an expression for the sets in which the claim agrees by chance;
//   they
//              are degenerate, too
//   condition  `when` or `but_where` in words
//   kind       "definition" or "own_formula" (see Kind); by default `runs` decides
//   why        the reason of the verdict, for readers
//   needs      the missing part of the model; the claim is not evaluated

namespace rankine::claims {

// Means that check a claim. Only a schedule can bring a surprise.
enum class Kind : unsigned char {
  executed,     // schedules of the catalogue: simulated, and run by live ranks if N allows
  arithmetic,   // the paper's formulas and numbers against each other
  definition,   // repeats a definition of the network model
  own_formula,  // our formula, instead of a wrong one in the paper
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
  std::string relation = "=";  // or <= >= < >, or "~ x" with x the allowed difference
  std::string own{};
  std::string degenerate{};
  std::string when{};
  std::string but_where{};  // equal to `when`, or empty
  std::string condition{};
  std::string why{};
  std::string needs{};
  Kind kind = Kind::executed;
  bool reproduced = false;  // statements.h evaluates the statement of the same id
};

struct Paper {
  std::string key;  // "lu"
  std::string title;
  std::string letters;              // the meaning of the letters, for readers
  std::string runs;                 // options before those of each run: "ranks=N; bytes=M; ..."
  std::string sets{};               // default of the claims that have runs
  std::string own{}, degenerate{};  // defaults of the claims, if they have the letters
  std::vector<Claim> claims{};      // by their place; includes the statements, as claims
  std::vector<reproduce::Statement> statements{};
  std::vector<std::string> useful{};  // ids: the findings that its authors need most
};

// Returns true if the place of a claim, or one of several ("2.4; 3.1"), is `place` or in it: "C.5"
// and "C" for "C.5, table".
bool is_at(const Claim& claim, std::string_view place);

// The papers, read once, at the first call. A mistake in a file throws std::logic_error, which
// names the row.
std::span<const Paper> papers();
const Paper* find_paper(std::string_view key);

// Reads a paper from the text of its file. Throws std::logic_error.
Paper read_paper(std::string_view toml);

}  // namespace rankine::claims
