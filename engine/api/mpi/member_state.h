// One process's side of a communicator over MPI: its plans, bound to buffers, its scratch, and how
// it waits. The inside of member.h, for its source files only.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/api/call_clock.h"
#include "engine/api/displaced.h"
#include "engine/api/environment.h"
#include "engine/api/mpi/alarm.h"
#include "engine/api/mpi/bound_requests.h"
#include "engine/api/mpi/member.h"
#include "engine/api/mpi/message_plan.h"
#include "engine/api/plan_table.h"
#include "engine/base/costs.h"
#include "engine/base/huge_pages.h"
#include "engine/run/process_owned.h"
#include "engine/run/wait_policy.h"

namespace rankine::mpi {

// A plan, and its messages bound to the buffers of the latest call.
struct Ready {
  std::unique_ptr<const Prepared> prepared;  // of other ranks' plans nothing
  MessagePlan messages;
  std::unique_ptr<BoundRequests> bound;
};

struct Member::State {
  // Beyond these all are made again.
  static constexpr std::size_t kMostPlans = 2048;

  State(const JoinOptions& options, const Environment& environment,
        std::unique_ptr<CallClock> network, const WaitPolicy& waits, MPI_Comm data,
        MPI_Comm alarms);
  ~State();

  Status call(const Call& call);
  // The call's time runs from its first long wait, or from where its planning begins.
  void begin_waiting(const CallOptions& of) noexcept;
  // The call's plan, made now where there is none.
  Result<Ready*> find(const Call& call);

  const JoinOptions options;
  const Environment forced;
  const Costs costs{};
  const std::vector<int> levels{};  // those of the network
  const std::unique_ptr<CallClock> network;
  const WaitPolicy policy;
  MPI_Comm comm, alarm_comm;
  int rank = 0, ranks = 1;
  int tag_bases = 1;  // so many calls can be told apart by their tags
  Alarm alarm;
  Status ended;  // or ok
  Sent sent;
  std::uint32_t barrier_in = 0, barrier_out = 0;

 private:
  Result<std::unique_ptr<Ready>> make(const PlanKey& key);
  Status run_displaced(const Call& call);
  Result<Call> multiplied(const Call& call);
  Status run(Ready& ready, const Call& call);
  Status bind(Ready& ready, const Call& call);
  Status step(Ready& ready, const MessageStep& step, const CallWork& work);
  Status wait(Ready& ready, int parcel);
  Status late(const Ready& ready, int parcel) const;
  Status end_with(Status reason) noexcept;
  bool time_has_passed() noexcept;

  std::unordered_multimap<std::uint64_t, std::unique_ptr<Ready>> plans_;  // by their keys' hashes
  HugeVector<std::byte> scratch_;
  HugeVector<std::byte> products_;  // of inputs with factors
  std::vector<void*> operands_;
  DisplacedCall displaced_;
  std::int64_t patience_ns_ = 0, deadline_ns_ = 0;  // of the call at hand; 0: none yet
};

}  // namespace rankine::mpi
