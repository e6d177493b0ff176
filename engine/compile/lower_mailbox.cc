// Program -> plan for the mailbox transport: every source on another rank becomes a message.
//
// Order within a rank and round: first all sends, then all receptions. That cannot deadlock while a
// pair has at most `capacity` messages under way; where a round has more, it is cut into sub-rounds
// of `capacity` messages per pair (sends first in each), and the induction runs over sub-rounds.
// Numbers of messages are per ordered pair, in the order in which the receiver uses them.
#include <algorithm>
#include <string>

#include "engine/compile/fold_op.h"
#include "engine/compile/lower.h"

namespace rankine {
namespace {

struct Message {
  int operation = 0;  // the reader
  Rank from = 0, to = 0;
  Place place;
  std::size_t bytes = 0;
  std::uint32_t number = 0;  // of its pair, in this call
};

// How many messages the latest sub-round of a pair has, in the round that begins with that
// operation.
struct Filled {
  int round_begin = -1;
  int subround = 0;
  int messages = 0;
};

// What each sub-round has, in the order in which it came.
class BySubround {
 public:
  void add(int subround, int what) { all_.push_back({subround, what}); }
  void sort() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Entry& a, const Entry& b) { return a.subround < b.subround; });
  }
  // Calls visit(what) for those of a sub-round, which is asked for once, and in turn.
  template <class Visit>
  void take(int subround, const Visit& visit) {
    for (; next_ < all_.size() && all_[next_].subround == subround; ++next_) {
      visit(all_[next_].what);
    }
  }

 private:
  struct Entry {
    int subround, what;
  };
  std::vector<Entry> all_;
  std::size_t next_ = 0;
};

class Lowering {
 public:
  Lowering(const Program& program, const LowerOptions& options)
      : program_(program),
        options_(options),
        ranks_(static_cast<std::size_t>(program.ranks)),
        sent_(ranks_ * ranks_, 0),
        filled_(ranks_ * ranks_),
        owed_(ranks_ * ranks_, 0),
        wanted_(ranks_, 0),
        message_of_(program.sources.size(), -1) {
    plan_.transport = Transport::mailbox;
    plan_.span = 1;  // nobody waits for it, but every call counts: keep_together() in walk.h
    plan_.ranks = program.ranks;
    plan_.rounds = program.rounds;
    plan_.rank.resize(ranks_);
  }

  Result<Plan> run() {
    make_room();
    const int n = static_cast<int>(program_.operations.size());
    for (int begin = 0; begin < n;) {
      int end = begin;
      while (end < n && operation(end).round == operation(begin).round) ++end;
      const Status status = lower_round(begin, end);
      if (!status.ok()) return status;
      begin = end;
    }
    for (std::size_t r = 0; r < ranks_; ++r) finish(r);
    return std::move(plan_);
  }

 private:
  const Operation& operation(int i) const {
    return program_.operations[static_cast<std::size_t>(i)];
  }
  std::size_t pair(Rank from, Rank to) const {
    return static_cast<std::size_t>(from) * ranks_ + static_cast<std::size_t>(to);
  }
  // For all messages, and for what ranks do with them.
  void make_room() {
    std::vector<std::size_t> ops(ranks_, 1), operands(ranks_);
    std::size_t messages = 0;
    for (const Operation& op : program_.operations) {
      step(options_.meter);
      const auto r = static_cast<std::size_t>(op.rank);
      ++ops[r];
      operands[r] += static_cast<std::size_t>(op.sources);
      for (int s = 0; s < op.sources; ++s) {
        const auto from = static_cast<std::size_t>(source_of(op, s).rank);
        if (from == r) continue;
        ++messages;
        ops[r] += 2;  // to wait for it, and to give it back
        ++ops[from];
        ++operands[from];
      }
    }
    messages_.reserve(messages);
    for (std::size_t r = 0; r < ranks_; ++r) {
      plan_.rank[r].ops.reserve(ops[r]);
      plan_.rank[r].operands.reserve(operands[r]);
    }
  }
  bool by_address(const Message& m) const { return m.bytes > options_.slot_payload; }

  Status lower_round(int begin, int end) {
    std::vector<int> rank_subround(ranks_, 0);
    BySubround operations, messages;
    int subrounds = 1;
    for (int i = begin; i < end; ++i) {
      step(options_.meter);
      const Operation& op = operation(i);
      for (int s = 0; s < op.sources; ++s) {
        const Rank from = source_of(op, s).rank;
        if (from != op.rank) ++wanted_[static_cast<std::size_t>(from)];
      }
      // Operations of a rank stay in order, so that credits do too.
      int& subround = rank_subround[static_cast<std::size_t>(op.rank)];
      for (int s = 0; s < op.sources; ++s) {
        const Rank from = source_of(op, s).rank;
        if (from == op.rank) continue;
        const int own = wanted_[static_cast<std::size_t>(from)];
        if (own > options_.mailbox_capacity) {
          return invalid_argument("mailbox: rank " + std::to_string(op.rank) + " needs " +
                                  std::to_string(own) + " messages of rank " +
                                  std::to_string(from) + " at once; allowed are " +
                                  std::to_string(options_.mailbox_capacity));
        }
        const Filled& filled = filled_[pair(from, op.rank)];
        if (filled.round_begin != begin) continue;
        // No pair is further than the rank is.
        const bool fits =
            filled.subround < subround || filled.messages + own <= options_.mailbox_capacity;
        if (!fits) subround = filled.subround + 1;
      }
      for (int s = 0; s < op.sources; ++s) {
        const Source& source = source_of(op, s);
        if (source.rank == op.rank) continue;
        wanted_[static_cast<std::size_t>(source.rank)] = 0;
        const std::size_t p = pair(source.rank, op.rank);
        if (filled_[p].round_begin != begin || filled_[p].subround != subround) {
          filled_[p] = {begin, subround, 0};
        }
        ++filled_[p].messages;
        const auto message = static_cast<int>(messages_.size());
        message_of_[static_cast<std::size_t>(op.first_source + s)] = message;
        messages.add(subround, message);
        messages_.push_back({i, source.rank, op.rank, source.place, op.bytes, sent_[p]++});
      }
      operations.add(subround, i);
      subrounds = std::max(subrounds, subround + 1);
    }
    if (subrounds > 1 && program_.eager) {
      return invalid_argument("mailbox: a round has more messages of one pair than " +
                              std::to_string(options_.mailbox_capacity) +
                              ", the most that can all be sent before anything is written");
    }
    if (subrounds > 1) {
      operations.sort();
      messages.sort();
    }
    const auto sends = [&](int sub) {
      messages.take(sub, [&](int m) { send(messages_[static_cast<std::size_t>(m)]); });
    };
    const auto receptions = [&](int sub) { operations.take(sub, [&](int i) { fold(i); }); };
    const bool sends_first = options_.mutant != LowerOptions::Mutant::receives_first;
    for (int sub = 0; sub < subrounds; ++sub) {
      if (sends_first) sends(sub);
      receptions(sub);
      if (!sends_first) sends(sub);
    }
    return {};
  }

  const Source& source_of(const Operation& op, int s) const {
    return program_.sources[static_cast<std::size_t>(op.first_source + s)];
  }
  void send(const Message& m) {
    std::uint8_t flags = 0;
    if (by_address(m)) flags = kByAddress;
    RankPlan& plan = plan_.rank[static_cast<std::size_t>(m.from)];
    plan.ops.push_back({.code = OpCode::send,
                        .flags = flags,
                        .operands = 1,
                        .peer = static_cast<std::uint16_t>(m.to),
                        .round = round_of(operation(m.operation)),
                        .value = m.number,
                        .bytes = m.bytes});
    plan.operands.push_back(
        {static_cast<std::uint16_t>(m.from), m.place.memory, 0, m.place.offset});
    if (by_address(m)) owed_[pair(m.from, m.to)] = m.number + 1;
  }

  void fold(int index) {
    step(options_.meter);
    const Operation& op = operation(index);
    RankPlan& plan = plan_.rank[static_cast<std::size_t>(op.rank)];
    // Whoever was sent the address of what is overwritten here must have used it.
    if (options_.mutant != LowerOptions::Mutant::no_write_after_read) {
      for (int i = 0; i < op.earlier; ++i) {
        wait_for_reader(op, program_.earlier[static_cast<std::size_t>(op.first_earlier + i)]);
      }
    }
    for (int s = 0; s < op.sources; ++s) {
      const int m = message_of_[static_cast<std::size_t>(op.first_source + s)];
      if (m < 0) continue;
      const Message& message = messages_[static_cast<std::size_t>(m)];
      plan.ops.push_back({.code = OpCode::wait_message,
                          .peer = static_cast<std::uint16_t>(message.from),
                          .round = round_of(op),
                          .value = message.number,
                          .bytes = message.bytes});
    }
    const Op fold = fold_op(op);
    const bool early = options_.mutant == LowerOptions::Mutant::early_release;
    if (early) release(op);
    plan.ops.push_back(fold);
    plan_.most_operands = std::max(plan_.most_operands, op.sources + 1);
    for (int s = 0; s < op.sources; ++s) {
      const auto source = static_cast<std::size_t>(op.first_source + s);
      const Source& from = program_.sources[source];
      const int m = message_of_[source];
      if (m < 0) {
        plan.operands.push_back(
            {static_cast<std::uint16_t>(from.rank), from.place.memory, 0, from.place.offset});
      } else {
        plan.operands.push_back({static_cast<std::uint16_t>(from.rank), Memory::message,
                                 messages_[static_cast<std::size_t>(m)].number, 0});
      }
    }
    if (!early) release(op);
  }

  // Gives back all messages that an operation has used.
  void release(const Operation& op) {
    RankPlan& plan = plan_.rank[static_cast<std::size_t>(op.rank)];
    for (int s = 0; s < op.sources; ++s) {
      const int m = message_of_[static_cast<std::size_t>(op.first_source + s)];
      if (m < 0) continue;
      const Message& message = messages_[static_cast<std::size_t>(m)];
      const std::uint8_t flags = by_address(message) ? std::uint8_t{kByAddress} : std::uint8_t{0};
      plan.ops.push_back({.code = OpCode::release,
                          .flags = flags,
                          .peer = static_cast<std::uint16_t>(message.from),
                          .round = round_of(op),
                          .value = message.number + 1});
    }
  }

  void wait_for_reader(const Operation& writer, int reader) {
    const Operation& op = operation(reader);
    for (int s = 0; s < op.sources; ++s) {
      const int m = message_of_[static_cast<std::size_t>(op.first_source + s)];
      if (m < 0) continue;
      const Message& message = messages_[static_cast<std::size_t>(m)];
      if (message.from != writer.rank || !by_address(message)) continue;
      wait_credit(writer.rank, message.to, message.number + 1, round_of(writer));
    }
  }

  void wait_credit(Rank r, Rank peer, std::uint32_t number, std::uint16_t round) {
    if (options_.mutant == LowerOptions::Mutant::no_credit_waits) return;
    plan_.rank[static_cast<std::size_t>(r)].ops.push_back({.code = OpCode::wait_credit,
                                                           .peer = static_cast<std::uint16_t>(peer),
                                                           .round = round,
                                                           .value = number});
  }

  void finish(std::size_t r) {
    RankPlan& plan = plan_.rank[r];
    const Rank rank = static_cast<Rank>(r);
    const auto round = static_cast<std::uint16_t>(program_.rounds + 1);
    for (Rank q = 0; q < program_.ranks; ++q) {
      const std::uint32_t owed = owed_[pair(rank, q)];
      if (owed > 0 && options_.mutant != LowerOptions::Mutant::no_exit_waits) {
        wait_credit(rank, q, owed, round);
      }
      const std::uint32_t sent = sent_[pair(rank, q)], received = sent_[pair(q, rank)];
      if (sent + received > 0) {
        plan.traffic.push_back({static_cast<std::uint16_t>(q), sent, received});
      }
    }
    plan.ops.push_back({});
    plan.scratch_bytes = program_.scratch_bytes[r];
  }

  const Program& program_;
  const LowerOptions& options_;
  const std::size_t ranks_;
  Plan plan_;
  std::vector<std::uint32_t> sent_;  // (from, to): messages so far
  std::vector<Filled> filled_;       // (from, to): the pair's latest sub-round of this round
  std::vector<std::uint32_t> owed_;  // (from, to): one past the last message sent by address
  std::vector<int> wanted_;          // per rank: messages that the operation at hand needs of it
  std::vector<int> message_of_;      // per source: its message, or -1
  std::vector<Message> messages_;
};

}  // namespace

Result<Plan> lower_mailbox(const Program& program, const LowerOptions& options) {
  return Lowering(program, options).run();
}

}  // namespace rankine
