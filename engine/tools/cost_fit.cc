#include "engine/tools/cost_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "engine/base/statistics.h"
#include "engine/run/kernels/reduce.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/workbench.h"

namespace rankine::tools {
namespace {

constexpr std::size_t kUnknowns = 3;
using Row = std::array<double, kUnknowns>;

// Solves a x = b by elimination with pivots; false where a has not full rank.
bool solve(std::array<Row, kUnknowns> a, Row b, Row& x) {
  constexpr double kTiny = 1e-9;  // of a column scaled to 1
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < kUnknowns; ++r) {
      if (std::abs(a[r][i]) > std::abs(a[pivot][i])) pivot = r;
    }
    if (std::abs(a[pivot][i]) < kTiny) return false;
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    for (std::size_t r = i + 1; r < kUnknowns; ++r) {
      const double factor = a[r][i] / a[i][i];
      for (std::size_t c = i; c < kUnknowns; ++c) a[r][c] -= factor * a[i][c];
      b[r] -= factor * b[i];
    }
  }
  for (std::size_t i = kUnknowns; i-- > 0;) {
    double rest = b[i];
    for (std::size_t c = i + 1; c < kUnknowns; ++c) rest -= a[i][c] * x[c];
    x[i] = rest / a[i][i];
  }
  return true;
}

}  // namespace

Result<CostFit> fit_costs(const std::vector<CostPoint>& points) {
  std::vector<Row> rows;  // each over its seconds, so that the right-hand side is 1
  Row scale{};
  for (const CostPoint& point : points) {
    if (!(point.seconds > 0)) {
      return invalid_argument("point '" + point.what + "' of " + std::to_string(point.bytes) +
                              " bytes took " + std::to_string(point.seconds) + " seconds");
    }
    rows.push_back(
        {point.hops / point.seconds, point.moved / point.seconds, point.added / point.seconds});
    for (std::size_t i = 0; i < kUnknowns; ++i) scale[i] += rows.back()[i] * rows.back()[i];
  }
  std::array<Row, kUnknowns> normal{};
  Row right{}, x{};
  for (std::size_t i = 0; i < kUnknowns; ++i) scale[i] = scale[i] > 0 ? std::sqrt(scale[i]) : 1;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      right[i] += row[i] / scale[i];
      for (std::size_t j = 0; j < kUnknowns; ++j) {
        normal[i][j] += row[i] / scale[i] * row[j] / scale[j];
      }
    }
  }
  if (!solve(normal, right, x)) {
    return invalid_argument(std::to_string(points.size()) +
                            " points do not tell hops, bytes moved and bytes added apart");
  }
  CostFit fit;
  fit.model = {.alpha = x[0] / scale[0], .beta = x[1] / scale[1], .gamma = x[2] / scale[2]};
  double squares = 0;
  for (const Row& row : rows) {
    fit.residuals.push_back(row[0] * fit.model.alpha + row[1] * fit.model.beta +
                            row[2] * fit.model.gamma - 1);
    squares += fit.residuals.back() * fit.residuals.back();
  }
  fit.rms = std::sqrt(squares / static_cast<double>(rows.size()));
  return fit;
}

Result<std::vector<CostPoint>> measure_costs(Team& team, double seconds) {
  constexpr std::size_t kSizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576};
  constexpr std::size_t kLeastAdded = 4096;  // below, calling the kernel is what takes time
  constexpr std::size_t kFewestBatches = 2, kMostBatches = 12;
  constexpr int kFirstCalls = 4;
  constexpr double kBatchSeconds = 200e-6;

  std::vector<CostPoint> points;
  for (const std::size_t bytes : kSizes) {
    const auto m = static_cast<double>(bytes);
    points.push_back({"to and fro", bytes, 1, m, 0});
    points.push_back({"reduce to and fro", bytes, 1, m, m});
    if (bytes >= kLeastAdded) points.push_back({"add", bytes, 0, 0, m});
  }
  // A thousand additions of zeroes stay zeroes: no number's size changes the time.
  std::vector<std::vector<float>> data(2, std::vector<float>(kSizes[std::size(kSizes) - 1] / 4));
  std::vector<float> other(data[0]);
  std::vector<double> samples;
  std::vector<int> calls(points.size());
  Status failed;
  const ReduceKernel add = find_reduce(DataType::f32, ReduceOp::sum);
  Status run = team.run([&](Member& me) {
    const Rank r = me.rank();
    for (std::size_t p = 0; p < points.size(); ++p) {
      const std::size_t count = points[p].bytes / sizeof(float);
      const std::span<float> mine(data[static_cast<std::size_t>(r)].data(), count);
      const auto once = [&](int i) -> Status {
        const Rank to = 1 - i % 2;
        if (points[p].hops == 0) {
          const void* const sources[] = {mine.data(), other.data()};
          if (r == 0) add(mine.data(), sources, 2, count, 0);
          return {};
        }
        if (points[p].added == 0) return me.send_recv(mine, 1 - to, to);
        // One hop: its root reads and adds up all that the other has.
        return me.reduce(std::span<const float>(mine), mine, to, ReduceOp::sum,
                         {.algorithm = "linear"});
      };
      const auto batch = [&](int n) -> Result<double> {
        Status status = me.barrier();
        const double begin = seconds_now();
        for (int i = 0; i < n && status.ok(); ++i) status = once(i);
        if (!status.ok()) return status;
        return (seconds_now() - begin) / n;
      };
      // Rank 0 says how many calls the next batch has, 0 where there is none; a barrier hands it
      // over.
      const double until = seconds_now() + seconds / static_cast<double>(points.size());
      if (r == 0) calls[p] = kFirstCalls;
      for (bool first = true;; first = false) {
        me.barrier().throw_if_error();
        const int n = calls[p];
        if (n == 0) break;
        const auto took = batch(n);
        if (!took.ok()) {
          if (r == 0) failed = took.status();
          return;
        }
        if (r != 0) continue;
        if (first) {
          calls[p] = static_cast<int>(std::clamp(kBatchSeconds / *took, 4.0, 4096.0)) / 2 * 2;
          continue;
        }
        samples.push_back(*took);
        const bool late =
            samples.size() >= kFewestBatches && (seconds_now() > until || interruption() != 0);
        if (late || samples.size() == kMostBatches) calls[p] = 0;
      }
      if (r != 0) continue;
      points[p].seconds = quiet_time(std::move(samples));
      samples.clear();
    }
  });
  if (!failed.ok()) return failed;
  if (!run.ok()) return run;
  return points;
}

}  // namespace rankine::tools
