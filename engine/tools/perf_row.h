// A row of perf: one call, measured, and what its time comes to.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

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
  std::string done{};                     // when, in local time: "2026-11-20 14:03:07"
};

// Seconds of each batch, as its slowest rank had it where each rank's times were kept.
std::vector<double> slowest_of(const Series& series);
// What --stats shows: without the batches that PerfOptions leaves out.
Statistics shown_statistics(const Series& series, const PerfOptions& options);

// The time that counts: the model's on a network, else the median of what was measured.
double seconds_of(const Series& series);
double algbw(const PerfRow& row, const Series& series);  // GB/s, 10^9 bytes
double busbw(const PerfRow& row, const Series& series);
std::optional<double> eta(const PerfRow& row, const Series& series);  // metrics.h

// Errors: those of the workbench.
Result<PerfRow> measure_row(Workbench& workbench, const PerfCase& one, const PerfCases& cases,
                            const PerfOptions& options);

}  // namespace rankine::tools
