// A Rival whose ranks are processes of their own, forked by the driver and asleep on a futex while
// others are measured: as the ranks of an MPI job. Figures come back through a page that all share.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/rivals/buffer.h"
#include "bench/rivals/job.h"
#include "bench/rivals/protocol.h"

namespace rankine::rivals {

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
