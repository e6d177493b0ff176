// What a rkRequest_t stands for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "engine/api/c/call_group.h"
#include "engine/api/c/handle_table.h"
#include "engine/api/c/rankine.h"

namespace rankine {

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

}  // namespace rankine
