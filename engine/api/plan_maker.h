// How a call becomes a plan: what is chosen for what the call leaves open, compiled, and timed on a
// modelled network. The same for ranks that share an address space and for those that only have
// messages (mpi/member.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/call_clock.h"
#include "engine/api/environment.h"
#include "engine/api/order.h"
#include "engine/api/plan_table.h"
#include "engine/api/processes/ranks.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/costs.h"
#include "engine/base/status.h"
#include "engine/compile/compile.h"

namespace rankine {

// What plans depend on beside the call. Refers to its communicator's, which it must not outlive.
struct PlanMaker {
  int ranks;
  const Costs& costs;
  const Environment& forced;    // for calls that leave the choice to us
  std::size_t slot_payload;     // as in CompileRequest
  int mailbox_capacity;         // likewise
  int ports = 0;                // likewise
  std::size_t most_plan_bytes;  // of memory that the making may take
  const std::vector<int>& levels;
  const TuningTable* tuning;      // or nullptr
  std::optional<Order> order;     // of calls that ask for none
  const CallClock* network;       // whose network chooses; or nullptr
  bool timed;                     // whether plans have a schedule for that network's clocks
  const ProcessRanks* processes;  // whose memory ranks share that are processes; nullptr: threads
  // Asked as it goes on; an error ends the making.
  const std::function<Status()>& may_go_on;

  // Errors: those of check_call() and compile(), an algorithm or an order that there is not, and
  // what may_go_on() answers.
  Result<std::unique_ptr<Prepared>> make(const PlanKey& key) const;

 private:
  Result<std::shared_ptr<const TimedSchedule>> time(const CompileRequest& request,
                                                    const Compiled& compiled, std::size_t m) const;
  Result<Compiled> compile_once(const Call& call, CompileRequest& request, std::size_t m,
                                const Costs& by, const std::vector<int>& fitting) const;
  // What may run in the place of what was chosen, the best first.
  Result<std::vector<Candidate>> others_to_try(const Call& call, const CompileRequest& chosen,
                                               std::size_t m, const Costs& by,
                                               const std::vector<int>& fitting) const;
};

}  // namespace rankine
