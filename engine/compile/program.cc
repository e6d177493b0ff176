#include "engine/compile/program.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <tuple>
#include <utility>

#include "engine/base/memory.h"
#include "engine/compile/ssa.h"

namespace rankine {
namespace {

constexpr int kNone = Version::kNone;
// The memory of a version, before offsets are known.
enum class Home : std::uint8_t { input, output, scratch0, scratch1 };

// The place of a version or of its shown copy, and the operation that makes it.
struct Placed {
  int operation = kNone;
  std::uint32_t scratch : 30 = 0;  // index in Builder::scratch_, if its home is scratch
  Home home : 2 = Home::input;     // scratch0 for a shown copy
};
static_assert(sizeof(Placed) == 8);
constexpr std::uint32_t kMostScratch = (1U << 30) - 1;

// Lists of versions are mostly sorted; the check takes a part of a sort's time.
template <class T, class Before>
void sort_unless_sorted(std::vector<T>& list, const Before& before) {
  if (!std::is_sorted(list.begin(), list.end(), before)) {
    std::sort(list.begin(), list.end(), before);
  }
}

class Builder {
 public:
  Builder(std::shared_ptr<const SsaForm> versions, const CollectiveSpec& goal, const Layout& layout,
          Buffers buffers, const ProgramOptions& options)
      : versions_(std::move(versions)),
        goal_(goal),
        layout_(layout),
        options_(options),
        // An all-reduce's inputs are overwritten everywhere, an all-to-all's by other blocks, so
        // these two have different plans in place and with separate buffers. Elsewhere at most a
        // rank's own block lies in both buffers, and the plan for in place is as good with separate
        // ones (for a scan in one round except one copy, on the direct transport).
        shared_(buffers == Buffers::in_place || (goal.collective != Collective::all_reduce &&
                                                 goal.collective != Collective::all_to_all)),
        stage_all_(buffers == Buffers::in_place && goal.collective == Collective::all_to_all),
        placed_(static_cast<std::size_t>(versions_->size())),
        shown_(options.staged ? placed_.size() : 0) {}

  DataflowProgram build() {
    choose_homes();
    allocate_scratch();
    emit();
    // Release the largest parts, one after the other.
    versions_.reset();
    placed_ = {};
    shown_ = {};
    program_.operations = operations_.take();
    program_.sources = sources_.take();
    return std::move(program_);
  }

 private:
  const Version& at(int version) const { return (*versions_)[version]; }
  Placed& placed(int version) { return placed_[static_cast<std::size_t>(version)]; }
  const Placed& placed(int version) const { return placed_[static_cast<std::size_t>(version)]; }
  Placed& shown(int version) { return shown_[static_cast<std::size_t>(version)]; }
  const Placed& shown(int version) const { return shown_[static_cast<std::size_t>(version)]; }
  bool is_shown(int version) const { return options_.staged && shown(version).home != Home::input; }
  // The place that readers of rank `r` read.
  const Placed& seen_by(Rank r, int version) const {
    return at(version).rank != r && is_shown(version) ? shown(version) : placed(version);
  }
  const BlockHome& block_of(int slot) const {
    return layout_
        .blocks[static_cast<std::size_t>(is_vector(slot) ? slot : slot % versions_->blocks())];
  }
  // true if not a scratch plane
  bool is_vector(int slot) const { return slot < versions_->blocks(); }
  bool has_output(Rank r, int slot) const { return is_vector(slot) && goal_.must_hold(r, slot); }

  // --- places -------------------------------------------------------------------------------

  // True if an operation other than the next version's reads this version in the round that writes
  // the next one.
  bool is_read_while_replaced(const Version& v) {
    if (options_.mutant == ProgramOptions::Mutant::no_renaming) return false;
    const Version& next = at(v.next);
    // Other ranks read data that have been sent before, or a shown copy.
    const bool own_readers_only =
        options_.eager || (options_.staged && v.round == kStaging && !stage_all_);
    bool read = false;
    versions_->for_each_reader(v, [&](int reader) {
      read |= reader != v.next && at(reader).round == next.round &&
              !(own_readers_only && at(reader).rank != v.rank);
    });
    return read;
  }

  // True if other ranks read it and reach only scratch.
  bool must_be_in_scratch(const Version& v) {
    if (!options_.staged) return false;
    bool read = false;
    versions_->for_each_reader(v, [&](int reader) { read |= at(reader).rank != v.rank; });
    return read;
  }

  void choose_homes() {
    // Each chain is walked backwards from its last version.
    for (int i = 0; i < versions_->size(); ++i) {
      step(options_.meter);
      if (at(i).next == kNone) choose_homes_of_chain(i);
    }
  }

  void choose_homes_of_chain(int last) {
    const Rank r = at(last).rank;
    const int slot = at(last).slot;
    const bool output = has_output(r, slot);
    const auto elsewhere = [output](Home home, bool in_scratch) {
      if (home != Home::scratch0) return Home::scratch0;
      return output && !in_scratch ? Home::output : Home::scratch1;
    };
    int v = last;
    Home home = output ? Home::output : Home::scratch0;
    int first_written = kNone;
    while (v != kNone && at(v).round != kStaging) {
      const bool in_scratch = must_be_in_scratch(at(v));
      if (v == last) {
        if (in_scratch && home == Home::output) show(v);
      } else if (is_read_while_replaced(at(v))) {
        home = elsewhere(home, in_scratch);
      } else if (in_scratch && home == Home::output) {
        home = Home::scratch0;
      }
      placed(v).home = home;
      first_written = v;
      v = at(v).previous;
    }
    if (v == kNone) return;  // no version was there before: no input to protect
    if (stage_all_) {
      // If the first version would overwrite an input that others still read, the input moves.
      const bool taken = first_written != kNone && placed(first_written).home == Home::scratch0 &&
                         is_read_while_replaced(at(v));
      stage(v, taken ? Home::scratch1 : Home::scratch0);
    } else if (shared_ && output && first_written != kNone &&
               placed(first_written).home == Home::output && is_read_while_replaced(at(v))) {
      if (first_written == last) {
        stage(v, Home::scratch0);
      } else {
        const Home second = placed(at(first_written).next).home;
        placed(first_written).home = second == Home::scratch0 ? Home::scratch1 : Home::scratch0;
      }
    }
    if (placed(v).home == Home::input && must_be_in_scratch(at(v))) show(v);
    if (first_written == kNone && output) copy_to_output(v);
  }

  // The input version moves to scratch before round 0, and all its readers follow. The staging
  // operation's source is the slot's place in the input.
  void stage(int input, Home home) {
    if (options_.mutant == ProgramOptions::Mutant::no_staging) return;
    placed(input).home = home;
    staged_.push_back(input);
  }

  void copy_to_output(int input) { local_copies_.push_back(input); }

  // The copy has its own place, which no other version uses.
  void show(int version) {
    shown(version).home = Home::scratch0;
    (at(version).round == kStaging ? shown_inputs_ : shown_results_).push_back(version);
  }

  enum class Area : std::uint8_t { scratch0, scratch1, inputs, results };
  struct InScratch {
    Rank rank = 0;
    Area area = Area::scratch0;
    int slot = 0;
    Placed* placed = nullptr;

    auto where() const { return std::tuple(rank, area, slot); }
  };

  // Order: scratch0, then scratch1, then shown inputs, then shown results, each by slot; the
  // versions of a place share it.
  void allocate_scratch() {
    std::vector<InScratch> there;
    const auto add_to = [&](Area area, int version, Placed& placed) {
      there.push_back({at(version).rank, area, at(version).slot, &placed});
    };
    for (int i = 0; i < versions_->size(); ++i) {
      const Home home = placed(i).home;
      if (home == Home::scratch0) add_to(Area::scratch0, i, placed(i));
      if (home == Home::scratch1) add_to(Area::scratch1, i, placed(i));
    }
    for (const int v : shown_inputs_) add_to(Area::inputs, v, shown(v));
    for (const int v : shown_results_) add_to(Area::results, v, shown(v));
    sort_unless_sorted(
        there, [](const InScratch& a, const InScratch& b) { return a.where() < b.where(); });
    program_.scratch_bytes.assign(static_cast<std::size_t>(versions_->ranks()), 0);
    for (std::size_t i = 0; i < there.size(); ++i) {
      step(options_.meter);
      const InScratch& one = there[i];
      std::size_t& end = program_.scratch_bytes[static_cast<std::size_t>(one.rank)];
      if (i == 0 || one.where() != there[i - 1].where()) {
        if (i > 0 && there[i - 1].rank == one.rank && there[i - 1].area != one.area) {
          // A line between them, so that no operation continues from one area to the other.
          end = whole_lines(end) + (one.area < Area::inputs ? 0 : kCacheLine);
        }
        scratch_.push_back(end);
        end += block_of(one.slot).bytes;
      }
      one.placed->scratch = static_cast<std::uint32_t>(scratch_.size() - 1) & kMostScratch;
    }
    for (std::size_t& end : program_.scratch_bytes) end = whole_lines(end);
  }

  Place place(int version) const { return place(version, placed(version)); }
  Place place(int version, const Placed& there) const {
    const BlockHome& block = block_of(at(version).slot);
    switch (there.home) {
      case Home::input:
        return {Memory::input, block.input};
      case Home::output:
        return {Memory::output, block.output};
      case Home::scratch0:
      case Home::scratch1:
        return {Memory::scratch, scratch_[static_cast<std::size_t>(there.scratch)]};
    }
    return {};
  }

  // --- operations ---------------------------------------------------------------------------

  // Group the blocks of one rank, so that neighbours become one operation.
  void sort_by_place(std::vector<int>& versions) {
    sort_unless_sorted(versions, [this](int a, int b) {
      return std::pair(at(a).rank, at(a).slot) < std::pair(at(b).rank, at(b).slot);
    });
  }

  void emit() {
    sort_by_place(staged_);
    sort_by_place(shown_inputs_);
    sort_by_place(local_copies_);
    // Those of a rank and round in the order in which they are made.
    std::sort(shown_results_.begin(), shown_results_.end(), [this](int a, int b) {
      return std::tuple(at(a).round, at(a).rank, a) < std::tuple(at(b).round, at(b).rank, b);
    });
    program_.ranks = versions_->ranks();
    program_.rounds = versions_->rounds();
    program_.eager = options_.eager;
    const std::size_t besides =
        staged_.size() + shown_inputs_.size() + shown_results_.size() + local_copies_.size();
    operations_.expect(static_cast<std::size_t>(versions_->size()) + besides);
    // Sums also need about two sources per rank, which copy_then_reduce() adds.
    const int first_copies = versions_->adds_up() ? 2 * versions_->ranks() : 0;
    sources_.expect(static_cast<std::size_t>(versions_->sources() + first_copies) + besides);
    for (const int v : staged_) {
      const Place from{Memory::input, block_of(at(v).slot).input};
      placed(v).operation = add({at(v).rank, kStaging, place(v), block_of(at(v).slot).bytes},
                                {{at(v).rank, kNone, from}}, {});
    }
    for (const int v : shown_inputs_) add_show(v);
    // Own blocks that only change buffers depend on no rank, and go first. They come from the
    // input, staged or not, unless other blocks' outputs lie over it.
    for (const int v : local_copies_) {
      Operation copy = copy_of(v, 0);
      copy.only_if_moved = !stage_all_;
      if (stage_all_) {
        add(copy, {{at(v).rank, placed(v).operation, place(v)}}, {});
      } else {
        add(copy, {{at(v).rank, kNone, {Memory::input, block_of(at(v).slot).input}}}, {});
      }
    }
    std::vector<std::tuple<Rank, int, int>> made_from;  // the version is last
    std::vector<Source> sources;
    std::vector<int> earlier;
    for (int i = 0; i < versions_->size(); ++i) {
      step(options_.meter);
      fetch_source(i + kAhead);
      const Version& v = at(i);
      if (v.round == kStaging) continue;
      show_results_until(v.round);
      made_from.clear();
      versions_->for_each_source(v, [&](int s) {
        made_from.push_back({at(s).lowest, static_cast<int>(made_from.size()), s});
      });
      // The language's order of additions (schedule.h), equal for every adder; otherwise as stated.
      sort_unless_sorted(made_from, std::less<>());
      sources.clear();
      for (const auto& [lowest, stated, s] : made_from) {
        const Placed& seen = seen_by(v.rank, s);
        sources.push_back({at(s).rank, seen.operation, place(s, seen)});
      }
      earlier.clear();
      const int occupant = occupant_before(i);
      // Other ranks read the copy of a shown version.
      if (occupant != kNone && !is_shown(occupant)) {
        versions_->for_each_reader(at(occupant), [&](int reader) {
          // Without renaming (a mutant) a reader may come later; otherwise all are of earlier
          // rounds.
          if (at(reader).rank == v.rank || placed(reader).operation == kNone) return;
          earlier.push_back(placed(reader).operation);
        });
      }
      Operation op{v.rank, v.round, place(i), block_of(v.slot).bytes};
      op.replaces = v.previous != kNone;
      op.completes = v.contributions == goal_.ranks && sources.size() > 1;
      placed(i).operation = add(op, sources, earlier);
    }
    show_results_until(versions_->rounds());
  }

  // The copy of a version to its rank's output.
  Operation copy_of(int v, int round) const {
    const BlockHome& block = block_of(at(v).slot);
    return {at(v).rank, round, {Memory::output, block.output}, block.bytes};
  }

  void add_show(int v) {
    shown(v).operation =
        add({at(v).rank, at(v).round, place(v, shown(v)), block_of(at(v).slot).bytes},
            {{at(v).rank, placed(v).operation, place(v)}}, {});
  }

  // Shows the results that rounds before `round` have made in the output for others to read.
  void show_results_until(int round) {
    if (options_.mutant == ProgramOptions::Mutant::no_shown_results) return;
    for (; results_shown_ < shown_results_.size(); ++results_shown_) {
      const int v = shown_results_[results_shown_];
      if (at(v).round >= round) return;
      add_show(v);
    }
  }

  // The sources of consecutive versions lie far apart in memory, so prefetch them.
  static constexpr int kAhead = 8;
  void fetch_source(int version) const {
    if (version >= versions_->size()) return;
    const int source = versions_->last_source(at(version));
    if (source == kNone) return;
    __builtin_prefetch(&at(source));
    __builtin_prefetch(&placed(source));
  }

  // The version that last held the memory of v. (The write of that version already waited for the
  // readers of earlier ones.)
  int occupant_before(int v) {
    const Home home = placed(v).home;
    for (int u = at(v).previous; u != kNone; u = at(u).previous) {
      step(options_.meter);
      const bool input_under_output =
          shared_ && placed(u).home == Home::input && home == Home::output;
      if (placed(u).home == home || input_under_output) return u;
    }
    return kNone;
  }

  // Appends an operation, or extends the last one if the new one continues it at every place.
  int add(Operation op, const std::vector<Source>& sources, const std::vector<int>& earlier) {
    if (operations_.size() > 0 && continues(operations_[operations_.size() - 1], op, sources)) {
      Operation& last = operations_[operations_.size() - 1];
      for (std::size_t i = 0; i < sources.size(); ++i) {
        Source& s = sources_[last.first_source + static_cast<int>(i)];
        s.producer = std::max(s.producer, sources[i].producer);
      }
      for (const int e : earlier) {
        program_.earlier.push_back(e);
        ++last.earlier;
      }
      last.bytes += op.bytes;
      last.replaces |= op.replaces;
      return operations_.size() - 1;
    }
    op.first_source = sources_.size();
    op.sources = static_cast<int>(sources.size());
    op.first_earlier = static_cast<int>(program_.earlier.size());
    op.earlier = static_cast<int>(earlier.size());
    for (const Source& s : sources) sources_.add(s);
    program_.earlier.insert(program_.earlier.end(), earlier.begin(), earlier.end());
    return operations_.add(op);
  }

  bool continues(const Operation& last, const Operation& op,
                 const std::vector<Source>& sources) const {
    const auto follows = [&last](Place before, Place after) {
      return before.memory == after.memory && before.offset + last.bytes == after.offset;
    };
    if (last.rank != op.rank || last.round != op.round || last.completes != op.completes ||
        last.only_if_moved != op.only_if_moved ||
        last.sources != static_cast<int>(sources.size()) ||
        !follows(last.destination, op.destination)) {
      return false;
    }
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const Source& s = sources_[last.first_source + static_cast<int>(i)];
      if (s.rank != sources[i].rank || !follows(s.place, sources[i].place)) return false;
    }
    return true;
  }

  std::shared_ptr<const SsaForm> versions_;
  const CollectiveSpec& goal_;
  const Layout& layout_;
  const ProgramOptions& options_;
  const bool shared_;          // output may be the same memory as the input
  const bool stage_all_;       // inputs lie under other blocks' outputs
  HugeVector<Placed> placed_;  // by version
  HugeVector<Placed> shown_;   // by version, if peers reach only scratch
  std::vector<int> staged_, local_copies_;
  std::vector<int> shown_inputs_, shown_results_;
  std::size_t results_shown_ = 0;     // of shown_results_, so far
  std::vector<std::size_t> scratch_;  // offsets
  Pool<Operation> operations_;        // becomes program_.operations
  Pool<Source> sources_;              // becomes program_.sources
  DataflowProgram program_;
};

}  // namespace

DataflowProgram make_program(std::shared_ptr<const SsaForm> versions, const CollectiveSpec& goal,
                             const Layout& layout, Buffers buffers, const ProgramOptions& options) {
  return Builder(std::move(versions), goal, layout, buffers, options).build();
}

Result<DataflowProgram> make_program(const Schedule& schedule, const CollectiveSpec& goal,
                                     const Layout& layout, Buffers buffers,
                                     const ProgramOptions& options) {
  auto versions = SsaForm::of(schedule, goal, layout, options.meter);
  if (!versions.ok()) return versions.status();
  return make_program(std::move(*versions), goal, layout, buffers, options);
}

void mark_streams(DataflowProgram& program, std::size_t from) {
  for (Operation& op : program.operations) {
    const bool results = op.destination.memory == Memory::output || op.copies > 0;
    op.streams = results && op.bytes >= from && !op.pushed;
  }
  for (const Operation& op : program.operations) {
    if (op.pushed) continue;
    for (int i = 0; i < op.sources; ++i) {
      const Source& s = program.sources[static_cast<std::size_t>(op.first_source + i)];
      if (s.producer >= 0) program.operations[static_cast<std::size_t>(s.producer)].streams = false;
    }
  }
}

namespace {

// Calls visit(rank, place) for every place that an operation touches.
template <class Visit>
void for_each_place(const DataflowProgram& program, const Operation& op, const Visit& visit) {
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

// The borders of the ranges that operations touch in one memory. Rounds touch equal ranges again
// and again, sometimes two kinds alternately (ranges stored, ranges read). Most are one of the two
// found last, or the range behind; otherwise, if all have one size and first came in order, their
// place is computable.
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

  // In order, without duplicates.
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
    // A number below 0 wraps to one beyond all elements.
    if (last_ >= all_.size() || begin == end) return 0;
    const std::size_t from = all_[last_], bytes = end - begin;
    return begin < from ? last_ - 2 * ((from - begin) / bytes)
                        : last_ + 2 * ((begin - from) / bytes);
  }

  std::vector<std::size_t> all_;       // pairs
  std::size_t last_ = 0, before_ = 0;  // indices found last and before
};

}  // namespace

Footprint::Footprint(const DataflowProgram& program, Memories asked, std::size_t further,
                     PlanningBudget* meter)
    : memories_(std::move(asked)) {
  // Calls visit(memory, operation, begin, end) for every touched range of the queried memory.
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
  // Some operations touch several stretches, such as a rank's whole vector.
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
    // Blocks mostly have one size: look where it would be in that case.
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
