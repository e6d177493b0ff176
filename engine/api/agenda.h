// What one thread has started and not ended, on all communicators that it uses as one rank or
// another: the owner of progress behind request.h. Used by that thread only.
//
// A communicator's calls are made one after the other, in the order in which they were started; the
// first of each is under way. Who waits for one of them moves on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/api/member.h"
#include "engine/api/plan_table.h"
#include "engine/run/interpret.h"

namespace rankine {

struct StartedCall {
  enum class Phase : std::uint8_t {
    resting,    // not started, or waited for
    queued,     // behind others
    under_way,  // the others have been told
    over,       // as `status` says
  };

  explicit StartedCall(std::shared_ptr<MemberState> member_) : member(std::move(member_)) {}

  const std::shared_ptr<MemberState> member;
  Call call;  // its lists and names are the plan's, or those of `unplanned`
  PreparedPtr prepared;
  std::unique_ptr<const OwnedKey> unplanned;  // while there is no plan
  bool first = false;                         // call of its kind
  Phase phase = Phase::resting;
  Cursor cursor;
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
  // Whether nothing is started.
  bool idle() const noexcept { return busy_.empty(); }

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

  std::vector<MemberState*> members_;
  std::vector<MemberState*> busy_;  // of them; has room for all
};

}  // namespace rankine
