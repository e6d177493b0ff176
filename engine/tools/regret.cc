#include "engine/tools/regret.h"

#include <algorithm>
#include <cmath>

#include "engine/tools/statistics.h"

namespace rankine::tools {

double regret_in(const Context& times, std::size_t contender) {
  return times[contender] / *std::min_element(times.begin(), times.end());
}

double worst_regret(const std::vector<Context>& contexts, std::size_t contender) {
  double worst = 1;
  for (const Context& times : contexts) worst = std::max(worst, regret_in(times, contender));
  return worst;
}

std::size_t robust_choice(const std::vector<Context>& contexts, std::size_t contenders,
                          std::size_t standard, double margin) {
  const auto mean = [&](std::size_t contender) {
    double sum = 0;
    for (const Context& times : contexts) sum += regret_in(times, contender);
    return sum;
  };
  std::size_t best = standard;
  double least = worst_regret(contexts, standard);
  for (std::size_t i = 0; i < contenders; ++i) {
    const double worst = worst_regret(contexts, i);
    if (worst < least || (worst == least && mean(i) < mean(best))) {
      best = i;
      least = worst;
    }
  }
  return worst_regret(contexts, standard) > margin * least ? best : standard;
}

Context median_over(const std::vector<Context>& contexts) {
  Context out;
  for (std::size_t i = 0; !contexts.empty() && i < contexts.front().size(); ++i) {
    std::vector<double> times;
    for (const Context& each : contexts) {
      if (each[i] != kNotTimed) times.push_back(each[i]);
    }
    out.push_back(times.empty() ? kNotTimed : summarise(std::move(times)).median);
  }
  return out;
}

RegretSummary summarise_regrets(const std::vector<double>& regrets) {
  RegretSummary out{.samples = regrets.size()};
  double logs = 0;
  for (std::size_t i = 0; i < regrets.size(); ++i) {
    logs += std::log(regrets[i]) / static_cast<double>(regrets.size());
    if (regrets[i] > out.max) {
      out.max = regrets[i];
      out.worst = i;
    }
  }
  out.geometric_mean = std::exp(logs);
  return out;
}

}  // namespace rankine::tools
