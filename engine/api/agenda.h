// What one thread has started and not ended, on all communicators that it uses as one rank or
// another: the owner of progress behind request.h. Used by that thread only.
//
// A communicator's calls are made one after the other, in the order in which they were started; the
// first of each is under way. Who waits for one of them moves on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/api/call_thread.h"
#include "engine/api/member.h"
#include "engine/api/plan_table.h"
#include "engine/api/request.h"
#include "engine/network/ticks.h"
#include "engine/run/interpret.h"

namespace rankine {

struct StartedCall {
  enum class Phase : std::uint8_t {
    resting,    // not started, or waited for
    queued,     // behind others
    under_way,  // the others have been told
    broken,     // its communicator has ended, and it touches no buffer any more
    over,       // as `status` says
  };

  explicit StartedCall(std::shared_ptr<MemberState> member_) : member(std::move(member_)) {}

  const std::shared_ptr<MemberState> member;
  // Its lists and names are the plan's, or those of `unplanned`; what it reduces by and its
  // epilogue are here.
  Call call;
  UserOp user_op;
  Epilogue epilogue;
  alignas(16) std::byte factor[16] = {};
  std::uint32_t barrier_in = 0, barrier_out = 0;
  PreparedPtr prepared;
  std::unique_ptr<const OwnedKey> unplanned;  // while there is no plan
  bool first = false;                         // call of its kind
  Phase phase = Phase::resting;
  Cursor cursor;
  // On a modelled network: when it was started and ended there; and how it goes on.
  Ticks model_start = 0, model_end = 0;
  std::unique_ptr<CallThread> thread;
  bool done = false;
  Status status;
  StartedCall* next = nullptr;  // of the same communicator
};

// Of one communicator, the oldest first.
struct StartedCalls {
  StartedCall* front = nullptr;
  StartedCall* back = nullptr;
};

class Agenda {
 public:
  // Whether nothing is started, and calls are waited for at once.
  bool idle() const noexcept { return busy_.empty() && !group_; }

  // A member takes part from now on, and no longer. add() may throw std::bad_alloc.
  void add(MemberState& member);
  void remove(MemberState& member) noexcept;

  // Of a call that is resting.
  void start(StartedCall& call) noexcept;
  // Everything goes on as far as it can: whether anything did.
  bool step() noexcept;
  // Until the call is over, or that time: whether it is. For kForEverNs it always is.
  bool wait(const StartedCall& call, std::int64_t until_ns) noexcept;
  // Until nothing of that communicator is under way.
  void finish(MemberState& member) noexcept;
  // Between these two, calls are waited for at the end only (Member::group()). begin: false where
  // that is so already. take: where it is so, keeps the request; else false. end: those kept.
  bool begin_group();
  bool take(Request& request);
  std::vector<Request> end_group();
  bool in_group() const noexcept { return group_.has_value(); }

  // The ranks of this thread take part no more, in any of their communicators: those who wait for
  // them are told. Until they come back, which only one that makes no call can do.
  void leave() noexcept;
  void come_back() noexcept;

 private:
  bool step(MemberState& member) noexcept;
  // The member's first call began, at once or when its turn has come: false where it is over
  // already.
  bool begin(MemberState& member, StartedCall& call) noexcept;
  void end(MemberState& member, StartedCall& call, Status status) noexcept;
  void run_alone(MemberState& member) noexcept;
  // The call goes on, and has ended if that is so.
  Walked go_on(MemberState& member, StartedCall& call) noexcept;
  // Every call whose communicator has ended goes on no more.
  void break_off() noexcept;

  std::vector<MemberState*> members_;
  std::vector<MemberState*> busy_;  // of them; has room for all
  std::optional<std::vector<Request>> group_;
};

}  // namespace rankine
