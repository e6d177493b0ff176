// This header places memory on NUMA nodes: it knows page sizes and huge pages, asks on which nodes
// pages lie, requests placing and locking, and defines the arena that holds a rank's memory.
#pragma once

#include <bitset>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "numa/refusals.h"

namespace rankine {

std::size_t page_bytes() noexcept;

// `bytes` rounded up to whole pages.
inline std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Size of a transparent huge page in bytes; 2 MiB if the kernel does not report it. `root` is
// prefixed to /sys.
std::size_t huge_page_bytes(const std::string& root = "");

// True if the administrator has switched transparent huge pages off ("never"):
// madvise(MADV_HUGEPAGE) then still returns 0, so its result alone proves nothing. False if the
// kernel does not report it.
bool huge_pages_switched_off(const std::string& root = "");

// Residency tells on which nodes pages really lie, for any request.

struct MemoryRange {
  const void* base = nullptr;
  std::size_t bytes = 0;
};

struct Residency {
  std::map<int, std::size_t> bytes_on_node;  // by the operating system's node numbers
  std::size_t untouched_bytes = 0;           // pages not allocated yet
  // errno if the kernel does not report the nodes (EPERM under some seccomp profiles); otherwise 0
  int error = 0;

  std::size_t resident_bytes() const;
  std::size_t bytes_elsewhere(int node) const;  // bytes on other nodes
  void add(const Residency& other);
};

// Asks the kernel with move_pages(2), which moves nothing here. The range is widened to whole pages
// and must be mapped.
Residency residency_of(const MemoryRange& range);
Residency residency_of(const std::vector<MemoryRange>& ranges);  // all together

// "node 0: 12 KiB, node 1: 4 KiB, 48 KiB untouched", "unknown: move_pages: Operation not permitted"
// or "nothing".
std::string to_string(const Residency& residency);

// Requests to the kernel: on which memory nodes pages should lie, and to keep them in memory.
//
// Call these before any access to the range: existing pages stay in place. After a refusal the
// memory is still usable; the refusal is returned, and the first of its kind in a process warns.
// numa_available() is not used: libnuma 2.0.16 says "available" even if every call is then refused.

constexpr int kMaxNodes = 1024;  // the largest MAX_NUMNODES of x86-64 Linux

using NodeSet = std::bitset<kMaxNodes>;  // by the operating system's numbers

// Prefers that node (MPOL_PREFERRED, not MPOL_BIND: with a full node the kernel then takes memory
// from a neighbour instead of killing the process). base: at a page border. Refused: EPERM under
// Docker's default seccomp profile, EINVAL for a node that does not exist or has no memory; then
// the first touch of a page decides.
Enforcement prefer_node(void* base, std::size_t bytes, int node) noexcept;

// Interleaves pages over those nodes (MPOL_INTERLEAVE), so that a read of the range uses every
// node's memory channels. An empty set is refused with EINVAL.
Enforcement interleave_over(void* base, std::size_t bytes, const NodeSet& nodes) noexcept;

// Keeps pages from being swapped out, from each page's first touch on (MLOCK_ONFAULT, so that
// locking does not decide where pages lie). Refused: EPERM or ENOMEM beyond RLIMIT_MEMLOCK.
Enforcement lock_in_memory(void* base, std::size_t bytes) noexcept;

// The arena holds the memory of one rank: near its CPU, in huge pages if large, released all at
// once.

constexpr int kAnyNode = -1;
constexpr std::size_t kCacheLineBytes = 64;

struct ArenaOptions {
  int node = kAnyNode;   // memory node (OS number); kAnyNode: first touch
  NodeSet interleave{};  // if not empty, replaces `node`: interleaved page by page over these nodes
  bool huge_pages = true;  // request huge pages for chunks of at least one huge page
  bool lock = false;       // keep touched pages from being swapped out

  // Size of the first chunk; each further one doubles, up to the maximum. A larger request gets its
  // own chunk.
  std::size_t chunk_bytes = std::size_t{1} << 20;
  std::size_t max_chunk_bytes = std::size_t{1} << 26;
};

// A bump allocator over mmap'ed chunks. Memory is zero-filled, does not move and is never reused;
// the destructor unmaps all of it. Nothing is mapped before the first allocate().
//
// Chunks are tied to their node or nodes by prefer_node() or interleave_over(). After a refusal the
// first touch decides, and binding() reports it: then the rank's own thread should touch the memory
// first. The first refusal of a process warns.
//
// Ownership: the arena owns its memory; the arena may belong to another thread than the memory's
// user. Thread-safety: one caller at a time; the memory itself has no such rule. Errors: values,
// never exceptions.
// such rule. Errors: values, never exceptions.
class Arena {
 public:
  explicit Arena(const ArenaOptions& options = {}) noexcept;
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` zero bytes, aligned to `alignment` and padded to whole cache lines, so that two
  // allocations never share a line. alignment: a power of two; below a cache line it counts as a
  // cache line; page_bytes() and more are allowed. 0 bytes give a unique address. nullptr: out of
  // memory, or bad alignment; see error().
  void* allocate(std::size_t bytes, std::size_t alignment = kCacheLineBytes) noexcept;

  // allocate() for `count` objects; all-zero bytes must be a valid T. nullptr also if the size
  // overflows.
  template <typename T>
  T* allocate_array(std::size_t count, std::size_t alignment = kCacheLineBytes) noexcept {
    const std::size_t max_count = static_cast<std::size_t>(-1) / sizeof(T);
    const std::size_t bytes = count > max_count ? static_cast<std::size_t>(-1) : count * sizeof(T);
    return static_cast<T*>(allocate(bytes, alignment > alignof(T) ? alignment : alignof(T)));
  }

  // errno of the last failed allocate(): ENOMEM, EINVAL (alignment), or mmap's error; 0: none
  // failed yet.
  int error() const { return error_; }

  int node() const { return options_.node; }
  std::size_t bytes_used() const { return bytes_used_; }          // handed out, padding included
  std::size_t bytes_reserved() const { return bytes_reserved_; }  // mapped address space

  // Over all chunks so far: enforced only if each was. not_asked before the first chunk, for
  // kAnyNode, (huge pages) while every chunk is smaller than a huge page, and (locking) if locking
  // is not requested.
  const Enforcement& binding() const { return binding_; }
  const Enforcement& huge_pages() const { return huge_pages_; }
  const Enforcement& locking() const { return locking_; }

  // The mapped chunks, newest first.
  std::vector<MemoryRange> chunks() const;

 private:
  struct Chunk;

  bool grow(std::size_t bytes) noexcept;
  void advise(void* base, std::size_t bytes) noexcept;
  void release() noexcept;

  ArenaOptions options_;
  // newest first; outside the memory, whose first touch belongs to its user
  Chunk* chunks_ = nullptr;
  char* cursor_ = nullptr;  // free part of the newest chunk
  char* end_ = nullptr;
  std::size_t next_chunk_bytes_;
  std::size_t bytes_used_ = 0;
  std::size_t bytes_reserved_ = 0;
  int error_ = 0;
  Enforcement binding_;
  Enforcement huge_pages_;
  Enforcement locking_;
};

}  // namespace rankine
