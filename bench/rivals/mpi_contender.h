// MPI libraries as contenders: one job each for the whole run, asleep while others are measured.
#pragma once

#include <memory>
#include <string>

#include "bench/rivals/coprocess.h"
#include "bench/rivals/protocol.h"

namespace rankine::rivals {

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

}  // namespace rankine::rivals
