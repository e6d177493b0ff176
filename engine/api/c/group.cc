#include "engine/api/c/group.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/api/c/last_error.h"

namespace rankine {
namespace {

Status named(const std::string& name, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), name + ": " + status.text()};
}

}  // namespace

void HeldRanks::hold_if_found(rkComm_t comm) {
  try {
    hold(comm);
  } catch (const Refusal& refusal) {
    if (refusal.result != rkInvalidArgument) throw;
    // The group's requests continue without this rank, but not while it is being destroyed.
    if (!BorrowedRank::await_end(comm)) throw Refusal{rkInvalidUsage, RankHandle::kWords.is_busy};
  }
}

RankHandle* HeldRanks::find(rkComm_t comm) const {
  const auto found = held_.find(comm);
  return found == held_.end() ? nullptr : &*found->second;
}

std::string CallGroup::name(std::size_t i) const {
  return std::string(calls_[i].function) + " of rank " + std::to_string(ranks_[i]);
}

Result<CallGroup> CallGroup::prepare(std::vector<CollectedCall> calls) {
  HeldRanks held;
  for (const CollectedCall& one : calls) held.hold(one.comm);
  CallGroup group;
  group.calls_ = std::move(calls);
  for (std::size_t i = 0; i < group.calls_.size(); ++i) {
    const CollectedCall& one = group.calls_[i];
    const RankHandle& rank = *held.find(one.comm);
    Member& member = *rank.member;
    group.ranks_.push_back(member.rank());
    CallOptions options = rank.options();
    if (one.split) {
      // As for any handle, any thread may use the part.
      auto split =
          StartedSplit::prepare(member, one.split->color, one.split->key, {.own_thread = true});
      if (!split.ok()) return named(group.name(i), split.status());
      group.requests_.push_back(std::move(split->request()));
      group.splits_.push_back({i, one.split->part, std::move(*split)});
      continue;
    }
    Call call = one.call;
    call.counts = one.counts;
    const Displacements displacements{one.in_displacements, one.out_displacements};
    if (call.displacements != nullptr) call.displacements = &displacements;
    options.tag ^= call.options.tag;  // the tag of the rank's own operation
    call.options = options;
    call.options.epilogue = one.epilogue.get();
    auto request = one.message                              ? member.prepare(*one.message, options)
                   : call.collective == Collective::barrier ? member.prepared().barrier(options)
                                                            : member.prepare(call);
    if (!request.ok()) return named(group.name(i), request.status());
    group.requests_.push_back(std::move(*request));
  }
  return group;
}

void CallGroup::hold(HeldRanks& held) const {
  for (const CollectedCall& one : calls_) held.hold_if_found(one.comm);
}

Status CallGroup::start(const HeldRanks& held) {
  for (const CollectedCall& one : calls_) {
    if (const RankHandle* rank = held.find(one.comm)) rank->check_not_finalized();
  }
  if (is_out_) {
    throw Refusal{rkInvalidUsage, "request has been started; wait for it before it starts again"};
  }
  if (was_split_) {
    throw Refusal{rkInvalidUsage,
                  "request has an rkCommSplit and was started before; a split starts once"};
  }
  was_split_ = !splits_.empty();
  is_out_ = true;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const Status refused = named(name(i), requests_[i].start());
    if (refused.ok()) continue;
    static_cast<void>(wait_all(std::span(requests_).first(i)));
    is_out_ = false;
    return refused;
  }
  return {};
}

Result<bool> CallGroup::test() {
  bool all = true;
  Status first;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const auto over = requests_[i].test();
    if (!over.ok() && first.ok()) first = named(name(i), over.status());
    all &= over.ok() && *over;
  }
  if (!first.ok()) return first;
  return all;
}

std::string CallGroup::under_way() {
  if (!is_out_) return {};
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (const auto over = requests_[i].test(); over.ok() && !*over) return name(i);
  }
  return {};
}

Result<OrderSet> CallGroup::orders() const {
  OrderSet common;
  for (int i = 0; i < kOrders; ++i) common.add(static_cast<Order>(i));
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const auto orders = requests_[i].orders();
    if (!orders.ok()) return named(name(i), orders.status());
    OrderSet both;
    for (int k = 0; k < kOrders; ++k) {
      const auto order = static_cast<Order>(k);
      both.add(order, common.has(order) && orders->has(order));
    }
    common = both;
  }
  return common;
}

Status CallGroup::come_back(const HeldRanks& held) {
  is_out_ = false;
  Status first;
  // If the ranks meet anew (StartedSplit::finish(), split.h), a meeting blocks until it is
  // complete. So finish the splits in an order that threads of other ranks also use.
  std::map<rkComm_t, int> before;
  std::vector<std::tuple<int, int, Split*>> in_turn;  // index within its rank, color
  for (Split& one : splits_) {
    const CollectedCall& call = calls_[one.request];
    in_turn.push_back({before[call.comm]++, call.split->color, &one});
  }
  std::stable_sort(in_turn.begin(), in_turn.end(), [](const auto& a, const auto& b) {
    return std::pair(std::get<0>(a), std::get<1>(a)) < std::pair(std::get<0>(b), std::get<1>(b));
  });
  for (const auto& [turn, color, split] : in_turn) {
    Split& one = *split;
    const RankHandle* rank = held.find(calls_[one.request].comm);
    // The communicator may have ended since the ranks exchanged their colors.
    Status ended = rank != nullptr ? rank->communicator->health()
                                   : Status(Code::aborted,
                                            "comm was destroyed while rkCommSplit was under way");
    if (ended.ok()) {
      auto part = one.split.finish();
      if (!part.ok()) {
        ended = part.status();
      } else if (*part != nullptr) {
        *one.part = add_rank(std::move(*part), rank->among_processes);
      }
    }
    if (first.ok()) first = named(name(one.request), ended);
  }
  // A rank that was finalized meanwhile has no calls in flight now, so it can leave.
  for (const CollectedCall& one : calls_) {
    const RankHandle* rank = held.find(one.comm);
    if (rank != nullptr && rank->finalized) rank->member->leave();
  }
  return first;
}

Status CallGroup::wait(std::span<CallGroup* const> groups, const HeldRanks& held) {
  std::vector<Request> all;
  std::vector<std::string> names;
  for (CallGroup* group : groups) {
    for (std::size_t i = 0; i < group->requests_.size(); ++i) names.push_back(group->name(i));
    all.reserve(names.size());
    std::move(group->requests_.begin(), group->requests_.end(), std::back_inserter(all));
  }
  std::size_t failed = 0;
  Status first = wait_all(all, &failed);
  auto next = all.begin();
  for (CallGroup* group : groups) {
    for (Request& request : group->requests_) request = std::move(*next++);
  }
  if (!first.ok()) first = named(names[failed], first);
  for (CallGroup* group : groups) {
    const Status back = group->come_back(held);
    if (first.ok()) first = back;
  }
  return first;
}

Result<bool> CallGroup::wait_for(std::chrono::milliseconds most, const HeldRanks& held) {
  std::size_t failed = 0;
  const auto over = wait_all_for(requests_, most, &failed);
  if (over.ok() && !*over) return false;
  const Status back = come_back(held);
  if (!over.ok()) return named(requests_.empty() ? "" : name(failed), over.status());
  if (!back.ok()) return back;
  return true;
}

namespace {

struct Group {
  int depth = 0;
  std::vector<CollectedCall> calls{};
  std::vector<CollectedRank> ranks{};
  std::optional<Refusal> refused{};  // the first
};
thread_local Group group;

void must_be_open() {
  if (group.depth == 0) {
    throw Refusal{rkInvalidUsage, "no group is open; call rkGroupStart first"};
  }
}

// At the end of the outermost group: prepares its calls, or throws the first refusal.
Result<CallGroup> made_ready() {
  std::vector<CollectedCall> calls = std::exchange(group.calls, {});
  const std::vector<CollectedRank> ranks = std::exchange(group.ranks, {});
  if (const auto refused = std::exchange(group.refused, {})) throw *refused;
  if (Status status = meet_collected(ranks); !status.ok()) return status;
  return CallGroup::prepare(std::move(calls));
}

// Ends a group for a request. The request gets its handle before any call starts.
rkResult_t end_for_request(const char* function, rkRequest_t* request, bool starts) noexcept {
  return guarded(function, [&]() -> Status {
    must_be_open();
    if (request == nullptr) return invalid_argument("request is NULL; the group is still open");
    if (group.depth > 1) {
      throw Refusal{rkInvalidUsage,
                    "this group is inside another one and still open; end it with rkGroupEnd"};
    }
    if (!group.ranks.empty()) {
      throw Refusal{rkInvalidUsage,
                    "the group creates ranks that are processes and is still open; end it with "
                    "rkGroupEnd"};
    }
    group.depth = 0;
    auto calls = made_ready();
    if (!calls.ok()) return calls.status();
    const rkRequest_t made = add_request(std::move(*calls));
    if (starts) {
      BorrowedRequest one(made, BorrowedRequest::As::caller);
      Status refused;
      try {
        HeldRanks held;
        one->calls.hold(held);
        refused = one->calls.start(held);
      } catch (const Refusal&) {
        one.doom();
        throw;
      }
      if (!refused.ok()) {
        one.doom();
        return refused;
      }
    }
    *request = made;
    return {};
  });
}

}  // namespace

bool in_group() noexcept { return group.depth > 0; }

void collect(CollectedCall call) { group.calls.push_back(std::move(call)); }
void collect(CollectedRank rank) { group.ranks.push_back(std::move(rank)); }

void refuse_group(rkResult_t result) noexcept {
  if (group.refused) return;
  try {
    group.refused = Refusal{result, rkGetLastError(RK_COMM_NULL)};
  } catch (const std::exception&) {
    group.refused = Refusal{result, {}};
  }
}

}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkGroupStart() noexcept {
  ++group.depth;
  return rkSuccess;
}

rkResult_t rkGroupEnd() noexcept {
  return guarded("rkGroupEnd", [&]() -> Status {
    must_be_open();
    if (--group.depth > 0) return {};
    auto calls = made_ready();
    if (!calls.ok()) return calls.status();
    HeldRanks held;
    calls->hold(held);
    if (Status refused = calls->start(held); !refused.ok()) return refused;
    CallGroup* const all[] = {&*calls};
    return CallGroup::wait(all, held);
  });
}

rkResult_t rkGroupEndAsync(rkRequest_t* request) noexcept {
  return end_for_request("rkGroupEndAsync", request, true);
}

rkResult_t rkGroupEndPrepare(rkRequest_t* request) noexcept {
  return end_for_request("rkGroupEndPrepare", request, false);
}

}  // extern "C"
