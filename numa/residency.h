// On which nodes pages really lie, whatever was asked for.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace rankine {

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

}  // namespace rankine
