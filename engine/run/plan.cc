#include "engine/run/plan.h"

#include <algorithm>
#include <span>

#include "engine/base/memory.h"

namespace rankine {

std::string_view name_of(Transport transport) {
  constexpr std::string_view kNames[kTransports] = {"direct", "mailbox", "board"};
  const auto i = static_cast<std::size_t>(transport);
  return i < kTransports ? kNames[i] : "unknown";
}

namespace {

// Offsets of natural blocks in an input or output. A buffer holds, in order, the natural blocks
// whose partner (source for inputs, target for outputs) is its rank; blocks of all ranks or of one
// common rank lie at their global offset.
HugeVector<std::size_t> offsets(const CollectiveSpec& natural, std::span<const std::size_t> counts,
                                bool input) {
  HugeVector<std::size_t> out;
  out.reserve(counts.size());
  const bool common = input ? (natural.collective != Collective::all_gather &&
                               natural.collective != Collective::gather &&
                               natural.collective != Collective::all_to_all)
                            : (natural.collective != Collective::reduce_scatter &&
                               natural.collective != Collective::scatter &&
                               natural.collective != Collective::all_to_all);
  std::vector<std::size_t> next(common ? 1 : static_cast<std::size_t>(natural.ranks));
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const int block = static_cast<int>(b);
    const Rank rank = input ? natural.source_of(block) : natural.target_of(block);
    std::size_t& end = next[common ? 0 : static_cast<std::size_t>(rank)];
    out.push_back(end);
    end += counts[b];
  }
  return out;
}

}  // namespace

Layout make_layout(const CollectiveSpec& goal, std::span<const std::size_t> counts,
                   std::size_t element_bytes, Borders borders) {
  CollectiveSpec natural = goal;
  natural.blocks = static_cast<int>(counts.size());
  const auto inputs = offsets(natural, counts, true);
  const auto outputs = offsets(natural, counts, false);

  Layout layout{element_bytes, {}};
  layout.blocks.reserve(static_cast<std::size_t>(goal.blocks));
  const std::size_t parts = static_cast<std::size_t>(goal.blocks) / counts.size();
  // A unit is not divisible by a border: an element or, if whole elements fill lines, a line.
  const bool lines = borders == Borders::cache_lines && kCacheLine % element_bytes == 0;
  const std::size_t unit = lines ? kCacheLine / element_bytes : 1;
  for (std::size_t b = 0; b < counts.size(); ++b) {
    const std::size_t units = (counts[b] + unit - 1) / unit;
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t share = (units / parts + (part < units % parts ? 1 : 0)) * unit;
      const std::size_t end = std::min(begin + share, counts[b]);
      layout.blocks.push_back({(inputs[b] + begin) * element_bytes,
                               (outputs[b] + begin) * element_bytes,
                               (end - begin) * element_bytes});
      begin = end;
    }
  }
  return layout;
}

bool is_exchange(const Plan& plan) {
  const auto exchanges = [&](const RankPlan& mine) {
    if (mine.ops.size() < 4 || mine.operands.size() != 3) return false;
    const Op& post = mine.ops[0];
    const auto sources = std::span(mine.operands).subspan(1);
    std::size_t waits = 0, end = 0;
    const Op* sum = nullptr;  // the last fold
    for (const Op& op : std::span(mine.ops).subspan(1, mine.ops.size() - 2)) {
      waits += op.code == OpCode::wait_post ? 1 : 0;
      if (op.code == OpCode::wait_post) continue;
      // A sum, or two copies side by side, in this order.
      if (op.code != OpCode::fold || op.copies != 0 || op.memory != Memory::output ||
          (op.flags & ~(kDivides | kOnlyIfMoved)) != 0 ||
          (sum != nullptr &&
           (op.offset != end || op.bytes != sum->bytes || op.bytes > kMostJoined)))
        return false;
      sum = &op;
      end = op.offset + op.bytes;
    }
    return waits == 1 && sum != nullptr && post.code == OpCode::post && post.operands == 1 &&
           post.flags == 0 && mine.operands[0].memory == Memory::input &&
           std::ranges::count(sources, Memory::board, &Operand::memory) == 1 &&
           std::ranges::count(sources, Memory::input, &Operand::memory) == 1;
  };
  return plan.ranks == 2 && plan.span == 1 && std::ranges::all_of(plan.rank, exchanges);
}

std::size_t input_bytes(const Layout& layout, const CollectiveSpec& goal, Rank r) {
  std::size_t bytes = 0;
  for (int b = 0; b < goal.blocks; ++b) {
    if (goal.initially_holds(r, b)) bytes += layout.blocks[static_cast<std::size_t>(b)].bytes;
  }
  return bytes;
}

std::size_t output_bytes(const Layout& layout, const CollectiveSpec& goal, Rank r) {
  std::size_t bytes = 0;
  for (int b = 0; b < goal.blocks; ++b) {
    if (goal.must_hold(r, b)) bytes += layout.blocks[static_cast<std::size_t>(b)].bytes;
  }
  return bytes;
}

namespace {

constexpr std::string_view kOpNames[] = {
    "end",          "enter",       "wait_readers", "leave_reader", "wait_entry", "wait_progress",
    "wait_message", "wait_credit", "fold",         "send",         "release",    "post",
    "wait_post",    "wait_posts",  "apply",        "widen",        "narrow",     "finish",
    "reach",        "choose",      "chosen",       "count_ports"};
constexpr std::string_view kMemories[] = {"input", "output", "scratch", "message", "board"};

struct FlagName {
  OpFlag flag;
  std::string_view name;
};
constexpr FlagName kFlags[] = {{kDivides, "divides"},     {kOnlyIfMoved, "only if moved"},
                               {kStreams, "streams"},     {kByAddress, "by address"},
                               {kClaims, "claims lines"}, {kMoreToPost, "more to post"},
                               {kStages, "stages"},       {kFetches, "fetches"}};

std::string place(Memory memory, std::size_t offset) {
  return std::string(kMemories[static_cast<std::size_t>(memory)]) + "+" + std::to_string(offset);
}

std::string place(const Operand& operand, Rank own) {
  std::string text =
      operand.memory == Memory::message
          ? "message " + std::to_string(operand.message) + "+" + std::to_string(operand.offset)
          : place(operand.memory, operand.offset);
  return operand.rank == own ? text : std::to_string(operand.rank) + ": " + text;
}

bool has_peer(OpCode code) {
  using enum OpCode;
  return code == leave_reader || code == wait_entry || code == wait_progress ||
         code == wait_message || code == wait_credit || code == send || code == release ||
         code == wait_post;
}

bool writes(OpCode code) {
  using enum OpCode;
  return code == fold || code == apply || code == widen || code == narrow || code == reach;
}

}  // namespace

std::vector<OpView> view_ops(const Plan& plan, Rank rank) {
  const RankPlan& own = plan.rank[static_cast<std::size_t>(rank)];
  std::span<const Operand> operands = own.operands;
  std::vector<OpView> views;
  for (const Op& op : own.ops) {
    OpView& view = views.emplace_back();
    const bool moves = op.operands > 0;
    const bool publishes = op.code == OpCode::fold && !moves;
    view.code = publishes ? "publish" : kOpNames[static_cast<std::size_t>(op.code)];
    if (op.round > 0) view.round = op.round - 1;
    if (has_peer(op.code)) view.peer = op.peer;
    if ((has_peer(op.code) && op.code != OpCode::wait_entry && op.code != OpCode::wait_post) ||
        op.code == OpCode::count_ports || op.value > 0) {
      view.number = op.value;
    }
    for (const auto& [flag, name] : kFlags) {
      if ((op.flags & flag) != 0) view.how.push_back(name);
    }
    if (moves || op.code == OpCode::finish) view.bytes = op.bytes;
    if (moves && writes(op.code) && op.memory != Memory::message)
      view.to.push_back(place(op.memory, op.offset));
    if (moves && op.code == OpCode::post) view.to.push_back(place(Memory::board, op.offset));
    for (int i = 0; i < op.operands + op.copies; ++i) {
      (i < op.operands ? view.from : view.to).push_back(place(operands.front(), rank));
      operands = operands.subspan(1);
    }
  }
  return views;
}

std::string ops_text(const Plan& plan, Rank rank) {
  std::string text;
  const std::vector<Op>& ops = plan.rank[static_cast<std::size_t>(rank)].ops;
  const std::vector<OpView> views = view_ops(plan, rank);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpView& view = views[i];
    if (!text.empty()) text += " ";
    text += view.code;
    if ((ops[i].flags & kByAddress) != 0) text += "*";
    if ((ops[i].flags & kMoreToPost) != 0) text += "&";
    if (view.peer) text += " " + std::to_string(*view.peer);
    if (view.number) text += (view.peer ? ":" : " ") + std::to_string(*view.number);
    if (ops[i].code == OpCode::post && view.bytes > 0) {
      text += " " + std::to_string(ops[i].offset) + "+" + std::to_string(view.bytes);
    }
  }
  return text;
}

}  // namespace rankine
