// Calls that one thread makes together, of one rank or several: what rkGroupEnd() waits for, and
// what a rkRequest_t stands for.
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

// A call of a group: what it names is its own, but for the buffers and the options, which are the
// handle's.
struct CollectedCall {
  struct Split {
    int color = 0, key = 0;
    rkComm_t* part = nullptr;  // where the handle goes
  };
  const char* function;
  rkComm_t comm;
  Call call{};
  std::vector<std::size_t> counts{};
  std::vector<std::size_t> in_displacements{}, out_displacements{};  // where the call has some
  std::shared_ptr<const CreatedOperation> created{};                 // that the call refers to
  std::shared_ptr<const Epilogue> epilogue{};                        // that it has, or nullptr
  std::optional<Message> message{};                                  // in place of the call
  std::optional<Split> split{};                                      // likewise
};

// Handles of ranks, for the calling thread as long as this lives. Throws a Refusal.
class HeldRanks {
 public:
  void hold(rkComm_t comm) { held_.try_emplace(comm, comm, BorrowedRank::As::caller); }
  // But for one that has been destroyed.
  void hold_if_there(rkComm_t comm);
  // nullptr: it has been destroyed.
  RankHandle* find(rkComm_t comm) const;

 private:
  std::map<rkComm_t, BorrowedRank> held_;
};

class CallGroup {
 public:
  // The calls in the order in which they were collected, made ready: so one that is refused keeps
  // no other from being answered. Throws a Refusal of what is no rank's handle.
  static Result<CallGroup> prepare(std::vector<CollectedCall> calls);

  // Its ranks' handles, but for those that have been destroyed: for all that follows.
  void hold(HeldRanks& held) const;

  // Started, and not waited for.
  bool is_out() const { return is_out_; }
  // Throws a Refusal of what is out, of ranks that have been finalized, and of a second split.
  Status start(const HeldRanks& held);
  // Of groups that are out. The first error names the function and the rank. Several are waited for
  // at once, so that one thread may play their ranks.
  Result<bool> test();
  static Status wait(std::span<CallGroup* const> groups, const HeldRanks& held);
  Result<bool> wait_for(std::chrono::milliseconds most, const HeldRanks& held);
  // The one that goes on: "rkAllReduce of rank 0"; empty: none does.
  std::string under_way();
  // The levels of order that all its calls keep.
  Result<OrderSet> orders() const;

 private:
  struct Split {
    std::size_t request;  // whose wishes it has
    rkComm_t* part;
    StartedSplit split;
  };
  // All are over: they are not out any more, and ranks that have split find their parts.
  Status come_back(const HeldRanks& held);
  std::string name(std::size_t i) const;

  std::vector<CollectedCall> calls_;
  std::vector<int> ranks_;  // by call
  std::vector<Split> splits_;
  std::vector<Request> requests_;  // by call; go before the splits
  bool is_out_ = false;
  bool was_split_ = false;
};

// What a rkRequest_t stands for.

struct RequestHandle {
  using Handle = rkRequest_t;
  static constexpr std::uint32_t kKind = std::uint32_t{1} << 31;
  static constexpr HandleWords kWords = {
      "request is NULL", "request is none, or one that has been freed",
      "request is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the one whose request this is"};

  explicit RequestHandle(CallGroup calls_) : calls(std::move(calls_)) {}

  CallGroup calls;
  std::string orders{};  // as the caller has been told
};

using BorrowedRequest = Borrowed<RequestHandle>;

// May throw std::bad_alloc.
inline rkRequest_t add_request(CallGroup calls) {
  return HandleTable<RequestHandle>::all().add(std::make_unique<RequestHandle>(std::move(calls)));
}

// What this thread calls between rkGroupStart() and the group's end: collected, to be made together
// there (call_group.h).

// Whether this thread is between the two.
bool in_group() noexcept;
// For the group's end. Errors: no memory, as an exception.
void collect(CollectedCall call);
void collect(CollectedRank rank);
// A call of the group was refused: its end starts none and says why.
void refuse_group(rkResult_t result) noexcept;

}  // namespace rankine
