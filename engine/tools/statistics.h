// Order statistics of a handful of measurements.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace rankine::tools {

struct Statistics {
  std::size_t samples = 0;
  double min = 0, median = 0, p99 = 0, max = 0, mean = 0;
  double deviation = 0;  // of the sample; 0 for a single one
};

// median: the mean of the two middle values where their number is even. p99: never below 99 of 100
// values, so the greatest where there are fewer than 100.
inline Statistics summarise(std::vector<double> values) {
  Statistics s;
  if (values.empty()) return s;
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  s.samples = n;
  s.min = values.front();
  s.max = values.back();
  s.median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  const auto rank = static_cast<std::size_t>(std::ceil(0.99 * static_cast<double>(n)));
  s.p99 = values[std::max<std::size_t>(rank, 1) - 1];
  for (const double value : values) s.mean += value / static_cast<double>(n);
  double squares = 0;
  for (const double value : values) squares += (value - s.mean) * (value - s.mean);
  if (n > 1) s.deviation = std::sqrt(squares / static_cast<double>(n - 1));
  return s;
}

// The lower quartile: what the machine does when nobody interrupts, without the luck of the best.
// Of at least one value.
inline double quiet_time(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 4];
}

}  // namespace rankine::tools
