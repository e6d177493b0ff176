// The C functions of active ranks.
#include "engine/api/active.h"

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/api/c/handles.h"
#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"

namespace rankine {
namespace {

struct ActiveHandle {
  using Handle = rkActive_t;
  static constexpr std::uint32_t kKind = std::uint32_t{3} << 29;
  static constexpr HandleWords kWords = {
      "active is NULL", "active is no valid handle, or has been destroyed",
      "active is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the active ranks' process"};

  ActiveRanks active;
  std::vector<Rank> contributors{};  // to the latest call
};

using BorrowedActive = Borrowed<ActiveHandle>;

constexpr std::array kByNumber = {Collective::all_reduce, Collective::broadcast,
                                  Collective::all_gather, Collective::reduce_scatter,
                                  Collective::all_to_all, Collective::reduce,
                                  Collective::gather,     Collective::scatter,
                                  Collective::scan,       Collective::exscan};
static_assert(kByNumber.size() == rkCollExscan + 1);

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkActiveCreate(rkActive_t* active, int64_t waitUs, size_t bytes,
                          rkComm_t comm) noexcept {
  return guarded("rkActiveCreate", [&]() -> Status {
    const BorrowedRank rank(comm, BorrowedRank::As::caller);
    if (active == nullptr) return is_null("active");
    rank->check_not_finalized();
    auto made = ActiveRanks::create(*rank->member,
                                    {.wait = std::chrono::microseconds(waitUs), .bytes = bytes});
    if (!made.ok()) return made.status();
    *active = HandleTable<ActiveHandle>::add(
        std::unique_ptr<ActiveHandle>(new ActiveHandle{std::move(*made)}));
    return {};
  });
}

rkResult_t rkActiveGetRank(rkActive_t active, int* rank, int* ranks) noexcept {
  return guarded("rkActiveGetRank", [&]() -> Status {
    const BorrowedActive handle(active, BorrowedActive::As::caller);
    if (rank == nullptr) return is_null("rank");
    if (ranks == nullptr) return is_null("ranks");
    *rank = handle->active.rank();
    *ranks = handle->active.ranks();
    return {};
  });
}

rkResult_t rkActiveWaitFor(rkActive_t active, const int* ranks, size_t count) noexcept {
  return guarded("rkActiveWaitFor", [&]() -> Status {
    const BorrowedActive handle(active, BorrowedActive::As::caller);
    if (ranks == nullptr && count > 0) return is_null("ranks");
    return handle->active.wait_for(std::span(ranks, count));
  });
}

rkResult_t rkActiveCall(rkActive_t active, rkCollective_t collective, const void* in, void* out,
                        size_t count, rkDataType_t type, rkRedOp_t op, int root, const int** ranks,
                        size_t* rankCount) noexcept {
  return guarded("rkActiveCall", [&]() -> Status {
    const BorrowedActive handle(active, BorrowedActive::As::caller);
    if (ranks == nullptr) return is_null("ranks");
    if (rankCount == nullptr) return is_null("rankCount");
    auto contributors = handle->active.call({.collective = row(kByNumber, "collective", collective),
                                             .in = in,
                                             .out = out,
                                             .count = count,
                                             .type = row(kTypes, "type", type),
                                             .op = row(kOps, "op", op),
                                             .root = root});
    if (!contributors.ok()) return contributors.status();
    handle->contributors = std::move(*contributors);
    *ranks = handle->contributors.data();
    *rankCount = handle->contributors.size();
    return {};
  });
}

rkResult_t rkActiveDestroy(rkActive_t active) noexcept {
  return guarded("rkActiveDestroy", [&]() -> Status {
    if (active == nullptr || forget_inherited<ActiveHandle>(active)) return {};
    BorrowedActive(active, BorrowedActive::As::caller).doom();
    return {};
  });
}

}  // extern "C"
