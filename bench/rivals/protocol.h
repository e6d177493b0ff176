// The protocol measures contenders in turns and a lower bound for each call, from rates of the
// machine in the same run. This header also declares the driver's ranks and the contenders: rivals
// in this process, in forked processes and in MPI jobs.
//
// Lower bound. A collective can be divided among the ranks in one or two ways (ways()). In each
// way, a rank adds `ins` vectors and stores the sum into `outs` vectors of `floats` floats.
// `crossing` bytes of inputs reach it from other cores. Another core stored the part `remote` of
// its result last. The rates are:
//
//   latency    one way of a cache line between two cores (the ping-pong)
//   motion     all cores add and store at once, each on its own memory in the cache level that the
//              working set fits into, without synchronisation; the best of plain stores, streaming
//              stores and, for copies, the string instruction
//   cross      reading a byte that another core has just written, while all cores read that must:
//              in a broadcast all but the root, from the root; in a reduce the root alone
//   read       reading a byte of the result from the core's own caches
//   stream     storing a byte past the caches, all cores at once
//   memory     reading a byte that another core has stored past the caches
//
// A byte takes the faster of two paths from another core: out of that core's caches (cross), or
// through memory (stream and memory, which may overlap: the greater of the two; for a result,
// memory alone, because motion includes its storing). Between distant cores the second path may be
// faster.
// The bound is the least over the ways of
//
//   warm       max(latency, motion)
//   fresh      latency + max(crossing * min(cross, max(stream, memory)), motion)
//              + result * (remote * min(cross, memory) + (1 - remote) * read) + stamps
//
// Warm buffers stay untouched, so only a signal must cross. If data go one way only (broadcast,
// reduce), ranks need not even wait for the signal, because a root may be calls ahead; then one
// line at the rate of `cross` replaces the latency. Fresh inputs were written by their owners, so
// they must cross. The protocol times one read of the result and a pair of stamps, which is part of
// every printed figure. If ranks share cores, a core does the work of its ranks one after the
// other; the bound does not include the cost of switching between them.
//
// The bound holds for these ways of dividing the work. It does not include the cost of storing into
// lines that another core has cached, so real programs are slower.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/rival.h"
#include "engine/api/team.h"
#include "engine/base/child_process.h"
#include "engine/cli/harness.h"
#include "nlohmann/json.hpp"
#include "numa/cpus.h"

namespace rankine::rivals {

// On all CPUs that this process may use.
Setup make_setup(int ranks, std::size_t max_bytes, bool processes);

// The driver's own ranks are threads of a Team, pinned one per core (in turn, if there are fewer
// cores). They sleep between jobs, so contenders in other processes have the machine for
// themselves.
std::unique_ptr<Team> make_team(int ranks, const std::vector<int>& cpus);

// False: the system refuses, and the thread's affinity is unchanged.
inline bool pin_this_thread(int cpu) noexcept { return set_allowed_cpus(&cpu, 1) == 0; }

// The path of a program's output: `bazel run` changes the current folder.
std::string output_path(const std::string& path);

// Describes the machine for a document: cpu, kernel, caches, cores, time. Call it before you pin
// threads: it reads the calling thread's affinity.
nlohmann::json machine_json();

struct Way {
  const char* name;
  int ins;
  int outs;
  std::size_t floats;    // of each vector
  std::size_t crossing;  // bytes
  double remote;         // 0 to 1
};

// One-shot ways only up to this many bytes, because their memory grows with the square of the
// ranks.
inline constexpr std::size_t kOneShotLimit = std::size_t{4} << 20;

std::vector<Way> ways(const Batch& batch, int ranks);

struct Rates {
  double latency_us = 0;
  double cross_us_per_byte = 0;
  double read_us_per_byte = 0;
  // Past the caches; infinite if the protocol is warm, because it needs no such rate.
  double stream_us_per_byte = std::numeric_limits<double>::infinity();
  double memory_us_per_byte = std::numeric_limits<double>::infinity();
  double stamps_us = 0;
  std::vector<double> motion_us;  // in the order of ways()
};

struct Limit {
  const char* way = "";
  const char* path = "cache";  // or "memory": the path of the bytes that cross
  double us = 0;
  double latency_us = 0;  // the parts; crossing and reading are 0 if the protocol is warm
  double crossing_us = 0;
  double motion_us = 0;
  double reading_us = 0;
};

// share: ranks per core, at least 1.
Limit limit_of(const Batch& batch, int ranks, int share, const Rates& rates);

// The rates of a level of the caches, or of the memory, with all cores at work at once. GB/s of one
// core, of bytes read plus bytes written.
struct LevelRates {
  std::string level;
  std::size_t bytes = 0;  // working set of one core
  double copy = 0;
  double add = 0;
  double read = 0;
  double cross_read = 0;  // data that another core has just written
};

// Measures on the team's threads, one per core. Not thread-safe.
class LimitProbe {
 public:
  LimitProbe(Team& team, std::size_t cores);

  // Takes well under a batch's time. The caller sets latency_us.
  Rates measure(const Batch& batch);

  int share() const { return share_; }

  // level: its name; bytes: its size per core, of which half is used.
  LevelRates measure_level(const std::string& level, std::size_t bytes);

 private:
  struct alignas(kLine) Bench {
    Buffer memory;
    double us = 0;
    double store_us = 0;
  };

  // Calls body(worker, memory) on every core at once, with `bytes` bytes of memory; returns the
  // greatest of the times that it returns.
  template <class Body>
  double slowest(std::size_t bytes, Body&& body);
  double motion(const Way& way, bool in_place);
  enum class Readers { all, all_but_root, root };
  struct Crossed {
    double store_us = 0;
    double read_us = 0;
  };
  // Each core stores the bytes, with plain stores or past the caches; then others read them.
  Crossed cross_read(std::size_t bytes, Readers readers, bool past_caches = false);
  double own_read(std::size_t bytes);  // us

  Team& team_;
  const int workers_;
  const int share_;
  const double stamps_us_;
  std::unique_ptr<BatchBarrier> batch_barrier_;
  std::vector<Bench> benches_;
};

// The measuring protocol: all contenders take turns, batch by batch, in one run on one machine
// state.
//
// A row is one size under one of the two protocols of batch.h. It has several rounds. In each round
// every contender runs one batch, in an order that changes from round to round. A contender's
// figure is the median of its batches. Before each round and after the last, a probe measures the
// latency of a cache line between two cores: if it changes by more than tools::kSteady within a
// row, the machine has changed during the row and the row is repeated. Each round also measures the
// limit.

class Contender {
 public:
  Contender(std::string its_name, Family its_family)
      : name(std::move(its_name)), family(its_family) {}
  virtual ~Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  virtual bool takes(Collective collective, std::size_t bytes) const = 0;

  // Not called if `missing` is set; a contender that fails in here sets it.
  virtual Measured run(const Batch& batch) = 0;

  const std::string name;
  const Family family;
  std::string version;   // the library's; may be empty
  std::string settings;  // of a library: variables and launcher's flags; may be empty
  std::string missing;   // the reason why it cannot run; else empty
};

// A Rival in this process, on the team's threads and on one pair of buffers per rank. If a rival
// hangs, the program ends with status 124.
class InProcess final : public Contender {
 public:
  // One per program, shared by all contenders: each rank's buffers lie near the core that first
  // writes them.
  struct Stage {
    Stage(Team& its_team, const Setup& setup);
    Team& team;
    const std::vector<int> cpus;
    std::unique_ptr<BatchBarrier> batch_barrier;
    std::vector<Buffer> ins;
    std::vector<Buffer> outs;
  };

  InProcess(std::unique_ptr<Rival> rival, Stage& stage);
  bool takes(Collective collective, std::size_t bytes) const override {
    return rival_->takes(collective, bytes);
  }
  Measured run(const Batch& batch) override;

 private:
  std::unique_ptr<Rival> rival_;
  Stage& stage_;
};

struct Plan {
  Collective collective = Collective::all_reduce;
  int rounds = 9;
  int calls = 0;     // in a batch; 0: the number that takes batch_us
  int warmups = -1;  // before them; -1: an eighth of the calls plus two
  double batch_us = 2000;
  bool in_place = false;
};

struct Cell {
  std::vector<double> us;  // one per round; empty if the contender did not run
  std::vector<std::vector<double>> percentiles{};  // Measured::percentiles of each round
  std::uint64_t wrong = 0;                         // elements, over all batches
  int calls = 0;                                   // in each batch
};

struct Row {
  std::size_t bytes = 0;
  Protocol protocol = Protocol::warm;
  int repeats = 0;
  std::vector<double> ping_pong_ns;  // before each round and after the last
  std::vector<Cell> cells;           // as the contenders
  std::vector<Limit> limits;         // in the order of the contenders

  // The greatest change of the probe within the row, at least 1.
  double drift() const { return tools::drift(ping_pong_ns); }
  bool steady() const { return drift() <= tools::kSteady; }

  // The contender of these families with the least median; nullopt if none ran.
  std::optional<std::size_t> best(unsigned families,
                                  const std::vector<std::unique_ptr<Contender>>& contenders) const;

  // The median over the rounds of a's time over b's in the same round.
  double ratio(std::size_t a, std::size_t b) const {
    return median_ratio(cells[a].us, cells[b].us);
  }

  // The median over the rounds of a's time over the limit.
  double limit_ratio(std::size_t a) const;
  // The limit with the median time over the rounds.
  Limit limit() const;
};

Row measure_row(std::vector<std::unique_ptr<Contender>>& contenders, const Plan& plan,
                std::size_t bytes, Protocol protocol, Team& team, LimitProbe& limits);

// A child process that answers lines with lines. It never outlives its parent: stop() closes its
// input, then terminates it, then kills it.

class Coprocess {
 public:
  // arguments[0] is the program. Create all coprocesses in the main thread: they are terminated
  // when that thread ends. patience_s: the time that stop() waits for the child to exit, before
  // SIGTERM and again after it.
  explicit Coprocess(std::vector<std::string> arguments, double patience_s = 5);
  ~Coprocess() { stop(); }
  Coprocess(const Coprocess&) = delete;
  Coprocess& operator=(const Coprocess&) = delete;

  // False: the child has ended.
  bool send(const std::string& line);

  // The next line of its output; nullopt if the child has ended or prints nothing for limit_s
  // seconds.
  std::optional<std::string> receive(double limit_s);

  // Closes its input and waits patience_s; then terminates the child, waits again, then kills it.
  // Returns its exit status, or 128 plus the signal number. May be called again.
  int stop();

  // The last line of its error output.
  std::string last_words() const;

 private:
  const std::chrono::duration<double> patience_;
  int to_ = -1;
  int from_ = -1;
  int errors_ = -1;
  ChildProcess child_;
  std::string unread_;
};

// The path of the script that starts MPI jobs: beside the program under `bazel run`, else in the
// source tree.
std::string find_start_mpi();
// The contenders in the script's table, in its order. Empty: the script does not run.
std::vector<std::string> mpi_names(const std::string& start_mpi);
// The script's exit status if that MPI is missing; last_words() then names the missing packages.
inline constexpr int kNotInstalled = 3;

// An MPI library as a contender: one job for the whole run, asleep while others are measured.
class MpiContender final : public Contender {
 public:
  // its_name is a name that the script start_mpi knows. Returns at once; await() checks the start.
  MpiContender(std::string its_name, const std::string& start_mpi, const Setup& setup);

  // Waits until the job is ready, including the compilation of its program in the first run. On
  // failure, sets `missing`.
  void await();

  bool takes(Collective, std::size_t) const override { return true; }
  Measured run(const Batch& batch) override;

 private:
  void give_up(const std::string& what);

  std::unique_ptr<Coprocess> job_;
};

// Runs a Rival in processes, forked by the driver and asleep on a futex while others are measured,
// as the ranks of an MPI job. Times come back through a page that all of them share.

class ProcessContender final : public Contender {
 public:
  // Create the rival with setup.processes. Forks and returns at once; call it before this process
  // has other threads. The ranks end with the thread that creates the contender, or earlier.
  ProcessContender(std::unique_ptr<Rival> rival, const Setup& setup);
  ~ProcessContender() override;

  // Waits until all ranks are ready. On failure, sets `missing`.
  void await();

  bool takes(Collective collective, std::size_t bytes) const override {
    return rival_->takes(collective, bytes);
  }
  // If a rank dies or hangs, all ranks are ended.
  Measured run(const Batch& batch) override;

  std::vector<pid_t> ranks() const;  // the processes

 private:
  int live(int rank);
  // Returns whether all ranks have finished their work. If not, ends all ranks and sets `missing`.
  bool have_finished(const std::string& what, double limit_s);
  void give_up(const std::string& what);

  const std::unique_ptr<Rival> rival_;
  const Setup setup_;
  SharedArray<Job> job_;  // one
  std::vector<ChildProcess> ranks_;
};

// Converts the rows of a run of rivals into one JSON document, which report.py reads.
//
//   context   the measured call and its machine: collective, ranks (threads or processes), machine,
//             levels of the memory, contenders with family, version and reason if missing
//   rows      size, protocol, ping_pong_ns (before each round and after the last), steady, limit,
//             contenders (median_us of batches, calls_us: percentiles of single calls if fresh,
//             ...), ratios and their other side ("against")

using Contenders = std::vector<std::unique_ptr<Contender>>;

// Compares the best contender of one side with the best of the other side.
struct Comparison {
  const char* title;
  unsigned ours;    // families
  unsigned theirs;  // families; none: the limit
};
inline constexpr Comparison kComparisons[] = {
    {"rankine/mpi", kRankine, kMpi},         {"rankine/library", kRankine, kMpi + kServer},
    {"rankine/expert", kRankine, kExpert},   {"rankine/limit", kRankine, 0},
    {"expert/mpi", kExpert, kMpi},           {"rankine/exchange", kRankine, kExchange},
    {"rankine/chain", kRankine, kReference}, {"shared/library", kRegistered, kMpi + kServer},
    {"shared/limit", kRegistered, 0},
};

struct Compared {
  double ratio = 0;     // median over the rounds of the ratio within a round
  std::string against;  // name of the contender, or "limit"
};

// nullopt if one side did not run.
std::optional<Compared> compare(const Comparison& comparison, const Row& row,
                                const Contenders& contenders);

const char* family_name(Family family);

// The caller passes `machine`, with sizes of caches such as "1 KiB".
nlohmann::json context_json(const Plan& plan, const Setup& setup, const Contenders& contenders,
                            const std::vector<LevelRates>& levels, const nlohmann::json& machine);

nlohmann::json row_json(const Row& row, const Contenders& contenders);

}  // namespace rankine::rivals
