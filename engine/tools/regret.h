// Regret: the time of what was chosen over the time of the best. And the choice that will be
// regretted least.
//
// Contenders are timed in turns, round after round, by several protocols (warm or fresh, apart or
// in place). Winners change with the protocol, and from round to round as cores move, so the choice
// is the contender whose worst regret is the least.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace rankine::tools {

inline constexpr double kNotTimed = std::numeric_limits<double>::infinity();

// Seconds of every contender in one context; kNotTimed where it did not run. At least one did.
using Context = std::vector<double>;

// times[contender] over the least of them; kNotTimed stays.
double regret_in(const Context& times, std::size_t contender);
// The worst regret in rounds of one protocol that may be believed: of three rounds or more the
// worst quarter, at least one, is left aside, as an interruption hits one contender in one round. 1
// without rounds.
double lasting_regret(const std::vector<Context>& rounds, std::size_t contender);

// The contender whose worst lasting regret over the protocols is the least. `standard`, what is
// taken without measuring, stays where noise may be all there is: unless its own is more than
// `margin` times as large, and it is so much slower in the median round of its worst protocol too,
// and where there are fewer than kFewestRounds.
struct Choice {
  std::size_t contender = 0;
  double regret = 1;  // its worst lasting one
};
inline constexpr std::size_t kFewestRounds = 3;
Choice robust_choice(std::span<const std::vector<Context>> protocols, std::size_t contenders,
                     std::size_t standard, double margin = 1.1);

// The median of each contender over contexts of one protocol, contexts in which it did not run left
// aside; kNotTimed where there are none.
Context median_over(const std::vector<Context>& contexts);

// Regrets of many choices together.
struct RegretSummary {
  std::size_t samples = 0;
  double geometric_mean = 1, max = 1;
  std::size_t worst = 0;  // index of the first that has the maximum
};
// Requires positive, finite values.
RegretSummary summarise_regrets(const std::vector<double>& regrets);

}  // namespace rankine::tools
