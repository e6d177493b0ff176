// Regret: the time of what was chosen over the time of the best. And the choice that will be
// regretted least.
//
// Contenders are timed in contexts: a protocol (warm or fresh, apart or in place) in one round of
// an interleaved measurement. Winners change with the protocol, and from round to round as cores
// move, so the choice is the contender whose worst regret over all contexts is the least.
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

namespace rankine::tools {

inline constexpr double kNotTimed = std::numeric_limits<double>::infinity();

// Seconds of every contender in one context; kNotTimed where it did not run. At least one did.
using Context = std::vector<double>;

// times[contender] over the least of them; kNotTimed stays.
double regret_in(const Context& times, std::size_t contender);
// The worst over all contexts; 1 where there are none.
double worst_regret(const std::vector<Context>& contexts, std::size_t contender);

// The contender with the least worst regret, of equals the one with the least mean. `standard`,
// what is taken without measuring, stays unless its worst regret is more than `margin` times that:
// noise alone should change nothing.
std::size_t robust_choice(const std::vector<Context>& contexts, std::size_t contenders,
                          std::size_t standard, double margin = 1.05);

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
