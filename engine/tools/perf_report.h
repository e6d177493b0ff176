// What perf prints: nccl-tests' table, CSV and JSON from the same rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/tools/crossovers.h"
#include "engine/tools/machine.h"
#include "engine/tools/perf_cases.h"
#include "engine/tools/perf_row.h"
#include "engine/tools/table.h"

namespace rankine::tools {

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
  const MachineReport& machine;
  int ranks = 0;
  std::vector<RankReport> places{};
  std::vector<int> processes{};  // of the ranks
  std::string placement{}, waiting{};
  std::string started{};  // UTC
  std::vector<std::string> arguments{};
  std::vector<PerfRow> rows{};
  PerfTotals totals{};
  std::vector<PortsInUse> ports_in_use() const;  // by rank, over all rows; empty: nobody counted
  std::vector<NetworkCurves> curves{};  // on networks, where rows are curves (perf_curves.h)
  std::string error{};                  // why it ended before its last row; empty: it did not

  void describe(const Workbench& workbench);  // where its ranks are, and how they wait
  bool contested() const { return !curves.empty() && curves.front().curves.size() > 1; }
  bool above_floor() const { return totals.average_busbw() >= options.min_busbw; }
};

std::string_view describe(RankTime of_ranks);             // "slowest rank"
std::string_view mode_of(const MeasureOptions& measure);  // "fresh+off-cache"

// nccl-tests' table. A row is printed as soon as it is measured, when nobody knows yet how wide the
// later ones will be: so it is no Table, and has nccl-tests' widths.
class PerfTable {
 public:
  PerfTable(std::ostream& out, const PerfOptions& options)
      : out_(out),
        options_(options),
        on_network_(!options.networks.empty()),
        eta_(on_network_ || options.peak) {}
  void begin(const PerfRun& run);
  void network(const PerfCases& cases);  // before its rows
  void note(std::string_view text);      // a line that is no data
  void row(const PerfRow& row);
  void end(const PerfRun& run);

 private:
  std::ostream& out_;
  const PerfOptions& options_;
  bool on_network_, eta_;
};

// For CSV: a line per measurement, so two per row.
Table perf_table(const PerfRun& run, std::span<const PerfRow> rows);

nlohmann::ordered_json perf_json(const PerfRun& run);

}  // namespace rankine::tools
