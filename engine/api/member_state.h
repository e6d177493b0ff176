// MemberState is one rank's side of a communicator; ProgressEngine holds the started calls of one
// thread and makes their progress; DisplacedCall turns a displaced all-to-all into a plain one. For
// the source files of this folder only.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
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
#include "engine/run/exchange.h"
#include "engine/run/fingerprint.h"
#include "engine/run/interpret.h"
#include "engine/run/machine.h"
#include "engine/run/sharing.h"
#include "engine/run/user_functions.h"
#include "engine/run/wait.h"

namespace rankine {

// CallArguments holds the arguments of a call that its plan does not have. A call that is started
// repeatedly on the same buffers computes it once, in MemberState::given().
struct CallArguments {
  const void* in = nullptr;
  void* out = nullptr;
  std::size_t count = 0;
  const UserOp* user_op = nullptr;
  const Epilogue* epilogue = nullptr;
  Fingerprint print;  // from the plan and the tag; the call's number is added
  BufferHashes buffer_hashes;
  const char* algorithm = nullptr;  // the plan's
};

// The ways to make a call of which nothing but its number is new (MemberState::way_of()).
enum class Way : std::uint8_t {
  full,       // with all checks and notes
  walks,      // the interpreter walks the plan
  exchanges,  // in one piece (engine/run/exchange.h)
  copies,     // of one rank: no other rank sees the call
};

// RepeatedCall is a rank's latest plain call, checked and ready to be made again.
struct RepeatedCall {
  PlainCall call;
  bool (*make)(MemberState&) noexcept = nullptr;  // by its way
  const CachedPlan* cached = nullptr;             // in the rank's table
  CallArguments given;
  Exchange exchange;
};

// DisplacedCall makes an all-to-all with displacements (Call::displacements) from one without: it
// packs the rank's blocks before the call and unpacks the received blocks after it. Each rank
// chooses its displacements separately, so plans, algorithms, transports and clocks need not know
// them.
//
// One rank uses it, and may use it again after the previous call has ended. Not thread-safe.
class DisplacedCall {
 public:
  // Returns the call without displacements: a side with displacements lies in memory of this
  // object, the other side in the caller's buffer. It keeps only the call's buffers. Errors: those
  // of check_call(); another collective; a list of a wrong length; a block beyond PTRDIFF_MAX;
  // blocks of out that overlap; a null buffer. Throws std::bad_alloc.
  Result<Call> plain(const Call& call, Rank rank, int ranks);
  void pack_blocks() noexcept;          // before the call begins
  void unpack_blocks() const noexcept;  // after the call has succeeded

  std::size_t bytes() const noexcept { return memory_.capacity(); }

 private:
  struct Block {
    std::size_t at, bytes;
  };
  // The rank's blocks to send or receive, by rank; packed one after the other in memory_.
  struct Side {
    std::vector<Block> blocks;
    std::size_t begin = 0;  // in memory_
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

// ProgressEngine holds the calls that one thread, its owner, has started and not ended, on all
// communicators that the thread uses as one rank or another. It makes the progress that request.h
// promises. Only the owner uses it; if there is a helper (ProgressThread), the helper uses it
// between two Turns of the owner.
//
// The calls of one communicator run in the order of their starts; the first call of each
// communicator is in flight. A wait for one call advances all of them.

// SpareCalls keeps the memory of a rank's ended calls for the next ones.
class SpareCalls {
 public:
  SpareCalls() = default;
  ~SpareCalls() {
    while (n_ > 0) ::operator delete(all_[--n_]);
  }
  SpareCalls(const SpareCalls&) = delete;
  SpareCalls& operator=(const SpareCalls&) = delete;
  void* take(std::size_t bytes) { return n_ > 0 ? all_[--n_] : ::operator new(bytes); }
  void give(void* memory) noexcept {
    n_ < all_.size() ? static_cast<void>(all_[n_++] = memory) : ::operator delete(memory);
  }

 private:
  std::array<void*, 16> all_;
  std::size_t n_ = 0;
};

// PendingCall is one started or prepared call.
struct PendingCall {
  static void* operator new(std::size_t bytes, SpareCalls& spare) { return spare.take(bytes); }
  static void operator delete(void* memory, SpareCalls& spare) noexcept { spare.give(memory); }
  static void operator delete(PendingCall* call, std::destroying_delete_t) noexcept;

  enum class Phase : std::uint8_t {
    queued,     // behind other calls
    under_way,  // announced to the other ranks
    posted,     // as well; its exchange has posted, and its cursor is not set (take_up())
    broken,     // its communicator has ended; it touches no buffer any more
    over,       // `status` is its result
  };

  explicit PendingCall(std::shared_ptr<MemberState> member_) : member(std::move(member_)) {}

  const std::shared_ptr<MemberState> member;
  // Its lists and names belong to the plan or to `unplanned`; its operation and its epilogue are
  // copied to the members below.
  Call call;
  UserOp user_op;
  Epilogue epilogue;
  alignas(16) std::byte factor[16] = {};
  std::uint32_t barrier_in = 0, barrier_out = 0;
  std::unique_ptr<DisplacedCall> displaced;  // if set, `call` is its plain call
  CachedPlanPtr cached;
  std::unique_ptr<const OwnedKey> unplanned;  // the key while there is no plan
  bool first = false;                         // the first call with this plan
  bool ready = false;                         // the next start can use `given` unchanged
  Way way = Way::full;                        // of the next start; full with a helper
  // The short way of the next start (Request::start_again()), of a call that rests.
  ShortStart (*start_again)(PendingCall&, bool waits) noexcept = [](PendingCall&, bool) noexcept {
    return ShortStart::nothing;
  };
  CallArguments given;
  std::uint32_t call_site = 0;  // FlightRecorder::Track::call_site at its making
  Exchange exchange;            // if that is its way
  std::int64_t timeout_ns = 0;  // counts from each start, as CallOptions::timeout
  bool rests = true;            // not started, or waited for; only the owner uses it
  Phase phase = Phase::over;
  Cursor cursor;
  // For a modelled network: the modelled times of its start and end, and the thread that runs it.
  Ticks model_start = 0, model_end = 0;
  std::unique_ptr<CallThread> thread;
  bool done = false;
  Status status;
  PendingCall* next = nullptr;  // next started call of this communicator
};

// A queue of the started calls of one communicator, the oldest first.
struct StartedCalls {
  PendingCall* front = nullptr;
  PendingCall* back = nullptr;
};

class ProgressEngine {
 public:
  explicit ProgressEngine(ProgressThread* helper = nullptr) : helper_(helper) {}

  // A Turn gives the owner exclusive use of the progress engine and its calls during its life.
  // Functions that require a Turn say so. At most one Turn exists at a time.
  class Turn {
   public:
    explicit Turn(ProgressEngine& progress_engine) noexcept : engine_(progress_engine), has_(true) {
      if (engine_.helper_ != nullptr) engine_.take_from_helper();
    }
    // Has the progress engine only if the helper is not using it.
    Turn(ProgressEngine& progress_engine, std::try_to_lock_t) noexcept
        : engine_(progress_engine),
          has_(progress_engine.helper_ == nullptr || progress_engine.mutex_.try_lock()) {}
    ~Turn() {
      if (!has_) return;
      engine_.note_work();
      if (engine_.helper_ != nullptr) engine_.give_to_helper();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    explicit operator bool() const { return has_; }

   private:
    ProgressEngine& engine_;
    const bool has_;
  };

  // True if no call is started and calls are waited for at once. The helper may have ended calls
  // that the owner's last Turn saw in flight: the owner notices in its next Turn.
  bool idle() const noexcept { return idle_; }

  // add() makes the member take part, remove() ends that. Needs a Turn. add() may throw
  // std::bad_alloc.
  void add(MemberState& member);
  void remove(MemberState& member) noexcept;

  // The short way of a request that is waited for again. False: something is not as usual, and
  // nothing has happened. It needs no Turn.
  static bool wait_again(PendingCall& call) noexcept;

  // Starts a call that is over. Needs a Turn, as do the functions that follow.
  void start(PendingCall& call) noexcept;
  // Advances all calls as far as possible. True if any call advanced.
  bool step() noexcept;
  // Waits until the call is over or until `until_ns`. True if the call is over; always true for
  // kForEverNs.
  bool wait(const PendingCall& call, std::int64_t until_ns) noexcept;
  // Waits until no call of that member is in flight.
  void finish(MemberState& member) noexcept;

  // For the helper: advances all calls as far as possible, except failed ones. A failed call
  // touches no buffer any more and waits for the owner.
  Progress help() noexcept;

  // Between begin_group() and end_group() calls are waited for only at the end (Member::group()).
  // begin_group() returns false inside a group. take() keeps the request and returns true inside a
  // group; otherwise it returns false. end_group() returns the kept requests.
  bool begin_group();
  bool take(Request& request);
  std::vector<Request> end_group();
  bool in_group() const noexcept { return group_.has_value(); }

  // leave(): the ranks of this thread stop taking part in all their communicators, and waiting
  // peers are told. come_back() undoes it; only ranks that make no call may come back.
  void leave() noexcept;
  void come_back() noexcept;

 private:
  void take_from_helper() noexcept;
  void give_to_helper() noexcept;
  // The number of members with started calls may have changed. Needs a Turn.
  void note_work() noexcept {
    had_work_ = !busy_.empty();
    idle_ = !had_work_ && !group_;
  }
  // Lists a call that is not over.
  void list(MemberState& member, PendingCall& call) noexcept;
  // Walks a call that has just begun, and lists it if it must wait.
  void walk_begun(MemberState& member, PendingCall& call) noexcept;
  // PendingCall::start_again.
  template <Way kWay>
  static ShortStart start_by(PendingCall& call, bool waits) noexcept;
  static ShortStart copy_at_once(PendingCall& call, bool waits) noexcept;
  static ShortStart post_late(PendingCall& call, bool waits, bool is_posted) noexcept;
  static ShortStart sum_at_once(PendingCall& call, bool waits) noexcept;
  static ShortStart list_posted(PendingCall& call) noexcept;
  // For wait_again().
  bool end_posted(MemberState& member, PendingCall& call) noexcept;
  bool end_only(MemberState& member, PendingCall& call) noexcept;
  // The interpreter goes on with a call that its exchange has posted.
  static void take_up(MemberState& member, PendingCall& call) noexcept;
  bool step(MemberState& member) noexcept;
  [[gnu::noinline]] bool attach_plan(MemberState& member, PendingCall& call) noexcept;
  [[gnu::noinline]] bool make_ready(MemberState& member, PendingCall& call) noexcept;
  // Begins the member's first call, at its start or when its turn has come. False if it failed.
  bool begin(MemberState& member, PendingCall& call) noexcept;
  [[gnu::noinline]] bool begin_first(MemberState& member, PendingCall& call) noexcept;
  // The call has ended with an error.
  [[gnu::noinline]] void end(MemberState& member, PendingCall& call, Status status) noexcept;
  // The communicator has ended before the call began, or during the call.
  [[gnu::noinline]] static ShortStart end_unbegun(PendingCall& call) noexcept;
  [[gnu::noinline]] void end_broken(MemberState& member, PendingCall& call) noexcept;
  void end_well(MemberState& member, PendingCall& call) noexcept;
  // Removes a call that is over from all lists.
  void strike(MemberState& member, PendingCall& call) noexcept;
  // The call has failed inside: ends it, or leaves it to the owner.
  void fail(MemberState& member, PendingCall& call) noexcept;
  // True if the owner must report the failure, or the communicator has ended before the call
  // begins.
  bool is_owners(const MemberState& member) const noexcept;
  // True if exactly one call is in flight and the owner waits for it without a time limit.
  bool is_alone(std::int64_t until_ns) const noexcept;
  void run_alone(MemberState& member) noexcept;
  [[gnu::noinline]] bool wait_in_turn(const PendingCall& call, std::int64_t until_ns) noexcept;
  // Advances the call, after its beginning or later. end_if_over() then ends it, and returns true
  // if it has ended.
  static Walked walk(MemberState& member, PendingCall& call) noexcept;
  static Walked go_on(MemberState& member, PendingCall& call) noexcept;
  bool end_if_over(MemberState& member, PendingCall& call, Walked walked) noexcept;
  // Stops the calls of every communicator that has ended.
  void break_off() noexcept;

  ProgressThread* const helper_;  // lives at least as long as the members
  std::vector<MemberState*> members_;
  bool had_work_ = false;  // as of the owner's last Turn
  bool idle_ = true;
  std::optional<std::vector<Request>> group_;

  Atomic<bool> wanted_{false};  // the owner wants the progress engine; it goes before the helper
  std::mutex mutex_;  // used if there is a helper; guards the members below and their calls
  std::vector<MemberState*> busy_;  // members with started calls; has room for all members
  bool helps_ = false;              // true while the helper uses the progress engine
};

// MemberState is one rank's side of a communicator: its cache of plans, its ends of the mailboxes,
// its scratch, and its started calls. One thread at a time uses it.

struct MemberState {
  struct Found {
    const CachedPlanPtr* held = nullptr;  // in this rank's table
    bool first = false;                   // the first such call, as far as this rank remembers
  };

  // For one end of a pair: the communicator that the pair belongs to. Destroyed after the pair.
  std::shared_ptr<CommunicatorShared> whole;
  std::shared_ptr<CommunicatorShared> owned;  // shared by all members
  CommunicatorShared* shared;
  NetworkClock::RankClock* clock = nullptr;  // on a modelled network; or nullptr
  RepeatedCall repeated;
  // The thread that made or resumed the latest call, as its CallRecord says; kNoThread: none, or
  // the member is destroyed. Short ways are for this thread.
  std::uint64_t caller = kNoThread;
  Status failure;                      // Member::try_plain()'s
  RankLines* const lines;              // this rank's
  FlightRecorder::Track* const track;  // this rank's
  std::byte** own_memory = nullptr;    // this rank's addresses in `run`
  RankState run;
  YieldCallback* other_work = nullptr;  // called in long waits; the user owns it
  PlanRunner* runner = nullptr;         // runs blocking calls; nullptr: interpret() does
  RankPlans plans;
  const ProcessPayloads* lent = nullptr;  // this rank's payloads that other processes can reach
  std::unique_ptr<Arena> scratch;
  std::size_t scratch_bytes = 0;
  std::uint32_t barrier_in = 0, barrier_out = 0;
  // The progress engine of this rank's thread: the started calls of this rank on all communicators.
  std::shared_ptr<ProgressEngine> progress_engine;
  StartedCalls started;
  SpareCalls spare_calls;
  Communicator handle;  // returned to the user

  std::vector<std::unique_ptr<Member>> sending, receiving;  // by peer: the ends of pairs
  std::uint64_t splits = 0;                                 // splits made so far
  bool lends = false;                // true after a call with buffers that other processes reach
  int thread = 0;                    // the counted thread of this rank (RankThreads); 0: none yet
  bool gone = false;                 // the member is destroyed
  bool is_to_be_pinned = false;      // the first call must pin its thread
  std::atomic<int> cpu{kNotPlaced};  // the CPU of the pinned thread; relaxed: for reports

  MemberState(std::shared_ptr<CommunicatorShared> shared_, Rank rank,
              std::shared_ptr<ProgressEngine> engine_);

  // The plan of a call that this rank has made before, or nullptr; then use plan_call(). Every call
  // but the first takes this path, and a Result would cost as much as the look-up.
  [[gnu::always_inline]] const CachedPlanPtr* cached_plan(const Call& call) noexcept {
    const RankPlans::Slot* slot = plans.find(PlanKey(call));
    return slot != nullptr && slot->called ? &slot->cached : nullptr;
  }
  // As find_or_make_plan(), without exceptions. An error that would leave peers waiting ends the
  // communicator.
  Result<Found> plan_call(const Call& call, bool calls);
  // As plan_call(), for a question: an error does not end the communicator.
  Result<Found> plan_query(const Call& call, bool calls);
  // Finds or makes the plan. `calls`: the caller makes the call. It allocates memory for the plan,
  // so no call may be in flight here.
  Result<Found> find_or_make_plan(const Call& call, bool calls);
  // Notes that a call with this plan was made, after it was bound without certainty.
  void has_called(const CachedPlan& cached) noexcept {
    RankPlans::Slot* slot = plans.find(cached.key.view());
    if (slot != nullptr) slot->called = true;
  }
  // The call's time counts from its first long wait, during planning or later.
  void wait_as(const CallOptions& options) noexcept { wait_at_most(saturated_ns(options.timeout)); }
  void wait_at_most(std::int64_t timeout_ns) noexcept {
    run.waiter.deadline_ns = 0;
    run.waiter.timeout_ns = timeout_ns;
  }

  // The arguments of a call with that plan; its input is at `in`.
  [[gnu::always_inline]] CallArguments given(const CachedPlan& cached, const Call& call,
                                             const void* in) const noexcept {
    std::uint64_t tag = call.options.tag;
    if (call.user_op != nullptr) [[unlikely]]
      tag ^= identity_of(*call.user_op, shared->is_between_processes());
    // (Without bytes if no rank compares them.)
    const RankPlan& mine = cached.plan.rank[static_cast<std::size_t>(run.waiter.rank)];
    const auto at = [](const void* begin) { return static_cast<const std::byte*>(begin); };
    return {.in = in,
            .out = call.out,
            .count = call.count,
            .user_op = call.user_op,
            .epilogue = call.options.epilogue,
            .print = with_tag(cached.fingerprint, tag),
            .buffer_hashes =
                buffer_hashes_of({{at(in), mine.input_bytes}, {at(call.out), mine.output_bytes}}),
            .algorithm = cached.algorithm};
  }
  // Not full if calls with this plan need no clock, no barrier, no look at a parent and no note on
  // memory of other processes.
  Way way_of(const CachedPlan& cached) const noexcept {
    if (clock != nullptr || !shared->rank_control.is_plain() || track->times != nullptr ||
        cached.lends) {
      return Way::full;
    }
    return cached.copied_bytes != 0 ? Way::copies
           : cached.plan.exchanges  ? Way::exchanges
                                    : Way::walks;
  }
  // True on the thread of the latest call, and not in a fork: what a short way checks in each call.
  bool is_here() const noexcept { return known_thread == caller; }
  // The calling thread makes the rank's calls.
  void come_here() noexcept {
    caller = this_thread();
    lines->record.thread.store(static_cast<int>(caller), std::memory_order_relaxed);
  }
  // The calling thread resumes the put-down call (come_back_to()). False: aborted.
  bool come_back() noexcept {
    caller = this_thread();
    return come_back_to(shared->rank_control, *lines);
  }
  // Begins the call: other ranks can see it. False: the communicator has ended, and the call has
  // not begun. A way other than full: it is the plan's way, and is_here() is true.
  template <Way kWay = Way::full>
  [[gnu::always_inline]] bool begin(const CachedPlan& cached, const CallArguments& given) noexcept {
    constexpr bool kStraight = kWay != Way::full;
    Waiter& waiter = run.waiter;
    RankLines& mine = *lines;
    const std::uint64_t call = ++waiter.call;
    const std::uint64_t print = with_call(given.print, static_cast<std::uint8_t>(call)).bits;
    if constexpr (kWay < Way::exchanges) {
      run.user_op = given.user_op;
      run.epilogue = given.epilogue;
    }
    if constexpr (kWay < Way::copies) waiter.fingerprint = print;
    if constexpr (kWay < Way::exchanges) waiter.buffer_hashes = given.buffer_hashes;
    if (!kStraight && cached.lends) [[unlikely]]
      lends = true;
    if (!kStraight) come_here();
    mine.record.announce(call, print, given.count, given.algorithm);
    kStraight ? track->note(call, print) : track->begin(call, print);
    if constexpr (kWay < Way::exchanges) know_buffers(given);
    if constexpr (kWay < Way::copies) {
      offer_buffers(mine.entries.of(call), static_cast<std::byte*>(const_cast<void*>(given.in)),
                    static_cast<std::byte*>(given.out));
    }
    return shared->rank_control.begin<kStraight>(mine);
  }
  // Tells the interpreter the addresses of this rank's buffers.
  [[gnu::always_inline]] void know_buffers(const CallArguments& given) noexcept {
    own_memory[static_cast<std::size_t>(Memory::input)] =
        static_cast<std::byte*>(const_cast<void*>(given.in));
    own_memory[static_cast<std::size_t>(Memory::output)] = static_cast<std::byte*>(given.out);
  }
  // Ends the call; `done`: it has succeeded.
  [[gnu::always_inline]] Status end(bool done) noexcept {
    if (!done) [[unlikely]]
      return broken();
    end_well();
    return {};
  }
  template <bool kStraight = false>
  [[gnu::always_inline]] void end_well() noexcept {
    RankControl::end(*lines);
    if (!kStraight) track->end(run.waiter.call);
  }
  // Keeps an error for Member::failure(). True if there is none.
  bool keep(Status status) noexcept {
    const bool ok = status.ok();
    if (!ok) failure = std::move(status);
    return ok;
  }
  // Ends a failed call: waits until no rank uses another rank's buffers any more.
  Status broken() noexcept;
  // Checks the buffers of a call with a known plan; misfit_of() makes the error.
  bool fits(const CachedPlan& cached, const void* in, const void* out) const noexcept {
    const BufferRule& rule = cached.rules[static_cast<std::size_t>(run.waiter.rank)];
    return buffers_fit(rule, in, out) && (!cached.takes_payloads || are_payloads(rule, in, out));
  }
  Status misfit_of(const CachedPlan& cached, const void* in, const void* out) const noexcept;
  // True if the other processes can reach these buffers.
  bool are_payloads(const BufferRule& rule, const void* in, const void* out) const noexcept {
    return lent->holds(in, rule.input_bytes) && lent->holds(out, rule.output_bytes);
  }

  // A sum with a factor (Call::factor) becomes a sum without one (without_factor()): the rank
  // multiplies its input by its factor and stores the products in its output or in `products`.
  // multiply() returns the address of the products of a call with a checked factor; multiplied()
  // returns the call without factor.
  Result<const void*> multiply(const Call& call, const CachedPlan& cached);
  Result<Call> multiplied(const Call& call);
  HugeVector<std::byte> products;
  // For a blocking call with displacements; requests have a DisplacedCall each.
  DisplacedCall displaced;

  // Ends the communicator if the machine refused something; wrong arguments do not end it.
  Status refused(Status status);
  // Waits until no call that was started here is in flight.
  void finish() noexcept {
    const ProgressEngine::Turn turn(*progress_engine);
    progress_engine->finish(*this);
  }
  Status ended();
  // For waits that poll: asks the thread's interrupt check.
  void end_if_interrupted();
  Status adopt(const CachedPlan& cached);
  Status share_scratch(std::size_t bytes);  // for a process
  void count_thread();
  // Notes the thread that made this rank's member (WakeFutex::made_by). made_as() copies it from
  // the communicator of a group or pair.
  void made_by(int maker);
  void made_as(const MemberState& other);
  Enforcement pin_thread();  // as Member's
  std::size_t table_bytes() const;
  std::size_t counted_bytes = 0;  // bytes of the tables that the communicator's count includes
  std::shared_ptr<Payloads> payloads = std::make_shared<Payloads>();
  // Updates the communicator's count of table bytes, because tables grow with the plans.
  void count_tables() noexcept {
    const std::size_t now = table_bytes();
    shared->member_bytes.fetch_add(now - counted_bytes, std::memory_order_relaxed);  // a count
    counted_bytes = now;
  }
};

// The call that is planned for a call with a factor.
Call without_factor(const Call& call);

// Runs the call as its plan says; also on the modelled network's clock if `clock` is not null.
bool interpret_call(const CachedPlan& cached, RankState& state, NetworkClock::RankClock* clock,
                    RoundObserver* observer) noexcept;
// Runs the call on a modelled network from the modelled time `start`; the rank's own clock does not
// move.
bool interpret_at(Ticks start, const CachedPlan& cached, RankState& state,
                  NetworkClock::RankClock& clock) noexcept;

}  // namespace rankine
