// Ranks that are processes: copies of this one, which plays rank 0 and tells what came of it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace rankine::tools {

class ProcessCopies {
 public:
  // Forks one copy for each rank but the first: in each this returns, too, with its rank, and what
  // it prints goes nowhere. While the process has one thread. Errors: processes that the system
  // refuses.
  static Result<ProcessCopies> make(int ranks);
  // A copy ends here. The first one waits for them, who have been told by what they share with it,
  // and kills those that stay.
  ~ProcessCopies();
  ProcessCopies(ProcessCopies&& other) noexcept;
  ProcessCopies& operator=(ProcessCopies&&) = delete;

  int rank() const { return rank_; }
  // Where they meet for the `number`-th time; nobody else has it.
  std::string name(int number) const;

 private:
  ProcessCopies() = default;

  int rank_ = 0;
  unsigned number_ = 0;  // that no other tool has, in another pid namespace neither
  std::vector<pid_t> others_{};
};

}  // namespace rankine::tools
