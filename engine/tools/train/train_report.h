// What came of a training, as people and programs read it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/tools/plan/step.h"
#include "engine/tools/train/trainer.h"

namespace rankine::tools {

// Losses by step; fewer than asked for where it was interrupted.
struct Curve {
  std::vector<double> losses;
  double seconds = 0;
  double model_seconds = 0;  // on a modelled machine
};

// Of a loss, by which one that a BLAS has a part in may differ from another: its sums are in an
// order of its own.
inline constexpr double kBlasBound = 1e-3;

struct Outcome {
  Curve ranks;
  double bound = 0;  // of a loss, that may be between the ranks' and one thread's; 0: the same bits
  std::optional<StepPlan> plan{};     // on a modelled machine
  std::optional<Curve> parts, whole;  // of one thread: the same parts, and the model in one piece

  bool is_equal(std::size_t step) const {
    const double ours = ranks.losses[step], loss = parts->losses[step];
    const bool is_same = ours == loss || (std::isnan(ours) && std::isnan(loss));
    return is_same || std::abs(ours - loss) <= bound * loss;
  }
  std::size_t equal_steps() const {
    std::size_t equal = 0;
    for (std::size_t i = 0; i < ranks.losses.size(); ++i) {
      equal += is_equal(i) ? 1 : 0;
    }
    return equal;
  }
  double largest_difference() const {
    double most = 0;
    for (std::size_t i = 0; i < ranks.losses.size(); ++i) {
      most = std::max(most, std::abs(ranks.losses[i] - whole->losses[i]));
    }
    return most;
  }
  bool diverged() const { return !std::isfinite(ranks.losses.back()); }
  double model_step() const {
    return ranks.model_seconds / static_cast<double>(ranks.losses.size());
  }
  bool good() const { return !parts || equal_steps() == ranks.losses.size(); }
};

// "200192 parameters, 16 of 32 characters a step, ...": what is trained, in a line.
std::string title_of(const Training& training);
// Requires a step at least.
std::string text_of(const Outcome& outcome);
nlohmann::ordered_json json_of(const Training& training, const Outcome& outcome);
// The losses over steps.
std::string svg_of(const Training& training, const Outcome& outcome);

}  // namespace rankine::tools
