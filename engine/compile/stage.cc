#include "engine/compile/stage.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankine {
namespace {

class Stage {
 public:
  Stage(const Program& program, const StageOptions& options)
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

  Program run() {
    const auto operations = static_cast<int>(old_.operations.size());
    for (int i = operations - 1; i >= 0; --i) look_at(i);
    for (int i = 0; i < operations; ++i) {
      if (cut_of(i).pieces > 0) continue;  // as what shows another one
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

  // The pieces of an old operation: new ones from `first` on, each `stride` after the one before.
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
      // Nothing but what shows a result reads what its own round has made.
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
    // The last one takes what is left.
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

  // The new operation after which these bytes are there. Where several have made them, the program
  // names the last one, and those before it are done when its first piece is.
  int last_piece_of(const Source& from, std::size_t bytes) {
    const Operation& made = old(from.producer);
    const Cut& cut = cut_of(from.producer);
    if (options_.mutant == StageMutant::first_pieces) return cut.first;
    const std::size_t end = from.place.offset + bytes;
    const std::size_t begin = made.destination.offset;
    const std::size_t piece = end > begin ? (end - begin - 1) / piece_ : 0;
    return cut.first + cut.stride * static_cast<int>(std::min(piece, index(cut.pieces - 1)));
  }

  const Program& old_;
  const StageOptions& options_;
  const std::size_t piece_;
  std::vector<Cut> cut_;                // by old operation
  std::vector<int> first_show_;         // likewise: which one shows what it has made
  std::vector<int> next_show_;          // likewise: which one shows more of the same operation
  std::vector<bool> read_by_its_rank_;  // likewise
  Program new_;
};

}  // namespace

Program stage(const Program& program, const StageOptions& options) {
  return Stage(program, options).run();
}

}  // namespace rankine
