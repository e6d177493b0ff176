// Telling the kernel on which memory nodes pages shall lie, and that they shall stay in memory.
//
// To be asked before anything touches the range: pages that exist already stay where they are. What
// the kernel refuses leaves usable memory behind; the refusal is returned, and the first of a kind
// in a process warns. numa_available() is not asked: libnuma 2.0.16 says "available" even where
// every call is then refused.
#pragma once

#include <bitset>
#include <cstddef>

#include "numa/enforcement.h"

namespace rankine {

constexpr int kMaxNodes = 1024;  // the largest MAX_NUMNODES of x86-64 Linux

using NodeSet = std::bitset<kMaxNodes>;  // by the operating system's numbers

// On that node (MPOL_PREFERRED, not MPOL_BIND: on a full node the kernel then takes memory from a
// neighbour instead of killing the process). base: on a page's border. Refused: EPERM under
// Docker's default seccomp profile, EINVAL for a node that does not exist or has no memory; then
// whoever touches a page first decides.
Enforcement prefer_node(void* base, std::size_t bytes, int node) noexcept;

// Page by page over those nodes in turn (MPOL_INTERLEAVE), so that reading it all uses every
// node's memory channels. An empty set is refused with EINVAL.
Enforcement interleave_over(void* base, std::size_t bytes, const NodeSet& nodes) noexcept;

// Never swapped out, from each page's first touch on (MLOCK_ONFAULT, so that locking does not
// decide where pages lie). Refused: EPERM or ENOMEM beyond RLIMIT_MEMLOCK.
Enforcement lock_in_memory(void* base, std::size_t bytes) noexcept;

}  // namespace rankine
