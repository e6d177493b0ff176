// CallGroup holds calls that one thread makes together, for one rank or several: rkGroupEnd() waits
// for it, and a rkRequest_t refers to it. RequestHandle is the object behind a rkRequest_t, and
// collect() stores a thread's calls between rkGroupStart() and the group's end.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
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

// Handles of ranks, held for the calling thread during this object's lifetime. Throws a Refusal.
class HeldRanks {
 public:
  void hold(rkComm_t comm) { held_.try_emplace(comm, comm, BorrowedRank::As::caller); }
  // As hold(), but skips a destroyed handle.
  void hold_if_found(rkComm_t comm);
  // nullptr: the handle was destroyed.
  RankHandle* find(rkComm_t comm) const;

 private:
  std::map<rkComm_t, BorrowedRank> held_;
};

class CallGroup {
 public:
  // Prepares the calls in the order in which they were collected. If one is refused, no call of the
  // group has started. Throws a Refusal for an invalid handle.
  static Result<CallGroup> prepare(std::vector<CollectedCall> calls);

  // Holds its ranks' handles, except destroyed ones; required by the functions below.
  void hold(HeldRanks& held) const;

  // True if the calls are started and not waited for.
  bool is_out() const { return is_out_; }
  // Starts the calls. Throws a Refusal if they are started already, if a rank was finalized, or if
  // the group contains a split and was started before.
  Status start(const HeldRanks& held);
  // For started groups. The first error names the function and the rank. wait() waits for several
  // groups at once, so that one thread may play their ranks.
  Result<bool> test();
  static Status wait(std::span<CallGroup* const> groups, const HeldRanks& held);
  Result<bool> wait_for(std::chrono::milliseconds most, const HeldRanks& held);
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
  // After the end of all calls: marks the group as not started, and sets the handles of split
  // parts.
  Status come_back(const HeldRanks& held);
  std::string name(std::size_t i) const;

  std::vector<CollectedCall> calls_;
  std::vector<int> ranks_;  // by call
  std::vector<Split> splits_;
  std::vector<Request> requests_;  // by call; destroyed before the splits
  bool is_out_ = false;
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

  explicit RequestHandle(CallGroup calls_) : calls(std::move(calls_)) {}

  CallGroup calls;
  std::string orders{};  // storage for the text of rkRequestGetOrders()
};

using BorrowedRequest = Borrowed<RequestHandle>;

// May throw std::bad_alloc.
inline rkRequest_t add_request(CallGroup calls) {
  return HandleTable<RequestHandle>::all().add(std::make_unique<RequestHandle>(std::move(calls)));
}

// Calls of this thread between rkGroupStart() and the group's end, which makes them together.

// Returns true between rkGroupStart() and the group's end on this thread.
bool in_group() noexcept;
// Stores a call until the group's end. Throws std::bad_alloc.
void collect(CollectedCall call);
void collect(CollectedRank rank);
// Records that a call of the group was refused: the group's end starts no call and returns this
// error.
void refuse_group(rkResult_t result) noexcept;

}  // namespace rankine
