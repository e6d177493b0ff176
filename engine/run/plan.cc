#include "engine/run/plan.h"

#include <algorithm>

#include "engine/base/memory.h"

namespace rankine {

std::string_view name_of(Transport transport) {
  constexpr std::string_view kNames[kTransports] = {"direct", "mailbox", "board"};
  const auto i = static_cast<std::size_t>(transport);
  return i < kTransports ? kNames[i] : "unknown";
}

namespace {

// Offsets of natural blocks in an input or output. A buffer holds, in order, the natural blocks
// whose partner (source for inputs, target for outputs) is its rank; blocks of all ranks or of one
// common rank lie at their global offset.
HugeVector<std::size_t> offsets(const CollectiveSpec& natural, std::span<const std::size_t> counts,
                                bool input) {
  HugeVector<std::size_t> out;
  out.reserve(counts.size());
  const bool common = input ? (natural.collective != Collective::all_gather &&
                               natural.collective != Collective::gather &&
                               natural.collective != Collective::all_to_all)
                            : (natural.collective != Collective::reduce_scatter &&
                               natural.collective != Collective::scatter &&
                               natural.collective != Collective::all_to_all);
  std::vector<std::size_t> next(common ? 1 : static_cast<std::size_t>(natural.ranks));
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const int block = static_cast<int>(b);
    const Rank rank = input ? natural.source_of(block) : natural.target_of(block);
    std::size_t& end = next[common ? 0 : static_cast<std::size_t>(rank)];
    out.push_back(end);
    end += counts[b];
  }
  return out;
}

}  // namespace

Layout make_layout(const CollectiveSpec& goal, std::span<const std::size_t> counts,
                   std::size_t element_bytes, Borders borders) {
  CollectiveSpec natural = goal;
  natural.blocks = static_cast<int>(counts.size());
  const auto inputs = offsets(natural, counts, true);
  const auto outputs = offsets(natural, counts, false);

  Layout layout{element_bytes, {}};
  layout.blocks.reserve(static_cast<std::size_t>(goal.blocks));
  const std::size_t parts = static_cast<std::size_t>(goal.blocks) / counts.size();
  // A unit is not divisible by a border: an element or, if whole elements fill lines, a line.
  const bool lines = borders == Borders::cache_lines && kCacheLine % element_bytes == 0;
  const std::size_t unit = lines ? kCacheLine / element_bytes : 1;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const std::size_t units = (counts[b] + unit - 1) / unit;
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t share = (units / parts + (part < units % parts ? 1 : 0)) * unit;
      const std::size_t end = std::min(begin + share, counts[b]);
      layout.blocks.push_back({(inputs[b] + begin) * element_bytes,
                               (outputs[b] + begin) * element_bytes,
                               (end - begin) * element_bytes});
      begin = end;
    }
  }
  return layout;
}

std::size_t input_bytes(const Layout& layout, const CollectiveSpec& goal, Rank r) {
  std::size_t bytes = 0;
  for (int b = 0; b < goal.blocks; ++b) {
    if (goal.initially_holds(r, b)) bytes += layout.blocks[static_cast<std::size_t>(b)].bytes;
  }
  return bytes;
}

std::size_t output_bytes(const Layout& layout, const CollectiveSpec& goal, Rank r) {
  std::size_t bytes = 0;
  for (int b = 0; b < goal.blocks; ++b) {
    if (goal.must_hold(r, b)) bytes += layout.blocks[static_cast<std::size_t>(b)].bytes;
  }
  return bytes;
}

}  // namespace rankine
