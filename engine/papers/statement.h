// What Trivance's text says of its evaluation, number by number, as data: rows [[statement]] of
// trivance.toml, with the fields of Statement under their names. Sizes are texts ("8 MiB"), ends of
// a range that has none are inf and -inf, percents are percents.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>

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
