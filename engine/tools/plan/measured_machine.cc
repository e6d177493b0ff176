#include "engine/tools/plan/measured_machine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/statistics.h"
#include "engine/run/machine.h"
#include "engine/tools/cost_fit.h"
#include "engine/tools/train/matrix.h"

namespace rankine::tools {
namespace {

constexpr int kRanks = 2;
constexpr int kWidth = 256;                             // of matrices
constexpr std::size_t kCopied = std::size_t{16} << 20;  // floats: past all caches
constexpr int kProducts = 60, kCopies = 10;             // of each rank; the median counts
constexpr double kFitSeconds = 1;

double seconds_of(const auto& body) {
  const std::int64_t begin = now_ns();
  body();
  return static_cast<double>(now_ns() - begin) * 1e-9;
}

struct Rates {
  double flops = 0, memory_bandwidth = 0;
};

// Of one rank, while the other one does the same.
Result<Rates> rates_of(Member& me) {
  std::vector<double> products, copies;
  Matrix a(kWidth, kWidth), b(kWidth, kWidth);
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    a.values[i] = static_cast<float>(i % 7);
    b.values[i] = static_cast<float>(i % 5);
  }
  if (Status s = me.barrier(); !s.ok()) return s;
  for (int i = 0; i < kProducts; ++i) {
    // What is computed is what the next one begins with, so that it is.
    products.push_back(seconds_of([&] { a.values[0] = product(a, b).values[0] * 0; }));
  }
  const std::vector<float> from(kCopied, 1);
  std::vector<float> to(kCopied);
  if (Status s = me.barrier(); !s.ok()) return s;
  for (int i = 0; i < kCopies; ++i) {
    copies.push_back(seconds_of([&] { std::copy(from.begin(), from.end(), to.begin()); }));
  }
  const double width = kWidth;
  return Rates{2 * width * width * width / median(products),
               2.0 * kCopied * sizeof(float) / median(copies)};
}

Result<Fabric> network_of(const std::vector<CostPoint>& points) {
  const auto fit = fit_costs(points);
  if (!fit.ok()) return fit.status();
  return machine_fabric(fit->model);
}

}  // namespace

Result<Machine> measure_machine() {
  auto team = Team::create({.ranks = kRanks, .tuned = false});
  if (!team.ok()) return team.status();
  const auto points = measure_costs(**team, kFitSeconds);
  if (!points.ok()) return points.status();
  auto network = network_of(*points);
  if (!network.ok()) {
    return Status{network.status().code(),
                  "this machine could not be measured: " + network.status().text()};
  }
  network->name = kHere;
  std::array<Rates, kRanks> rates;
  const Status measured = (*team)->run([&](Member& me) {
    const auto own = rates_of(me);
    own.status().throw_if_error();
    rates[static_cast<std::size_t>(me.rank())] = *own;
  });
  if (!measured.ok()) return measured;
  const auto by = [](double Rates::*rate) {
    return [rate](const Rates& one, const Rates& other) { return one.*rate < other.*rate; };
  };
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                        static_cast<double>(sysconf(_SC_PAGESIZE)) /
                        static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  return Machine{.name = std::string(kHere),
                 .flops = std::min(rates[0], rates[1], by(&Rates::flops)).flops,
                 .memory_bandwidth =
                     std::min(rates[0], rates[1], by(&Rates::memory_bandwidth)).memory_bandwidth,
                 .memory_bytes = memory,
                 .network = std::move(*network)};
}

}  // namespace rankine::tools
