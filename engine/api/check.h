// What is wrong with a call, before any byte moves. Every text names the argument, its value and
// what is allowed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/api/call.h"
#include "engine/exec/layout.h"
#include "engine/exec/status.h"

namespace rankine {

// Everything that does not depend on the addresses: root, type and operation, overflow, counts.
Status check_call(const Call& call, int ranks);

// Elements of each natural block. Requires check_call().ok().
std::vector<std::size_t> natural_counts(const Call& call, int ranks);

// What a rank's buffers must look like for one kind of call.
struct BufferRule {
  std::size_t input_bytes = 0;
  std::size_t output_bytes = 0;
  bool may_be_in_place = false;
  std::ptrdiff_t in_place_offset = 0;  // in - out, in bytes, when called in place
};
BufferRule buffer_rule(const Layout& layout, const Goal& goal, Rank rank);
// Of all ranks, by rank, in one pass over the blocks.
std::vector<BufferRule> buffer_rules(const Layout& layout, const Goal& goal);

// No null pointer where there are bytes, and no overlap but in place.
inline bool buffers_fit(const BufferRule& rule, const void* in, const void* out) noexcept {
  if ((in == nullptr && rule.input_bytes > 0) || (out == nullptr && rule.output_bytes > 0)) {
    return false;
  }
  if (rule.input_bytes == 0 || rule.output_bytes == 0) return true;
  const auto i = reinterpret_cast<std::uintptr_t>(in), o = reinterpret_cast<std::uintptr_t>(out);
  const bool apart = i + rule.input_bytes <= o || o + rule.output_bytes <= i;
  return apart ||
         (rule.may_be_in_place && static_cast<std::ptrdiff_t>(i - o) == rule.in_place_offset);
}
// What is wrong with buffers that do not.
Status misfit(const BufferRule& rule, const void* in, const void* out) noexcept;

}  // namespace rankine
