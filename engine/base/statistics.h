// This header computes order statistics of a few measurements. It uses the standard library alone,
// so that MPI's compilers can also compile it.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace rankine {

// The value below which the fraction `part` of all values lies, linear between neighbours; 0 if
// empty.
inline double quantile(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
}

inline double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

// The median over the rounds of a's value over b's in the same round.
inline double median_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return median(std::move(ratios));
}

// The lower quartile: the time without interruptions, but without the luck of the minimum.
inline double lower_quartile(std::vector<double> values) {
  return quantile(std::move(values), 0.25);
}

// The smallest value that at least the fraction `part` of all values do not exceed; 0 if empty.
inline double nearest_rank(std::vector<double> values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(part * static_cast<double>(values.size())));
  return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

// At least 99 of 100 values are not above this: the maximum for fewer than 100 values.
inline double percentile_99(std::vector<double> values) {
  return nearest_rank(std::move(values), 0.99);
}

// The mean of the middle half. Like the median it ignores interrupted calls; unlike the median it
// resolves less than the step of a clock that moves by 10 ns.
inline double interquartile_mean(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t quarter = values.size() / 4;
  double sum = 0;
  for (std::size_t i = quarter; i < values.size() - quarter; ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - 2 * quarter);
}

// Half the distance between the quartiles.
inline double half_quartile_range(const std::vector<double>& values) {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

// half_quartile_range() divided by the median: the number after "+-" in tables.
inline double relative_spread(const std::vector<double>& values) {
  const double middle = median(values);
  return middle > 0 ? half_quartile_range(values) / middle : 0;
}

struct Statistics {
  std::size_t samples = 0;
  double min = 0, median = 0, p90 = 0, p99 = 0, p999 = 0, max = 0, mean = 0;
  double deviation = 0;  // of the sample; 0 for a single one
};

inline Statistics summarise(const std::vector<double>& values) {
  Statistics s;
  if (values.empty()) return s;
  s.samples = values.size();
  s.min = quantile(values, 0);
  s.median = median(values);
  s.p90 = nearest_rank(values, 0.9);
  s.p99 = percentile_99(values);
  s.p999 = nearest_rank(values, 0.999);
  s.max = quantile(values, 1);
  const auto n = static_cast<double>(values.size());
  for (const double value : values) s.mean += value / n;
  double squares = 0;
  for (const double value : values) squares += (value - s.mean) * (value - s.mean);
  if (values.size() > 1) s.deviation = std::sqrt(squares / (n - 1));
  return s;
}

}  // namespace rankine
