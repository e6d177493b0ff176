// What one thread has started and not ended, on all communicators that it uses as one rank or
// another: the owner of progress behind request.h. Used by that thread only, its owner; and where
// there is a helper (progress_thread.h), by that one between two Turns of the owner's.
//
// A communicator's calls are made one after the other, in the order in which they were started; the
// first of each is under way. Who waits for one of them moves on all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/api/call_thread.h"
#include "engine/api/displaced.h"
#include "engine/api/given.h"
#include "engine/api/member.h"
#include "engine/api/plan_table.h"
#include "engine/api/progress_thread.h"
#include "engine/api/request.h"
#include "engine/network/ticks.h"
#include "engine/run/interpret.h"
#include "engine/run/machine.h"

namespace rankine {

struct StartedCall {
  enum class Phase : std::uint8_t {
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
  std::unique_ptr<DisplacedCall> displaced;  // the call is then its plain one
  PreparedPtr prepared;
  std::unique_ptr<const OwnedKey> unplanned;  // while there is no plan
  bool first = false;                         // call of its kind
  bool ready = false;                         // `given` is as the next start has it
  Given given;
  std::int64_t timeout_ns = 0;  // from each start on, as CallOptions::timeout
  bool rests = true;            // not started, or waited for: the owner's
  Phase phase = Phase::over;
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
  explicit Agenda(ProgressThread* helper = nullptr) : helper_(helper) {}

  // The owner has the agenda and what is on it for itself while one of these lives: needed for all
  // that says so. No two at once.
  class Turn {
   public:
    explicit Turn(Agenda& agenda) noexcept : agenda_(agenda), has_(true) {
      if (agenda_.helper_ != nullptr) agenda_.take_from_helper();
    }
    // Has nothing where the helper is at it just now.
    Turn(Agenda& agenda, std::try_to_lock_t) noexcept
        : agenda_(agenda), has_(agenda.helper_ == nullptr || agenda.mutex_.try_lock()) {}
    ~Turn() {
      if (!has_) return;
      agenda_.had_work_ = !agenda_.busy_.empty();
      if (agenda_.helper_ != nullptr) agenda_.give_to_helper();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return has_; }

   private:
    Agenda& agenda_;
    const bool has_;
  };

  // Whether nothing is started, and calls are waited for at once. A helper may have ended what the
  // owner's last Turn has seen under way: not known before the next one.
  bool idle() const noexcept { return !had_work_ && !group_; }

  // A member takes part from now on, and no longer: in a Turn. add() may throw std::bad_alloc.
  void add(MemberState& member);
  void remove(MemberState& member) noexcept;

  // Of a call that is over. In a Turn, as what follows.
  void start(StartedCall& call) noexcept;
  // Everything goes on as far as it can: whether anything did.
  bool step() noexcept;
  // Until the call is over, or that time: whether it is. For kForEverNs it always is.
  bool wait(const StartedCall& call, std::int64_t until_ns) noexcept;
  // Until nothing of that communicator is under way.
  void finish(MemberState& member) noexcept;

  // For the helper: everything goes on as far as it can, but for what has failed. That touches no
  // buffer any more, and waits for its owner.
  Progress help() noexcept;

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
  void take_from_helper() noexcept;
  void give_to_helper() noexcept;
  bool step(MemberState& member) noexcept;
  [[gnu::noinline]] bool plan(MemberState& member, StartedCall& call) noexcept;
  [[gnu::noinline]] bool make_ready(MemberState& member, StartedCall& call) noexcept;
  // The member's first call began, at once or when its turn has come: false where it has failed.
  bool begin(MemberState& member, StartedCall& call) noexcept;
  [[gnu::noinline]] bool begin_first(MemberState& member, StartedCall& call) noexcept;
  // It has ended, with an error.
  [[gnu::noinline]] void end(MemberState& member, StartedCall& call, Status status) noexcept;
  void end_well(MemberState& member, StartedCall& call) noexcept;
  // It is over: no longer on any list.
  void strike(MemberState& member, StartedCall& call) noexcept;
  // It has failed inside: over, or left to its owner.
  void fail(MemberState& member, StartedCall& call) noexcept;
  // Its owner is to say why it has failed, or does not begin.
  bool is_owners(const MemberState& member) const noexcept;
  // Whether one call is under way, which somebody waits for who does nothing else until then.
  bool is_alone(std::int64_t until_ns) const noexcept;
  void run_alone(MemberState& member) noexcept;
  [[gnu::noinline]] bool wait_among_others(const StartedCall& call, std::int64_t until_ns) noexcept;
  // The call goes on, and has ended if that is so.
  Walked go_on(MemberState& member, StartedCall& call) noexcept;
  bool advance(MemberState& member, StartedCall& call) noexcept;
  // Every call whose communicator has ended goes on no more.
  void break_off() noexcept;

  ProgressThread* const helper_;  // lives as long as the members do
  std::vector<MemberState*> members_;
  bool had_work_ = false;  // as the owner's last Turn has left it
  std::optional<std::vector<Request>> group_;

  Atomic<bool> wanted_{false};  // by the owner, who comes before the helper
  std::mutex mutex_;  // where there is a helper: guards what follows, and what it points to
  std::vector<MemberState*> busy_;  // of the members; has room for all
  bool helps_ = false;              // the helper is at it
};

}  // namespace rankine
