// Memory of one rank: near its CPU, in huge pages where large, given back all at once.
#pragma once

#include <cstddef>
#include <vector>

#include "numa/enforcement.h"
#include "numa/node_binding.h"
#include "numa/residency.h"

namespace rankine {

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
