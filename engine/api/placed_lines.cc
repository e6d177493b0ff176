#include "engine/api/placed_lines.h"

#include <algorithm>
#include <new>

#include "numa/node_binding.h"
#include "numa/pages.h"

namespace rankine {
namespace {

// A rank's share of its page where ranks have pages of their own: a divisor of the page, so that
// no rank's lines cross a page's border.
constexpr std::size_t kSpread = 512;
static_assert(sizeof(RankLines) <= kSpread);

ArenaOptions one_mapping(std::span<const ArenaOptions> arenas, std::size_t bytes) {
  ArenaOptions options;
  options.huge_pages = false;
  options.chunk_bytes = bytes;
  options.lock = std::any_of(arenas.begin(), arenas.end(), [](const auto& a) { return a.lock; });
  return options;
}

bool on_one_node(std::span<const ArenaOptions> arenas) {
  return std::all_of(arenas.begin(), arenas.end(),
                     [&](const auto& a) { return a.node == arenas.front().node; });
}

}  // namespace

PlacedLines::PlacedLines(int ranks, std::span<const ArenaOptions> arenas)
    : bindings_(static_cast<std::size_t>(ranks)) {
  const auto n = static_cast<std::size_t>(ranks);
  const bool together = on_one_node(arenas);
  if (!together) memory_.stride = page_bytes() + kSpread;
  const std::size_t bytes = n * memory_.stride;
  arena_ = Arena(one_mapping(arenas, bytes));
  memory_.base = static_cast<std::byte*>(arena_.allocate(bytes, page_bytes()));
  if (memory_.base == nullptr) throw std::bad_alloc();
  if (arenas.empty()) return;
  if (together) {
    if (arenas.front().node == kAnyNode) return;
    std::fill(bindings_.begin(), bindings_.end(),
              prefer_node(memory_.base, bytes, arenas.front().node));
    return;
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (arenas[r].node == kAnyNode) continue;
    const std::size_t page = r * memory_.stride / page_bytes() * page_bytes();
    bindings_[r] = prefer_node(memory_.base + page, page_bytes(), arenas[r].node);
  }
}

}  // namespace rankine
