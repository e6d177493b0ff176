#include "engine/compile/passes.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/memory.h"
#include "engine/compile/ssa.h"

namespace rankine {
namespace {

class Stage {
 public:
  Stage(const DataflowProgram& program, const StageOptions& options)
      : old_(program),
        options_(options),
        piece_(std::max(options.piece / options.element_bytes, std::size_t{1}) *
               options.element_bytes),
        cut_(program.operations.size()),
        first_show_(program.operations.size(), kNone),
        next_show_(program.operations.size(), kNone),
        read_by_its_rank_(program.operations.size(), false) {
    new_.ranks = old_.ranks;
    new_.rounds = old_.rounds;
    new_.scratch_bytes = old_.scratch_bytes;
  }

  DataflowProgram run() {
    const auto operations = static_cast<int>(old_.operations.size());
    for (int i = operations - 1; i >= 0; --i) look_at(i);
    for (int i = 0; i < operations; ++i) {
      if (cut_of(i).pieces > 0) continue;  // already added: it shows another operation
      const int show = first_show_[index(i)];
      if (show != kNone && old(show).bytes == old(i).bytes) {
        add_in_turns(i, show);
        continue;
      }
      add(i);
      // All shows of a rank and round move up, and stay in order.
      for (int s = show; s != kNone; s = next_show_[index(s)]) add(s);
    }
    return std::move(new_);
  }

 private:
  static constexpr int kNone = -1;

  // The pieces of an old operation: new operations from `first` on, `stride` apart.
  struct Cut {
    int first = 0, stride = 1, pieces = 0;
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  const Operation& old(int i) const { return old_.operations[index(i)]; }
  const Source& source(int i) const { return old_.sources[index(i)]; }
  Cut& cut_of(int i) { return cut_[index(i)]; }

  void look_at(int i) {
    step(options_.meter);
    const Operation& op = old(i);
    for (int s = 0; s < op.sources; ++s) {
      const Source& from = source(op.first_source + s);
      if (from.producer < 0 || from.rank != op.rank) continue;
      read_by_its_rank_[index(from.producer)] = true;
      // Only an operation that shows a result reads data of its own round.
      if (old(from.producer).round != op.round || op.sources > 1) continue;
      next_show_[index(i)] = std::exchange(first_show_[index(from.producer)], i);
    }
  }

  void add(int i) {
    begin(i, 1, 0);
    for (int piece = 0; piece < cut_of(i).pieces; ++piece) add(i, piece);
  }

  void add_in_turns(int i, int show) {
    begin(i, 2, 0);
    begin(show, 2, 1);
    for (int piece = 0; piece < cut_of(i).pieces; ++piece) {
      add(i, piece);
      add(show, piece);
    }
  }

  void begin(int i, int stride, int after) {
    // The last piece takes the rest.
    const std::size_t pieces = std::max<std::size_t>(1, old(i).bytes / piece_);
    cut_of(i) = {static_cast<int>(new_.operations.size()) + after, stride,
                 static_cast<int>(pieces)};
  }

  void add(int i, int piece) {
    if (cut_of(i).pieces > 1 && options_.meter != nullptr) options_.meter->move();
    Operation op = old(i);
    const std::size_t begin = index(piece) * piece_;
    const bool is_last = piece + 1 == cut_of(i).pieces;
    op.bytes = (is_last ? op.bytes : begin + piece_) - begin;
    op.destination.offset += begin;
    op.stages = op.destination.memory == Memory::scratch && old(i).bytes >= options_.stream &&
                !read_by_its_rank_[index(i)];
    op.first_source = static_cast<int>(new_.sources.size());
    for (int s = 0; s < op.sources; ++s) {
      Source from = source(old(i).first_source + s);
      from.place.offset += begin;
      if (from.producer >= 0) from.producer = last_piece_of(from, op.bytes);
      op.fetches |= from.rank != op.rank && old(i).bytes >= options_.stream;
      new_.sources.push_back(from);
    }
    op.first_earlier = static_cast<int>(new_.earlier.size());
    for (int e = 0; e < op.earlier; ++e) {
      const Cut& reader = cut_of(old_.earlier[index(old(i).first_earlier + e)]);
      new_.earlier.push_back(reader.first + (reader.pieces - 1) * reader.stride);
    }
    new_.operations.push_back(op);
  }

  // The new operation after which these bytes are complete. If several operations have made them,
  // the program names the last one, and the earlier ones are done when its first piece is.
  int last_piece_of(const Source& from, std::size_t bytes) {
    const Operation& made = old(from.producer);
    const Cut& cut = cut_of(from.producer);
    if (options_.mutant == StageMutant::first_pieces) return cut.first;
    const std::size_t end = from.place.offset + bytes;
    const std::size_t begin = made.destination.offset;
    const std::size_t piece = end > begin ? (end - begin - 1) / piece_ : 0;
    return cut.first + cut.stride * static_cast<int>(std::min(piece, index(cut.pieces - 1)));
  }

  const DataflowProgram& old_;
  const StageOptions& options_;
  const std::size_t piece_;
  std::vector<Cut> cut_;         // by old operation
  std::vector<int> first_show_;  // by old operation: the operation that shows its result
  // by old operation: the next one that shows a part of the same result
  std::vector<int> next_show_;
  std::vector<bool> read_by_its_rank_;  // by old operation
  DataflowProgram new_;
};

}  // namespace

DataflowProgram stage(const DataflowProgram& program, const StageOptions& options) {
  return Stage(program, options).run();
}

namespace {

std::size_t largest_block(const Layout& layout) {
  std::size_t bytes = 0;
  for (const BlockHome& block : layout.blocks) bytes = std::max(bytes, block.bytes);
  return bytes;
}

bool all_are_equal(const Layout& layout) {
  return std::all_of(layout.blocks.begin(), layout.blocks.end(), [&](const BlockHome& block) {
    return block.bytes == layout.blocks.front().bytes;
  });
}

std::size_t most_scratch(const DataflowProgram& program) {
  return *std::max_element(program.scratch_bytes.begin(), program.scratch_bytes.end());
}

// `bytes` bytes of every block, from `begin` on.
Layout part_of(const Layout& layout, std::size_t begin, std::size_t bytes) {
  Layout part{layout.element_bytes, {}};
  part.blocks.reserve(layout.blocks.size());
  for (const BlockHome& block : layout.blocks) {
    const std::size_t before = std::min(begin, block.bytes);
    part.blocks.push_back(
        {block.input + before, block.output + before, std::min(bytes, block.bytes - before)});
  }
  return part;
}

bool same_sizes(const Layout& a, const Layout& b) {
  return std::equal(a.blocks.begin(), a.blocks.end(), b.blocks.begin(), b.blocks.end(),
                    [](const BlockHome& x, const BlockHome& y) { return x.bytes == y.bytes; });
}

// Appends programs one behind the other.
class Series {
 public:
  Series(const std::vector<std::size_t>& scratch_of_a_turn, const DataflowProgram& first,
         TurnMutant mutant, PlanningBudget* meter)
      : ranks_(scratch_of_a_turn.size()),
        scratch_(scratch_of_a_turn),
        mutant_(mutant),
        meter_(meter),
        readers_{std::vector<int>(ranks_ * ranks_, kNobody),
                 std::vector<int>(ranks_ * ranks_, kNobody)} {
    all_.ranks = first.ranks;
    all_.rounds = first.rounds;
    for (const std::size_t bytes : scratch_) all_.scratch_bytes.push_back(2 * bytes);
  }

  // A program and its position in the series.
  class Turn {
    friend class Series;
    const DataflowProgram* program = nullptr;
    std::size_t shift = 0;    // offset in the users' buffers
    std::size_t half = 0;     // half of the scratch
    std::vector<int> at;      // by its operations: their numbers in the series
    std::vector<bool> begun;  // by rank: has an operation in the series
    // The last readers of each rank's half, two turns ago.
    std::vector<int> before;
  };
  // Begins the next turn.
  Turn begin(const DataflowProgram& program, std::size_t shift) {
    Turn turn;
    turn.program = &program;
    turn.shift = shift;
    turn.half = turns_++ % 2;
    turn.at.resize(program.operations.size());
    turn.begun.resize(ranks_);
    turn.before = std::exchange(readers_[turn.half], std::vector<int>(ranks_ * ranks_, kNobody));
    return turn;
  }
  // Adds the turn's operations from round `from` to before round `to`.
  void add(Turn& turn, int from, int to) {
    const HugeVector<Operation>& operations = turn.program->operations;
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const Operation& op = operations[i];
      if (op.round < from || op.round >= to) continue;
      if (turns_ > 1 && meter_ != nullptr) meter_->move();
      turn.at[i] = static_cast<int>(all_.operations.size());
      add(turn, op);
    }
  }

  DataflowProgram take() { return std::move(all_); }

 private:
  static constexpr int kNobody = -1;
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  Place moved(const Turn& turn, Rank rank, Place place) const {
    place.offset +=
        place.memory == Memory::scratch ? turn.half * scratch_[index(rank)] : turn.shift;
    return place;
  }

  void add(Turn& turn, const Operation& op) {
    const DataflowProgram& program = *turn.program;
    Operation next = op;
    next.destination = moved(turn, op.rank, op.destination);
    next.first_source = static_cast<int>(all_.sources.size());
    for (int i = 0; i < op.sources; ++i) {
      Source from = program.sources[index(op.first_source + i)];
      from.place = moved(turn, from.rank, from.place);
      if (from.producer >= 0) from.producer = turn.at[index(from.producer)];
      if (from.rank != op.rank) {
        readers_[turn.half][index(from.rank) * ranks_ + index(op.rank)] =
            static_cast<int>(all_.operations.size());
      }
      all_.sources.push_back(from);
    }
    next.first_earlier = static_cast<int>(all_.earlier.size());
    for (int i = 0; i < op.earlier; ++i) {
      all_.earlier.push_back(turn.at[index(program.earlier[index(op.first_earlier + i)])]);
    }
    // Wait before the rank's first operation of the turn: later passes may change the order of the
    // rest.
    if (!turn.begun[index(op.rank)] && mutant_ != TurnMutant::no_waits) {
      for (std::size_t q = 0; q < ranks_; ++q) {
        const int reader = turn.before[index(op.rank) * ranks_ + q];
        if (reader != kNobody) all_.earlier.push_back(reader);
      }
    }
    turn.begun[index(op.rank)] = true;
    next.earlier = static_cast<int>(all_.earlier.size()) - next.first_earlier;
    all_.operations.push_back(next);
  }

  const std::size_t ranks_;
  const std::vector<std::size_t> scratch_;  // by rank, per turn
  const TurnMutant mutant_;
  PlanningBudget* const meter_;
  std::size_t turns_ = 0;        // begun
  std::vector<int> readers_[2];  // by half, (r, q): the last operation of q that reads r's
  DataflowProgram all_;
};

}  // namespace

DataflowProgram in_turns(DataflowProgram whole, const Schedule& schedule,
                         const CollectiveSpec& goal, const Layout& layout, Buffers buffers,
                         const ProgramOptions& program, const TurnOptions& options) {
  const std::size_t scratch = most_scratch(whole);
  if (scratch <= 2 * options.scratch) return whole;
  if (buffers == Buffers::in_place && goal.collective == Collective::all_to_all &&
      !all_are_equal(layout)) {
    return whole;
  }
  // Borders of parts are borders of elements, and of lines if the blocks' borders are.
  const std::size_t unit = std::lcm(kCacheLine, layout.element_bytes);
  const auto whole_units = [unit](std::size_t bytes) { return (bytes + unit - 1) / unit * unit; };
  const std::size_t block = largest_block(layout);
  const std::size_t wanted = (scratch + options.scratch - 1) / options.scratch;
  const std::size_t part = whole_units(std::max((block + wanted - 1) / wanted, options.part));
  const std::size_t turns = (block + part - 1) / part;
  if (turns <= 2) return whole;
  const int rounds = whole.rounds;
  whole = {};

  // If all blocks have the length of the turn before, the operations are equal, further on.
  struct Made {
    DataflowProgram program;
    std::size_t first = 0;  // first turn with this program
  };
  std::vector<Made> made;
  Layout sizes;
  for (std::size_t i = 0; i < turns; ++i) {
    step(program.meter);
    Layout here = part_of(layout, i * part, part);
    if (i > 0 && same_sizes(here, sizes)) continue;
    // The schedule has been read before, so this succeeds.
    auto versions = *SsaForm::of(schedule, goal, here, program.meter);
    made.push_back({make_program(std::move(versions), goal, here, buffers, program), i});
    sizes = std::move(here);
  }
  std::vector<std::size_t> most(static_cast<std::size_t>(goal.ranks));
  for (const Made& one : made) {
    for (std::size_t r = 0; r < most.size(); ++r) {
      most[r] = std::max(most[r], one.program.scratch_bytes[r]);
    }
  }
  Series series(most, made.front().program, options.mutant, program.meter);
  std::size_t next_made = 0;
  const auto begin = [&](std::size_t i) {
    if (next_made < made.size() && made[next_made].first == i) ++next_made;
    const Made& one = made[next_made - 1];
    return series.begin(one.program, (i - one.first) * part);
  };
  // A turn stages before the last round of the turn before, so that no rank waits for the staging.
  Series::Turn turn = begin(0);
  series.add(turn, kStaging, 0);
  for (std::size_t i = 1; i < turns; ++i) {
    series.add(turn, 0, rounds - 1);
    Series::Turn next = begin(i);
    series.add(next, kStaging, 0);
    series.add(turn, rounds - 1, rounds);
    turn = std::move(next);
  }
  series.add(turn, 0, rounds);
  return series.take();
}

}  // namespace rankine
