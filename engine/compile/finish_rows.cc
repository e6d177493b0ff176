#include "engine/compile/finish_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace rankine {
namespace {

struct Range {
  std::size_t begin = 0, end = 0;
};

// Which of 0 to `end` - 1 have been taken.
class Taken {
 public:
  // Takes a range: calls visit() for each part of it that was not taken before, in order.
  template <class Visit>
  void take(Range range, const Visit& visit) {
    if (range.begin == range.end) return;
    auto next = ends_.lower_bound(range.begin);  // the first that does not end before it
    Range joined = range;
    std::size_t at = range.begin;
    while (next != ends_.end() && next->second <= range.end) {
      if (at < next->second) visit(Range{at, next->second});
      at = std::max(at, next->first);
      joined.begin = std::min(joined.begin, next->second);
      joined.end = std::max(joined.end, next->first);
      next = ends_.erase(next);
    }
    if (at < range.end) visit(Range{at, range.end});
    ends_.emplace(joined.end, joined.begin);
  }

 private:
  std::map<std::size_t, std::size_t> ends_;  // disjoint ranges: beginnings by ends
};

bool adds_or_copies(const Op& op) {
  return op.code == OpCode::fold || op.code == OpCode::apply || op.code == OpCode::narrow;
}

bool writes_output(const Op& op) {
  return adds_or_copies(op) && op.memory == Memory::output && op.bytes > 0;
}

std::size_t operands_of(const Op& op) { return std::size_t{op.operands} + op.copies; }

class Finisher {
 public:
  Finisher(RankPlan& plan, std::size_t output_bytes, std::size_t row_bytes, std::size_t piece,
           std::uint16_t last_round, PlanMeter* meter)
      : plan_(plan),
        output_bytes_(output_bytes),
        row_bytes_(row_bytes),
        piece_(piece),
        last_round_(last_round),
        meter_(meter),
        finished_(plan.ops.size()) {}

  void run() {
    find_last_writers();
    std::vector<Op> ops = std::move(plan_.ops);
    const std::vector<Operand> operands = std::move(plan_.operands);
    plan_.ops = {};
    plan_.operands = {};
    const Operand* operand = operands.data();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      step(meter_);
      const Op& op = ops[i];
      const std::size_t many = operands_of(op);
      if (op.code == OpCode::end) {
        for (const Range rows : finished_[i]) finish(rows, last_round_);
        plan_.ops.push_back(op);
      } else {
        add(op, {operand, many}, finished_[i]);
      }
      operand += many;
    }
  }

 private:
  Range rows_of(Range bytes) const {
    return {bytes.begin / row_bytes_, (bytes.end + row_bytes_ - 1) / row_bytes_};
  }

  // By op: the rows that it finishes, in order.
  void find_last_writers() {
    Taken written, rows;
    for (const Op& op : plan_.ops) {
      if (writes_output(op)) written.take({op.offset, op.offset + op.bytes}, [](Range) {});
    }
    const auto finished_by = [&](std::size_t i, Range bytes) {
      rows.take(rows_of(bytes), [&](Range free) { finished_[i].push_back(free); });
    };
    // What nobody writes here is there at the end at least.
    written.take({0, output_bytes_},
                 [&](Range bytes) { finished_by(finished_.size() - 1, bytes); });
    for (std::size_t i = plan_.ops.size(); i-- > 0;) {
      step(meter_);
      const Op& op = plan_.ops[i];
      if (writes_output(op)) finished_by(i, {op.offset, op.offset + op.bytes});
    }
  }

  void finish(Range rows, std::uint16_t round) {
    plan_.ops.push_back({.code = OpCode::finish,
                         .round = round,
                         .memory = Memory::output,
                         .offset = rows.begin * row_bytes_,
                         .bytes = (rows.end - rows.begin) * row_bytes_});
  }

  // The last rows first: of what was just written, these are in the cache.
  void finish_backwards(const std::vector<Range>& rows, std::uint16_t round) {
    const std::size_t most = std::max<std::size_t>(1, piece_ / row_bytes_);
    for (auto range = rows.rbegin(); range != rows.rend(); ++range) {
      for (std::size_t end = range->end; end > range->begin;) {
        const std::size_t begin = end - std::min(most, end - range->begin);
        finish({begin, end}, round);
        end = begin;
      }
    }
  }

  void add_part(Op op, std::span<const Operand> operands, Range bytes) {
    const std::size_t skipped = bytes.begin - op.offset;
    op.offset = bytes.begin;
    op.bytes = bytes.end - bytes.begin;
    plan_.ops.push_back(op);
    for (Operand operand : operands) {
      operand.offset += skipped;
      plan_.operands.push_back(operand);
    }
  }

  // An op, in pieces where it is large, and the rows that it finishes behind what finishes them.
  void add(const Op& op, std::span<const Operand> operands, const std::vector<Range>& rows) {
    const bool only_waits = op.code == OpCode::fold && op.operands == 0 && op.value == 0;
    // What others wait for is done first. Messages are as long as they were sent.
    const bool is_whole = rows.empty() || operands.empty() || op.value != 0 ||
                          op.code == OpCode::narrow ||
                          std::any_of(operands.begin(), operands.end(), [](const Operand& operand) {
                            return operand.memory == Memory::message;
                          });
    if (is_whole) {
      if (!only_waits) {
        plan_.ops.push_back(op);
        plan_.operands.insert(plan_.operands.end(), operands.begin(), operands.end());
      }
      finish_backwards(rows, op.round);
      return;
    }
    const std::size_t end = op.offset + op.bytes;
    auto next = rows.begin();
    Range rest = *next;
    for (std::size_t at = op.offset; at < end;) {
      step(meter_);
      std::size_t cut = end;
      if (end - at >= 2 * piece_) {
        cut = std::min(end, (at + piece_ + row_bytes_ - 1) / row_bytes_ * row_bytes_);
      }
      add_part(op, operands, {at, cut});
      at = cut;
      // Rows that end there.
      const std::size_t border = cut == end ? rows.back().end : cut / row_bytes_;
      while (next != rows.end() && rest.begin < border) {
        const std::size_t until = std::min(border, rest.end);
        finish({rest.begin, until}, op.round);
        rest.begin = until;
        if (rest.begin == rest.end && ++next != rows.end()) rest = *next;
      }
    }
  }

  RankPlan& plan_;
  const std::size_t output_bytes_, row_bytes_, piece_;
  const std::uint16_t last_round_;
  PlanMeter* const meter_;
  std::vector<std::vector<Range>> finished_;
};

}  // namespace

void finish_rows(Plan& plan, std::span<const std::size_t> output_bytes, std::size_t row_bytes,
                 std::size_t piece, PlanMeter* meter) {
  plan.row_bytes = row_bytes;
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    Finisher(plan.rank[r], output_bytes[r], row_bytes, piece,
             static_cast<std::uint16_t>(plan.rounds + 1), meter)
        .run();
  }
}

}  // namespace rankine
