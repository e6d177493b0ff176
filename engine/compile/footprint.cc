#include "engine/compile/footprint.h"

#include <cstddef>
#include <utility>

namespace rankine {
namespace {

// Calls visit(rank, place) for all that an operation touches.
template <class Visit>
void for_each_place(const Program& program, const Operation& op, const Visit& visit) {
  visit(op.rank, op.destination);
  for (int s = 0; s < op.sources; ++s) {
    const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
    visit(source.rank, source.place);
  }
  for (int c = 0; c < op.copies; ++c) {
    const Copy& to = program.copies[static_cast<std::size_t>(op.first_copy + c)];
    visit(to.rank, to.place);
  }
}

// Where what is touched of a memory begins and ends. Rounds touch the same blocks again and again,
// and some of them two kinds in turn (what they store, and what they read on from): most are what
// was asked for lately, or the one behind; or, being of one size and first met in order, where they
// would be if all were.
class TouchedBorders {
 public:
  void add(std::size_t begin, std::size_t end) {
    for (const std::size_t at : {last_, last_ + 2, before_}) {
      if (is(at, begin, end)) return found(at);
    }
    const std::size_t there = expected(begin, end);
    if (is(there, begin, end)) return found(there);
    found(all_.size());
    all_.push_back(begin);
    all_.push_back(end);
  }

  // In order, each once.
  const std::vector<std::size_t>& sorted() {
    if (!std::is_sorted(all_.begin(), all_.end())) std::sort(all_.begin(), all_.end());
    all_.erase(std::unique(all_.begin(), all_.end()), all_.end());
    return all_;
  }

 private:
  bool is(std::size_t at, std::size_t begin, std::size_t end) const {
    return at < all_.size() && all_[at] == begin && all_[at + 1] == end;
  }
  void found(std::size_t at) {
    if (at != last_) before_ = std::exchange(last_, at);
  }
  std::size_t expected(std::size_t begin, std::size_t end) const {
    // A number below 0 is larger than all that there are.
    if (last_ >= all_.size() || begin == end) return 0;
    const std::size_t from = all_[last_], bytes = end - begin;
    return begin < from ? last_ - 2 * ((from - begin) / bytes)
                        : last_ + 2 * ((begin - from) / bytes);
  }

  std::vector<std::size_t> all_;       // pairs
  std::size_t last_ = 0, before_ = 0;  // found
};

}  // namespace

Footprint::Footprint(const Program& program, Memories asked, std::size_t further, PlanMeter* meter)
    : memories_(std::move(asked)) {
  // Calls visit(memory, operation, begin, end) for all that is touched there.
  std::size_t touches = 0;
  const auto for_each_touch = [&](const auto& visit) {
    for (std::size_t i = 0; i < program.operations.size(); ++i) {
      const Operation& op = program.operations[i];
      if (op.bytes == 0) continue;
      for_each_place(program, op, [&](Rank rank, Place place) {
        step(meter);
        const std::size_t memory = memories_.number(rank, place);
        const std::size_t begin = place.offset, end = begin + op.bytes;
        if (!memories_.asked_[memory].touched_by(begin, end)) return;
        visit(memory, static_cast<int>(i), begin, end);
      });
    }
  };
  std::vector<TouchedBorders> borders(memories_.asked_.size());
  for_each_touch([&](std::size_t memory, int, std::size_t begin, std::size_t end) {
    borders[memory].add(begin, end);
    ++touches;
  });
  of_memory_.reserve(borders.size());
  for (TouchedBorders& of_memory : borders) {
    step(meter);
    OfMemory here{.first = static_cast<int>(stretches_.size())};
    const std::vector<std::size_t>& all = of_memory.sorted();
    for (const std::size_t begin : all) stretches_.push_back({begin});
    here.last = static_cast<int>(stretches_.size());
    if (all.size() > 1) here.length = (all.back() - all.front()) / (all.size() - 1);
    of_memory_.push_back(here);
  }
  // Some touch several stretches, such as a rank's whole vector.
  links_.reserve(touches + stretches_.size() + further);
  for_each_touch([&](std::size_t memory, int operation, std::size_t begin, std::size_t end) {
    add_to(memory, operation, begin, end - begin);
  });
}

Footprint::Range Footprint::stretches(std::size_t memory, std::size_t offset,
                                      std::size_t bytes) const {
  const auto all = stretches_.begin();
  const OfMemory& there = of_memory_[memory];
  const auto from = all + there.first, to = all + there.last;
  auto first = from;
  if (from != to) {
    // Blocks are mostly of one size: it is where it would be if all were.
    const auto blocks = static_cast<std::size_t>(to - from - 1);
    if (offset >= from->begin) {
      first += static_cast<std::ptrdiff_t>(std::min((offset - from->begin) / there.length, blocks));
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
