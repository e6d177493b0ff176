// Modelled networks to put calls on, as perf and bench/catalogue take them.
#pragma once

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/base/status.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/drawing.h"
#include "engine/cli/machine.h"
#include "engine/cli/table.h"
#include "engine/cli/workbench.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"

namespace rankine::tools {

struct NamedNetwork {
  std::string name;  // as it was given: "scale_out,sync=rounds"
  std::shared_ptr<const CallNetwork> network;
};

// "scale_up,scale_out,sync=rounds,torus": networks one after the other, each as find_call_network()
// takes it. A part with "=" is a setting of the network before it, any other one the next network.
// Text that begins with a brace is the content of one network file. Errors name the argument, its
// value and what is allowed.
Result<std::vector<NamedNetwork>> read_call_networks(std::string_view argument,
                                                     std::string_view text);

// What perf is asked to measure, and the rows that come of it.

struct PerfOptions {
  // Without ranks: usable cores, at least 2; on a network 8. Without --algo the engine chooses.
  // Segments are chosen by size where nobody says how many.
  AlgorithmArguments algorithm{.begin = {.ranks = 0, .segments = 0},
                               .most_ranks = Communicator::kMaxRanks};
  std::optional<std::size_t> min_bytes, max_bytes;  // else set_ends()
  std::optional<std::size_t> step_bytes;            // instead of the factor
  int step_factor = 2;
  std::optional<int> given_factor{};  // of the command line: 1 means steps of bytes
  int ranks_per_thread = 1;           // nccl-tests' -g
  std::vector<std::string> without_effect{};  // flags of nccl-tests, with the reasons
  std::vector<DataType> types = {DataType::f32};
  std::vector<ReduceOp> ops = {ReduceOp::sum};
  bool skip_unsupported = false;  // "all" was asked for: pairs that do not exist are left out
  std::optional<Transport> transport;
  std::optional<Order> order{};  // that calls ask for
  bool processes = false;        // ranks are processes
  bool shared_payloads = false;  // of theirs: buffers that all read and write in place
  int ports = 0;                 // a rank's messages in flight per direction; 0: no budget
  PlacementPolicy placement{};
  std::optional<WaitPolicy> wait;
  std::chrono::milliseconds timeout{30'000};
  std::vector<NamedNetwork> networks{};  // calls are put on each in turn; empty: at full speed
  std::optional<double> peak{};          // bytes per second, in place of the network's
  MeasureOptions measure;
  std::optional<double> seconds{};  // of measure; none: its own, on a network kSecondsOnNetwork
  double min_busbw = 0;             // GB/s that the average must reach
  bool stats = false, csv = false;
  int skip_batches = 0;     // leading ones that are left out of what --stats shows
  bool timestamps = false;  // when each row was done
  int cycles = 1;           // all rows so many times; 0: until somebody interrupts
  bool probe = false;       // bracket every row with the latency probe, repeat unsteady ones
  std::string json_file;    // "-": standard output, in place of the table
  std::string plot_file;

  Collective collective() const { return *algorithm.collective; }

  // Model time is exact at once: what is measured there is only how long it takes to work it out.
  static constexpr double kSecondsOnNetwork = 0.01;
  static constexpr std::size_t kMinBytes = 8, kMaxBytes = std::size_t{64} << 20;
};

// Fills in the ends that were not given: 8 B to 64 MiB, the latter less where `ranks` outnumber the
// cores. One end alone moves the other where it must.
void set_ends(PerfOptions& options, int ranks, int cores);

// The sizes that -b, -e, -i and -f ask for, before they are rounded to elements. Requires both
// ends. Errors: an end below the beginning, more sizes than anybody can wait for.
Result<std::vector<std::size_t>> sizes_of(const PerfOptions& options);

// One row to come.
struct PerfCase {
  Call call;
  std::size_t bytes = 0;
};

// What the options come to, at full speed or on one network.
struct PerfCases {
  std::string network{};  // its name; empty: at full speed
  // With everything filled in that depends on the ranks.
  std::shared_ptr<const CallNetwork> on{};
  std::optional<double> peak{};  // bytes per second
  int ranks = 0;
  std::vector<AskedAlgorithm> algorithms{};  // without a name: the engine's choice
  std::vector<PerfCase> rows{};              // in their order; refer to the lists in `algorithms`
  std::vector<std::string> notes{};          // what was left out where all were asked for
  Workbench::Options bench{};                // for all of them
};
// On a network, or at full speed. Sets the options' ends. Errors: whatever no call can be made of,
// parameters that nobody takes, and what the network cannot carry (left out where all were asked
// for); memory that is not there, before anything is allocated.
Result<PerfCases> cases_of(PerfOptions& options, int cores, const NamedNetwork* network = nullptr);
// The same on each of the options' networks, or once at full speed.
Result<std::vector<PerfCases>> all_cases_of(PerfOptions& options, int cores);

// A row of perf: one call, measured, and what its time comes to.

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

// Rows of perf as curves over sizes, an algorithm each.

// Why the rows of these cases would be no curves, as text that says what is needed; empty: they
// are.
std::string why_no_curves(const PerfCases& cases);

// The same of --plot: on the machine rows of all kinds are curves.
std::string why_no_plot(const PerfOptions& options, const PerfCases& cases);

// Each network's curves, in the catalogue's order, and for all networks alike; without a name the
// engine's choice is one. `rows` are all those of `all`, in their order.
std::vector<NetworkCurves> curves_of(const std::vector<PerfCases>& all,
                                     std::span<const PerfRow> rows);

// What was measured at full speed: time over bytes, below it busbw; a curve for each algorithm,
// type, operation and root. `what` begins the titles. Requires rows that why_no_plot() lets pass.
std::string machine_svg(std::string_view what, const PerfCases& cases,
                        std::span<const PerfRow> rows);

// What perf prints: nccl-tests' table, CSV and JSON from the same rows.

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

// Two reports of perf, row by row: which times changed, and whether by more than they scatter.

// What is measured of one row in one place.
struct MeasuredTime {
  std::string row;  // "8 f32 sum root -1", and whatever else tells rows apart
  std::size_t bytes = 0;
  std::string algorithm{};         // empty: the report does not say
  double us = 0;                   // the median over cycles, where a row was measured several times
  std::optional<double> spread{};  // relative: half the distance of the quartiles
};

struct PerfFile {
  std::string collective{};  // empty: it does not say, as nccl-tests' do not
  int ranks = 0;             // likewise 0
  std::string started{};
  std::vector<MeasuredTime> times{};  // in the file's order, each row once

  // perf's JSON, or nccl-tests' own. Errors name `file`, and what it lacks.
  static Result<PerfFile> parse(const std::string& file, std::string_view text);
};

struct ComparedRow {
  MeasuredTime a, b;
  double ratio = 1;               // b's time over a's
  std::optional<double> noise{};  // the sum of both spreads; none: neither file has one

  bool slower() const { return ratio > 1 + noise.value_or(0); }
  bool faster() const { return 1 / ratio > 1 + noise.value_or(0); }
};

struct Comparison {
  std::vector<ComparedRow> rows{};  // that both have, in a's order
  std::vector<std::string> only_a{}, only_b{};
  double geometric_mean() const;  // of the ratios
};

// Rows go together that ask for the same; algorithms count where a file has several for a row.
// Errors: other collectives or ranks, and no row in common.
Result<Comparison> compare_files(const PerfFile& a, const PerfFile& b);

// rankine perf: real collectives on pinned threads, measured and checked, in nccl-tests' shape.

Subcommand add_perf(Command tool);

// Exit::wrong where an element was wrong or the average stayed below min_busbw.
Result<Exit> perf(const PerfOptions& options, Console& console);

}  // namespace rankine::tools
