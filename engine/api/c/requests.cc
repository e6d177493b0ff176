// The C functions of requests.
#include <algorithm>
#include <string>

#include "engine/api/c/group.h"
#include "engine/api/c/last_error.h"
#include "engine/api/call.h"

namespace rankine {
namespace {

[[noreturn, gnu::cold]] void refuse_to_wait(const std::string& name) {
  throw Refusal{rkInvalidUsage, name + " is not under way; start it, and wait for it once"};
}

// A request and its ranks, held for the calling thread.
struct InUse {
  [[gnu::always_inline]] explicit InUse(rkRequest_t request)
      : handle(request, BorrowedRequest::As::caller) {
    try {
      calls().hold(ranks);
    } catch (const Refusal&) {
      if (!handle.slot().used_by_rank.load(std::memory_order_relaxed)) throw;
      throw Refusal{rkInvalidUsage, RequestHandle::kWords.is_busy};
    }
  }
  CallGroup& calls() const { return *handle->calls; }
  void must_be_out() const {
    if (!calls().is_out()) [[unlikely]]
      refuse_to_wait("request");
  }

  HeldRanks ranks;  // first: a freed request ends while its ranks are held
  BorrowedRequest handle;
};

[[gnu::noinline]] rkResult_t start_in_full(rkRequest_t request) noexcept {
  return guarded("rkRequestStart", [&]() -> Status {
    const InUse one(request);
    one.handle.note_rank();  // its rank may have got or lost options
    return one.calls().start(one.ranks);
  });
}

[[gnu::noinline]] rkResult_t wait_in_full(rkRequest_t request) noexcept {
  return guarded("rkRequestWait", [&]() -> Status {
    const InUse one(request);
    one.must_be_out();
    return one.calls().wait(one.ranks);
  });
}

[[gnu::noinline]] rkResult_t wait_by_rank(HandleSlot<RequestHandle>& slot,
                                          rkRequest_t request) noexcept {
  return use_by_rank(slot, request, [&slot] { return slot.object->calls->wait_again(); })
             ? rkSuccess
             : wait_in_full(request);
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkRequestStart(rkRequest_t request) noexcept {
  HandleSlot<RequestHandle>* const slot = slot_at_rest<RequestHandle>(request);
  const auto start = [slot] {
    if (slot->over_for.load(std::memory_order_relaxed) != kNoThread) return false;
    const ShortStart started = slot->object->calls->start_again();
    // Release: pairs with BorrowedRequest().
    if (started == ShortStart::over) slot->over_for.store(known_thread, std::memory_order_release);
    return started != ShortStart::nothing;
  };
  return slot != nullptr && use_by_rank(*slot, request, start) ? rkSuccess : start_in_full(request);
}

rkResult_t rkRequestTest(rkRequest_t request, int* over) noexcept {
  return guarded("rkRequestTest", [&]() -> Status {
    const InUse one(request);
    if (over == nullptr) return is_null("over");
    one.must_be_out();
    const auto tested = one.calls().test();
    if (!tested.ok()) return tested.status();
    *over = *tested ? 1 : 0;
    return {};
  });
}

rkResult_t rkRequestWait(rkRequest_t request) noexcept {
  HandleSlot<RequestHandle>* const slot = slot_at_rest<RequestHandle>(request);
  if (slot == nullptr) return wait_in_full(request);
  std::uint64_t self = known_thread;
  // An exchange and not a store: the slot may have got another thread's request meanwhile.
  if (slot->over_for.load(std::memory_order_relaxed) == self &&
      slot->over_for.compare_exchange_strong(self, kNoThread, std::memory_order_relaxed)) {
    return rkSuccess;
  }
  return wait_by_rank(*slot, request);
}

rkResult_t rkRequestWaitFor(rkRequest_t request, int64_t milliseconds, int* over) noexcept {
  return guarded("rkRequestWaitFor", [&]() -> Status {
    const InUse one(request);
    if (over == nullptr) return is_null("over");
    one.must_be_out();
    if (milliseconds < 0) {
      return invalid_argument("milliseconds is " + std::to_string(milliseconds) +
                              "; allowed are 0 and more");
    }
    const auto waited = one.calls().wait_for(std::chrono::milliseconds(milliseconds), one.ranks);
    if (!waited.ok()) return waited.status();
    *over = *waited ? 1 : 0;
    return {};
  });
}

rkResult_t rkRequestWaitAll(size_t count, const rkRequest_t* requests) noexcept {
  return guarded("rkRequestWaitAll", [&]() -> Status {
    if (requests == nullptr && count > 0) return is_null("requests");
    const auto name = [](std::size_t i) { return "requests[" + std::to_string(i) + "]"; };
    ShortList<BorrowedRequest> handles;
    ShortList<CallGroup*> all;
    HeldRanks ranks;
    for (std::size_t i = 0; i < count; ++i) {
      if (std::find(requests, requests + i, requests[i]) != requests + i) {
        return invalid_argument(name(i) + " is given twice; allowed is once");
      }
      try {
        handles.add(requests[i], BorrowedRequest::As::caller);
      } catch (const Refusal& refusal) {
        throw Refusal{refusal.result, name(i) + ": " + refusal.text};
      }
      CallGroup& calls = *(*(handles.end() - 1))->calls;
      if (!calls.is_out()) refuse_to_wait(name(i));
      calls.hold(ranks);
      all.add(&calls);
    }
    return CallGroup::wait_all({all.begin(), all.size()}, ranks);
  });
}

rkResult_t rkRequestFree(rkRequest_t request) noexcept {
  return guarded("rkRequestFree", [&]() -> Status {
    if (request == RK_REQUEST_NULL || forget_inherited<RequestHandle>(request)) return {};
    InUse one(request);
    if (const std::string name = one.calls().under_way(); !name.empty()) {
      throw Refusal{rkInvalidUsage,
                    "request's " + name + " is under way; wait for it before it is freed"};
    }
    one.handle.doom();
    return {};
  });
}

rkResult_t rkRequestGetOrders(rkRequest_t request, const char** orders) noexcept {
  return guarded("rkRequestGetOrders", [&]() -> Status {
    const InUse one(request);
    if (orders == nullptr) return is_null("orders");
    const auto kept = one.calls().orders();
    if (!kept.ok()) return kept.status();
    one.handle->orders = to_string(*kept);
    *orders = one.handle->orders.c_str();
    return {};
  });
}

rkResult_t rkCommProgress(rkComm_t comm) noexcept {
  return guarded("rkCommProgress", [&]() -> Status {
    return BorrowedRank(comm, BorrowedRank::As::caller)->member->progress();
  });
}

}  // extern "C"
