#include "engine/compile/footprint.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace rankine {

Footprint::Footprint(const Program& program, Memories asked, PlanMeter* meter)
    : memories_(std::move(asked)) {
  struct Touched {
    std::size_t memory, begin, end;
    int operation;
  };
  std::vector<Touched> touched;
  touched.reserve(program.operations.size());
  std::vector<std::size_t> ends_of(memories_.are_in_.size() + 1);  // where a memory's begin
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& op = program.operations[i];
    if (op.bytes == 0) continue;
    const auto touches = [&](Rank rank, Place place) {
      step(meter);
      const std::size_t memory = memories_.number(rank, place);
      if (memories_.are_in_[memory] == 0) return;
      touched.push_back({memory, place.offset, place.offset + op.bytes, static_cast<int>(i)});
      ends_of[memory + 1] += 2;
    };
    touches(op.rank, op.destination);
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      touches(source.rank, source.place);
    }
    for (int c = 0; c < op.copies; ++c) {
      const Copy& to = program.copies[static_cast<std::size_t>(op.first_copy + c)];
      touches(to.rank, to.place);
    }
  }
  std::partial_sum(ends_of.begin(), ends_of.end(), ends_of.begin());
  std::vector<std::size_t> ends(2 * touched.size());
  std::vector<std::size_t> filled(ends_of.begin(), ends_of.end() - 1);
  for (const Touched& t : touched) {
    std::size_t& to = filled[t.memory];
    // Many in a row touch the same.
    if (to > ends_of[t.memory] && ends[to - 2] == t.begin && ends[to - 1] == t.end) continue;
    ends[to++] = t.begin;
    ends[to++] = t.end;
  }
  first_of_.reserve(ends_of.size());
  for (std::size_t memory = 0; memory < filled.size(); ++memory) {
    step(meter);
    const auto from = ends.begin() + static_cast<std::ptrdiff_t>(ends_of[memory]);
    const auto to = ends.begin() + static_cast<std::ptrdiff_t>(filled[memory]);
    std::sort(from, to);
    first_of_.push_back(static_cast<int>(stretches_.size()));
    std::for_each(from, std::unique(from, to),
                  [&](std::size_t begin) { stretches_.push_back({begin}); });
  }
  first_of_.push_back(static_cast<int>(stretches_.size()));
  links_.reserve(touched.size());
  for (const Touched& t : touched) add_to(t.memory, t.operation, t.begin, t.end - t.begin);
}

Footprint::Range Footprint::stretches(std::size_t memory, std::size_t offset,
                                      std::size_t bytes) const {
  const auto all = stretches_.begin();
  const auto from = all + first_of_[memory], to = all + first_of_[memory + 1];
  auto first = from;
  if (from != to) {
    // Blocks are mostly of one size: it is where it would be if all were.
    const auto blocks = static_cast<std::size_t>(to - from - 1);
    const std::size_t length = (to - 1)->begin - from->begin;
    const std::size_t before = offset - from->begin;
    if (before < length) {
      first += static_cast<std::ptrdiff_t>(std::min(before / (length / blocks), blocks));
    }
    if (first->begin != offset) {
      first = std::lower_bound(from, to, offset,
                               [](const Stretch& s, std::size_t at) { return s.begin < at; });
    }
  }
  auto last = first;
  while (last != to && last->begin < offset + bytes) ++last;
  return {static_cast<int>(first - all), static_cast<int>(last - all)};
}

void Footprint::add(Rank rank, int operation, Place place, std::size_t bytes) {
  add_to(memories_.number(rank, place), operation, place.offset, bytes);
}

void Footprint::add_to(std::size_t memory, int operation, std::size_t offset, std::size_t bytes) {
  const auto [first, last] = stretches(memory, offset, bytes);
  for (int i = first; i < last; ++i) {
    Stretch& stretch = stretches_[static_cast<std::size_t>(i)];
    const auto link = static_cast<int>(links_.size());
    links_.push_back({operation, first, last});
    (stretch.first == kNone ? stretch.first : links_[static_cast<std::size_t>(stretch.last)].next) =
        link;
    stretch.last = link;
  }
}

}  // namespace rankine
