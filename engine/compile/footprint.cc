#include "engine/compile/footprint.h"

namespace rankine {

// visit(rank, operation, place, bytes) for all that the program's operations touch, in their order.
template <class Visit>
void Footprint::for_each_touch(const Program& program, const Visit& visit) {
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& op = program.operations[i];
    if (op.bytes == 0) continue;
    const auto index = static_cast<int>(i);
    visit(op.rank, index, op.destination, op.bytes);
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      visit(source.rank, index, source.place, op.bytes);
    }
    for (int c = 0; c < op.copies; ++c) {
      const Copy& to = program.copies[static_cast<std::size_t>(op.first_copy + c)];
      visit(to.rank, index, to.place, op.bytes);
    }
  }
}

Footprint::Footprint(const Program& program, Buffers buffers, PlanMeter* meter)
    : one_memory_(buffers == Buffers::in_place) {
  const std::size_t memories = static_cast<std::size_t>(program.ranks) * kMemories;
  std::vector<std::vector<std::size_t>> ends(memories);
  std::size_t touches = 0;
  for_each_touch(program, [&](Rank rank, int, Place place, std::size_t bytes) {
    step(meter);
    ++touches;
    place = resolved(place);
    std::vector<std::size_t>& here = ends[memory_of(rank, place)];
    const std::size_t last = here.size();
    // Many in a row touch the same.
    const bool again =
        last >= 2 && here[last - 2] == place.offset && here[last - 1] == place.offset + bytes;
    if (!again) here.insert(here.end(), {place.offset, place.offset + bytes});
  });
  first_of_.reserve(memories + 1);
  for (std::vector<std::size_t>& here : ends) {
    step(meter);
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    first_of_.push_back(stretches_.size());
    for (const std::size_t begin : here) stretches_.push_back({begin});
    here = std::vector<std::size_t>();
  }
  first_of_.push_back(stretches_.size());
  next_of_ = first_of_;
  touches += program.operations.size();  // a pass may add one for each
  touches_.reserve(touches);
  links_.reserve(touches);
  for_each_touch(program, [&](Rank rank, int operation, Place place, std::size_t bytes) {
    step(meter);
    add(rank, operation, place, bytes);
  });
}

Footprint::Range Footprint::stretches(Rank rank, Place place, std::size_t bytes) const {
  const std::size_t memory = memory_of(rank, place);
  const auto from = stretches_.begin() + static_cast<std::ptrdiff_t>(first_of_[memory]);
  const auto to = stretches_.begin() + static_cast<std::ptrdiff_t>(first_of_[memory + 1]);
  const auto begins_before = [](const Stretch& s, std::size_t offset) { return s.begin < offset; };
  // Blocks are often asked for in order.
  auto first = stretches_.begin() + static_cast<std::ptrdiff_t>(next_of_[memory]);
  if (first == to || first->begin != place.offset)
    first = std::lower_bound(from, to, place.offset, begins_before);
  auto last = first;
  while (last != to && last->begin < place.offset + bytes) ++last;
  next_of_[memory] = static_cast<std::size_t>(last - stretches_.begin());
  return {static_cast<std::size_t>(first - stretches_.begin()),
          static_cast<std::size_t>(last - stretches_.begin())};
}

void Footprint::add(Rank rank, int operation, Place place, std::size_t bytes) {
  place = resolved(place);
  const auto touch = static_cast<int>(touches_.size());
  touches_.push_back({operation, place, bytes});
  const auto [first, last] = stretches(rank, place, bytes);
  for (std::size_t i = first; i < last; ++i) {
    Stretch& stretch = stretches_[i];
    const auto link = static_cast<int>(links_.size());
    links_.push_back({touch});
    (stretch.first == kNone ? stretch.first : links_[static_cast<std::size_t>(stretch.last)].next) =
        link;
    stretch.last = link;
  }
}

}  // namespace rankine
