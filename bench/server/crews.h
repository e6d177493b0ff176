// Crews run the ranks of a server, as threads, as forked processes or as an MPI job. The ranks
// share a decoder and one collective library: Rankine, a std::barrier, gloo or MPI.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/rivals/protocol.h"
#include "bench/rivals/rival.h"
#include "bench/server/decoder.h"
#include "bench/server/service.h"

namespace rankine::server {

// An Exchange over a rival (bench/rivals) that implements broadcast, all-reduce and all-gather. The
// rival must have started and must outlive the exchange.
class RivalExchange : public Exchange {
 public:
  RivalExchange(rivals::Rival& rival, int rank, int ranks)
      : rival_(rival), rank_(rank), ranks_(ranks) {}
  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void broadcast(std::span<std::byte> data) override {
    float* const all = floats(data.data());
    rival_.call(rivals::Collective::broadcast, rank_, all, all, whole(data.size()));
  }
  std::span<float> addends(std::size_t n) override {
    addends_.resize(n);
    return addends_;
  }
  void all_reduce(std::span<float> x, const Epilogue& then) override {
    rival_.call(rivals::Collective::all_reduce, rank_, x.data(), x.data(), x.size());
    apply(then, x.data(), x.size() / then.row_elements);
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    rival_.call(rivals::Collective::all_gather, rank_, reinterpret_cast<const float*>(mine.data()),
                floats(all.data()), whole(mine.size()));
  }

 private:
  static float* floats(std::byte* data) { return reinterpret_cast<float*>(data); }
  // Rivals move floats. Returns the number of floats.
  static std::size_t whole(std::size_t bytes) {
    if (bytes % sizeof(float) != 0) throw std::logic_error("bytes is no multiple of a float");
    return bytes / sizeof(float);
  }

  rivals::Rival& rival_;
  int rank_, ranks_;
  std::vector<float> addends_;
};

// Connects the ranks of one crew of processes to an exchange, over one collective library. Create
// the library before you fork the ranks, in the process that forks them; it must outlive the ranks.
class ProcessLibrary {
 public:
  virtual ~ProcessLibrary() = default;

  struct Place {
    std::string name;  // names the crew: no other crew has it
    int rank = 0, ranks = 0;
    int cpu = 0;  // for pinning
  };
  // Each rank calls play() once, in its own process. Meets the other ranks, pins the thread and
  // calls `part` with the exchange. Throws on errors.
  virtual void play(const Place& place, const std::function<void(Exchange&)>& part) = 0;
};

std::unique_ptr<ProcessLibrary> make_rankine();
// Throws Error (system) if gloo is not installed.
std::unique_ptr<ProcessLibrary> make_gloo(int ranks);

// Runs one rank of a server. Rank 0 hears requests, broadcasts each step's batch and reports its
// tokens; the other ranks follow and do not use their line. All ranks must call work(). Returns
// when the clients have hung up; throws the errors of the exchange. Without requests the ranks
// still meet ten times per second, so a lost rank is noticed soon.
void work(Decoder& decoder, Exchange& ranks, const Line& clients);

// Ranks that are threads of this process, pinned to cores.

enum class Library { rankine, barrier };

// Throws the errors of Team::create(). The model must be divisible (check_ranks()).
std::unique_ptr<Crew> hire_threads(const Model& model, std::uint64_t seed, int ranks,
                                   Library library, Line line);

// Ranks that are processes, forked from this process. The calling process must have no other
// threads.

class ProcessCrew : public Crew {
 public:
  // Each rank meets the others under a new name and creates its part of the model anew. `line` and
  // `clients` are the arguments of a Hire. Throws Error (system) if fork() fails. The model must be
  // divisible (check_ranks()).
  ProcessCrew(const Model& model, std::uint64_t seed, int ranks, Line line, Line& clients,
              std::unique_ptr<ProcessLibrary> library = make_rankine());
  // Kills ranks that have not ended after two seconds.
  ~ProcessCrew() override;

  const std::vector<pid_t>& processes() const { return processes_; }  // by rank

 private:
  std::unique_ptr<ProcessLibrary> library_;
  std::vector<pid_t> processes_;
};

// Ranks that the mpirun of an MPI starts: bench/server/mpi_rank.cc, built for that MPI.

struct MpiJob {
  std::string settings;         // a name that bench/rivals/start_mpi takes: "openmpi_ucx"
  std::string program;          // mpi_rank, built for that MPI
  int layers = 0, divisor = 0;  // arguments of llama_shape() (decoder.h)
  std::uint64_t seed = 0;       // for the model's parameters
};

class MpiCrew : public Crew {
 public:
  // Waits until the ranks have met. `line` is the argument of a Hire. Throws Error (system) with
  // the job's last error line if the ranks do not meet. The model must be divisible
  // (check_ranks()).
  MpiCrew(const MpiJob& job, int ranks, Line line);
  // Ends the job if it has not ended after five seconds.
  ~MpiCrew() override = default;

 private:
  std::unique_ptr<rivals::Coprocess> mpirun_;
};

}  // namespace rankine::server
