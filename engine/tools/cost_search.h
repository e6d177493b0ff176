// Which of this machine's costs (engine/base/costs.h) differ from the defaults.
//
// A field is a border between two forms of a call: up to it one is taken, beyond it the other. So
// each field has a trial: the same calls with the least and with the greatest value allowed, that
// is all in one form and all in the other, at sizes from well below the border to well above. The
// border that would have made all of them fastest, warm and fresh, is the field's new value, if it
// gains more than kWorthIt over the old one. Forms take turns, so that what changes slowly on the
// machine falls on both alike; fields are tried one after the other, each with those before it
// settled.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"

namespace rankine::tools {

// One size of a trial: how long its calls take in either form.
struct FormTimes {
  std::size_t border = 0;  // the least value of the field with which the size takes the first form
  double first = 0, second = 0;  // seconds: up to the field, beyond it
};

// The field's value that makes all sizes together fastest (geometric mean), and the time with
// `before` over the time with it. Of values that are as good as each other the one nearest to
// `before`. Sizes in ascending order of their borders, at least one.
struct Border {
  std::size_t value = 0;
  double gain = 1;
};
Border best_border(std::span<const FormTimes> sizes, std::size_t before);

inline constexpr double kWorthIt = 1.03;

struct CostSearch {
  std::chrono::steady_clock::time_point deadline;
  int rounds = 5;  // measurements of each size in each form, of which the median counts
  std::span<const Collective> collectives{};  // whose calls are tried; empty: all
  // Called before each trial.
  std::function<void(std::string_view field)> progress = [](std::string_view) {};
};

struct CostFinding {
  const CostField* field = nullptr;
  std::size_t before = 0, after = 0;  // equal: the field stays
  double gain = 1;
  std::vector<FormTimes> sizes{};
};

// Tries what can be tried among so many ranks, from `costs` on, until the deadline has passed or a
// signal interrupts it (interrupt.h): a field whose trial was not done then is not among the
// findings. Errors: those of teams and calls.
Result<std::vector<CostFinding>> search_costs(const Costs& costs, int ranks,
                                              const CostSearch& search);

// With what they found.
Costs settled(Costs costs, std::span<const CostFinding> findings);

}  // namespace rankine::tools
