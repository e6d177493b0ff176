#include "engine/compile/wide_sums.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/base/cache_line.h"

namespace rankine {
namespace {

// Where the buffers of a plan begin in each rank's scratch, and where its own scratch does.
struct Places {
  std::size_t output = 0, scratch = 0;

  // Of collectives of one vector, input and output lie as in a call in place.
  Places(const Goal& goal, const Layout& moved) {
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

void widen_and_narrow(Plan& plan, const Goal& goal, DataType type, const Layout& users,
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
      rank.ops.insert(rank.ops.begin(), Op{.code = OpCode::widen,
                                         .operands = 1,
                                         .memory = Memory::scratch,
                                         .bytes = bytes});
      rank.operands.insert(rank.operands.begin(), Operand{static_cast<std::uint16_t>(r), Memory::input});
    }
    if (const std::size_t bytes = output_bytes(users, goal, self); bytes > 0) {
      rank.ops.insert(rank.ops.end() - 1, Op{.code = OpCode::narrow,
                                           .operands = 1,
                                           .round = static_cast<std::uint16_t>(plan.rounds + 1),
                                           .memory = Memory::output,
                                           .bytes = bytes});
      rank.operands.push_back(
          {static_cast<std::uint16_t>(r), Memory::scratch, 0, places.output});
    }
  }
}

}  // namespace rankine
