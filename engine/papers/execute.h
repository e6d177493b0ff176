// Live ranks on one thread: Turns runs the ranks of a communicator as fibers, and execute() lets
// them make one call on a modelled network. A rank runs until it has to wait, then the next ready
// rank runs. Many ranks cost one core no more than few ranks do, in any order of their waits, and
// the order of running is deterministic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/schedule/blocks.h"
#include "engine/base/fibers.h"
#include "engine/base/status.h"
#include "engine/network/fabric.h"
#include "engine/run/wait.h"

namespace rankine::claims {

// The scheduler that waiting ranks yield to (Member::set_yield_callback). For one thread.
class Turns : public YieldCallback {
 public:
  Turns() : fibers_(kStackBytes) {}

  // Runs part(r) of each rank, in turns; returns when all have ended. A part must not throw, and
  // may wait only in calls of a member that gives way to this object. `stuck` is called once if
  // every remaining rank waits and has looked in vain since the last progress: then only `stuck`,
  // for example by an abort of the communicator, can end their waits.
  void run(int ranks, const std::function<void(Rank)>& part, const std::function<void()>& stuck);

  void wait_for(const WaitTarget& awaited) noexcept override;
  void give_way(int turn) noexcept override;

 private:
  // Enough for planning a call.
  static constexpr std::size_t kStackBytes = std::size_t{1} << 20;

  // The next rank after the current one that can go on, or else the next one that waits (it looks
  // whether the communicator has ended). -1: all have ended.
  int next() const;

  Fibers fibers_;
  std::vector<bool> ended_;
  std::vector<WaitTarget> awaited_;               // by rank: its latest wait
  int left_ = 0;                                  // ranks that have not ended
  int in_vain_ = 0;                               // looks since the last progress
  const std::function<void()>* stuck_ = nullptr;  // nullptr: has been called
};

// An entry of the catalogue, called by the ranks of a communicator on a modelled network. All ranks
// take turns on the calling thread.

// Returns the end of the last message in seconds of the model, if blocks have exactly `bytes` / B
// bytes. The real data are a cache line per block, and each real byte stands for its share of
// `bytes`; the outputs are checked completely. Errors: the communicator's; wrong data
// (remote_error); all ranks wait for each other (aborted). `lower`: a transfer that the network
// cannot do becomes several messages.
Result<double> execute(const Algorithm& algorithm, const Params& params, const Fabric& fabric,
                       std::uint64_t bytes, Sync sync, bool lower);

}  // namespace rankine::claims
