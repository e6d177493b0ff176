// Member is one rank's handle of a communicator: it makes the collective calls, sends messages,
// splits the communicator and allocates buffers near the rank (Payload). Async is the same
// interface for calls that are started or prepared instead of waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "engine/api/call.h"
#include "engine/api/request.h"
#include "engine/api/typed_calls.h"
#include "engine/base/status.h"
#include "numa/refusals.h"

namespace rankine {

class Member;
class Payloads;

// A payload element is made of zeroes and copied as bytes.
template <class T>
concept PayloadElement =
    std::is_object_v<T> && std::is_trivially_copyable_v<T> && !std::is_const_v<T> &&
    !std::is_volatile_v<T> && alignof(T) <= 4096;

// PayloadMemory owns one payload as bytes and returns it to its owner when it is destroyed.
class PayloadMemory {
 public:
  PayloadMemory() = default;
  PayloadMemory(std::weak_ptr<Payloads> owner, void* base)
      : owner_(std::move(owner)), base_(base) {}
  ~PayloadMemory();
  PayloadMemory(PayloadMemory&& other) noexcept = default;  // leaves `other` empty
  PayloadMemory& operator=(PayloadMemory&& other) noexcept;

  // nullptr if the handle is empty or the member is destroyed.
  void* base() const noexcept { return owner_.expired() ? nullptr : base_; }

 private:
  std::weak_ptr<Payloads> owner_;
  void* base_ = nullptr;
};

// Payload<T> is memory for the buffers of a rank's calls, near the rank. Member::allocate() returns
// it.
//
//   auto x = me.allocate<float>(1'000'000).value();
//   std::ranges::fill(x.span(), 1.0F);
//   me.all_reduce(x.span()).throw_if_error();
//
// Placement: the memory lies on the memory node of the rank (in a Team, or if
// CommunicatorOptions::arenas names a node). The kernel takes each page from that node when any
// thread first touches the page. If the kernel refuses the binding (RankMemory::binding), or no
// node is named, a page lies on the node of the thread that first touches it: then the rank's own
// thread should touch it first. The memory begins with zeroes.
//
// Size: each allocation is a separate mapping of whole pages. An allocation of at least one huge
// page is aligned to huge pages and uses them if the machine has them. Use payloads for buffers
// that live for many calls, not for a few bytes. A payload shares its cache lines with no other
// data.
//
// Ownership: the handle owns the memory, until the member is destroyed at the latest. The memory is
// freed when the handle is destroyed or assigned to, or when the member is destroyed. After that
// the handle is empty and earlier spans dangle. No call of this rank may use the buffer at that
// time.
//
// Processes: if ranks are processes, payloads lie in memory that all processes share, up to the
// payload part of a rank in ProcessLayout. If the buffers of all ranks are payloads, a call may set
// CallOptions::shared_payloads; then the engine copies nothing on the way.
//
// Threads: one thread at a time uses a handle; it need not be the member's thread. One thread may
// destroy the handle while another destroys the member. In a forked child the memory is the child's
// copy: span() still returns it, and no handle frees it.
template <PayloadElement T>
class Payload {
 public:
  Payload() = default;

  // Empty if the payload was default-constructed or moved from, or if the member is destroyed. A
  // payload of 0 elements has an address different from that of every other payload.
  std::span<T> span() const noexcept {
    T* const first = static_cast<T*>(memory_.base());
    return {first, first != nullptr ? count_ : 0};
  }

 private:
  friend class Member;
  Payload(PayloadMemory memory, std::size_t count) : memory_(std::move(memory)), count_(count) {}

  PayloadMemory memory_;
  std::size_t count_ = 0;
};

// Member is one rank's handle of a communicator and makes the collective calls. join()
// (communicator.h) and Team (team.h) create members. One thread at a time uses a member. Every rank
// makes the same calls in the same order, as in MPI and NCCL.
//
// Buffers: the caller owns them and keeps them valid until the call returns. They need no
// alignment. In-place calls are allowed: all_reduce, reduce, broadcast, scan, exscan and all_to_all
// with in == out; all_gather with in at the rank's own block of out; reduce_scatter with out at the
// rank's own block of in. all_reduce and all_to_all are in place on all ranks or on none. A rank
// with 0 elements shows its choice too: in place means equal pointers that are not null.
//
// Bits: an all-reduce leaves the same bits on every rank, for any type, algorithm, transport and
// buffer layout. The engine adds floats in one order, and that order does not depend on the rank
// that adds (schedule.h). Algorithms without this property say so in the catalogue (other_bits);
// they run only if a call names them, and the engine never chooses them. A NaN result is a NaN on
// every rank, but its sign and payload may differ from rank to rank (min and max: the same NaN).
//
// Rounding: every collective, algorithm and transport computes sums, products and averages of
// 16-bit and 8-bit floats in f32 and rounds once, unless the call asks for Order::group_invariant.
//
// Separate outputs: the output of a rank may overlap no input or output of another rank in the same
// call, even if both ranks would store the same value. One input may serve all ranks. Buffers that
// a call does not use may be anything, for example `out` on a rank without a result. The engine
// reports overlaps as a mismatch, which ends the communicator:
//   - in the first call of one plan: any two ranks, before either has a result;
//   - in later calls: two ranks that exchange data directly (every pair in one shot, neighbours in
//     a ring). On direct transport any overlap is found; on mailboxes and boards only a peer's
//     output that begins at the beginning of one of the rank's own buffers. If only some ranks
//     share, ranks that returned earlier may have wrong results.
// The engine does not check a rank that has already left the call (such as the root of a small
// broadcast), because another rank may own its buffers by then. Undetected sharing gives wrong
// results.
//
// Errors: see communicator.h.

class ProgressEngine;
class Async;
class Communicator;
struct CommunicatorOptions;
class YieldCallback;
class PlanRunner;
class RoundObserver;
struct PortsInUse;
class StartedSplit;
struct CommunicatorShared;
struct MemberState;
struct CachedPlan;
struct SplitOptions;

class Member : public TypedCalls<Member, Status> {
 public:
  ~Member();  // the rank leaves: ranks that still need it get Code::rank_lost
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Rank rank() const;
  int ranks() const;
  // The member's communicator. It lives at least as long as its members.
  Communicator& communicator() const;

  // Pins the calling thread, which is about to play this rank, as CommunicatorOptions::placement
  // says. Without a placement it does nothing. join() has already pinned its own thread.
  Enforcement pin_thread();
  // The operating system's number of the CPU of this rank: the one CPU to which the thread of this
  // rank's calls is pinned, by the engine or by the program. kNotPlaced if that thread may run on
  // several CPUs, or if no thread is pinned for the rank and no thread has made a call. Any thread
  // may call it.
  int cpu() const;
  // Communicator::ports_in_use() of this rank. Any thread may call it.
  PortsInUse ports_in_use() const;

  // Returns zeroes for n elements, near this rank (see Payload for placement and lifetime). It is
  // not a collective. An error leaves the communicator as it is. Errors: invalid_argument if the
  // bytes of n elements exceed PTRDIFF_MAX; out_of_memory; forked.
  template <PayloadElement T>
  Result<Payload<T>> allocate(std::size_t n);

  // Makes any collective call, untyped. typed_calls.h has the typed calls.
  [[gnu::always_inline]] Status call(const Call& call) {
    if (!is_plain(call)) return call_in_full(call);
    return try_plain(call.in, call.out, call.count,
                     PlainCall::kinds_of(call.collective, call.type, call.op, call.root))
               ? Status()
               : failure();
  }
  // Makes the PlainCall of these arguments: the short way for a call that repeats the latest one.
  // False: failure() returns the error, once.
  bool try_plain(const void* in, void* out, std::size_t count, std::uint64_t kinds) noexcept;
  Status failure() noexcept;
  // Also reports every round to `observer` (interpret.h). Slow.
  Status call(const Call& call, RoundObserver& observer);

  // start() starts any collective without waiting for it. prepare() only makes a call ready, to be
  // started again and again (request.h). Errors: the errors of call() that can be found before the
  // call begins; then nothing is started.
  Result<Request> start(const Call& call);
  Result<Request> prepare(const Call& call);
  Result<Request> start(const Message& message, const CallOptions& options = {});
  Result<Request> prepare(const Message& message, const CallOptions& options = {});
  // Typed forms: me.async().all_reduce(x), me.prepared().send(x, to).
  Async async();
  Async prepared();
  // Advances all calls that this thread has started, without waiting. Errors: forked.
  Status progress();

  // send() and recv() (typed_calls.h) exchange a message between two ranks; only these two ranks
  // make the call. A rank receives the messages of one sender in the order in which they are sent;
  // count and type must agree. When send() returns, short messages are in flight and long messages
  // have arrived. An error also ends this communicator. Errors: an invalid rank, and the errors of
  // call(). submit() is the untyped form.
  Status submit(const Message& message, const CallOptions& options = {});
  // Sends and receives at once: two ranks that both send first do not block each other.
  Status exchange(const Message& sent, const Message& received, const CallOptions& options = {});
  template <class T>
  Status exchange(std::span<const T> sent, Rank to, std::span<T> received, Rank from,
                  const CallOptions& options = {}) {
    return exchange({const_cast<T*>(sent.data()), sent.size(), data_type_of<T>, to},
                    {received.data(), received.size(), data_type_of<T>, from, false}, options);
  }
  // True if rank `from` has begun a message to this rank, and no receive here is in flight from it:
  // a receive from any rank asks for each rank, and then calls recv(). Neither waits nor advances
  // calls. Errors: an invalid rank; rank_lost if `from` has left or its process has ended; ranks of
  // several nodes (invalid_argument); the end of the communicator.
  Result<bool> has_message(Rank from);
  // Makes several messages and collectives at once. Inside `calls`, each call on a member of this
  // thread only starts, and its status says only whether it could be started. All of them are
  // waited for at the end, so their order cannot deadlock. An inner group is part of the outer one.
  // Returns the first error. If `calls` throws, calls in flight end their communicators.
  Status group(const std::function<void()>& calls);

  // Divides the communicator: the ranks with the same color form a new communicator, ordered by
  // key, and by rank if keys are equal (split.h). All ranks make this call. Returns null for
  // kNoColor. Errors: a color below kNoColor, invalid options, options that differ between ranks
  // (mismatch), and the errors of call().
  Result<std::unique_ptr<Member>> split(int color, int key, const SplitOptions& options);
  Result<std::unique_ptr<Member>> split(int color, int key);

  // For ranks that go on after others are lost, as in MPI's ULFM (MPIX_Comm_shrink, revoke, agree).
  // shrink() and agree() work before and after the end of the communicator. All surviving ranks
  // call them in the same order, outside of groups; started calls end first. They wait for each
  // rank that is neither lost nor has left, at most for the communicator's timeout: a rank that has
  // not come then counts as lost.
  //
  // shrink() returns this rank's member of a new communicator among the survivors, in the order of
  // their ranks; it does not end with this one, and this one may be destroyed. If ranks are lost
  // meanwhile, it is made without them. agree() returns the bitwise AND of the survivors' values;
  // all survivors get the same. revoke() ends the communicator on all ranks: each wait returns at
  // once with Code::aborted. Any thread may call it.
  //
  // Errors: rank_lost: the others have gone on without this rank; let its process end, and start a
  // new one. mismatch: some ranks called agree() and others shrink(). invalid_argument: an open
  // group, ends_parent, ranks of several nodes. aborted: interrupted; this rank has left. forked;
  // for shrink() also the errors of split(), on all survivors.
  Result<std::unique_ptr<Member>> shrink(const SplitOptions& options);
  Result<std::unique_ptr<Member>> shrink();
  Result<std::uint32_t> agree(std::uint32_t value);
  void revoke();

  // Returns this rank's member of a new communicator of options.ranks ranks: the ranks of this one
  // keep their numbers, and new ranks follow. All ranks call it with equal options, after the same
  // calls and outside of groups; the last rank to call begins the meeting. Started calls end first.
  //
  // Processes: options.name is the name under which each new process calls create() with the same
  // options and a free rank, before or after; rank and more_ranks stay empty here. Members and new
  // processes wait for each other at most for options.timeout. A new process' create() succeeds
  // only when all members have the new communicator.
  // Without a name, among threads of one process: the first rank makes the communicator; new
  // threads join it through communicator().join() of the new member.
  //
  // This communicator stays as it is, and independent of the new one. A failure has one code on
  // all members. rank_lost with the end of this communicator (health()): a member is lost, or came
  // later than this communicator's timeout; call shrink(), then grow() again. After all other
  // errors this communicator works, and grow() may be called again. rank_lost: a new process ended.
  // timeout: a new process did not come. mismatch: options differ between ranks, or a rank called
  // shrink() or agree(). invalid_argument: fewer ranks than now plus one, a rank that two processes
  // play, an open group, ranks of several nodes; the errors of create().
  Result<std::unique_ptr<Member>> grow(const CommunicatorOptions& options);

  // Names the place in the program that makes this rank's next calls, such as "attention"; "" for
  // none. Reports of errors name it, and with CommunicatorOptions::record_times `rankine top` shows
  // times by call site. At most 63 bytes count; control characters become blanks. Requests keep the
  // site where they were prepared or started; communicators that are split from this one have
  // separate sites. Error: forked. CallSite does both for a scope.
  Status set_call_site(std::string_view name);
  std::string call_site() const;

  // For a communicator on a modelled network (network.h). model_time() is the modelled time in
  // seconds from the beginning of the communicator to the end of this rank's last message and own
  // work. compute() adds own work of `seconds`, from the end of the rank's last call. At full speed
  // model_time() is 0 and compute() is an error.
  double model_time() const;
  Status compute(double seconds);

  // The rank stops making calls: ranks that wait for it, now or later, get rank_lost, as after the
  // destruction of its member. Data that other ranks still need from its earlier calls stays.
  // Returns false and changes nothing if calls or messages of this rank are in flight. Leave each
  // group separately.
  bool leave();

  // If a wait is long, the rank calls `work->give_way()` (wait.h) instead of sleeping. `work` may
  // be an event loop, or a library that advances only when called. nullptr (the default): no other
  // work. `work` must outlive the member or be replaced before, and must not make calls of this
  // rank.
  void set_yield_callback(YieldCallback* work);
  [[deprecated("use set_yield_callback()")]] void give_way_to(YieldCallback* work) {
    set_yield_callback(work);
  }
  // From now on `runner` (interpret.h) runs this rank's blocking calls; it must outlive the member.
  // For a transport beside shared memory (mpi/process.h).
  void run_by(PlanRunner* runner);

  // Describes the plan of a call: "ring, mailbox transport", "double_tree, P = 8, direct
  // transport". It reserves memory for the plan. A failed question (out_of_memory) does not end the
  // communicator.
  Result<std::string> plan_of(const Call& call);

  // The levels of order (call.h) that the plan of this call keeps, beyond the level that the call
  // asks for. Errors of plan_of() and orders_of(): the errors of call() that can be found before
  // the call begins.
  Result<OrderSet> orders_of(const Call& call);

  // Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});
  // A barrier that also exchanges one element. With `op` every rank gets the reduction, with the
  // same bits. With `all` every rank gets all elements; all[r] is from rank r. Errors: those of an
  // all-reduce or an all-gather of bytes.
  template <class T>
  Result<T> barrier(const T& mine, const std::type_identity_t<Reduction<T>>& op,
                    const CallOptions& options = {}) {
    T all = mine;
    Status status = all_reduce(std::span<T>(&all, 1), op, options);
    if (!status.ok()) return status;
    return all;
  }
  template <class T, class All>
  requires(Writable<All>&& std::same_as<ElementOfRange<All>, T>&& std::is_trivially_copyable_v<T>)
      Status barrier(const T& mine, All&& all, const CallOptions& options = {}) {
    return all_gather(std::span(reinterpret_cast<const std::uint8_t*>(&mine), sizeof(T)),
                      std::span(reinterpret_cast<std::uint8_t*>(std::ranges::data(all)),
                                std::ranges::size(all) * sizeof(T)),
                      options);
  }

 private:
  friend class ActiveRanks;
  friend class Communicator;
  friend class Buckets;
  friend class Experts;
  friend class QuantisedSum;
  friend class TypedCalls<Member, Status>;
  friend class Request;
  friend class StartedSplit;
  friend class Team;
  Member(std::shared_ptr<CommunicatorShared> shared, Rank rank,
         std::shared_ptr<ProgressEngine> progress_engine);
  // For calls that consist of several calls: this rank cannot make its next call, so its peers must
  // not wait for it. Returns the reason.
  Status give_up(Status reason);
  Status call_in_turn(const Call& call);
  Result<const CachedPlan*> planned(const Call& call);
  static Result<Request> started(Result<Request> request);
  Status settle(Result<Request> request);
  [[gnu::always_inline]] Status submit(const Call& request) { return call(request); }
  Status call_in_full(const Call& call);
  bool call_anew(const void* in, void* out, std::size_t count, std::uint64_t kinds) noexcept;
  Result<Request> bind(const Message& message, const CallOptions& options, bool calls);
  Result<Member*> end_of_pair(const Message& message);
  Status no_memory_for_messages();
  // `calls`: the caller starts the request at once.
  Result<Request> bind(const Call& call, bool calls);
  Result<PayloadMemory> allocate_elements(std::size_t n, std::size_t element_bytes);

  std::shared_ptr<MemberState> state_;
};

template <PayloadElement T>
Result<Payload<T>> Member::allocate(std::size_t n) {
  auto memory = allocate_elements(n, sizeof(T));
  if (!memory.ok()) return memory.status();
  return Payload<T>(std::move(*memory), n);
}

// Async starts or prepares a member's calls without waiting for them.
class Async : public TypedCalls<Async, Result<Request>> {
 public:
  Rank rank() const { return member_.rank(); }
  int ranks() const { return member_.ranks(); }
  // As Member::barrier().
  Result<Request> barrier(const CallOptions& options = {}) {
    return submit(Call{.collective = Collective::barrier,
                       .count = 1,
                       .type = DataType::u32,
                       .op = ReduceOp::bor,
                       .options = options});
  }

 private:
  friend class Member;
  friend class TypedCalls<Async, Result<Request>>;
  Async(Member& member, bool starts) : member_(member), starts_(starts) {}
  Result<Request> submit(const Call& call) {
    return starts_ ? member_.start(call) : member_.prepare(call);
  }
  Result<Request> submit(const Message& message, const CallOptions& options) {
    return starts_ ? member_.start(message, options) : member_.prepare(message, options);
  }

  Member& member_;
  bool starts_;
};

// CallSite names the call site of a member's calls during its life.
//
//   const rankine::CallSite site(me, "attention");
class CallSite {
 public:
  CallSite(Member& member, std::string_view name) : member_(member), before_(member.call_site()) {
    static_cast<void>(member_.set_call_site(name));  // a fork's calls return the error
  }
  ~CallSite() { static_cast<void>(member_.set_call_site(before_)); }
  CallSite(const CallSite&) = delete;
  CallSite& operator=(const CallSite&) = delete;

 private:
  Member& member_;
  const std::string before_;
};

inline Async Member::async() { return {*this, true}; }
inline Async Member::prepared() { return {*this, false}; }

}  // namespace rankine
