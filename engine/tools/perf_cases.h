// What perf is asked to measure, and the rows that come of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/communicator.h"
#include "engine/run/kernels/types.h"
#include "engine/run/plan.h"
#include "engine/tools/algorithm_arguments.h"
#include "engine/tools/arguments.h"
#include "engine/tools/call_networks.h"
#include "engine/tools/workbench.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
