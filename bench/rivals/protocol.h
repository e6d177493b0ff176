// What this machine cannot beat: a lower bound for a call, from rates measured in the same run.
//
// A collective can be divided among the ranks in one or two ways (ways()). In each, a rank adds
// `ins` vectors and stores the sum into `outs` vectors of `floats` floats; `crossing` bytes of
// inputs reach it from other cores; of its result, the part `remote` was stored last by another
// core. With
//
//   latency    one way of a cache line between two cores (the ping-pong)
//   motion     all cores doing that adding and storing at once, each on memory of its own in the
//              cache level where the working set fits, with no synchronisation; the best of plain
//              stores, streaming ones and, for copies, the string instruction
//   cross      reading a byte that another core has just written, all cores doing so at once that
//              must: in a broadcast all but the root, from the root; in a reduce the root alone
//   read       reading a byte of the result from the core's own caches
//   stream     storing a byte past the caches, all cores at once
//   memory     reading a byte that another core has stored past the caches
//
// A byte comes from another core the quicker of two paths: out of that core's caches (cross), or
// through memory (stream and memory, which may overlap: the greater of the two; of a result, memory
// alone, since its storing is motion). Between cores that are far from each other the second may
// be the quicker one.
//
// the bound is the least over the ways of
//
//   warm       max(latency, motion)
//   fresh      latency + max(crossing * min(cross, max(stream, memory)), motion)
//              + result * (remote * min(cross, memory) + (1 - remote) * read) + stamps
//
// Warm buffers stay untouched, so nothing but the news must cross: and not even the news has to be
// waited for where data go one way only (broadcast, reduce), since a root may be calls ahead; there
// one line at the rate of `cross` takes the place of the latency. Fresh inputs were written by
// their owners, so they must cross; the protocol times one read of the result, and a pair of
// stamps, which is part of every figure that it prints. Where ranks share cores, a core does the
// work of its ranks one after the other; what switching between them costs is not counted.
//
// It is a bound for these ways of dividing the work and leaves out what storing into lines costs
// that another core has cached, so real programs are slower.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/rivals/batch.h"
#include "bench/rivals/crew.h"
#include "bench/rivals/rival.h"
#include "engine/cli/probe.h"

namespace rankine::rivals {

struct Way {
  const char* name;
  int ins;
  int outs;
  std::size_t floats;    // of each of them
  std::size_t crossing;  // bytes
  double remote;         // 0 to 1
};

// One-shot ways, whose memory grows with the square of the ranks, only up to this many bytes.
inline constexpr std::size_t kOneShotLimit = std::size_t{4} << 20;

std::vector<Way> ways(const Batch& batch, int ranks);

struct Rates {
  double latency_us = 0;
  double cross_us_per_byte = 0;
  double read_us_per_byte = 0;
  // Past the caches; infinite where it is not measured: the protocol is warm.
  double stream_us_per_byte = std::numeric_limits<double>::infinity();
  double memory_us_per_byte = std::numeric_limits<double>::infinity();
  double stamps_us = 0;
  std::vector<double> motion_us;  // as ways()
};

struct Limit {
  const char* way = "";
  const char* path = "cache";  // or "memory": that of the bytes that cross
  double us = 0;
  double latency_us = 0;  // the parts; crossing and reading are 0 where the protocol is warm
  double crossing_us = 0;
  double motion_us = 0;
  double reading_us = 0;
};

// share: ranks per core, at least 1.
Limit limit_of(const Batch& batch, int ranks, int share, const Rates& rates);

// A level of the caches, or the memory, with all cores at work at once. GB/s of one core; bytes
// read and bytes written count alike.
struct LevelRates {
  std::string level;
  std::size_t bytes = 0;  // what one core works on
  double copy = 0;
  double add = 0;
  double read = 0;
  double cross_read = 0;  // of what another core has just written
};

// Measures on the crew's threads, one per core. Not thread-safe.
class LimitProbe {
 public:
  explicit LimitProbe(Crew& crew);

  // Takes well under a batch's time. latency_us is for the caller to fill in.
  Rates measure(const Batch& batch);

  int share() const { return share_; }

  // level: its name; bytes: its size per core. Half of it is used.
  LevelRates measure_level(const std::string& level, std::size_t bytes);

 private:
  struct alignas(kLine) Bench {
    Buffer memory;
    double us = 0;
    double store_us = 0;
  };

  // body(worker, bench) on every core at once, where bench.us receives a time; the greatest of
  // them.
  template <class Body>
  double slowest(std::size_t bytes, Body&& body);
  double motion(const Way& way, bool in_place);
  enum class Readers { all, all_but_root, root };
  struct Crossed {
    double store_us = 0;
    double read_us = 0;
  };
  // Stored by each core, by plain stores or past the caches, and then read by others.
  Crossed cross_read(std::size_t bytes, Readers readers, bool past_caches = false);
  double own_read(std::size_t bytes);  // us

  Crew& crew_;
  const int workers_;
  const int share_;
  const double stamps_us_;
  std::unique_ptr<Meeting> meeting_;
  std::vector<Bench> benches_;
};

// The measuring protocol: all contenders take turns, batch by batch, in one run on one machine
// state.
//
// A row is one size under one of the two protocols of batch.h. It has several rounds; in each,
// every contender runs one batch, in an order that changes from round to round. A contender's
// figure is the median of its batches. Before each round and after the last a probe measures the
// latency of a cache line between two cores: where that has changed by more than tools::kSteady
// within a row, the machine has changed under the contenders and the row is repeated. Each round
// also measures what this machine cannot beat (limits.h).

class Contender {
 public:
  Contender(std::string its_name, Family its_family)
      : name(std::move(its_name)), family(its_family) {}
  virtual ~Contender() = default;
  Contender(const Contender&) = delete;
  Contender& operator=(const Contender&) = delete;

  virtual bool takes(Collective collective, std::size_t bytes) const = 0;

  // Not called once `missing` says something; a contender that fails in here fills it in.
  virtual Measured run(const Batch& batch) = 0;

  const std::string name;
  const Family family;
  std::string version;  // empty, or of the library
  std::string missing;  // why it cannot be measured; empty when it can
};

// A Rival in this process, on the crew's threads and buffers. A rival that hangs ends the program
// with status 124.
class InProcess final : public Contender {
 public:
  // One per program, shared by all: each rank's buffers lie near the core that writes them first.
  struct Stage {
    Stage(Crew& its_crew, bool crowded, std::size_t max_bytes);
    Crew& crew;
    std::unique_ptr<Meeting> meeting;
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
  int calls = 0;     // in a batch; 0: as many as take batch_us
  int warmups = -1;  // before them; -1: an eighth as many and two
  double batch_us = 2000;
  bool in_place = false;
};

struct Cell {
  std::vector<double> us;   // one per round; empty when the contender did not run
  std::uint64_t wrong = 0;  // elements, over all batches
  int calls = 0;            // in each batch
};

struct Row {
  std::size_t bytes = 0;
  Protocol protocol = Protocol::warm;
  int repeats = 0;
  std::vector<double> ping_pong_ns;  // before each round and after the last
  std::vector<Cell> cells;           // as the contenders
  std::vector<Limit> limits;         // one per round

  // The greatest change of the probe within the row, at least 1.
  double drift() const { return tools::drift(ping_pong_ns); }
  bool steady() const { return drift() <= tools::kSteady; }

  // The contender of these families with the least median; none when no such contender ran.
  std::optional<std::size_t> best(unsigned families,
                                  const std::vector<std::unique_ptr<Contender>>& contenders) const;

  // The median over the rounds of a's time over b's of the same round.
  double ratio(std::size_t a, std::size_t b) const;

  // The same of a's time over the limit.
  double limit_ratio(std::size_t a) const;
  // Of the rounds, the limit in the middle.
  Limit limit() const;
};

Row measure_row(std::vector<std::unique_ptr<Contender>>& contenders, const Plan& plan,
                std::size_t bytes, Protocol protocol, Crew& crew, LimitProbe& limits);

// A child process that answers lines with lines. It never outlives its parent: it is told to end,
// then made to.

class Coprocess {
 public:
  // arguments[0] is the program. Create all coprocesses in the main thread: they are terminated
  // when that thread ends. patience_s: how long stop() waits for the child to end by itself, and
  // again after SIGTERM.
  explicit Coprocess(std::vector<std::string> arguments, double patience_s = 5);
  ~Coprocess() { stop(); }
  Coprocess(const Coprocess&) = delete;
  Coprocess& operator=(const Coprocess&) = delete;

  // False when it has gone.
  bool send(const std::string& line);

  // The next line of its output; nothing when it has gone or says nothing for limit_s seconds.
  std::optional<std::string> receive(double limit_s);

  // Closes its input and waits; what is still there after patience_s is terminated, then killed.
  // Returns its exit status, or 128 and the number of the signal that ended it. May be called
  // again.
  int stop();

  // The last line of its error output.
  std::string last_words() const;

 private:
  bool wait_for_end(double limit_s);

  const double patience_s_;
  pid_t child_ = -1;
  int to_ = -1;
  int from_ = -1;
  int errors_ = -1;
  int status_ = -1;
  std::string unread_;
};

// MPI libraries as contenders: one job each for the whole run, asleep while others are measured.

// The script that starts MPI jobs: under `bazel run` beside the program, else in the source tree.
std::string find_start_mpi();
// Its exit status where that MPI is missing; its last words say so.
inline constexpr int kNotInstalled = 3;

class MpiContender final : public Contender {
 public:
  // its_name is one that the script start_mpi knows. Returns at once; await() finds out what became
  // of it.
  MpiContender(std::string its_name, const std::string& start_mpi, const Setup& setup);

  // Waits until the job is ready, which includes compiling its program in the first run; else fills
  // in `missing`.
  void await();

  bool takes(Collective, std::size_t) const override { return true; }
  Measured run(const Batch& batch) override;

 private:
  void give_up(const std::string& what);

  std::unique_ptr<Coprocess> job_;
};

// A Rival whose ranks are processes of their own, forked by the driver and asleep on a futex while
// others are measured: as the ranks of an MPI job. Figures come back through a page that all share.

class ProcessContender final : public Contender {
 public:
  // The rival is made with setup.processes. Forks, and returns at once; to be created before this
  // process has other threads. The ranks end with the thread that creates it, if not before.
  ProcessContender(std::unique_ptr<Rival> rival, const Setup& setup);
  ~ProcessContender() override;

  // Until all ranks are ready; else fills in `missing`.
  void await();

  bool takes(Collective collective, std::size_t bytes) const override {
    return rival_->takes(collective, bytes);
  }
  // A rank that dies or hangs ends all of them.
  Measured run(const Batch& batch) override;

  const std::vector<pid_t>& ranks() const { return ranks_; }

 private:
  [[noreturn]] void live(int rank);
  // Whether all ranks have finished what they do; else all are ended, and `missing` says why.
  bool have_finished(const std::string& what, double limit_s);
  void give_up(const std::string& what);
  void end_all();

  const std::unique_ptr<Rival> rival_;
  const Setup setup_;
  SharedArray<Job> job_;  // one
  std::vector<pid_t> ranks_;
};

}  // namespace rankine::rivals
