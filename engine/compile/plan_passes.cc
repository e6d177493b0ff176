#include "engine/compile/passes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/memory.h"

namespace rankine {
namespace {

struct Range {
  std::size_t begin = 0, end = 0;
};

// The set of taken numbers among 0 to `end` - 1.
class Taken {
 public:
  // Takes a range: calls visit() for each part of it that was free, in order.
  template <class Visit>
  void take(Range range, const Visit& visit) {
    if (range.begin == range.end) return;
    auto next = ends_.lower_bound(range.begin);  // first range that does not end before it
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
  std::map<std::size_t, std::size_t> ends_;  // disjoint ranges: end -> beginning
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
           std::uint16_t last_round, PlanningBudget* meter)
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
    // Rows that no op writes here are final by the end.
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

  // The last rows first: they were written last and are in the cache.
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

  // Adds an op, in pieces if it is large, and after each piece the rows that it finishes.
  void add(const Op& op, std::span<const Operand> operands, const std::vector<Range>& rows) {
    const bool only_waits = op.code == OpCode::fold && op.operands == 0 && op.value == 0;
    // Data that others wait for are done first. Messages keep the length with which they were sent.
    const bool is_whole =
        rows.empty() || operands.empty() || op.value != 0 || op.code == OpCode::narrow ||
        std::any_of(operands.begin(), operands.end(),
                    [](const Operand& operand) { return operand.memory == Memory::message; });
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
      // Finish the rows that end there.
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
  PlanningBudget* const meter_;
  std::vector<std::vector<Range>> finished_;
};

}  // namespace

void finish_rows(Plan& plan, std::span<const std::size_t> output_bytes, std::size_t row_bytes,
                 std::size_t piece, PlanningBudget* meter) {
  plan.row_bytes = row_bytes;
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    Finisher(plan.rank[r], output_bytes[r], row_bytes, piece,
             static_cast<std::uint16_t>(plan.rounds + 1), meter)
        .run();
  }
}

namespace {

// The offsets of a plan's output and own scratch in each rank's scratch; the input begins at 0.
struct Places {
  std::size_t output = 0, scratch = 0;

  // For collectives of one vector, input and output overlap as in a call in place.
  Places(const CollectiveSpec& goal, const Layout& moved) {
    std::size_t input_end = 0, output_end = 0;
    for (const BlockHome& block : moved.blocks) {
      input_end = std::max(input_end, block.input + block.bytes);
      output_end = std::max(output_end, block.output + block.bytes);
    }
    if (natural_blocks(goal.collective, 2) > 1) output = whole_lines(input_end);
    scratch = whole_lines(std::max(input_end, output + output_end));
  }

  void move(Memory& memory, std::size_t& offset) const {
    if (memory > Memory::scratch) return;
    if (memory == Memory::output) offset += output;
    if (memory == Memory::scratch) offset += scratch;
    memory = Memory::scratch;
  }
};

}  // namespace

void widen_and_narrow(Plan& plan, const CollectiveSpec& goal, DataType type, const Layout& users,
                      const Layout& moved) {
  const Places places(goal, moved);
  plan.conversions = find_conversions(type, best_isa());
  plan.narrow_bytes = users.element_bytes;
  for (std::size_t r = 0; r < plan.rank.size(); ++r) {
    RankPlan& rank = plan.rank[r];
    const auto self = static_cast<Rank>(r);
    for (Op& op : rank.ops) {
      if (op.code == OpCode::fold) places.move(op.memory, op.offset);
    }
    for (Operand& operand : rank.operands) places.move(operand.memory, operand.offset);
    rank.scratch_bytes += places.scratch;
    if (const std::size_t bytes = input_bytes(moved, goal, self); bytes > 0) {
      rank.ops.insert(
          rank.ops.begin(),
          Op{.code = OpCode::widen, .operands = 1, .memory = Memory::scratch, .bytes = bytes});
      rank.operands.insert(rank.operands.begin(),
                           Operand{static_cast<std::uint16_t>(r), Memory::input});
    }
    if (const std::size_t bytes = output_bytes(users, goal, self); bytes > 0) {
      rank.ops.insert(rank.ops.end() - 1, Op{.code = OpCode::narrow,
                                             .operands = 1,
                                             .round = static_cast<std::uint16_t>(plan.rounds + 1),
                                             .memory = Memory::output,
                                             .bytes = bytes});
      rank.operands.push_back({static_cast<std::uint16_t>(r), Memory::scratch, 0, places.output});
    }
  }
}

void await_readers(Plan& plan) {
  for (RankPlan& rank : plan.rank) {
    const bool enters = std::ranges::find(rank.ops, OpCode::enter, &Op::code) != rank.ops.end();
    if ((enters || rank.scratch_bytes > 0) && rank.ops.front().code != OpCode::wait_readers)
      rank.ops.insert(rank.ops.begin(), {.code = OpCode::wait_readers, .value = 1});
  }
}

Form form_of(const Plan& plan) {
  if (plan.transport != Transport::direct) return Form::posts;
  Form form = Form::reads;
  for (const RankPlan& rank : plan.rank) {
    for (const Op& op : rank.ops) {
      const Form of = (op.flags & kStages) != 0    ? Form::stages
                      : (op.flags & kStreams) != 0 ? Form::streams
                      : op.copies == 0             ? Form::reads
                      : (op.flags & kClaims) != 0  ? Form::claims
                                                   : Form::stores;
      form = std::max(form, of);
    }
  }
  return form;
}

Plan with_forms(std::vector<FormPlan> plans, std::size_t trial_class, std::size_t bytes) {
  Plan out = plans.front().plan;
  out.exchanges = out.stages = false;
  out.trials = {.trial_class = static_cast<std::uint16_t>(trial_class),
                .first = plans.front().form,
                .bytes = static_cast<std::uint32_t>(bytes)};
  for (RankPlan& rank : out.rank) {
    rank.ops.assign(kForms, {.code = OpCode::choose, .round = 1, .value = kForms - 1});
    rank.operands.clear();
  }
  const bool sends = std::ranges::any_of(plans, [](const FormPlan& each) {
    return std::ranges::any_of(each.plan.rank,
                               [](const RankPlan& rank) { return !rank.traffic.empty(); });
  });
  for (auto& [form, plan] : plans) {
    out.trials.forms |= static_cast<std::uint8_t>(1U << static_cast<unsigned>(form));
    if (form != out.trials.first)
      out.further_forms.push_back({form, plan.transport, std::move(plan.algorithm)});
    out.reaches |= plan.reaches;
    out.runs_ahead |= plan.runs_ahead;
    out.rounds = std::max(out.rounds, plan.rounds);
    out.span = std::max(out.span, plan.span);
    out.most_operands = std::max(out.most_operands, plan.most_operands);
    for (std::size_t r = 0; r < out.rank.size(); ++r) {
      RankPlan &rank = out.rank[r], &of = plan.rank[r];
      // The end of the form with messages counts them.
      of.ops.back().value = sends && plan.transport == Transport::direct ? 1 : 0;
      Op& begins = rank.ops[static_cast<std::size_t>(form)];
      begins.value = static_cast<std::uint32_t>(rank.ops.size() - 1);
      begins.offset = rank.operands.size();
      for (Op& op : of.ops) {
        if (form == Form::stages && (op.flags & kStages) != 0) op.flags |= kStreams;
        op.flags &= static_cast<std::uint8_t>(~(kStages | kFetches));
      }
      of.ops.insert(of.ops.end() - 1, {.code = OpCode::chosen, .round = of.ops.back().round});
      rank.ops.insert(rank.ops.end(), of.ops.begin(), of.ops.end());
      rank.operands.insert(rank.operands.end(), of.operands.begin(), of.operands.end());
      if (!of.traffic.empty()) rank.traffic = std::move(of.traffic);
      rank.scratch_bytes = std::max(rank.scratch_bytes, of.scratch_bytes);
    }
  }
  return out;
}

}  // namespace rankine
