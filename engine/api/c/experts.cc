// The C functions of experts.
#include "engine/api/experts.h"

#include <memory>
#include <numeric>
#include <span>

#include "engine/api/c/group.h"
#include "engine/api/c/handles.h"
#include "engine/api/c/last_error.h"
#include "engine/api/c/rankine.h"

namespace rankine {
namespace {

struct ExpertsHandle {
  using Handle = rkExperts_t;
  static constexpr std::uint32_t kKind = std::uint32_t{1} << 29;
  static constexpr HandleWords kWords = {
      "experts is NULL", "experts is no valid handle, or has been destroyed",
      "experts is in a call of another thread; it is used by one thread at a time",
      "this process was forked from the experts' process"};

  rkComm_t comm;
  ExpertsOptions options;
  Experts experts;

  Experts::Buffer buffer(const void* elements, std::size_t rows, DataType type) const {
    return {const_cast<void*>(elements), rows * options.row_elements, type};
  }
};

using BorrowedExperts = Borrowed<ExpertsHandle>;

struct ExpertsInUse : WithRank<ExpertsHandle> {
  explicit ExpertsInUse(rkExperts_t experts) : WithRank(experts, "experts") {
    rank->check_not_finalized();
  }
};

rkResult_t get(const char* function, rkExperts_t experts,
               std::span<const std::size_t> (Experts::*list)() const, const char* name,
               const size_t** numbers, size_t* count) noexcept {
  return guarded(function, [&]() -> Status {
    const BorrowedExperts handle(experts, BorrowedExperts::As::caller);
    if (numbers == nullptr) return is_null(name);
    if (count == nullptr) return is_null("count");
    const auto found = (handle->experts.*list)();
    *numbers = found.data();
    *count = found.size();
    return {};
  });
}

}  // namespace
}  // namespace rankine

using namespace rankine;

extern "C" {

rkResult_t rkExpertsCreate(rkExperts_t* experts, int expertCount, int choices, size_t rowElements,
                           rkDataType_t type, rkDataType_t resultType, size_t capacity,
                           rkComm_t comm) noexcept {
  return guarded("rkExpertsCreate", [&]() -> Status {
    const BorrowedRank rank(comm, BorrowedRank::As::caller);
    if (experts == nullptr) return is_null("experts");
    rank->check_not_finalized();
    const ExpertsOptions options{.experts = expertCount,
                                 .choices = choices,
                                 .row_elements = rowElements,
                                 .type = row(kTypes, "type", type),
                                 .capacity = capacity,
                                 .result_type = row(kTypes, "resultType", resultType)};
    auto made = Experts::create(*rank->member, options);
    if (!made.ok()) return made.status();
    *experts = HandleTable<ExpertsHandle>::add(
        std::unique_ptr<ExpertsHandle>(new ExpertsHandle{comm, options, std::move(*made)}));
    return {};
  });
}

rkResult_t rkExpertsDispatch(rkExperts_t experts, const void* tokens, const int32_t* indices,
                             size_t tokenCount, void* rows, size_t room) noexcept {
  return guarded("rkExpertsDispatch", [&]() -> Status {
    const ExpertsInUse one(experts);
    if (indices == nullptr && tokenCount > 0) return is_null("indices");
    const ExpertsOptions& options = one.handle->options;
    const auto choices = static_cast<std::size_t>(options.choices);
    return one.handle->experts.dispatch(one.handle->buffer(tokens, tokenCount, options.type),
                                        std::span(indices, tokenCount * choices),
                                        one.handle->buffer(rows, room, options.type));
  });
}

rkResult_t rkExpertsCombine(rkExperts_t experts, const void* results, const float* weights,
                            void* out) noexcept {
  return guarded("rkExpertsCombine", [&]() -> Status {
    const ExpertsInUse one(experts);
    Experts& its = one.handle->experts;
    const auto counts = its.counts();
    const auto choices = static_cast<std::size_t>(one.handle->options.choices);
    const DataType type = *one.handle->options.result_type;
    const std::size_t rows = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
    return its.combine(one.handle->buffer(results, rows, type),
                       std::span(weights, weights == nullptr ? 0 : its.tokens() * choices),
                       one.handle->buffer(out, its.tokens(), type));
  });
}

rkResult_t rkExpertsGetCounts(rkExperts_t experts, const size_t** counts, size_t* count) noexcept {
  return get("rkExpertsGetCounts", experts, &Experts::counts, "counts", counts, count);
}

rkResult_t rkExpertsGetDropped(rkExperts_t experts, const size_t** dropped,
                               size_t* count) noexcept {
  return get("rkExpertsGetDropped", experts, &Experts::dropped, "dropped", dropped, count);
}

rkResult_t rkExpertsDestroy(rkExperts_t experts) noexcept {
  return guarded("rkExpertsDestroy", [&]() -> Status {
    if (experts == nullptr || forget_inherited<ExpertsHandle>(experts)) return {};
    BorrowedExperts(experts, BorrowedExperts::As::caller).doom();
    return {};
  });
}

}  // extern "C"
