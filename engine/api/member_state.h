// What of a call is not its plan's, and what all calls of its kind and on these buffers begin with:
// so one that is started again and again works it out once. Made by MemberState::given().
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/api/call.h"
#include "engine/api/communicator.h"
#include "engine/api/communicator_state.h"
#include "engine/api/member.h"
#include "engine/api/plans.h"
#include "engine/api/processes/ranks.h"
#include "engine/api/request.h"
#include "engine/api/threads.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/network/prices.h"
#include "engine/run/fingerprint.h"
#include "engine/run/interpret.h"
#include "engine/run/machine.h"
#include "engine/run/user_functions.h"
#include "engine/run/wait.h"

namespace rankine {

struct Given {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  const UserOp* user_op = nullptr;
  const Epilogue* epilogue = nullptr;
  Fingerprint print;  // of the plan and the tag; each call's number joins it
  Marks marks;
};

// An all-to-all whose blocks lie where the rank says (Call::displacements), as one whose blocks
// follow one another: what the rank sends is brought together before the call, what it has received
// is handed out after it. Where a rank's blocks lie is its own affair, so plans, algorithms,
// transports and clocks know nothing of it.

// Of one rank; used again for the next call, as long as the one before has ended. Not thread-safe.
class DisplacedCall {
 public:
  // The same call without displacements: a side that has some is memory of ours, the other one the
  // caller's. Keeps nothing of the call but its buffers. Errors: those of check_call(); another
  // collective, a list of another length, a block beyond what pointers can tell apart, blocks of
  // out that overlap, a buffer that is null. Throws std::bad_alloc.
  Result<Call> plain(const Call& call, Rank rank, int ranks);
  void bring_together() noexcept;  // when the call begins
  void hand_out() const noexcept;  // when it has ended well

  std::size_t bytes() const noexcept { return memory_.capacity(); }

 private:
  struct Block {
    std::size_t at, bytes;
  };
  // What the rank sends or receives, by rank, in our memory one after the other.
  struct Side {
    std::vector<Block> blocks;
    std::size_t begin = 0;  // in our memory
    bool displaced = false;
  };
  static Side side_of(const Call& call, Rank rank, int ranks, bool out);
  static Status check(const Side& side, bool out);
  friend Status check_reach(const Call& call, Rank rank, int ranks, std::size_t in,
                            std::size_t out);

  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
  Side sent_, received_;
  HugeVector<std::byte> memory_;
};

// What one thread has started and not ended, on all communicators that it uses as one rank or
// another: the owner of progress behind request.h. Used by that thread only, its owner; and where
// there is a helper (progress_thread.h), by that one between two Turns of the owner's.
//
// A communicator's calls are made one after the other, in the order in which they were started; the
// first of each is under way. Who waits for one of them moves on all of them.

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

// One rank's side of a communicator: its cache of plans, its ends of the mailboxes, its scratch,
// and the calls that it has started. The inside of member.h, for its source files only. Used by one
// thread at a time.

struct MemberState {
  struct Found {
    const PreparedPtr* held = nullptr;  // by this rank's table
    bool first = false;                 // call of its kind, as far as this rank remembers
  };

  // What the pair of ranks is of, where this is one end of it: goes after the pair.
  std::shared_ptr<CommunicatorShared> whole;
  std::shared_ptr<CommunicatorShared> owned;  // by all its members
  CommunicatorShared* shared;
  NetworkClock::OfRank* clock = nullptr;  // of a modelled network
  RankState run;
  OtherWork* other_work = nullptr;  // of the user's, whom long waits give way to
  RankPlans plans;
  const ProcessPayloads* lent = nullptr;  // of this rank's, what others reach who are processes
  std::unique_ptr<Arena> scratch;
  std::size_t scratch_bytes = 0;
  std::uint32_t barrier_in = 0, barrier_out = 0;
  // Of this rank on all communicators that its thread uses: what is started there.
  std::shared_ptr<Agenda> agenda;
  StartedCalls started;
  Communicator handle;  // for the user

  std::vector<std::unique_ptr<Member>> sending, receiving;  // by peer: on the pair's communicator
  std::uint64_t splits = 0;                                 // so far
  bool lends = false;  // a call has had payloads that other processes reach
  int thread = 0;      // that is counted among those that play ranks; 0: none yet
  bool gone = false;   // the member that this was of
  bool is_to_be_pinned = false;          // its thread, by its first call
  std::atomic<int> cpu{kNotPlaced};  // that a thread has been pinned to; relaxed: for reports

  MemberState(std::shared_ptr<CommunicatorShared> shared_, Rank rank,
              std::shared_ptr<Agenda> agenda_);

  // The plan of a call that this rank has made before, or nullptr: then plan() is to be asked. All
  // calls but the first pass here, and a Result would cost as much as the look-up.
  [[gnu::always_inline]] const PreparedPtr* known(const Call& call) noexcept {
    const RankPlans::Slot* slot = plans.find(PlanKey(call));
    return slot != nullptr && slot->called ? &slot->prepared : nullptr;
  }
  // find(), without exceptions. What fails in a way that others would wait for ends it for them.
  Result<Found> plan(const Call& call, bool calls);
  // The same of what is only asked about: ends nothing.
  Result<Found> ask(const Call& call, bool calls);
  // `calls`: the call will be made. Makes room for it, so nothing may be under way here.
  Result<Found> find(const Call& call, bool calls);
  // A call that was bound before it was certain to be made has been the first of its kind.
  void has_called(const Prepared& prepared) noexcept {
    RankPlans::Slot* slot = plans.find(prepared.key.view());
    if (slot != nullptr) slot->called = true;
  }
  // The call's time runs from its first long wait, while planning or later.
  void wait_as(const CallOptions& options) noexcept { wait_at_most(saturated_ns(options.timeout)); }
  void wait_at_most(std::int64_t timeout_ns) noexcept {
    run.waiter.deadline_ns = 0;
    run.waiter.timeout_ns = timeout_ns;
  }

  // Of a call by that plan, whose input lies there.
  [[gnu::always_inline]] Given given(const Prepared& prepared, const Call& call,
                                     const void* in) const noexcept {
    std::uint64_t tag = call.options.tag;
    if (call.user_op != nullptr) [[unlikely]]
      tag ^= identity_of(*call.user_op, shared->processes != nullptr);
    // (Without bytes where nobody compares them.)
    const RankPlan& mine = prepared.plan.rank[static_cast<std::size_t>(run.waiter.rank)];
    const auto at = [](const void* begin) { return static_cast<const std::byte*>(begin); };
    return {.in = in,
            .out = call.out,
            .count = call.count,
            .user_op = call.user_op,
            .epilogue = call.options.epilogue,
            .print = with_tag(prepared.fingerprint, tag),
            .marks = marks_of({{at(in), mine.input_bytes}, {at(call.out), mine.output_bytes}})};
  }
  // The call begins: the others can see it. False: the communicator has ended, and nothing has
  // begun.
  [[gnu::always_inline]] bool begin(const Prepared& prepared, const Given& given) noexcept {
    Crossbar& crossbar = shared->crossbar;
    const auto self = static_cast<std::size_t>(run.waiter.rank);
    ++run.waiter.call;
    run.user_op = given.user_op;
    run.epilogue = given.epilogue;
    run.waiter.fingerprint =
        with_call(given.print, static_cast<std::uint32_t>(run.waiter.call)).bits;
    if (prepared.lends) [[unlikely]]
      lends = true;
    run.waiter.marks = given.marks;
    crossbar.record(run.waiter.rank)
        .announce(run.waiter.call, run.waiter.fingerprint, given.count, prepared.algorithm);
    shared->recorder.begin(run.waiter.rank, number(), run.waiter.fingerprint);
    run.memory_of(self, Memory::input) = static_cast<std::byte*>(const_cast<void*>(given.in));
    run.memory_of(self, Memory::output) = static_cast<std::byte*>(given.out);
    offer_buffers(run.waiter, run.memory_of(self, Memory::input),
                  run.memory_of(self, Memory::output));
    return crossbar.begin(run.waiter.rank);
  }
  // Its number, from 1.
  std::uint64_t number() const noexcept { return run.waiter.call - shared->first_count; }
  // It ends, as `done` says.
  [[gnu::always_inline]] Status end(bool done) noexcept {
    if (!done) [[unlikely]]
      return broken();
    end_well();
    return {};
  }
  [[gnu::always_inline]] void end_well() noexcept {
    shared->crossbar.end(run.waiter.rank);
    shared->recorder.end(run.waiter.rank, number());
  }
  // It ends without being done: until nobody is at anybody's buffers any more.
  Status broken() noexcept;
  // What is wrong with the buffers, or with the time that the call may take, of a call whose plan
  // is known.
  bool fits(const Prepared& prepared, const void* in, const void* out) const noexcept {
    const BufferRule& rule = prepared.rules[static_cast<std::size_t>(run.waiter.rank)];
    return buffers_fit(rule, in, out) && (!prepared.lends || are_payloads(rule, in, out));
  }
  Status misfit_of(const Prepared& prepared, const void* in, const void* out) const noexcept;
  // Whether the others, which are processes, reach these buffers.
  bool are_payloads(const BufferRule& rule, const void* in, const void* out) const noexcept {
    return lent->holds(in, rule.input_bytes) && lent->holds(out, rule.output_bytes);
  }

  // A sum in which this rank brings its input times its factor (Call::factor), as the same without
  // (without_factor()): the products are made, and lie in its output or in `products`. Where they
  // lie, of a call whose factor has been checked; and the call as it is then.
  Result<const void*> multiply(const Call& call, const Prepared& prepared);
  Result<Call> multiplied(const Call& call);
  HugeVector<std::byte> products;
  // Of a call with displacements that is waited for at once; requests have their own.
  DisplacedCall displaced;

  // What the machine refuses ends the communicator; arguments that are wrong do not.
  Status refused(Status status);
  // Until nothing that was started here is under way.
  void finish() noexcept {
    const Agenda::Turn turn(*agenda);
    agenda->finish(*this);
  }
  Status ended();
  Status adopt(const Prepared& prepared);
  Status share_scratch(std::size_t bytes);  // of a process
  void count_thread();
  // The thread that made this rank's member (Bell::made_by): of a group or a pair, that of the
  // communicator which that is of.
  void made_by(int maker);
  void made_as(const MemberState& other);
  Enforcement pin_thread();  // as Member's
  std::size_t table_bytes() const;
  std::size_t counted_bytes = 0;  // of the tables, in the communicator's count
  std::shared_ptr<Payloads> payloads = std::make_shared<Payloads>();
  // Tables grow with the plans: what the communicator counts follows.
  void count_tables() noexcept {
    const std::size_t now = table_bytes();
    shared->member_bytes.fetch_add(now - counted_bytes, std::memory_order_relaxed);  // a count
    counted_bytes = now;
  }
};

// What is planned for a call with a factor.
Call without_factor(const Call& call);

// The call as its plan has it, on a modelled network where the communicator is on one.
bool interpret_call(const Prepared& prepared, RankState& state, NetworkClock::OfRank* clock,
                    RoundObserver* observer) noexcept;
// On one, from that time of the model on; the rank itself stays where it is.
bool interpret_at(Ticks start, const Prepared& prepared, RankState& state,
                  NetworkClock::OfRank& clock) noexcept;

}  // namespace rankine
