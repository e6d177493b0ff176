// Page sizes and what the kernel says about transparent huge pages.
#pragma once

#include <bitset>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "numa/refusals.h"

namespace rankine {

std::size_t page_bytes() noexcept;

// As many bytes, rounded up to whole pages.
inline std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

// Size of a transparent huge page in bytes; 2 MiB where the kernel does not tell. `root` is put
// before /sys.
std::size_t huge_page_bytes(const std::string& root = "");

// True where the administrator switched transparent huge pages off ("never"): there
// madvise(MADV_HUGEPAGE) still answers 0, so its result alone proves nothing. False where the
// kernel does not tell.
bool huge_pages_switched_off(const std::string& root = "");

// On which nodes pages really lie, whatever was asked for.

struct MemoryRange {
  const void* base = nullptr;
  std::size_t bytes = 0;
};

struct Residency {
  std::map<int, std::size_t> bytes_on_node;  // by the operating system's number of the node
  std::size_t untouched_bytes = 0;           // no page there yet
  int error =
      0;  // errno where the kernel does not tell (EPERM under some seccomp profiles); else 0

  std::size_t resident_bytes() const;
  std::size_t bytes_elsewhere(int node) const;  // that lie on others
  void add(const Residency& other);
};

// Asks the kernel by move_pages(2), which moves nothing here. The range is widened to whole pages.
// It must be mapped.
Residency residency_of(const MemoryRange& range);
Residency residency_of(const std::vector<MemoryRange>& ranges);  // all together

// "node 0: 12 KiB, node 1: 4 KiB, 48 KiB untouched", "unknown: move_pages: Operation not permitted"
// or "nothing".
std::string to_string(const Residency& residency);

// Telling the kernel on which memory nodes pages shall lie, and that they shall stay in memory.
//
// To be asked before anything touches the range: pages that exist already stay where they are. What
// the kernel refuses leaves usable memory behind; the refusal is returned, and the first of a kind
// in a process warns. numa_available() is not asked: libnuma 2.0.16 says "available" even where
// every call is then refused.

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

// Memory of one rank: near its CPU, in huge pages where large, given back all at once.

constexpr int kAnyNode = -1;
constexpr std::size_t kCacheLineBytes = 64;

struct ArenaOptions {
  int node = kAnyNode;     // memory node (OS number) to sit on; kAnyNode: first touch
  NodeSet interleave{};    // where not empty, instead of `node`: page by page over these in turn
  bool huge_pages = true;  // ask for them in chunks of at least one huge page
  bool lock = false;       // keep touched pages from being swapped out

  // The first chunk; each further one doubles, up to the maximum. A larger request gets a chunk of
  // its own size.
  std::size_t chunk_bytes = std::size_t{1} << 20;
  std::size_t max_chunk_bytes = std::size_t{1} << 26;
};

// A bump allocator over mmap'ed chunks. Memory is zero-filled, stays where it is and is never
// reused; all of it is unmapped by the destructor. Nothing is mapped before the first allocate().
//
// Chunks are tied to their node or nodes as in node_binding.h. The kernel's refusal leaves first
// touch in charge and is reported by binding(): then the rank's own thread should touch the memory
// first. The first refusal of a process warns.
//
// Ownership: the arena owns its memory; whoever holds the arena may be another thread than the one
// that uses the memory. Thread-safety: one caller at a time; the memory handed out is free of any
// such rule. Errors: values, never exceptions.
class Arena {
 public:
  explicit Arena(const ArenaOptions& options = {}) noexcept;
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // `bytes` of zeroes, aligned to `alignment` and padded to whole cache lines, so that two
  // allocations never share a line. alignment: a power of two; less than a cache line counts as a
  // cache line; page_bytes() and more are fine. 0 bytes give a unique address. nullptr: out of
  // memory, or bad alignment; see error().
  void* allocate(std::size_t bytes, std::size_t alignment = kCacheLineBytes) noexcept;

  // allocate() for `count` objects; T must be usable from all-zero bytes. nullptr also where the
  // size overflows.
  template <typename T>
  T* allocate_array(std::size_t count, std::size_t alignment = kCacheLineBytes) noexcept {
    const std::size_t max_count = static_cast<std::size_t>(-1) / sizeof(T);
    const std::size_t bytes = count > max_count ? static_cast<std::size_t>(-1) : count * sizeof(T);
    return static_cast<T*>(allocate(bytes, alignment > alignof(T) ? alignment : alignof(T)));
  }

  // errno of the last failed allocate(): ENOMEM, EINVAL (alignment), or what mmap said; 0 if none
  // failed yet.
  int error() const { return error_; }

  int node() const { return options_.node; }
  std::size_t bytes_used() const { return bytes_used_; }          // handed out, padding included
  std::size_t bytes_reserved() const { return bytes_reserved_; }  // mapped address space

  // Over all chunks so far: enforced only if each was. not_asked before the first chunk, for
  // kAnyNode, (huge pages) while every chunk is smaller than a huge page, and (locking) where
  // nothing is to be locked.
  const Enforcement& binding() const { return binding_; }
  const Enforcement& huge_pages() const { return huge_pages_; }
  const Enforcement& locking() const { return locking_; }

  // What is mapped, newest first.
  std::vector<MemoryRange> chunks() const;

 private:
  struct Chunk;

  bool grow(std::size_t bytes) noexcept;
  void advise(void* base, std::size_t bytes) noexcept;
  void release() noexcept;

  ArenaOptions options_;
  Chunk* chunks_ = nullptr;  // newest first; not in the memory, whose first touch is its user's
  char* cursor_ = nullptr;   // free part of the newest chunk
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
