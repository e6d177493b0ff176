// The ranks of a communicator as fibers of one thread: each goes on until it has to wait, and then
// gives way to the next one that waits for nothing any more. So many ranks cost one core no more
// than few do, whatever the order in which they have to wait for one another, and the order in
// which they run is the same every time.
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

// What each of the ranks gives way to (Member::give_way_to). For one thread.
class Turns : public OtherWork {
 public:
  Turns() : fibers_(kStackBytes) {}

  // Each rank's part, in turns; returns when all have ended. A part must not throw, and waits only
  // in calls of a member that gives way to this. `stuck` is called, once, when every rank that has
  // not ended waits and has looked in vain since the last of them got on: only what it does, such
  // as an abort of the communicator, can end their waits.
  void run(int ranks, const std::function<void(Rank)>& part, const std::function<void()>& stuck);

  void wait_for(const Awaited& awaited) noexcept override;
  void give_way(int turn) noexcept override;

 private:
  // Calls are planned on it.
  static constexpr std::size_t kStackBytes = std::size_t{1} << 20;

  // After the current one, of those that have not ended: the first that can go on, or else that
  // has to look whether all is over. -1: none.
  int next() const;

  Fibers fibers_;
  std::vector<bool> ended_;
  std::vector<Awaited> awaited_;                  // by rank, in its latest wait
  int left_ = 0;                                  // have not ended
  int in_vain_ = 0;                               // looks since somebody got on
  const std::function<void()>* stuck_ = nullptr;  // nullptr: has been called
};

// A line of the catalogue, called by the ranks of a communicator that is on a modelled network. All
// of them take turns on the calling thread (turns.h).

// When the last message ended, in the model's seconds, where blocks have exactly M / B of so many
// bytes. The data themselves are a cache line per block, every byte of which stands for as many as
// there would be; all of them are checked. Errors: the communicator's; wrong data (remote_error);
// ranks of which none can go on (aborted).
// `lower`: what the network cannot do with one transfer is many messages.
Result<double> execute(const Algorithm& algorithm, const Params& params, const Fabric& fabric,
                       std::uint64_t bytes, Sync sync, bool lower);

}  // namespace rankine::claims
