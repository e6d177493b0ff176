// TuningTable is the table of one machine's measurements by which calls choose their algorithm;
// Hardware says to which machine it applies, and CostModel is that machine's alpha-beta model.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"

namespace rankine {
// Hardware has the facts that decide if measurements of one machine apply to another.

struct Hardware {
  std::string cpu;  // "AMD EPYC 9B45", or "unknown CPU"
  int cores = 0;    // all cores of the machine, even if this process may use fewer
  int packages = 0, numa_nodes = 0, l3_groups = 0;
  std::size_t l1d = 0, l2 = 0, l3 = 0;  // bytes; 0: unknown
  std::string isa;                      // the kernels' instruction set: "avx512_bf16"
  std::string version;                  // Rankine's version

  bool operator==(const Hardware&) const = default;
};

// Reads this machine's hardware. Takes milliseconds.
Hardware read_hardware();

std::string cpu_model();  // from /proc/cpuinfo

// The first difference, as "cores is 16 there and 2 here"; nullopt: equal.
std::optional<std::string> difference(const Hardware& there, const Hardware& here);

// CostModel is this machine in the alpha-beta model: the cost of one hop and of one addition, T =
// hops alpha + moved beta + added gamma.
struct CostModel {
  double alpha = 0;  // seconds
  double beta = 0;   // seconds per byte that moves from core to core
  double gamma = 0;  // seconds per added byte
};

// The model as a network: each rank is a thread that receives one message after the other (one
// port), and every rank reaches every other rank. Times are whole attoseconds, so that they have a
// common unit. Errors: alpha or beta not above 0, gamma below 0 (a fit to noise can give that), and
// values above kMostSeconds.
Result<Fabric> machine_fabric(const CostModel& model);
inline constexpr double kMostSeconds = 1;

// The tuning table of a machine has three parts: the algorithms for calls that name none, as
// measured by `rankine tune`; for each algorithm the ratio of its real time to the model's time
// (CReal in engine/network/predict.h); and the costs that decide the form of calls
// (engine/base/costs.h), as the machine's owner set them. It is a JSON file. Each process reads it
// once, when it makes its first communicator, and uses it if it was made on equal hardware;
// otherwise the default choice (choose.h) applies. The algorithms were measured among threads, so
// calls on private buffers of processes use the costs only.
//
//   RANKINE_TUNING=FILE     the table; off: none
//   otherwise               $XDG_CACHE_HOME/rankine/tuning.json, or ~/.cache/rankine/tuning.json

struct TuningRow {
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  std::size_t bytes = 0;  // M
  const Algorithm* algorithm = nullptr;
  double regret = 1;  // the worst ratio, seen while choosing, of its time to the best time

  bool operator==(const TuningRow&) const = default;
};

// MeasuredCReal is the measured ratio of an algorithm's real time to the model's time. It depends
// on the number of ranks: if ranks share cores, each round costs a thread switch.
struct MeasuredCReal {
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  const Algorithm* algorithm = nullptr;
  CReal c_real{};

  bool operator==(const MeasuredCReal&) const = default;
};

// The ratio of that algorithm, if it is in `measured`.
std::optional<CReal> c_real_of(std::span<const MeasuredCReal> measured, const Algorithm& algorithm);

class TuningTable {
 public:
  TuningTable() = default;
  // Rows may have any order. If several rows have equal collective, ranks and bytes, the last one
  // counts; for c_real the key is collective, ranks and algorithm.
  TuningTable(Hardware hardware, std::string made, CostModel model, std::vector<TuningRow> rows,
              const Costs& costs = {}, std::vector<MeasuredCReal> c_real = {});

  const Hardware& hardware() const { return hardware_; }
  const std::string& made() const { return made_; }  // "2026-11-21T22:00:00Z"
  const CostModel& model() const { return model_; }
  const std::vector<TuningRow>& rows() const { return rows_; }  // sorted
  const Costs& costs() const { return costs_; }  // defaults for costs that were not measured
  const std::vector<MeasuredCReal>& c_real() const { return c_real_; }  // sorted

  // The row with the nearest measured size (by ratio) for that number of ranks; nullptr if these
  // ranks were not measured, or if no size is within a factor of kReach.
  const TuningRow* find(Collective collective, int ranks, std::size_t bytes) const;
  static constexpr double kReach = 16;

  // The collective's c_real for the nearest number of ranks (by ratio; the smaller of equal ones)
  // that has any; empty: no measurement. All are for one number of ranks, so that they can be
  // compared.
  std::span<const MeasuredCReal> c_real_near(Collective collective, int ranks) const;

 private:
  Hardware hardware_;
  std::string made_;
  CostModel model_;
  std::vector<TuningRow> rows_;
  Costs costs_;
  std::vector<MeasuredCReal> c_real_;
};

std::string to_json(const TuningTable& table);
// Errors name the place and the reason. An unknown algorithm, an unknown cost, a c_real out of
// bounds, and c_real with a model that machine_fabric() refuses are errors too.
Result<TuningTable> parse_tuning(std::string_view json);

// The place of the table, if it exists or not. `named`: set by RANKINE_TUNING. Empty path: no table
// (off, or no home).
struct TuningFile {
  std::string path;
  bool named = false;
};
TuningFile tuning_file();

// Returns the table of that file if it suits `here`; otherwise nothing, with one warning
// (numa/refusals.h) per cause: damaged, made on another machine, unreadable. A missing cache is no
// cause for a warning. Reads only regular files of at most 16 MiB (engine/base/files.h).
std::optional<TuningTable> load_tuning(const TuningFile& file, const Hardware& here);
// Writes a neighbouring file and renames it, so that no reader sees a half-written table. Creates
// missing directories.
Status save_tuning(const TuningTable& table, const std::string& path);
// Checks that save_tuning() can write there; call it before minutes of measuring. Creates missing
// directories.
Status prepare_tuning_file(const std::string& path);

// This process's table, read at the first call; nullptr: no table. Thread-safe.
const TuningTable* machine_tuning();
// The costs of this process's table; without a table the defaults.
const Costs& machine_costs();

}  // namespace rankine
