// Ranks that an MPI's mpirun starts: bench/server/mpi_rank.cc, built for that MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bench/rivals/coprocess.h"
#include "bench/server/service.h"

namespace rankine::server {

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
