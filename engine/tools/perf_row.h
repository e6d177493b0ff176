// A row of perf: one call, measured, and what its time comes to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "engine/tools/perf_cases.h"
#include "engine/tools/workbench.h"

namespace rankine::tools {

struct PerfRow {
  std::size_t bytes = 0;  // as nccl-tests counts them, see metrics.h
  std::size_t count = 0;
  DataType type = DataType::f32;
  std::string op;    // "none" where nothing is reduced
  int root = -1;     // -1: the collective has none
  int segments = 0;  // of pipelined algorithms; else 0
  double bus_factor = 0;
  Measured measured;
  std::optional<LatencyBracket> probe{};  // where it was asked for
  std::string network{};                  // its name; empty: at full speed
  std::optional<double> peak{};           // bytes per second
};

// The time that counts: the model's on a network, else the median of what was measured.
double seconds_of(const Series& series);
double algbw(const PerfRow& row, const Series& series);  // GB/s, 10^9 bytes
double busbw(const PerfRow& row, const Series& series);
std::optional<double> eta(const PerfRow& row, const Series& series);  // metrics.h

// Errors: those of the workbench.
Result<PerfRow> measure_row(Workbench& workbench, const PerfCase& one, const PerfCases& cases,
                            const PerfOptions& options);

}  // namespace rankine::tools
