// What perf prints: nccl-tests' table, CSV and JSON from the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/tools/machine.h"
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
};

// What all rows come to.
struct PerfTotals {
  std::int64_t wrong = 0;
  double busbw_sum = 0;
  int measurements = 0;
  void add(const PerfRow& row);
  double average_busbw() const { return measurements == 0 ? 0 : busbw_sum / measurements; }
};

struct PerfRun {
  const PerfOptions& options;
  const Machine& machine;
  int ranks = 0;
  std::vector<RankReport> places{};
  std::string placement{}, waiting{};
  std::string started{};  // UTC
  std::vector<std::string> arguments{};
  std::vector<PerfRow> rows{};
  PerfTotals totals{};
  std::string error{};  // why it ended before its last row; empty: it did not

  bool above_floor() const { return totals.average_busbw() >= options.min_busbw; }
};

std::string_view mode_of(const MeasureOptions& measure);  // "fresh+off-cache"
double algbw(const PerfRow& row, const Series& series);   // GB/s, 10^9 bytes
double busbw(const PerfRow& row, const Series& series);

class PerfTable {
 public:
  PerfTable(std::ostream& out, const PerfOptions& options)
      : out_(out), stats_(options.stats), probe_(options.probe) {}
  void begin(const PerfRun& run);
  void note(std::string_view text);  // a line that is no data
  void row(const PerfRow& row);
  void end(const PerfRun& run);

 private:
  std::ostream& out_;
  bool stats_, probe_;
};

// One line per measurement, so two per row.
class PerfCsv {
 public:
  explicit PerfCsv(std::ostream& out) : out_(out) {}
  void begin();
  void row(const PerfRun& run, const PerfRow& row);

 private:
  std::ostream& out_;
};

nlohmann::ordered_json perf_json(const PerfRun& run);

}  // namespace rankine::tools
