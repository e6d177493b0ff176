#include "numa/node_binding.h"

#include <numaif.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>

#include "numa/system_calls.h"
#include "numa/warnings.h"

namespace rankine {
namespace {

constexpr std::size_t kBitsPerWord = std::numeric_limits<unsigned long>::digits;

// 0 or the errno.
int set_policy(void* base, std::size_t bytes, int mode, const NodeSet& nodes) noexcept {
  std::array<unsigned long, kMaxNodes / kBitsPerWord> mask{};
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    if (nodes[node]) mask[node / kBitsPerWord] |= 1UL << (node % kBitsPerWord);
  }
  // The kernel reads one bit less than it is told: hence + 1.
  return system_calls().mbind(base, bytes, mode, mask.data(), kMaxNodes + 1, 0) == 0 ? 0 : errno;
}

Enforcement refuse(const char* key, const char* what, int error, const char* then) noexcept {
  char text[160];
  std::snprintf(text, sizeof(text), "%s: %s; %s", what, std::strerror(error), then);
  warn_once(key, text);
  return Enforcement::refusal(error, text);
}

}  // namespace

Enforcement prefer_node(void* base, std::size_t bytes, int node) noexcept {
  int error = EINVAL;
  if (node >= 0 && node < kMaxNodes) {
    error = set_policy(base, bytes, MPOL_PREFERRED, NodeSet().set(static_cast<std::size_t>(node)));
  }
  if (error == 0) return Enforcement::done();
  char what[64];
  std::snprintf(what, sizeof(what), "memory not bound to node %d: mbind", node);
  return refuse("numa.mbind", what, error, "first touch decides");
}

Enforcement interleave_over(void* base, std::size_t bytes, const NodeSet& nodes) noexcept {
  const int error = nodes.none() ? EINVAL : set_policy(base, bytes, MPOL_INTERLEAVE, nodes);
  if (error == 0) return Enforcement::done();
  return refuse("numa.mbind", "memory not interleaved: mbind", error, "first touch decides");
}

Enforcement lock_in_memory(void* base, std::size_t bytes) noexcept {
  if (system_calls().mlock2(base, bytes, MLOCK_ONFAULT) == 0) return Enforcement::done();
  return refuse("numa.mlock", "memory not locked: mlock2", errno, "it may be swapped out");
}

}  // namespace rankine
