// Memory for the buffers of a rank's calls, near the rank: what Member::allocate() gives.
//
//   auto x = me.allocate<float>(1'000'000).value();
//   std::ranges::fill(x.span(), 1.0F);
//   me.all_reduce(x.span()).throw_if_error();
//
// It lies on the memory node of the rank (in a Team, or where CommunicatorOptions::arenas names
// one) and is taken from it page by page, when a page is first touched, by whatever thread. Where
// the kernel refuses that (RankMemory::binding), or no node is named, a page lies where it is first
// touched: then the rank's own thread should be first. It begins with zeroes.
//
// Each allocation is a mapping of its own: in whole pages, from the size of a huge page on in whole
// huge pages at their borders, where the machine has them. So it is for buffers that live for many
// calls, not for a few bytes here and there. Nothing else lies in its cache lines.
//
// Ownership: the handle's, and above it the member's. The memory goes back when the handle is
// destroyed or assigned to, or else when the member is destroyed: after that the handle is empty,
// and spans taken from it before point to nothing. As with every buffer, no call of this rank may
// be using it then.
//
// Where ranks are processes it lies in memory that all of them share, up to ProcessLayout's part
// for payloads of a rank: calls whose buffers are such on all ranks may say so
// (CallOptions::shared_payloads), and nothing is copied on its way.
//
// Processes and threads: a handle is used by one thread at a time, which need not be the member's;
// it may go while the member goes on another thread. In a forked child the memory is the child's
// copy, as all memory is: span() still gives it, and no handle takes it back.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
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

// What can be made of zeroes and copied as bytes.
template <class T>
concept PayloadElement =
    std::is_object_v<T> && std::is_trivially_copyable_v<T> && !std::is_const_v<T> &&
    !std::is_volatile_v<T> && alignof(T) <= 4096;

// A payload as bytes: who has it, and who takes it back.
class PayloadMemory {
 public:
  PayloadMemory() = default;
  PayloadMemory(std::weak_ptr<Payloads> owner, void* base)
      : owner_(std::move(owner)), base_(base) {}
  ~PayloadMemory();
  PayloadMemory(PayloadMemory&& other) noexcept = default;  // leaves none behind
  PayloadMemory& operator=(PayloadMemory&& other) noexcept;

  // nullptr: there is none, or it went with its member.
  void* base() const noexcept { return owner_.expired() ? nullptr : base_; }

 private:
  std::weak_ptr<Payloads> owner_;
  void* base_ = nullptr;
};

template <PayloadElement T>
class Payload {
 public:
  Payload() = default;

  // Empty where there is none: by default, when moved from, and when the member has gone. One of 0
  // elements has an address of its own.
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

// One rank's handle of a communicator, and the collective calls: made by join() (communicator.h),
// by a Team (team.h). It is used by one thread at a time. Every rank makes the same calls in the
// same order, as in MPI and NCCL.
//
// Buffers belong to the caller, must stay valid until the call returns, need no alignment, and may
// be in place: all_reduce, reduce, broadcast, scan, exscan and all_to_all with in == out;
// all_gather with in at the rank's own block of out; reduce_scatter with out at the rank's own
// block of in. all_reduce and all_to_all are in place on all ranks or on none; a rank that brings
// and gets nothing says so too, by equal pointers that are not null or by others.
//
// An all-reduce leaves the same bits on every rank, whatever the type, the algorithm, the transport
// and however its buffers lie: sums of floats are added up in one order, which does not depend on
// who adds (schedule.h). The algorithms that cannot say so in the catalogue (other_bits); they run
// where they are asked for by name, and are never chosen. A result that is NaN is a NaN on every
// rank, but its sign and payload may differ from rank to rank (min and max: the same NaN).
//
// Sums, products and averages of floats of 16 and 8 bits are computed in f32 and rounded once, by
// every collective, algorithm and transport, unless the call asks for Order::group_invariant.
//
// What a rank gets is its own: its output may overlap with no buffer, input or output, of another
// rank in the same call, not even where both would store the same. (One input for all ranks is
// fine, and buffers that a call does not use, such as `out` where nothing is to be had, may be
// anything.) Ranks that share all the same are told, by a mismatch that ends the communicator,
//   - in the first call of a kind (of one plan): any two ranks, before either has a result;
//   - in later ones: two ranks one of which hears from the other directly (from everybody in one
//     shot, from a neighbour in a ring), of any overlap on direct transport, and on mailboxes and
//     boards where the other's output begins where a buffer of its own does. Ranks that were done
//     by then may have got wrong results, if only some share.
// A rank that has left the call already (such as the root of a small broadcast) is not looked at:
// its buffers may be another one's by now. Sharing that is not found out gives wrong results.
//
// Errors: communicator.h.

class Agenda;
class Async;
class Communicator;
class OtherWork;
class RoundObserver;
struct PortsInUse;
class StartedSplit;
struct CommunicatorShared;
struct MemberState;
struct Prepared;
struct SplitOptions;

class Member : public TypedCalls<Member, Status> {
 public:
  ~Member();  // the rank leaves: others that still need it get Code::rank_lost
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  Rank rank() const;
  int ranks() const;
  // Its communicator, which lives as long as its members do at least.
  Communicator& communicator() const;

  // Pins the calling thread, which is to play this rank, where CommunicatorOptions::placement says;
  // where it says nothing, nothing is done. join() has done so for its own thread.
  Enforcement pin_thread();
  // The CPU that this rank runs on, by the operating system's number: the one that the thread which
  // makes its calls is pinned to, by the engine or by others. kNotPlaced: that thread may run on
  // several, or no thread has been pinned for the rank and none has made a call. From any thread.
  int cpu() const;
  // Communicator::ports_in_use() of this rank. From any thread.
  PortsInUse ports_in_use() const;

  // Zeroes for n elements, near this rank: see payload.h for where, how long and for whom. No
  // collective, and what it refuses leaves the communicator as it is. Errors: invalid_argument for
  // an n whose bytes no pointers can tell apart, out_of_memory, forked.
  template <PayloadElement T>
  Result<Payload<T>> allocate(std::size_t n);

  // The typed calls are those of typed_calls.h. Any collective, untyped:
  Status call(const Call& call);
  // The same, and `observer` is told of every round (interpret.h). Slow.
  Status call(const Call& call, RoundObserver& observer);

  // Any collective, started and not waited for; or only made ready, to be started again and again
  // (request.h). Errors: those of call() that can be told before it begins; nothing is started
  // then.
  Result<Request> start(const Call& call);
  Result<Request> prepare(const Call& call);
  Result<Request> start(const Message& message, const CallOptions& options = {});
  Result<Request> prepare(const Message& message, const CallOptions& options = {});
  // The same of typed calls: me.async().all_reduce(x), me.prepared().send(x, to).
  Async async();
  Async prepared();
  // Moves on whatever this thread has started, without waiting. Errors: forked.
  Status progress();

  // send() and recv() (typed_calls.h) are messages to one rank and from one rank: the calls of
  // these two alone. The messages that a rank sends another one are received in the order in which
  // they are sent; count and type must agree. Short ones are on their way when send() returns, long
  // ones have arrived. An error ends this communicator too. Errors: a rank that there is not, and
  // those of call(). The same untyped:
  Status submit(const Message& message, const CallOptions& options = {});
  // Both at once: two ranks that send to each other first wait for nobody.
  Status exchange(const Message& sent, const Message& received, const CallOptions& options = {});
  template <class T>
  Status exchange(std::span<const T> sent, Rank to, std::span<T> received, Rank from,
                  const CallOptions& options = {}) {
    return exchange({const_cast<T*>(sent.data()), sent.size(), data_type_of<T>, to},
                    {received.data(), received.size(), data_type_of<T>, from, false}, options);
  }
  // Messages and collectives that `calls` makes on members of this thread are started as they come
  // and all waited for at the end, so no order of theirs can deadlock; what they return until then
  // says only whether they could be started. Groups inside are part of the outer one. Returns the
  // first error. Where `calls` throws, what is under way ends its communicator.
  Status group(const std::function<void()>& calls);

  // The ranks that say the same color become a communicator of their own, ordered by key, and by
  // rank where keys are equal (split.h): a call of all ranks. Nothing for kNoColor. Errors: a color
  // below that, options that are out of range or (mismatch) not those of all ranks, and call()'s.
  Result<std::unique_ptr<Member>> split(int color, int key, const SplitOptions& options);
  Result<std::unique_ptr<Member>> split(int color, int key);

  // On a modelled network (network.h): seconds of the model from the communicator's beginning until
  // this rank's last message had ended, and its own work; and work of its own that takes so long,
  // from when its last call ended. At full speed 0, and an error.
  double model_time() const;
  Status compute(double seconds);

  // This rank makes no more calls: ranks that wait for it, now or later, get rank_lost, as where its
  // member is destroyed. What others still need of its calls so far stays. False, and nothing has
  // changed: calls and messages that it has started are under way. Groups are left separately.
  bool leave();

  // In a long wait this rank gives way to `work` (other_work.h) instead of going to sleep: to an
  // event loop, say, or to another library that goes on only when it is called. nullptr: to nothing,
  // as at first. It outlives the member, or is replaced before, and makes no call of this rank's.
  void give_way_to(OtherWork* work);

  // What such a call would get: "ring, mailbox transport", "double_tree, P = 8, direct transport".
  // Makes room for it; a question ends nothing, also where there is none (out_of_memory).
  Result<std::string> plan_of(const Call& call);

  // Which levels of order its bits keep (order.h), beyond what it asks for: those that this very
  // plan has. Errors, here and above: those of call() that can be told before it begins.
  Result<OrderSet> orders_of(const Call& call);

  // Returns when all ranks have called it.
  Status barrier(const CallOptions& options = {});
  // The same, and everybody hears what all have said, one element: reduced, the same bits
  // everywhere; or from each rank, all[r] being rank r's. Errors: those of an all-reduce, and of an
  // all-gather of bytes.
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
  friend class Communicator;
  friend class Buckets;
  friend class TypedCalls<Member, Status>;
  friend class Request;
  friend class StartedSplit;
  friend class Team;
  Member(std::shared_ptr<CommunicatorShared> shared, Rank rank, std::shared_ptr<Agenda> agenda);
  // For what makes calls of many: this rank cannot make its next one, so nobody else shall wait for
  // it. Returns the reason.
  Status give_up(Status reason);
  Status call_among_others(const Call& call);
  Result<const Prepared*> planned(const Call& call);
  static Result<Request> started(Result<Request> request);
  Status settle(Result<Request> request);
  Status submit(const Call& request) { return call(request); }
  Result<Request> bind(const Message& message, const CallOptions& options, bool calls);
  Result<Member*> end_of_pair(const Message& message);
  // `calls`: it will be started at once.
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

// A member's calls, started or prepared and not waited for.
class Async : public TypedCalls<Async, Result<Request>> {
 public:
  Rank rank() const { return member_.rank(); }
  int ranks() const { return member_.ranks(); }
  // barrier() of a member likewise.
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

inline Async Member::async() { return {*this, true}; }
inline Async Member::prepared() { return {*this, false}; }

}  // namespace rankine
