#include "engine/api/processes/payloads.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "engine/api/processes/arena.h"
#include "engine/base/huge_pages.h"
#include "numa/pages.h"

namespace rankine {
namespace {

Enforcement in_huge_pages(const std::byte* base, std::size_t bytes) noexcept {
  if (bytes < kHugePage) return {};
  const int error = collapse_into_huge_pages(base, bytes);
  if (error == 0) return Enforcement::done();
  char text[160];
  std::snprintf(text, sizeof(text), "no huge pages for shared payloads: madvise: %s",
                std::strerror(error));
  return Enforcement::refusal(error, text);
}

}  // namespace

Result<std::byte*> ProcessPayloads::allocate(std::size_t bytes) {
  const auto no_room = [&] {
    return make_error(Code::out_of_memory, [&] {
      return std::to_string(bytes) + " bytes of shared payloads; of " + std::to_string(room_) +
             " that a rank may have no piece of that length is free";
    });
  };
  if (bytes > room_) return no_room();
  const std::size_t length = whole_pages(std::max<std::size_t>(1, bytes));
  std::size_t begin = 0;
  for (const auto& [other, its] : in_use_) {
    if (begin + length <= other) break;
    begin = other + its.bytes;
    if (length >= kHugePage) begin = whole_huge_pages(begin);
  }
  if (begin + length > room_) return no_room();
  Piece& piece = in_use_[begin];
  piece.bytes = length;
  if (Status status = take_pages(file_, base_ + begin, offset_ + begin, length, "shared payloads");
      !status.ok()) {
    free(base_ + begin);  // some of the pages may have been there
    return status;
  }
  piece.huge_pages = in_huge_pages(base_ + begin, length);
  return base_ + begin;
}

void ProcessPayloads::free(const void* base) noexcept {
  const auto found = in_use_.find(offset_of(base));
  // Who reads there afterwards, by mistake, reads zeroes.
  give_pages_back(file_, base_ + found->first, offset_ + found->first, found->second.bytes);
  in_use_.erase(found);
}

}  // namespace rankine
