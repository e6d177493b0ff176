#include "engine/api/c/group.h"

#include <algorithm>
#include <exception>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/api/c/last_error.h"

namespace rankine {

void HeldRanks::skip(rkComm_t comm, const Refusal& refusal) {
  if (refusal.result != rkInvalidArgument) throw refusal;
  // The group's requests continue without this rank, but not while it is being destroyed.
  if (!BorrowedRank::await_end(comm)) throw Refusal{rkInvalidUsage, RankHandle::kWords.is_busy};
}

namespace {
std::string name_of(const char* function, Rank rank) {
  return std::string(function) + " of rank " + std::to_string(rank);
}
}  // namespace

std::string CallGroup::name(std::size_t i) const { return name_of(calls_[i].function, ranks_[i]); }

Status CallGroup::named(std::size_t i, const Status& status) const {
  return {status.code(), name(i) + ": " + status.text()};
}

namespace {

// The collected call with the options of its rank. `displacements` keeps the call's.
Call call_of(const CollectedCall& one, const RankHandle& rank, Displacements& displacements) {
  Call call = one.call;
  call.counts = one.counts;
  displacements = {one.in_displacements, one.out_displacements};
  if (call.displacements != nullptr) call.displacements = &displacements;
  const std::uint64_t own_tag = call.options.tag;  // of the rank's own operation
  call.options = rank.options();
  call.options.tag ^= own_tag;
  call.options.epilogue = one.epilogue.get();
  return call;
}

}  // namespace

Status CallGroup::call_only(HeldRanks& held) {
  const CollectedCall& one = calls_.front();
  held.hold(one.comm);
  held.check_not_finalized();
  const RankHandle& rank = *held.find(one.comm);
  Member& member = *rank.member;
  Displacements displacements;
  Status status = one.message ? member.submit(*one.message, rank.options())
                  : one.call.collective == Collective::barrier
                      ? member.barrier(rank.options())
                      : member.call(call_of(one, rank, displacements));
  if (status.ok()) [[likely]]
    return status;
  ranks_.push_back(member.rank());
  return named(0, status);
}

Status CallGroup::run(HeldRanks& held) {
  if (calls_.size() == 1 && !calls_.front().split) return call_only(held);
  if (Status status = prepare(held); !status.ok()) return status;
  if (Status status = start(held); !status.ok()) return status;
  return wait(held);
}

Status CallGroup::prepare(HeldRanks& held) {
  for (const CollectedCall& one : calls_) held.hold(one.comm);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    const CollectedCall& one = calls_[i];
    const RankHandle& rank = *held.find(one.comm);
    Member& member = *rank.member;
    ranks_.push_back(member.rank());
    if (one.split) {
      // As for any handle, any thread may use the part.
      auto split =
          StartedSplit::prepare(member, one.split->color, one.split->key, {.own_thread = true});
      if (!split.ok()) return named(i, split.status());
      requests_.push_back(std::move(split->request()));
      splits_.push_back({i, one.split->part, std::move(*split)});
      continue;
    }
    Displacements displacements;
    auto request = one.message ? member.prepare(*one.message, rank.options())
                   : one.call.collective == Collective::barrier
                       ? member.prepared().barrier(rank.options())
                       : member.prepare(call_of(one, rank, displacements));
    if (!request.ok()) return named(i, request.status());
    requests_.push_back(std::move(*request));
  }
  return {};
}

void CallGroup::clear() noexcept {
  requests_.clear();
  splits_.clear();
  ranks_.clear();
  calls_.clear();
  is_out_ = was_split_ = false;
}

void CallGroup::refuse_to_start() const {
  throw Refusal{rkInvalidUsage,
                is_out()
                    ? "request has been started; wait for it before it starts again"
                    : "request has an rkCommSplit and was started before; a split starts once"};
}

Status CallGroup::take_back(std::size_t i, const Status& refused) {
  static_cast<void>(rankine::wait_all(std::span(requests_).first(i)));
  is_out_ = false;
  return named(i, refused);
}

Result<bool> CallGroup::test() {
  bool all = true;
  Status first;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const auto over = requests_[i].test();
    if (!over.ok() && first.ok()) first = named(i, over.status());
    all &= over.ok() && *over;
  }
  if (!first.ok()) return first;
  return all;
}

std::string CallGroup::under_way() {
  if (!is_out()) return {};
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
    if (!orders.ok()) return named(i, orders.status());
    OrderSet both;
    for (int k = 0; k < kOrders; ++k) {
      const auto order = static_cast<Order>(k);
      both.add(order, common.has(order) && orders->has(order));
    }
    common = both;
  }
  return common;
}

void CallGroup::finish_splits(const HeldRanks& held, Status& first) {
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
    if (first.ok() && !ended.ok()) first = named(one.request, ended);
  }
}

Status CallGroup::wait_all(std::span<CallGroup* const> groups, const HeldRanks& held) {
  ShortList<Request> all;
  for (CallGroup* group : groups) {
    for (Request& request : group->requests_) all.add(std::move(request));
  }
  std::size_t failed = 0;
  Status first = rankine::wait_all({all.begin(), all.size()}, &failed);
  Request* next = all.begin();
  for (CallGroup* group : groups) {
    for (Request& request : group->requests_) request = std::move(*next++);
  }
  if (!first.ok()) [[unlikely]] {
    auto of = groups.begin();
    for (; failed >= (*of)->requests_.size(); ++of) failed -= (*of)->requests_.size();
    first = (*of)->named(failed, first);
  }
  for (CallGroup* group : groups) group->come_back(held, first);
  return first;
}

Result<bool> CallGroup::wait_for(std::chrono::milliseconds most, const HeldRanks& held) {
  std::size_t failed = 0;
  const auto over = wait_all_for(requests_, most, &failed);
  if (over.ok() && !*over) return false;
  Status first = over.ok() ? Status() : named(failed, over.status());
  come_back(held, first);
  if (!first.ok()) return first;
  return true;
}

// GCC forgets the model of the declaration.
[[gnu::tls_model("initial-exec")]] constinit thread_local int groups_open = 0;
[[gnu::tls_model("initial-exec")]] constinit thread_local CollectedPlainCalls* plain_calls =
    nullptr;

namespace {

struct Group {
  std::unique_ptr<CallGroup> calls{};  // nullptr: none yet
  CollectedPlainCalls plain{};         // the first calls, before `calls`
  std::vector<CollectedRank> ranks{};
  std::optional<Refusal> refused{};  // the first
};
thread_local Group group;

// Adds the plain calls of the thread's group to `calls`. Throws std::bad_alloc.
CallGroup& add_plain_calls(std::unique_ptr<CallGroup>& calls) {
  const std::size_t plain = std::exchange(group.plain.size, 0);
  if (calls == nullptr) calls = std::make_unique<CallGroup>();
  for (std::size_t i = 0; i < plain; ++i) {
    const CollectedPlainCall& one = group.plain.calls[i];
    calls->add(one.function, one.comm).call = one.call.call();
  }
  return *calls;
}

void must_be_open() {
  if (groups_open == 0) {
    throw Refusal{rkInvalidUsage, "no group is open; call rkGroupStart first"};
  }
}

// At the end of the outermost group: takes its calls, or throws the first refusal.
std::unique_ptr<CallGroup> take_calls() {
  std::unique_ptr<CallGroup> calls = std::move(group.calls);
  plain_calls = &group.plain;
  group.plain.are_all = true;
  if (group.refused) [[unlikely]] {
    group.plain.size = 0;
    group.ranks.clear();
    throw *std::exchange(group.refused, {});
  }
  add_plain_calls(calls);
  return calls;
}

// Makes the ranks that the group has collected.
Status meet_ranks() {
  return group.ranks.empty() ? Status() : meet_collected(std::exchange(group.ranks, {}));
}

// Ends a group for a request. The request gets its handle before any call starts.
rkResult_t end_for_request(const char* function, rkRequest_t* request, bool starts) noexcept {
  return guarded(function, [&]() -> Status {
    must_be_open();
    if (request == nullptr) return invalid_argument("request is NULL; the group is still open");
    if (groups_open > 1) {
      throw Refusal{rkInvalidUsage,
                    "this group is inside another one and still open; end it with rkGroupEnd"};
    }
    if (!group.ranks.empty()) {
      throw Refusal{rkInvalidUsage,
                    "the group creates ranks that are processes and is still open; end it with "
                    "rkGroupEnd"};
    }
    groups_open = 0;
    HeldRanks held;
    std::unique_ptr<CallGroup> calls = take_calls();
    if (Status status = calls->prepare(held); !status.ok()) return status;
    const rkRequest_t made = HandleTable<RequestHandle>::add(
        std::unique_ptr<RequestHandle>(new RequestHandle{std::move(calls)}));
    BorrowedRequest one(made, BorrowedRequest::As::caller);
    one.note_rank();
    if (starts) {
      Status refused;
      try {
        refused = one->calls->start(held);
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

CollectedCall& collect(const char* function, rkComm_t comm) {
  group.plain.are_all = false;
  return add_plain_calls(group.calls).add(function, comm);
}
void collect(CollectedRank rank) {
  group.plain.are_all = false;
  group.ranks.push_back(std::move(rank));
}

void refuse_group(rkResult_t result) noexcept {
  group.plain.are_all = false;
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
  ++groups_open;
  return rkSuccess;
}

}  // extern "C"

namespace rankine {
namespace {

[[gnu::noinline]] rkResult_t end_group() noexcept {
  return guarded("rkGroupEnd", [&]() -> Status {
    must_be_open();
    if (--groups_open > 0) return {};
    HeldRanks held;
    std::unique_ptr<CallGroup> calls = take_calls();
    if (Status status = meet_ranks(); !status.ok()) return status;
    Status status = calls->run(held);
    calls->clear();
    // A call may have opened a group of its own meanwhile, in a function of the caller.
    if (group.calls == nullptr) group.calls = std::move(calls);
    return status;
  });
}

// The only call of a group has failed.
[[gnu::noinline, gnu::cold]] rkResult_t group_failed(const char* function,
                                                     const RankTable::Slot& rank) noexcept {
  return guarded("rkGroupEnd", [&]() -> Status {
    const Status status = failure_of(rank);
    return {status.code(), name_of(function, rank.object->member->rank()) + ": " + status.text()};
  });
}

}  // namespace
}  // namespace rankine

extern "C" {

rkResult_t rkGroupEnd() noexcept {
  if (groups_open != 1 || plain_calls == nullptr || !plain_calls->are_all || plain_calls->size != 1)
    return end_group();
  const CollectedPlainCall& one = plain_calls->calls[0];
  const char* const function = one.function;  // a function of the caller may open a group
  if (const TakenRank rank(one.comm); rank) [[likely]] {
    groups_open = 0;
    plain_calls->size = 0;
    return rank.member().try_plain(one.call.in, one.call.out, one.call.count, one.call.kinds)
               ? rkSuccess
               : group_failed(function, rank.slot());
  }
  return end_group();
}

rkResult_t rkGroupEndAsync(rkRequest_t* request) noexcept {
  return end_for_request("rkGroupEndAsync", request, true);
}

rkResult_t rkGroupEndPrepare(rkRequest_t* request) noexcept {
  return end_for_request("rkGroupEndPrepare", request, false);
}

}  // extern "C"
