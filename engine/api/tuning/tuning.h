// What makes one machine's measurements worthless on another.
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

struct Hardware {
  std::string cpu;  // "AMD EPYC 9B45", or "unknown CPU"
  int cores = 0;    // of the machine, also where this process may use fewer
  int packages = 0, numa_nodes = 0, l3_groups = 0;
  std::size_t l1d = 0, l2 = 0, l3 = 0;  // bytes; 0: unknown
  std::string isa;                      // of the kernels: "avx512_bf16"
  std::string version;                  // of Rankine

  bool operator==(const Hardware&) const = default;
};

// This machine. Takes milliseconds.
Hardware read_hardware();

std::string cpu_model();  // of /proc/cpuinfo

// The first thing in which they differ, as "cores is 16 there and 2 here"; nullopt: nothing.
std::optional<std::string> difference(const Hardware& there, const Hardware& here);

// This machine as the alpha-beta model sees it.

// What one hop and one addition cost here: T = hops alpha + moved beta + added gamma.
struct CostModel {
  double alpha = 0;  // seconds
  double beta = 0;   // seconds per byte that goes from core to core
  double gamma = 0;  // seconds per byte that is added
};

// The same as a network: a rank is a thread, which receives one message after the other (one port),
// and everybody reaches everybody. Times are whole attoseconds, so that they have a common unit.
// Errors: an alpha or a beta that is not above 0, a gamma below it, which a fit to noise can give,
// and any above kMostSeconds.
Result<Fabric> machine_fabric(const CostModel& model);
inline constexpr double kMostSeconds = 1;

// The tuning table of a machine: which algorithm calls get that name none, as `rankine tune`
// measured it, how much longer each takes than the model says (engine/network/c_real.h), and the
// costs that decide their form (engine/base/costs.h), as its owner wrote them.
// It is a file of JSON, read once per process when the first communicator is made, and used where
// it was made on hardware like this; else the default (choose.h) stands. The algorithms were
// measured among threads, so calls on private buffers of processes go by the costs alone.
//
//   RANKINE_TUNING=FILE     the table; off: none
//   otherwise               $XDG_CACHE_HOME/rankine/tuning.json, or ~/.cache/rankine/tuning.json

struct TuningRow {
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  std::size_t bytes = 0;  // M
  const Algorithm* algorithm = nullptr;
  double regret = 1;  // the worst seen while choosing: its time over that of the best

  bool operator==(const TuningRow&) const = default;
};

// How much longer an algorithm takes here than the model says. It differs with the number of ranks:
// where they share cores, a round is a change of threads.
struct MeasuredCReal {
  Collective collective = Collective::all_reduce;
  int ranks = 0;
  const Algorithm* algorithm = nullptr;
  CReal c_real{};

  bool operator==(const MeasuredCReal&) const = default;
};

// Of that algorithm, where it is among them.
std::optional<CReal> c_real_of(std::span<const MeasuredCReal> measured, const Algorithm& algorithm);

class TuningTable {
 public:
  TuningTable() = default;
  // Rows in any order; of rows for the same collective, ranks and bytes the last one counts, and of
  // c_real for the same collective, ranks and algorithm.
  TuningTable(Hardware hardware, std::string made, CostModel model, std::vector<TuningRow> rows,
              const Costs& costs = {}, std::vector<MeasuredCReal> c_real = {});

  const Hardware& hardware() const { return hardware_; }
  const std::string& made() const { return made_; }  // "2026-11-21T22:00:00Z"
  const CostModel& model() const { return model_; }
  const std::vector<TuningRow>& rows() const { return rows_; }  // sorted
  const Costs& costs() const { return costs_; }                 // defaults where none was measured
  const std::vector<MeasuredCReal>& c_real() const { return c_real_; }  // sorted

  // The row of the nearest size measured (by ratio) for so many ranks; nullptr where these ranks
  // were not measured, or no size within a factor of kReach.
  const TuningRow* find(Collective collective, int ranks, std::size_t bytes) const;
  static constexpr double kReach = 16;

  // The collective's c_real among the nearest number of ranks (by ratio, of equals the smaller)
  // that has any; empty: none was measured. All of one number, so that they can be compared.
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
// Errors say what is wrong where; an algorithm that the catalogue lacks is wrong too, and so are a
// cost that there is not, and c_real beyond its bounds or beside a model that machine_fabric()
// refuses.
Result<TuningTable> parse_tuning(std::string_view json);

// Where the table is or would be. `named`: by RANKINE_TUNING. Empty: nowhere (off, or no home).
struct TuningFile {
  std::string path;
  bool named = false;
};
TuningFile tuning_file();

// The table of that file if it suits `here`; else nothing, with one warning (numa/warnings.h) per
// cause: damaged, made elsewhere, or not to be read. A cache that is not there is no cause. Only
// regular files of at most 16 MiB are read (engine/base/small_file.h).
std::optional<TuningTable> load_tuning(const TuningFile& file, const Hardware& here);
// Writes by way of a neighbouring file that is renamed, so that no reader sees half of it; makes
// missing directories.
Status save_tuning(const TuningTable& table, const std::string& path);
// Whether save_tuning() can write there, for before minutes of measuring; makes missing
// directories.
Status prepare_tuning_file(const std::string& path);

// This process's table, read when first asked for; nullptr: none. Thread-safe.
const TuningTable* machine_tuning();
// Its costs; without a table the defaults.
const Costs& machine_costs();

}  // namespace rankine
