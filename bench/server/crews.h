// The collectives of a rival of Rankine's (bench/rivals) that takes these three.
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

class RivalExchange : public Exchange {
 public:
  RivalExchange(rivals::Rival& rival, int rank, int ranks)  // which outlives it, and has started
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
  // Rivals move floats.
  static std::size_t whole(std::size_t bytes) {
    if (bytes % sizeof(float) != 0) throw std::logic_error("bytes that are no whole floats");
    return bytes / sizeof(float);
  }

  rivals::Rival& rival_;
  int rank_, ranks_;
  std::vector<float> addends_;
};

// How ranks that are processes come to an exchange, with one collective library or another.

// Of one crew of ranks; made in the process that then forks them, and there until they have ended.
class ProcessLibrary {
 public:
  virtual ~ProcessLibrary() = default;

  struct Place {
    std::string name;  // that no other crew has, and all ranks of this one
    int rank = 0, ranks = 0;
    int cpu = 0;  // to be pinned to
  };
  // In a rank's process, once: meets the others, pins the thread, and has `part` play with what
  // they have then. Throws what goes wrong.
  virtual void play(const Place& place, const std::function<void(Exchange&)>& part) = 0;
};

std::unique_ptr<ProcessLibrary> make_rankine();
// Throws Error (system) where it is not installed.
std::unique_ptr<ProcessLibrary> make_gloo(int ranks);

// What a rank of a server does all day.

// Rank 0 hears requests, tells the others each step's batch, and says what came of it; the others
// follow, and use no line. A call of all ranks, which returns when the clients have hung up, and
// throws what the exchange throws. Where nobody wants anything, ranks still meet ten times in a
// second, so that one that is lost is missed soon.
void work(Decoder& decoder, Exchange& ranks, const Line& clients);

// Ranks that are threads of this process, pinned to cores.

enum class Library { rankine, barrier };

// Throws what the making of a Team says. The model must be divisible (check_ranks()).
std::unique_ptr<Crew> hire_threads(const Model& model, std::uint64_t seed, int ranks,
                                   Library library, Line line);

// Ranks that are processes, forked from this one, which has no other threads when they are.

class ProcessCrew : public Crew {
 public:
  // Each meets the others under a new name and makes its part of the model anew. The lines are as
  // Hire has them. Throws Error (system) where no process can be made. The model must be divisible
  // (check_ranks()).
  ProcessCrew(const Model& model, std::uint64_t seed, int ranks, Line line, Line& clients,
              std::unique_ptr<ProcessLibrary> library = make_rankine());
  // Those that have not ended within two seconds are killed.
  ~ProcessCrew() override;

  const std::vector<pid_t>& processes() const { return processes_; }  // by rank

 private:
  std::unique_ptr<ProcessLibrary> library_;
  std::vector<pid_t> processes_;
};

// Ranks that an MPI's mpirun starts: bench/server/mpi_rank.cc, built for that MPI.

struct MpiJob {
  std::string settings;         // of MPI, as bench/rivals/start_mpi names them: "openmpi_ucx"
  std::string program;          // mpi_rank, of that MPI
  int layers = 0, divisor = 0;  // of the model (llama_shape.h)
  std::uint64_t seed = 0;       // of its parameters
};

class MpiCrew : public Crew {
 public:
  // Waits until the ranks have met. The line is as Hire has it. Throws Error (system), which says
  // what the job said last, where they do not. The model must be divisible (check_ranks()).
  MpiCrew(const MpiJob& job, int ranks, Line line);
  // Those that have not ended after five seconds are ended.
  ~MpiCrew() override = default;

 private:
  std::unique_ptr<rivals::Coprocess> mpirun_;
};

}  // namespace rankine::server
