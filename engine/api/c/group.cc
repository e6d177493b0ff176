#include "engine/api/c/group.h"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "engine/api/c/last_error.h"
#include "engine/api/c/request_handle.h"

namespace rankine {
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
    throw Refusal{rkInvalidUsage, "there is no group that rkGroupStart began"};
  }
}

// The outermost group has ended: its calls, or why they are not made.
Result<CallGroup> made_ready() {
  std::vector<CollectedCall> calls = std::exchange(group.calls, {});
  const std::vector<CollectedRank> ranks = std::exchange(group.ranks, {});
  if (const auto refused = std::exchange(group.refused, {})) throw *refused;
  if (Status status = meet_collected(ranks); !status.ok()) return status;
  return CallGroup::prepare(std::move(calls));
}

// The same, for a request. It has its handle before anything begins.
rkResult_t end_for_request(const char* function, rkRequest_t* request, bool starts) noexcept {
  return guarded(function, [&]() -> Status {
    must_be_open();
    if (request == nullptr) return invalid_argument("request is NULL; the group is still open");
    if (group.depth > 1) {
      throw Refusal{rkInvalidUsage,
                    "this group is inside another one, with whose end its calls are made; it is "
                    "still open"};
    }
    if (!group.ranks.empty()) {
      throw Refusal{rkInvalidUsage,
                    "ranks that are processes meet when rkGroupEnd ends the group, which is still "
                    "open"};
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
