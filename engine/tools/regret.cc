#include "engine/tools/regret.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "engine/base/statistics.h"

namespace rankine::tools {

double regret_in(const Context& times, std::size_t contender) {
  return times[contender] / *std::min_element(times.begin(), times.end());
}

double lasting_regret(const std::vector<Context>& rounds, std::size_t contender) {
  std::vector<double> regrets;
  for (const Context& times : rounds) regrets.push_back(regret_in(times, contender));
  if (regrets.empty()) return 1;
  std::sort(regrets.begin(), regrets.end(), std::greater<>());
  return regrets[regrets.size() < kFewestRounds ? 0 : std::max<std::size_t>(1, regrets.size() / 4)];
}

Choice robust_choice(std::span<const std::vector<Context>> protocols, std::size_t contenders,
                     std::size_t standard, double margin) {
  const auto worst = [&](std::size_t contender) {
    double most = 1;
    for (const auto& rounds : protocols) most = std::max(most, lasting_regret(rounds, contender));
    return most;
  };
  const Choice own{standard, worst(standard)};
  Choice best = own;
  for (const auto& rounds : protocols) {
    if (rounds.size() < kFewestRounds) return own;
  }
  for (std::size_t i = 0; i < contenders; ++i) {
    const double regret = worst(i);
    if (regret < best.regret) best = {i, regret};
  }
  if (own.regret <= margin * best.regret) return own;
  for (const auto& rounds : protocols) {
    if (lasting_regret(rounds, standard) < own.regret) continue;
    std::vector<double> ratios;
    for (const Context& times : rounds) ratios.push_back(times[standard] / times[best.contender]);
    if (median(std::move(ratios)) > margin) return best;
  }
  return own;
}

Context median_over(const std::vector<Context>& contexts) {
  Context out;
  for (std::size_t i = 0; !contexts.empty() && i < contexts.front().size(); ++i) {
    std::vector<double> times;
    for (const Context& each : contexts) {
      if (each[i] != kNotTimed) times.push_back(each[i]);
    }
    out.push_back(times.empty() ? kNotTimed : median(std::move(times)));
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
