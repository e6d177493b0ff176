#include "engine/compile/footprint.h"

#include <utility>

namespace rankine {

// visit(memory, operation, offset, bytes) for all that the program's operations touch in the
// memories that will be asked about, in their order.
template <class Visit>
void Footprint::for_each_touch(const Program& program, PlanMeter* meter, const Visit& visit) const {
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const Operation& op = program.operations[i];
    if (op.bytes == 0) continue;
    const auto touches = [&](Rank rank, Place place) {
      step(meter);
      const std::size_t memory = memories_.number(rank, place);
      if (memories_.are_in_[memory] == 0) return;
      visit(memory, static_cast<int>(i), place.offset, op.bytes);
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
}

Footprint::Footprint(const Program& program, Memories asked, PlanMeter* meter)
    : memories_(std::move(asked)) {
  std::vector<std::vector<std::size_t>> ends(memories_.are_in_.size());
  std::size_t touches = 0;
  for_each_touch(program, meter,
                 [&](std::size_t memory, int, std::size_t offset, std::size_t bytes) {
                   ++touches;
                   std::vector<std::size_t>& here = ends[memory];
                   const std::size_t last = here.size();
                   // Many in a row touch the same.
                   const bool again =
                       last >= 2 && here[last - 2] == offset && here[last - 1] == offset + bytes;
                   if (!again) here.insert(here.end(), {offset, offset + bytes});
                 });
  first_of_.reserve(ends.size() + 1);
  for (std::vector<std::size_t>& here : ends) {
    step(meter);
    std::sort(here.begin(), here.end());
    here.erase(std::unique(here.begin(), here.end()), here.end());
    first_of_.push_back(static_cast<int>(stretches_.size()));
    for (const std::size_t begin : here) stretches_.push_back({begin});
    here = std::vector<std::size_t>();
  }
  first_of_.push_back(static_cast<int>(stretches_.size()));
  next_of_ = first_of_;
  links_.reserve(touches);
  for_each_touch(program, meter,
                 [&](std::size_t memory, int operation, std::size_t offset, std::size_t bytes) {
                   add_to(memory, operation, offset, bytes);
                 });
}

Footprint::Range Footprint::stretches(std::size_t memory, std::size_t offset,
                                      std::size_t bytes) const {
  const auto all = stretches_.begin();
  const auto from = all + first_of_[memory], to = all + first_of_[memory + 1];
  // Blocks are often looked for in order.
  auto first = all + next_of_[memory];
  if (first == to || first->begin != offset) {
    first = std::lower_bound(from, to, offset,
                             [](const Stretch& s, std::size_t at) { return s.begin < at; });
  }
  auto last = first;
  while (last != to && last->begin < offset + bytes) ++last;
  next_of_[memory] = static_cast<int>(last - all);
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
