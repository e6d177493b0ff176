// `rankine perf` measures and checks real collectives and reports them in nccl-tests' shape. This
// header declares its options and cases, its rows and curves, its reports, and the comparison of
// two reports.
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

namespace rankine::tools {

inline constexpr double kMicro = 1e6, kGiga = 1e9;  // us per second, bytes per GB

// A modelled network for calls.
struct NamedNetwork {
  std::string name;  // as given: "scale_out,sync=rounds"
  std::shared_ptr<const CallNetwork> network;
};

// Reads "scale_up,scale_out,sync=rounds,torus": networks one after the other, each in the form of
// find_call_network(). A part with "=" is a setting of the preceding network; any other part is the
// next network. Text that begins with a brace is the content of one network file. Errors name the
// argument, its value and the allowed values.
Result<std::vector<NamedNetwork>> read_call_networks(std::string_view argument,
                                                     std::string_view text);

struct PerfOptions {
  // Default ranks: the usable cores, at least 2; on a network 8. Without --algo the engine chooses.
  // Without a number of segments the engine chooses it by size.
  AlgorithmArguments algorithm{.begin = {.ranks = 0, .segments = 0},
                               .most_ranks = Communicator::kMaxRanks};
  std::optional<std::size_t> min_bytes, max_bytes;  // default: set_ends()
  std::optional<std::size_t> step_bytes;            // instead of the factor
  int step_factor = 2;
  std::optional<int> given_factor{};          // on the command line: 1 means steps of bytes
  int ranks_per_thread = 1;                   // nccl-tests' -g
  std::vector<std::string> without_effect{};  // ineffective flags of nccl-tests, with the reasons
  std::vector<DataType> types = {DataType::f32};
  std::vector<ReduceOp> ops = {ReduceOp::sum};
  bool skip_unsupported = false;  // "all" was given: unsupported pairs are left out
  std::optional<Transport> transport;
  std::optional<Order> order{};  // requested by calls
  bool processes = false;        // ranks are processes
  bool shared_payloads = false;  // of processes: buffers that all read and write in place
  int ports = 0;                 // a rank's messages in flight per direction; 0: no budget
  PlacementPolicy placement{};
  std::optional<WaitPolicy> wait;
  std::chrono::milliseconds timeout{30'000};
  std::vector<NamedNetwork> networks{};  // calls are put on each in turn; empty: at full speed
  std::optional<double> peak{};          // bytes per second, in place of the network's
  MeasureOptions measure;
  std::optional<double> seconds{};  // of measure; none: the default of measure, on a network
                                    // kSecondsOnNetwork
  std::vector<int> counts{};        // shares of the ranks' blocks; empty: equal blocks
  double min_busbw = 0;             // GB/s that the average must reach
  bool stats = false, csv = false;
  int skip_batches = 0;     // leading batches that --stats leaves out
  bool timestamps = false;  // report the time at which each row was done
  int cycles = 1;           // number of passes over all rows; 0: until an interrupt
  bool probe = false;       // bracket every row with the latency probe, repeat unsteady rows
  std::string json_file;    // "-": standard output, in place of the table
  std::string plot_file, iterations_file;

  Collective collective() const { return *algorithm.collective; }

  // Model time is exact after one call; repeated calls only measure the time of computing it.
  static constexpr double kSecondsOnNetwork = 0.01;
  static constexpr std::size_t kMinBytes = 8, kMaxBytes = std::size_t{64} << 20;
};

// Sets missing ends: 8 B to 64 MiB, the latter less if `ranks` outnumber the cores. A single given
// end moves the other end if necessary.
void set_ends(PerfOptions& options, int ranks, int cores);

// The sizes of -b, -e, -i and -f, before rounding to elements. Requires both ends. Errors: an end
// below the beginning, too many sizes.
Result<std::vector<std::size_t>> sizes_of(const PerfOptions& options);

// One row to come.
struct PerfCase {
  Call call;
  std::size_t bytes = 0;
};

// All cases of the options, at full speed or on one network.
struct PerfCases {
  std::string network{};  // its name; empty: at full speed
  // The network, with every value set that depends on the ranks.
  std::shared_ptr<const CallNetwork> on{};
  std::optional<double> peak{};  // bytes per second
  int ranks = 0;
  std::vector<AskedAlgorithm> algorithms{};        // without a name: the engine's choice
  std::vector<std::vector<std::size_t>> counts{};  // of the blocks, with PerfOptions::counts
  std::vector<PerfCase> rows{};      // in order; refer to the lists in `algorithms` and `counts`
  std::vector<std::string> notes{};  // cases left out of "all"
  Workbench::Options bench{};        // for all rows
};
// Makes the cases of one network, or of full speed. Sets the options' ends. Errors: options without
// any valid call, parameters that no algorithm takes, and algorithms that the network cannot carry
// (left out if "all" was given); insufficient memory, before any allocation.
Result<PerfCases> cases_of(PerfOptions& options, int cores, const NamedNetwork* network = nullptr);
// Cases for each of the options' networks, or for full speed.
Result<std::vector<PerfCases>> all_cases_of(PerfOptions& options, int cores);

// A row of perf: one call and its measured times.
struct PerfRow {
  std::size_t bytes = 0;  // by nccl-tests' convention, see question.h
  std::size_t count = 0;
  DataType type = DataType::f32;
  std::string op;    // "none" if the collective does not reduce
  int root = -1;     // -1: the collective has none
  int segments = 0;  // of pipelined algorithms; else 0
  double bus_factor = 0;
  Measured measured;
  std::optional<LatencyBracket> probe{};  // with PerfOptions::probe
  std::string network{};                  // its name; empty: at full speed
  std::optional<double> peak{};           // bytes per second
  std::string done{};                     // local time of completion: "2026-11-20 14:03:07"
};

// Seconds of each batch: the slowest rank's if each rank's times were kept.
std::vector<double> slowest_of(const Series& series);
// These without the batches that --stats skips.
std::vector<double> shown_batches(const Series& series, const PerfOptions& options);

// The reported time: the model's time on a network, else the median of the measured times.
double seconds_of(const Series& series);
double algbw(const PerfRow& row, const Series& series);  // GB/s, 10^9 bytes
double busbw(const PerfRow& row, const Series& series);
std::optional<double> eta(const PerfRow& row, const Series& series);  // question.h

// Errors: the workbench's errors.
Result<PerfRow> measure_row(Workbench& workbench, const PerfCase& one, const PerfCases& cases,
                            const PerfOptions& options);

// The reason why the rows of these cases do not form curves, with the remedy; empty: they form
// curves.
std::string curves_refusal(const PerfCases& cases);

// The reason why --plot cannot draw these cases. At full speed rows of all kinds form curves.
std::string plot_refusal(const PerfOptions& options, const PerfCases& cases);

// The curves of each network, in the catalogue's order, the same for all networks; the engine's
// choice is a curve without a name. `rows` are all rows of `all`, in order.
std::vector<NetworkCurves> curves_of(const std::vector<PerfCases>& all,
                                     std::span<const PerfRow> rows);

// Draws the measurements at full speed: time over bytes, below it busbw; one curve for each
// algorithm, type, operation and root. `what` begins the titles. Requires rows that pass
// plot_refusal().
std::string machine_svg(std::string_view what, const PerfCases& cases,
                        std::span<const PerfRow> rows);

// The totals over all rows.
struct PerfTotals {
  std::int64_t wrong = 0;
  double busbw_sum = 0;
  double error = 0, allowed_error = 0;  // of quantised sums
  int measurements = 0;
  void add(const PerfRow& row);
  double average_busbw() const { return measurements == 0 ? 0 : busbw_sum / measurements; }
};

struct PerfRun {
  const PerfOptions& options;
  const MachineReport& machine;
  int ranks = 0;
  std::vector<RankReport> places{};
  std::vector<int> processes{};  // process of each rank
  std::string placement{}, waiting{};
  std::string started{};  // UTC
  std::vector<std::string> arguments{};
  std::vector<PerfRow> rows{};
  PerfTotals totals{};
  std::vector<PortsInUse> ports_in_use() const;  // by rank, over all rows; empty: not counted
  std::vector<NetworkCurves> curves{};           // on networks, if rows form curves
  std::string error{};  // why the run ended before its last row; empty: complete

  void describe(const Workbench& workbench);  // adds the ranks' places and their waiting
  bool contested() const { return !curves.empty() && curves.front().curves.size() > 1; }
  bool above_floor() const { return totals.average_busbw() >= options.min_busbw; }
};

std::string_view describe(RankTime of_ranks);             // "slowest rank"
std::string_view mode_of(const MeasureOptions& measure);  // "fresh+off-cache"

// PerfTable prints nccl-tests' table. It prints each row right after its measurement, before the
// widths of later rows are known; therefore it uses nccl-tests' widths instead of a Table.
class PerfTable {
 public:
  PerfTable(std::ostream& out, const PerfOptions& options)
      : out_(out),
        options_(options),
        on_network_(!options.networks.empty()),
        eta_(on_network_ || options.peak) {}
  void begin(const PerfRun& run);
  void network(const PerfCases& cases);  // before its rows
  void note(std::string_view text);      // a line without data
  void row(const PerfRow& row);
  void end(const PerfRun& run);

 private:
  std::ostream& out_;
  const PerfOptions& options_;
  bool on_network_, eta_;
};

// The rows for CSV: one line per measurement, two per row.
Table perf_table(const PerfRun& run, std::span<const PerfRow> rows);

// A line for each batch and rank, with the rank's time.
Table iterations_table(const PerfRun& run);

nlohmann::ordered_json perf_json(const PerfRun& run);

// The time of one row in one place.
struct MeasuredTime {
  std::string row;  // "8 f32 sum root -1", and any other key of the row
  std::size_t bytes = 0;
  std::string algorithm{};         // empty: not in the report
  double us = 0;                   // the median over cycles if a row was measured several times
  std::optional<double> spread{};  // relative: half the distance of the quartiles
};

struct PerfFile {
  std::string collective{};  // empty: not in the file, as in nccl-tests' files
  int ranks = 0;             // 0: not in the file
  std::string started{};
  std::vector<MeasuredTime> times{};  // in the file's order, each row once

  // Reads perf's JSON or nccl-tests' JSON. Errors name `file` and the missing member.
  static Result<PerfFile> parse(const std::string& file, std::string_view text);
};

struct ComparedRow {
  MeasuredTime a, b;
  double ratio = 1;               // b's time over a's
  std::optional<double> noise{};  // the sum of both spreads; none: neither file has one

  bool slower() const { return ratio > 1 + noise.value_or(0); }
  bool faster() const { return 1 / ratio > 1 + noise.value_or(0); }
};

// Two reports of perf, row by row.
struct Comparison {
  std::vector<ComparedRow> rows{};  // rows in both files, in a's order
  std::vector<std::string> only_a{}, only_b{};
  double geometric_mean() const;  // of the ratios
};

// Matches rows with equal keys; the algorithm is part of the key if a file has several for a row.
// Errors: different collectives or ranks, and no common row.
Result<Comparison> compare_files(const PerfFile& a, const PerfFile& b);

}  // namespace rankine::tools
