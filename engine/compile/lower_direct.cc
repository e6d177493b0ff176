// Lowers a program to a plan for the direct transport, and drops redundant waits.
//
// An operation must wait for the operations that wrote its sources, for the entry of every rank
// whose memory it touches, and for the operations that still read the memory that it overwrites. A
// rank may leave when no other rank reads its memory any more. Most of these waits are implied by
// others: a vector clock gives, for each operation of a rank, the progress that the rank knows of
// each other rank. A wait without new information is dropped, and progress without waiters is not
// published.
//
// A clock has one entry per rank, and programs have millions of operations. So several operations
// of a rank share a clock if nothing was learnt between them; only operations that others may wait
// for have one; and only the latest few thousand are kept, as many as kClockBytes hold. A lost
// clock costs at most a redundant wait.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/compile/lower.h"

namespace rankine {
namespace {

constexpr std::uint32_t kStarted = 0;  // nothing published yet

constexpr std::size_t kClockBytes = std::size_t{16} << 20;

// Copies of ranks' rows of known progress at some of their operations; only the latest are kept.
class Clocks {
 public:
  // The rank knew of no progress.
  static constexpr int kNothing = -1;

  explicit Clocks(std::size_t ranks)
      : ranks_(ranks),
        kept_(std::max<std::size_t>(1, kClockBytes / (ranks * sizeof(std::uint32_t)))) {}

  // Returns the number of the new clock.
  int keep(const std::uint32_t* known) {
    const std::size_t row = static_cast<std::size_t>(made_) % kept_;
    if (row == rows_.size()) rows_.emplace_back(ranks_);
    std::copy_n(known, ranks_, rows_[row].begin());
    return made_++;
  }
  bool is_gone(int clock) const {
    return clock != kNothing && static_cast<std::size_t>(made_ - clock) > kept_;
  }
  // nullptr if it says nothing or is lost.
  const std::uint32_t* find(int clock) const {
    if (clock == kNothing || is_gone(clock)) return nullptr;
    return rows_[static_cast<std::size_t>(clock) % kept_].data();
  }

 private:
  const std::size_t ranks_, kept_;
  int made_ = 0;
  std::vector<std::vector<std::uint32_t>> rows_;
};

class DirectLowering {
 public:
  DirectLowering(DataflowProgram program, const LowerOptions& options)
      : program_(std::move(program)),
        options_(options),
        ranks_(static_cast<std::size_t>(program_.ranks)),
        leading_(leading(program_)),
        known_(ranks_ * ranks_, kStarted),
        entered_(ranks_ * ranks_, 0),
        before_entry_(ranks_, 0),
        lowered_(program_.operations.size()),
        clocks_(ranks_),
        clock_of_rank_(ranks_, Clocks::kNothing),
        learnt_(ranks_, false),
        last_user_(ranks_ * ranks_, -1),
        next_ordinal_(ranks_, 1) {
    plan_.transport = Transport::direct;
    plan_.ranks = program_.ranks;
    plan_.rounds = program_.rounds;
    plan_.rank.resize(ranks_);
    plan_.runs_ahead = ranks_ > 1 && options_.ahead_max_bytes > 0 &&
                       std::ranges::max(program_.scratch_bytes) <= options_.ahead_max_bytes;
  }

  Plan run() {
    const auto operations = static_cast<int>(program_.operations.size());
    find_awaited();
    make_room();
    plan_.stages = std::any_of(program_.operations.begin(), program_.operations.end(),
                               [](const Operation& op) { return op.stages; });
    for (std::size_t r = 0; r < ranks_ && (plan_.stages || plan_.runs_ahead); ++r)
      add(r, {.code = OpCode::wait_readers, .value = plan_.runs_ahead ? 0U : 1U});
    int next = 0;
    // The data that a rank stages first are complete when it enters: its entry publishes them.
    std::vector<std::size_t> staged(ranks_, 0);
    std::vector<int> staged_later;
    for (; next < leading_; ++next) {
      std::size_t& bytes = staged[rank_of(next)];
      if (bytes >= options_.staged_first) {
        staged_later.push_back(next);
        continue;
      }
      bytes += program_.operations[static_cast<std::size_t>(next)].bytes;
      lower(next);
    }
    for (std::size_t r = 0; r < ranks_ && ranks_ > 1; ++r) {
      before_entry_[r] = next_ordinal_[r] - 1;
      add(r, {.code = OpCode::enter});
    }
    for (const int later : staged_later) lower(later);
    if (options_.mutant == LowerOptions::Mutant::early_entry) {
      for (std::size_t r = 0; r < ranks_; ++r) before_entry_[r] = next_ordinal_[r] - 1;
    }
    for (; next < operations; ++next) {
      if (next + kAhead < operations) fetch(next + kAhead);
      lower(next);
    }
    // Release the large parts that are no longer needed.
    program_.sources = {};
    program_.earlier = std::vector<int>();
    program_.copies = std::vector<Copy>();
    std::uint32_t span = 1;
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (options_.mutant != LowerOptions::Mutant::no_exit_waits) wait_until_unused(r);
      add(r, {});
      plan_.rank[r].scratch_bytes = program_.scratch_bytes[r];
      span = std::max(span, next_ordinal_[r]);
    }
    publish_wait_target();
    plan_.span = span;
    return std::move(plan_);
  }

 private:
  // The number of staging operations before all rounds, of the first turn. Later turns' staging is
  // waited for like other operations.
  static int leading(const DataflowProgram& program) {
    int staging = 0;
    for (const Operation& op : program.operations) {
      if (op.round != kStaging) break;
      ++staging;
    }
    return staging;
  }

  // The result of lowering an operation.
  struct Lowered {
    static constexpr int kNobodyWaits = -2;  // no clock is kept

    std::uint32_t ordinal = 0;  // its number at its rank, from 1
    int fold = 0;               // its op in its rank's plan
    int clock = kNobodyWaits;   // the rank's knowledge then; Clocks::kNothing until it is lowered
    void expect_waits() {
      if (clock == kNobodyWaits) clock = Clocks::kNothing;
    }
  };
  Lowered& lowered(int operation) { return lowered_[static_cast<std::size_t>(operation)]; }

  std::uint32_t& known(std::size_t r, std::size_t q) { return known_[r * ranks_ + q]; }

  // Marks the operations that other ranks may wait for, except users of others' memory.
  void find_awaited() {
    for (const Operation& op : program_.operations) {
      step(options_.meter);
      for (int i = 0; i < op.sources; ++i) {
        const Source& s = program_.sources[static_cast<std::size_t>(op.first_source + i)];
        if (s.producer >= 0 && s.rank != op.rank) lowered(s.producer).expect_waits();
      }
    }
    for (const int other : program_.earlier) lowered(other).expect_waits();
  }

  // Reserves memory for all operands, and for the possible number of ops.
  void make_room() {
    // Every rank enters, ends, and may wait for the entry and the end of all.
    std::vector<std::size_t> operands(ranks_), ops(ranks_, 2 * ranks_ + 3);
    for (const Operation& op : program_.operations) {
      const auto r = static_cast<std::size_t>(op.rank);
      operands[r] += static_cast<std::size_t>(fold_op(op).operands + op.copies);
      ops[r] += static_cast<std::size_t>(1 + op.earlier);
      for (int i = 0; i < op.sources; ++i) {
        const Source& s = program_.sources[static_cast<std::size_t>(op.first_source + i)];
        // The entry covers the staging operations.
        ops[r] += s.rank != op.rank && s.producer >= leading_ ? 1 : 0;
      }
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      plan_.rank[r].operands.reserve(operands[r]);
      plan_.rank[r].ops.reserve(ops[r]);
    }
  }

  // Prefetches the data for lowering that operation: data of different ranks lie far apart.
  static constexpr int kAhead = 6;
  void fetch(int index) const {
    const Operation& op = program_.operations[static_cast<std::size_t>(index)];
    const auto r = static_cast<std::size_t>(op.rank);
    const RankPlan& plan = plan_.rank[r];
    __builtin_prefetch(plan.ops.data() + plan.ops.size(), 1);
    __builtin_prefetch(plan.operands.data() + plan.operands.size(), 1);
    if (op.sources == 0) return;
    const Source& s = program_.sources[static_cast<std::size_t>(op.first_source)];
    const auto q = static_cast<std::size_t>(s.rank);
    __builtin_prefetch(&entered_[q * ranks_ + r], 1);
    __builtin_prefetch(&last_user_[q * ranks_ + r], 1);
    __builtin_prefetch(&known_[r * ranks_ + r], 1);
  }

  // Returns the op's number in its rank's plan.
  int add(std::size_t r, const Op& op) {
    std::vector<Op>& ops = plan_.rank[r].ops;
    ops.push_back(op);
    return static_cast<int>(ops.size()) - 1;
  }

  void lower(int index) {
    step(options_.meter);
    const Operation& op = program_.operations[static_cast<std::size_t>(index)];
    const auto r = static_cast<std::size_t>(op.rank);
    RankPlan& plan = plan_.rank[r];
    for (int i = 0; i < op.sources; ++i) {
      const Source& s = program_.sources[static_cast<std::size_t>(op.first_source + i)];
      const auto q = static_cast<std::size_t>(s.rank);
      if (q == r) continue;
      if (s.producer >= 0) wait_for(op, s.producer);
      // Data that q has stored here need no access to q's memory. But only q's entry shows that q
      // made an equal call, and the entry stands until all ranks that looked have said so.
      if (!op.pushed || entered_[q * ranks_ + r] == 0) touch(index, q);
    }
    for (int i = 0; i < op.copies; ++i) touch(index, rank_of(copy_of(op, i)));
    if (options_.mutant != LowerOptions::Mutant::no_write_after_read) {
      for (int i = 0; i < op.earlier; ++i) {
        wait_for(op, program_.earlier[static_cast<std::size_t>(op.first_earlier + i)]);
      }
    }
    const Op fold = fold_op(op);
    for (int i = 0; i < fold.operands; ++i) {
      const Source& s = program_.sources[static_cast<std::size_t>(op.first_source + i)];
      add_operand(plan, s.rank, s.place);
    }
    for (int i = 0; i < op.copies; ++i)
      add_operand(plan, copy_of(op, i).rank, copy_of(op, i).place);
    plan_.most_operands = std::max(plan_.most_operands, fold.operands + 1 + op.copies);
    Lowered& mine = lowered(index);
    mine.ordinal = next_ordinal_[r]++;
    known(r, r) = mine.ordinal;
    if (mine.clock != Lowered::kNobodyWaits) mine.clock = clock_now(r);
    mine.fold = add(r, fold);
  }

  // A clock with the present knowledge of rank r.
  int clock_now(std::size_t r) {
    if (learnt_[r] || clocks_.is_gone(clock_of_rank_[r])) {
      clock_of_rank_[r] = clocks_.keep(&known(r, 0));
      learnt_[r] = false;
    }
    return clock_of_rank_[r];
  }

  void learn(std::size_t r, std::size_t q, std::uint32_t progress) {
    std::uint32_t& known_progress = known(r, q);
    if (known_progress >= progress) return;
    known_progress = progress;
    learnt_[r] = true;
  }

  const Copy& copy_of(const Operation& op, int i) const {
    return program_.copies[static_cast<std::size_t>(op.first_copy + i)];
  }
  static std::size_t rank_of(const Copy& to) { return static_cast<std::size_t>(to.rank); }
  std::size_t rank_of(int operation) const {
    return static_cast<std::size_t>(program_.operations[static_cast<std::size_t>(operation)].rank);
  }

  static void add_operand(RankPlan& plan, Rank rank, Place place) {
    plan.operands.push_back({static_cast<std::uint16_t>(rank), place.memory, 0, place.offset});
  }

  // The operation uses memory of rank q: it needs q's addresses, and q must not leave before.
  void touch(int index, std::size_t q) {
    const Operation& op = program_.operations[static_cast<std::size_t>(index)];
    const auto r = static_cast<std::size_t>(op.rank);
    wait_for_entry(r, q, round_of(op));
    last_user_[q * ranks_ + r] = index;
    lowered(index).expect_waits();
  }

  void wait_for_entry(std::size_t r, std::size_t q, std::uint16_t round) {
    if (entered_[q * ranks_ + r] != 0) return;
    entered_[q * ranks_ + r] = 1;
    // This is not learnt for others: they need q's entry themselves and see it there.
    if (before_entry_[q] > kStarted) known(r, q) = std::max(known(r, q), before_entry_[q]);
    if (options_.mutant == LowerOptions::Mutant::no_entry_waits) return;
    add(r, {.code = OpCode::wait_entry, .peer = static_cast<std::uint16_t>(q), .round = round});
  }

  // Op of rank r waits until operation `other` of another rank is published, unless r already
  // knows.
  void wait_for(const Operation& op, int other) {
    wait_for(static_cast<std::size_t>(op.rank), other, round_of(op));
  }

  void wait_for(std::size_t r, int other, std::uint16_t round,
                OpCode code = OpCode::wait_progress) {
    const Lowered& there = lowered(other);
    const auto q = rank_of(other);
    if (there.ordinal <= before_entry_[q]) wait_for_entry(r, q, round);
    if (known(r, q) >= there.ordinal) return;
    if (options_.mutant == LowerOptions::Mutant::dropped_wait && ++waits_ % 3 == 0) return;
    add(r, {.code = code,
            .peer = static_cast<std::uint16_t>(q),
            .round = round,
            .value = there.ordinal});
    waited_for_.push_back(other);
    learn(r, q, there.ordinal);
    if (const std::uint32_t* clock = clocks_.find(there.clock)) {
      std::uint32_t* here = &known(r, 0);
      for (std::size_t i = 0; i < ranks_; ++i) here[i] = std::max(here[i], clock[i]);
    }
  }

  void wait_until_unused(std::size_t r) {
    for (std::size_t q = 0; q < ranks_; ++q) {
      step(options_.meter);
      const int user = last_user_[r * ranks_ + q];
      constexpr std::size_t kUsersAhead = 8;  // users also lie far apart
      if (q + kUsersAhead < ranks_) {
        const int next = last_user_[r * ranks_ + q + kUsersAhead];
        if (next >= 0) __builtin_prefetch(&lowered(next));
      }
      if (user < 0) continue;
      wait_for(r, user, static_cast<std::uint16_t>(program_.rounds + 1),
               plan_.runs_ahead ? OpCode::leave_reader : OpCode::wait_progress);
    }
  }

  void publish_wait_target() {
    for (const int o : waited_for_) {
      const Lowered& op = lowered(o);
      plan_.rank[rank_of(o)].ops[static_cast<std::size_t>(op.fold)].value = op.ordinal;
    }
    if (options_.keeps_waits) return;
    for (RankPlan& plan : plan_.rank) {
      std::erase_if(plan.ops, [](const Op& op) {
        return op.code == OpCode::fold && op.operands == 0 && op.value == 0;
      });
    }
  }

  DataflowProgram program_;
  const LowerOptions& options_;
  const std::size_t ranks_;
  const int leading_;  // number of staging operations at the program's beginning
  Plan plan_;
  std::vector<std::uint32_t> known_;         // (r, q): q's progress known to r
  std::vector<std::uint8_t> entered_;        // (q, r): r has waited for q's entry
  std::vector<std::uint32_t> before_entry_;  // per rank: operations done before its entry
  HugeVector<Lowered> lowered_;              // per operation
  Clocks clocks_;
  std::vector<int> clock_of_rank_;  // the rank's latest
  std::vector<bool> learnt_;        // per rank: more than its latest clock says
  std::vector<int> last_user_;      // (r, q): the last operation of q that uses memory of r
  std::vector<std::uint32_t> next_ordinal_;
  std::vector<int> waited_for_;
  int waits_ = 0;
};

}  // namespace

Plan lower_direct(DataflowProgram program, const LowerOptions& options) {
  return DirectLowering(std::move(program), options).run();
}

}  // namespace rankine
