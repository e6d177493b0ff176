// What the kernel was asked to bind, noted by fakes that grant it: for nodes that this machine need
// not have.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "numa/memory.h"
#include "numa/system_calls.h"

namespace rankine::noted_bindings {

struct Bound {
  const std::byte* end = nullptr;
  int mode = -1;
  std::vector<int> nodes;
};
// Function pointers cannot capture, so there is one for the process.
struct Seen {
  std::mutex mutex;
  std::map<const std::byte*, Bound> bound;  // by first byte; a later request replaces its part
};
inline Seen seen;

inline void forget() {
  const std::lock_guard lock(seen.mutex);
  seen.bound.clear();
}

inline long mbind(void* address, unsigned long bytes, int mode, const unsigned long* mask,
                  unsigned long, unsigned) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % 4096, 0U);
  const auto* const base = static_cast<const std::byte*>(address);
  Bound bound{base + bytes, mode, {}};
  for (int node = 0; node < 64; ++node) {
    if ((mask[0] >> node & 1U) != 0) bound.nodes.push_back(node);
  }
  const std::lock_guard lock(seen.mutex);
  seen.bound[base] = std::move(bound);
  return 0;
}

// What is mapped there next has not been asked for.
inline int munmap(void* address, std::size_t bytes) {
  const auto* const base = static_cast<const std::byte*>(address);
  const std::lock_guard lock(seen.mutex);
  seen.bound.erase(seen.bound.lower_bound(base), seen.bound.lower_bound(base + bytes));
  return real_system_calls().munmap(address, bytes);
}

inline SystemCalls calls() {
  SystemCalls calls = real_system_calls();
  calls.mbind = mbind;
  calls.munmap = munmap;
  return calls;
}

// The nodes that a byte was bound to; empty: to none.
inline std::vector<int> nodes_of(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const std::lock_guard lock(seen.mutex);
  auto found = seen.bound.upper_bound(at);
  if (found == seen.bound.begin()) return {};
  --found;
  return at < found->second.end ? found->second.nodes : std::vector<int>{};
}

// Its first byte and its last.
inline void expect_on(int node, const MemoryRange& range, const char* what) {
  const auto* const base = static_cast<const std::byte*>(range.base);
  EXPECT_EQ(nodes_of(base), std::vector<int>{node}) << what;
  EXPECT_EQ(nodes_of(base + range.bytes - 1), std::vector<int>{node}) << what;
}
inline void expect_on(int node, const std::vector<MemoryRange>& ranges, const char* what) {
  for (const MemoryRange& range : ranges) expect_on(node, range, what);
}

}  // namespace rankine::noted_bindings
