// One rank's side of a communicator: its cache of plans, its ends of the mailboxes, its scratch,
// and the calls that it has started. The inside of member.h, for its source files only. Used by one
// thread at a time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/api/agenda.h"
#include "engine/api/communicator.h"
#include "engine/api/communicator_state.h"
#include "engine/api/displaced.h"
#include "engine/api/given.h"
#include "engine/api/member.h"
#include "engine/api/processes/payloads.h"
#include "engine/api/request.h"
#include "engine/base/deadline.h"
#include "engine/base/huge_pages.h"
#include "engine/run/interpret.h"
#include "engine/run/sharing.h"

namespace rankine {

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
