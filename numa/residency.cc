#include "numa/residency.h"

#include <fmt/core.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "numa/pages.h"
#include "numa/system_calls.h"

namespace rankine {

std::size_t Residency::resident_bytes() const {
  std::size_t sum = 0;
  for (const auto& [node, bytes] : bytes_on_node) sum += bytes;
  return sum;
}

std::size_t Residency::bytes_elsewhere(int node) const {
  std::size_t sum = 0;
  for (const auto& [number, bytes] : bytes_on_node) sum += number == node ? 0 : bytes;
  return sum;
}

void Residency::add(const Residency& other) {
  for (const auto& [node, bytes] : other.bytes_on_node) bytes_on_node[node] += bytes;
  untouched_bytes += other.untouched_bytes;
  if (error == 0) error = other.error;
}

Residency residency_of(const MemoryRange& range) {
  Residency result;
  if (range.bytes == 0) return result;
  const std::size_t page = page_bytes();
  auto at = reinterpret_cast<std::uintptr_t>(range.base) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(range.base) + range.bytes;
  std::array<void*, 512> pages;
  std::array<int, 512> status;
  while (at < end) {
    std::size_t count = 0;
    for (; count < pages.size() && at < end; ++count, at += page) {
      pages[count] = reinterpret_cast<void*>(at);
    }
    status.fill(-ENOENT);
    if (system_calls().move_pages(0, count, pages.data(), nullptr, status.data(), 0) < 0) {
      return {{}, 0, errno};
    }
    for (std::size_t i = 0; i < count; ++i) {
      // Negative: no page yet (ENOENT), or the page of zeroes that all share (EFAULT). ENOENT is
      // also said of pages that automatic NUMA balancing hides for a while to see who comes, which
      // it does only where nobody has asked for a node.
      if (status[i] >= 0) {
        result.bytes_on_node[status[i]] += page;
      } else {
        result.untouched_bytes += page;
      }
    }
  }
  return result;
}

Residency residency_of(const std::vector<MemoryRange>& ranges) {
  Residency sum;
  for (const MemoryRange& range : ranges) sum.add(residency_of(range));
  return sum;
}

std::string to_string(const Residency& residency) {
  if (residency.error != 0) {
    return fmt::format("unknown: move_pages: {}", std::strerror(residency.error));
  }
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  for (const auto& [node, bytes] : residency.bytes_on_node) {
    add(fmt::format("node {}: {} KiB", node, bytes / 1024));
  }
  if (residency.untouched_bytes > 0) {
    add(fmt::format("{} KiB untouched", residency.untouched_bytes / 1024));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace rankine
