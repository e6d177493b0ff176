// Ranks that are processes, forked from this one, which has no other threads when they are.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/server/decoder.h"
#include "bench/server/process_library.h"
#include "bench/server/service.h"

namespace rankine::server {

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

}  // namespace rankine::server
