#include "engine/run/user_functions.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"

namespace rankine {

bool finish_rows(const Epilogue& epilogue, const void* rows, std::size_t first, std::size_t count,
                 std::string& why) noexcept {
  return returns([&] { epilogue.finish(rows, first, count, epilogue.context); }, why);
}

namespace {

// Elements pass through two stack buffers that the first-level cache holds: user functions get
// aligned memory for any buffers, and a destination may be a source.
constexpr std::size_t kPiece = 8192;
static_assert(kPiece >= kMostElementBytes);

void combine_piece(const UserOp& op, void* const* dsts, std::size_t n_dsts, const void* const* srcs,
                   std::size_t n_srcs, std::size_t at, std::size_t bytes) {
  alignas(kCacheLine) std::byte pieces[2][kPiece];
  std::byte* total = pieces[0];
  std::byte* next = pieces[1];
  const auto of = [at](const void* vector) { return static_cast<const std::byte*>(vector) + at; };
  std::memcpy(total, of(srcs[0]), bytes);
  for (std::size_t s = 1; s < n_srcs; ++s) {
    std::memcpy(next, of(srcs[s]), bytes);
    op.apply(total, next, bytes / op.element_bytes, op.context);
    std::swap(total, next);
  }
  for (std::size_t d = 0; d < n_dsts; ++d) {
    std::memcpy(static_cast<std::byte*>(dsts[d]) + at, total, bytes);
  }
}

}  // namespace

std::uint64_t identity_of(const UserOp& op, bool between_processes) noexcept {
  const auto code = between_processes ? 0 : reinterpret_cast<std::uintptr_t>(op.apply);
  const std::uint64_t kind = op.element_bytes * 2 + (op.commutative ? 1 : 0);
  return splitmix(code * kSplitMixStep ^ kind) | 1;
}

bool combine(const UserOp& op, void* const* dsts, std::size_t n_dsts, const void* const* srcs,
             std::size_t n_srcs, std::size_t bytes, std::string& why) noexcept {
  const std::size_t piece = kPiece / op.element_bytes * op.element_bytes;
  const auto combine_all = [&] {
    for (std::size_t at = 0; at < bytes; at += piece) {
      combine_piece(op, dsts, n_dsts, srcs, n_srcs, at, std::min(piece, bytes - at));
    }
  };
  return returns(combine_all, why);
}

}  // namespace rankine
