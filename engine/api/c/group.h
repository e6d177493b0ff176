// CallGroup holds calls that one thread makes together, for one rank or several: rkGroupEnd() waits
// for it, and a rkRequest_t refers to it. RequestHandle is the object behind a rkRequest_t, and
// collect() stores a thread's calls between rkGroupStart() and the group's end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/c/handles.h"
#include "engine/api/c/rankine.h"
#include "engine/api/c/unique_id.h"
#include "engine/api/request.h"
#include "engine/api/split.h"

namespace rankine {

// A call of a group. It owns everything it refers to, except the caller's buffers and the handle's
// options.
struct CollectedCall {
  CollectedCall(const char* function_, rkComm_t comm_) : function(function_), comm(comm_) {}

  struct Split {
    int color = 0, key = 0;
    rkComm_t* part = nullptr;  // receives the handle
  };
  const char* function;
  rkComm_t comm;
  Call call{};
  std::vector<std::size_t> counts{};
  std::vector<std::size_t> in_displacements{}, out_displacements{};  // empty if the call has none
  std::shared_ptr<const CreatedOperation> created{};                 // the call's, or nullptr
  std::shared_ptr<const Epilogue> epilogue{};                        // the call's, or nullptr
  std::optional<Message> message{};                                  // used instead of `call`
  std::optional<Split> split{};                                      // used instead of `call`
};

// A plain call of a group.
struct CollectedPlainCall {
  const char* function;
  rkComm_t comm;
  PlainCall call;
};

// A list whose first kHere elements lie in this object: a short list allocates no memory.
template <class T>
class ShortList {
 public:
  ShortList() = default;
  ShortList(const ShortList&) = delete;
  ShortList& operator=(const ShortList&) = delete;
  ~ShortList() {
    std::destroy_n(first_, size_);
    if (capacity_ > kHere) [[unlikely]]
      std::allocator<T>().deallocate(first_, capacity_);
  }
  // May throw std::bad_alloc.
  template <class... Arguments>
  T& add(Arguments&&... arguments) {
    if (size_ == capacity_) [[unlikely]]
      grow();
    T* const made =
        ::new (static_cast<void*>(first_ + size_)) T{std::forward<Arguments>(arguments)...};
    ++size_;
    return *made;
  }
  T* begin() { return first_; }
  T* end() { return first_ + size_; }
  const T* begin() const { return first_; }
  const T* end() const { return first_ + size_; }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kHere = 16;

  [[gnu::noinline]] void grow() {
    T* const more = std::allocator<T>().allocate(2 * capacity_);
    std::uninitialized_move_n(first_, size_, more);
    std::destroy_n(first_, size_);
    if (capacity_ > kHere) std::allocator<T>().deallocate(first_, capacity_);
    first_ = more;
    capacity_ *= 2;
  }

  alignas(T) std::byte here_[kHere * sizeof(T)];
  T* first_ = reinterpret_cast<T*>(here_);
  std::size_t size_ = 0, capacity_ = kHere;
};

// Handles of ranks, held for the calling thread during this object's lifetime. Throws a Refusal.
class HeldRanks {
 public:
  void hold(rkComm_t comm) {
    if (find(comm) == nullptr) held_.add(comm, BorrowedRank(comm, BorrowedRank::As::caller));
  }
  // As hold(), but skips a destroyed handle.
  void hold_if_found(rkComm_t comm) {
    try {
      hold(comm);
    } catch (const Refusal& refusal) {
      skip(comm, refusal);
    }
  }
  // nullptr: the handle was destroyed.
  RankHandle* find(rkComm_t comm) const {
    for (const Held& one : held_) {
      if (one.comm == comm) return &*one.rank;
    }
    return nullptr;
  }
  // Throws a Refusal if a rank was finalized.
  void check_not_finalized() const {
    for (const Held& one : held_) one.rank->check_not_finalized();
  }
  // Ranks that were finalized while calls of theirs were in flight leave now.
  void leave_finalized() const {
    for (const Held& one : held_) {
      if (one.rank->finalized) [[unlikely]]
        one.rank->member->leave();
    }
  }

 private:
  struct Held {
    rkComm_t comm;
    BorrowedRank rank;
  };
  // Returns if the handle was refused because it is destroyed; otherwise throws the refusal.
  [[gnu::cold]] static void skip(rkComm_t comm, const Refusal& refusal);

  ShortList<Held> held_;
};

class CallGroup {
 public:
  CallGroup() = default;
  CallGroup(const CallGroup&) = delete;
  CallGroup& operator=(const CallGroup&) = delete;

  // Adds a call, to be filled in.
  CollectedCall& add(const char* function, rkComm_t comm) {
    return calls_.emplace_back(function, comm);
  }
  // Prepares the calls in the order in which they were added, and holds their ranks' handles. If
  // one is refused, no call of the group has started. Throws a Refusal for an invalid handle.
  Status prepare(HeldRanks& held);
  // Makes the calls and waits for them. Errors as prepare(), start() and wait().
  Status run(HeldRanks& held);
  // Forgets the calls and keeps the memory of the lists for later ones.
  void clear() noexcept;

  // Holds its ranks' handles, except destroyed ones; required by the functions below.
  void hold(HeldRanks& held) const {
    for (const CollectedCall& one : calls_) held.hold_if_found(one.comm);
  }

  // True if the calls are started and not waited for.
  bool is_out() const {
    return requests_.size() == 1 && splits_.empty() ? requests_.front().is_started() : is_out_;
  }
  // Starts the calls. Throws a Refusal if they are started already, if a rank was finalized, or if
  // the group contains a split and was started before.
  Status start(const HeldRanks& held) {
    held.check_not_finalized();
    if (is_out() || was_split_) [[unlikely]]
      refuse_to_start();
    was_split_ = !splits_.empty();
    is_out_ = true;
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      Status started = requests_[i].start();
      if (!started.ok()) [[unlikely]]
        return take_back(i, started);
    }
    return {};
  }
  // The short ways of a group of one call that is started and waited for again. Nothing and false:
  // nothing has happened. A call that is over at once counts as waited for, until
  // must_be_waited_for().
  ShortStart start_again() noexcept { return requests_.front().start_again(true); }
  bool wait_again() noexcept { return requests_.front().wait_again(); }
  void must_be_waited_for() noexcept { requests_.front().must_be_waited_for(); }
  // The only call's rank; nullptr: several calls, or a split.
  rkComm_t only_rank() const {
    return calls_.size() == 1 && splits_.empty() ? calls_.front().comm : nullptr;
  }
  // For started groups. The first error names the function and the rank. The last form waits for
  // several groups at once, so that one thread may play their ranks.
  Result<bool> test();
  Status wait(const HeldRanks& held) {
    std::size_t failed = 0;
    Status first = rankine::wait_all(requests_, &failed);
    if (!first.ok()) [[unlikely]]
      first = named(failed, first);
    come_back(held, first);
    return first;
  }
  Result<bool> wait_for(std::chrono::milliseconds most, const HeldRanks& held);
  static Status wait_all(std::span<CallGroup* const> groups, const HeldRanks& held);
  // A call in flight: "rkAllReduce of rank 0"; empty: none.
  std::string under_way();
  // The levels of order that all calls keep.
  Result<OrderSet> orders() const;

 private:
  struct Split {
    std::size_t request;  // index of the split's request
    rkComm_t* part;
    StartedSplit split;
  };
  // After the end of all calls, with their first error: marks the group as not started, and sets
  // the handles of split parts.
  void come_back(const HeldRanks& held, Status& first) {
    is_out_ = false;
    if (!splits_.empty()) [[unlikely]]
      finish_splits(held, first);
    held.leave_finalized();
  }
  [[gnu::cold]] void finish_splits(const HeldRanks& held, Status& first);
  [[noreturn, gnu::cold]] void refuse_to_start() const;
  // Request i could not be started: waits for those before it. Returns the error.
  [[gnu::cold]] Status take_back(std::size_t i, const Status& refused);
  // Makes the only call of a group, which is no split.
  Status call_only(HeldRanks& held);
  std::string name(std::size_t i) const;
  // The status, an error, with the name of that call.
  [[gnu::cold]] Status named(std::size_t i, const Status& status) const;

  std::vector<CollectedCall> calls_;
  std::vector<int> ranks_;  // by call
  std::vector<Split> splits_;
  std::vector<Request> requests_;  // by call; destroyed before the splits
  bool is_out_ = false;            // of several calls, or a split
  bool was_split_ = false;
};

// The object behind a rkRequest_t.

struct RequestHandle {
  using Handle = rkRequest_t;
  static constexpr std::uint32_t kKind = std::uint32_t{1} << 31;
  static constexpr HandleWords kWords = {
      "request is NULL", "request is no valid handle, or has been freed",
      "request is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the request's process"};

  std::unique_ptr<CallGroup> calls;
  std::string orders{};  // storage for the text of rkRequestGetOrders()
};

// A request in use.
class BorrowedRequest : public Borrowed<RequestHandle> {
 public:
  BorrowedRequest(rkRequest_t request, As as) : Borrowed(request, as) {
    // From here on the wait finds that the request is over. Acquire: pairs with rkRequestStart().
    if (slot().over_for.load(std::memory_order_relaxed) != kNoThread &&
        slot().over_for.exchange(kNoThread, std::memory_order_acquire) != kNoThread) {
      (*this)->calls->must_be_waited_for();
    }
  }
  // Lets use_by_rank() use the request, if it has one rank.
  void note_rank() const {
    const rkComm_t only = (*this)->calls->only_rank();
    if (only == nullptr) return;
    RankTable::Slot& rank = *RankTable::find(only);
    const std::uint64_t options =
        rank.state.load(std::memory_order_relaxed) & RankTable::Slot::kHasOptions;
    slot().rank_at_rest.store((RankTable::bits_of(only) & RankTable::kGeneration) | options,
                              std::memory_order_relaxed);
    slot().rank.store(&rank, std::memory_order_relaxed);
  }
};

// Calls of this thread between rkGroupStart() and the group's end, which makes them together.

// The groups that this thread has started and not ended. Every call reads it, so it has no
// constructor, and no function call finds it in a shared library.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local int groups_open;

inline bool in_group() noexcept { return groups_open > 0; }

// An object that belongs to a rank, and that rank, held for the calling thread. Throws a Refusal in
// a group. `name`: the object's, for the text.
template <class Object>
struct WithRank {
  WithRank(typename Object::Handle object, const char* name)
      : handle(object, Borrowed<Object>::As::caller), rank(handle->comm, BorrowedRank::As::caller) {
    if (in_group()) {
      throw Refusal{rkInvalidUsage,
                    std::string("a group is open; use ") + name + " outside of groups"};
    }
  }

  Borrowed<Object> handle;
  BorrowedRank rank;
};

// The thread's groups have plain calls only, the first kMost of them here. The thread's first group
// makes it.
struct CollectedPlainCalls {
  static constexpr std::size_t kMost = 16;
  std::size_t size = 0;
  bool are_all = true;  // false: the group has other calls, ranks or refusals as well
  std::array<CollectedPlainCall, kMost> calls;
};
[[gnu::tls_model("initial-exec")]] extern constinit thread_local CollectedPlainCalls* plain_calls;

// Adds a call to a group of fewer than kMost plain calls. False: the group is not so.
inline bool collect_again(const CollectedPlainCall& call) noexcept {
  if (plain_calls == nullptr || !plain_calls->are_all ||
      plain_calls->size == CollectedPlainCalls::kMost) {
    return false;
  }
  plain_calls->calls[plain_calls->size++] = call;
  return true;
}
// Adds a call, to be filled in, to the thread's group. Throws std::bad_alloc.
CollectedCall& collect(const char* function, rkComm_t comm);
void collect(CollectedRank rank);
// Records that a call of the group was refused: the group's end starts no call and returns this
// error.
void refuse_group(rkResult_t result) noexcept;

}  // namespace rankine
