// Lowers an eager program to a plan for boards: in each round with messages every rank posts all
// data that others read from it, in one post, and they read the data there.
//
// The program is eager: the data that others read in a round are on the board before the round
// writes. A rank that reads nothing from another rank in such a round waits for its post
// nevertheless, because that makes two halves enough (mailbox.h).
#include <algorithm>
#include <array>
#include <string>

#include "engine/base/memory.h"
#include "engine/compile/lower.h"

namespace rankine {
namespace {

constexpr std::size_t kMemories = 3;  // input, output, scratch
constexpr std::size_t kSmall = kCacheLine - kPostHeader;

// The data that others read of one memory of a rank in a round: one stretch, gaps included.
struct Stretch {
  std::size_t begin = 0, end = 0;
  std::size_t offset = 0;  // offset of its first byte in the half
  bool empty() const { return begin == end; }
};
using IntervalMap = std::array<Stretch, kMemories>;

struct Round {
  int begin = 0, end = 0;           // operations
  bool has_messages = false;        // even empty ones
  std::vector<IntervalMap> wanted;  // by rank
  std::vector<std::size_t> bytes;   // by rank: bytes in its half, without the header
  int pairs = 0;                    // ordered pairs of ranks: the first reads from the second
};

void widen(Stretch& stretch, std::size_t begin, std::size_t end) {
  if (begin == end) return;
  if (stretch.empty()) {
    stretch = {begin, end};
  } else {
    stretch.begin = std::min(stretch.begin, begin);
    stretch.end = std::max(stretch.end, end);
  }
}

// Places stretches one behind the other, each at the beginning of a line; a single short one goes
// to the header's line. Returns the bytes.
std::size_t lay_out(IntervalMap& wanted) {
  std::size_t bytes = 0, stretches = 0;
  for (const Stretch& s : wanted) {
    bytes += s.end - s.begin;
    stretches += s.empty() ? 0 : 1;
  }
  const bool small = bytes <= kSmall && stretches == 1;
  const std::size_t first = small ? kPostHeader : kCacheLine;
  std::size_t end = first;
  for (Stretch& s : wanted) {
    if (s.empty()) continue;
    s.offset = first + whole_lines(end - first);
    end = s.offset + (s.end - s.begin);
  }
  return end - first;
}

// The round that begins with operation `begin`.
Round round_from(const DataflowProgram& program, int begin, PlanningBudget* meter) {
  const auto ranks = static_cast<std::size_t>(program.ranks);
  const auto operations = static_cast<int>(program.operations.size());
  const auto operation = [&](int i) -> const Operation& {
    return program.operations[static_cast<std::size_t>(i)];
  };
  Round round{.begin = begin, .end = begin, .wanted = std::vector<IntervalMap>(ranks), .bytes = {}};
  std::vector<bool> reads(ranks * ranks, false);
  for (; round.end < operations && operation(round.end).round == operation(begin).round;
       ++round.end) {
    const Operation& op = operation(round.end);
    for (int s = 0; s < op.sources; ++s) {
      step(meter);
      const Source& source = program.sources[static_cast<std::size_t>(op.first_source + s)];
      if (source.rank == op.rank) continue;
      const auto from = static_cast<std::size_t>(source.rank);
      const std::size_t offset = source.place.offset;
      widen(round.wanted[from][static_cast<std::size_t>(source.place.memory)], offset,
            offset + op.bytes);
      const std::size_t pair = static_cast<std::size_t>(op.rank) * ranks + from;
      round.has_messages = true;
      round.pairs += reads[pair] ? 0 : 1;
      reads[pair] = true;
    }
  }
  for (IntervalMap& wanted : round.wanted) round.bytes.push_back(lay_out(wanted));
  return round;
}

class BoardLowering {
 public:
  BoardLowering(const DataflowProgram& program, const LowerOptions& options)
      : program_(program),
        options_(options),
        ranks_(static_cast<std::size_t>(program.ranks)),
        counted_(ranks_, 0) {
    plan_.transport = Transport::board;
    plan_.span = 1;  // as for mailboxes
    plan_.ranks = program.ranks;
    plan_.rounds = program.rounds;
    plan_.rank.resize(ranks_);
  }

  Result<Plan> run() {
    const auto operations = static_cast<int>(program_.operations.size());
    for (int begin = 0; begin < operations;) {
      const Round round = round_from(program_, begin, options_.meter);
      begin = round.end;
      for (std::size_t r = 0; r < ranks_; ++r) {
        if (round.bytes[r] <= options_.board_bytes) continue;
        return invalid_argument("board: others want " + std::to_string(round.bytes[r]) +
                                " bytes of rank " + std::to_string(r) +
                                " in a round; allowed are " + std::to_string(options_.board_bytes));
      }
      lower_round(round);
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      plan_.rank[r].ops.push_back({});
      plan_.rank[r].scratch_bytes = program_.scratch_bytes[r];
    }
    return std::move(plan_);
  }

 private:
  void lower_round(const Round& round) {
    const Operation& first = program_.operations[static_cast<std::size_t>(round.begin)];
    if (round.has_messages) {
      for (std::size_t r = 0; r < ranks_; ++r) post(r, round.wanted[r], round_of(first));
    }
    met_.assign(ranks_ * ranks_, false);
    for (int i = round.begin; i < round.end; ++i) {
      fold(program_.operations[static_cast<std::size_t>(i)], round);
    }
    if (!round.has_messages || options_.mutant == LowerOptions::Mutant::no_exit_waits) return;
    for (std::size_t r = 0; r < ranks_; ++r) {
      for (std::size_t q = 0; q < ranks_; ++q) meet(r, q, round_of(first));
    }
  }

  void post(std::size_t r, const IntervalMap& wanted, std::uint16_t round) {
    RankPlan& plan = plan_.rank[r];
    for (std::size_t m = 0; m < kMemories; ++m) {
      const Stretch& s = wanted[m];
      if (s.empty()) continue;
      plan.ops.push_back({.code = OpCode::post,
                          .flags = kMoreToPost,
                          .operands = 1,
                          .round = round,
                          .offset = s.offset,
                          .bytes = s.end - s.begin});
      plan.operands.push_back({static_cast<std::uint16_t>(r), static_cast<Memory>(m), 0, s.begin});
    }
    if (plan.ops.empty() || plan.ops.back().code != OpCode::post) {
      plan.ops.push_back({.code = OpCode::post, .round = round});
    }
    plan.ops.back().flags = 0;
  }

  void meet(std::size_t r, std::size_t q, std::uint16_t round) {
    if (r == q || met_[r * ranks_ + q]) return;
    met_[r * ranks_ + q] = true;
    if (options_.mutant == LowerOptions::Mutant::no_entry_waits) return;
    plan_.rank[r].ops.push_back(
        {.code = OpCode::wait_post, .peer = static_cast<std::uint16_t>(q), .round = round});
  }

  // An operation that needs all other ranks waits for them in one op: with many ranks, reading many
  // ops takes time.
  void meet_all(std::size_t r, const Operation& op) {
    std::size_t unmet = 0;
    ++counting_;
    for (int s = 0; s < op.sources; ++s) {
      const auto q = static_cast<std::size_t>(source_of(op, s).rank);
      if (q == r || met_[r * ranks_ + q] || counted_[q] == counting_) continue;
      counted_[q] = counting_;
      ++unmet;
    }
    if (unmet < 2 || unmet + 1 < ranks_) return;
    for (std::size_t q = 0; q < ranks_; ++q) met_[r * ranks_ + q] = true;
    if (options_.mutant == LowerOptions::Mutant::no_entry_waits) return;
    plan_.rank[r].ops.push_back({.code = OpCode::wait_posts, .round = round_of(op)});
  }

  const Source& source_of(const Operation& op, int s) const {
    return program_.sources[static_cast<std::size_t>(op.first_source + s)];
  }

  void fold(const Operation& op, const Round& round) {
    step(options_.meter);
    const auto r = static_cast<std::size_t>(op.rank);
    RankPlan& plan = plan_.rank[r];
    meet_all(r, op);
    const Op fold = fold_op(op);
    for (int s = 0; s < op.sources; ++s) {
      const Source& source = source_of(op, s);
      const auto q = static_cast<std::size_t>(source.rank);
      Operand operand{static_cast<std::uint16_t>(q), source.place.memory, 0, source.place.offset};
      if (q != r) {
        meet(r, q, fold.round);
        const Stretch& there = round.wanted[q][static_cast<std::size_t>(source.place.memory)];
        operand.memory = Memory::board;
        operand.offset = there.offset + source.place.offset - there.begin;
      }
      plan.operands.push_back(operand);
    }
    plan_.most_operands = std::max(plan_.most_operands, op.sources + 1);
    plan.ops.push_back(fold);
  }

  const DataflowProgram& program_;
  const LowerOptions& options_;
  const std::size_t ranks_;
  Plan plan_;
  std::vector<bool> met_;     // (r, q): r waits for q's post of this round
  std::vector<int> counted_;  // per rank: the turn of meet_all() that counted it last
  int counting_ = 0;
};

}  // namespace

Result<Plan> lower_board(const DataflowProgram& program, const LowerOptions& options) {
  return BoardLowering(program, options).run();
}

bool suits_boards(const DataflowProgram& program, std::size_t board_bytes, PlanningBudget* meter) {
  if (program.ranks < 2) return false;
  const auto operations = static_cast<int>(program.operations.size());
  for (int begin = 0; begin < operations;) {
    const Round round = round_from(program, begin, meter);
    begin = round.end;
    if (!round.has_messages) continue;
    const std::size_t most = *std::max_element(round.bytes.begin(), round.bytes.end());
    if (most > board_bytes || round.pairs < program.ranks * (program.ranks - 1)) return false;
  }
  return true;
}

}  // namespace rankine
