// The C functions of buckets.
#include <memory>
#include <string>
#include <vector>

#include "engine/api/buckets.h"
#include "engine/api/c/group.h"
#include "engine/api/c/handles.h"
#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"

namespace rankine {
namespace {

struct BucketsHandle {
  using Handle = rkBuckets_t;
  static constexpr std::uint32_t kKind = std::uint32_t{3} << 30;
  static constexpr HandleWords kWords = {
      "buckets is NULL", "buckets is no valid handle, or has been destroyed",
      "buckets is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the buckets' process"};

  rkComm_t comm;
  Buckets buckets;
  // Options that pending tensors refer to: rkCommSetCallOptions() may replace the rank's options
  // meanwhile.
  std::vector<std::shared_ptr<const OwnedCallOptions>> call_options{};
};

using BorrowedBuckets = Borrowed<BucketsHandle>;

struct BucketsInUse : WithRank<BucketsHandle> {
  explicit BucketsInUse(rkBuckets_t buckets) : WithRank(buckets, "buckets") {}
  Buckets& buckets() const { return handle->buckets; }
  // The rank's current call options.
  CallOptions options() const {
    rank->check_not_finalized();
    auto& kept = handle->call_options;
    if (rank->call_options != nullptr && (kept.empty() || kept.back() != rank->call_options)) {
      kept.push_back(rank->call_options);
    }
    return rank->options();
  }
};

rkResult_t add(const char* function, rkBuckets_t buckets, void* tensor, std::size_t count,
               rkDataType_t type, rkRedOp_t op, bool is_used) noexcept {
  return guarded(function, [&]() -> Status {
    const BucketsInUse one(buckets);
    const Buckets::Tensor added{tensor, count};
    const DataType data_type = row(kTypes, "type", type);
    const ReduceOp reduction = row(kOps, "op", op);
    const CallOptions options = one.options();
    return is_used ? one.buckets().add(added, data_type, reduction, options)
                   : one.buckets().add_unused(added, data_type, reduction, options);
  });
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkBucketsCreate(rkBuckets_t* buckets, size_t bucketBytes, rkComm_t comm) noexcept {
  return guarded("rkBucketsCreate", [&]() -> Status {
    const BorrowedRank rank(comm, BorrowedRank::As::caller);
    if (buckets == nullptr) return is_null("buckets");
    rank->check_not_finalized();
    const std::size_t bytes = bucketBytes != 0 ? bucketBytes : Buckets::kDefaultBytes;
    *buckets = HandleTable<BucketsHandle>::add(
        std::unique_ptr<BucketsHandle>(new BucketsHandle{comm, Buckets(*rank->member, bytes)}));
    return {};
  });
}

rkResult_t rkBucketsAdd(rkBuckets_t buckets, void* tensor, size_t count, rkDataType_t type,
                        rkRedOp_t op) noexcept {
  return add("rkBucketsAdd", buckets, tensor, count, type, op, true);
}

rkResult_t rkBucketsAddUnused(rkBuckets_t buckets, void* tensor, size_t count, rkDataType_t type,
                              rkRedOp_t op) noexcept {
  return add("rkBucketsAddUnused", buckets, tensor, count, type, op, false);
}

rkResult_t rkBucketsFlush(rkBuckets_t buckets) noexcept {
  return guarded("rkBucketsFlush", [&] { return BucketsInUse(buckets).buckets().flush(); });
}

rkResult_t rkBucketsWait(rkBuckets_t buckets) noexcept {
  return guarded("rkBucketsWait", [&] {
    const BucketsInUse one(buckets);
    Status status = one.buckets().wait();
    one.handle->call_options.clear();
    return status;
  });
}

rkResult_t rkBucketsWaitFor(rkBuckets_t buckets, size_t tensors) noexcept {
  return guarded("rkBucketsWaitFor",
                 [&] { return BucketsInUse(buckets).buckets().wait_for(tensors); });
}

rkResult_t rkBucketsAllReduce(rkBuckets_t buckets, size_t tensorCount, void* const* tensors,
                              const size_t* counts, rkDataType_t type, rkRedOp_t op) noexcept {
  return guarded("rkBucketsAllReduce", [&]() -> Status {
    const BucketsInUse one(buckets);
    if (tensors == nullptr && tensorCount > 0) return is_null("tensors");
    if (counts == nullptr && tensorCount > 0) return is_null("counts");
    std::vector<Buckets::Tensor> all;
    all.reserve(tensorCount);
    for (std::size_t i = 0; i < tensorCount; ++i) all.push_back({tensors[i], counts[i]});
    return one.buckets().all_reduce(all, row(kTypes, "type", type), row(kOps, "op", op),
                                    one.options());
  });
}

rkResult_t rkBucketsGetCalls(rkBuckets_t buckets, size_t* calls) noexcept {
  return guarded("rkBucketsGetCalls", [&]() -> Status {
    const BorrowedBuckets handle(buckets, BorrowedBuckets::As::caller);
    if (calls == nullptr) return is_null("calls");
    *calls = handle->buckets.calls();
    return {};
  });
}

rkResult_t rkBucketsDestroy(rkBuckets_t buckets) noexcept {
  return guarded("rkBucketsDestroy", [&]() -> Status {
    if (buckets == nullptr || forget_inherited<BucketsHandle>(buckets)) return {};
    BorrowedBuckets handle(buckets, BorrowedBuckets::As::caller);
    HeldRanks rank;
    rank.hold_if_found(handle->comm);
    if (rank.find(handle->comm) != nullptr && handle->buckets.holds_tensors()) {
      throw Refusal{rkInvalidUsage,
                    "buckets hold tensors of unfinished calls; call rkBucketsWait() first"};
    }
    handle.doom();
    return {};
  });
}

}  // extern "C"
