// Lowers a program to a plan for the mailbox transport: every source on another rank becomes a
// message.
//
// Order within a rank and round: first all sends, then all receptions. That cannot deadlock while a
// pair has at most `capacity` messages in flight. A round with more is cut into sub-rounds of
// `capacity` messages per pair (sends first in each), and the induction runs over sub-rounds.
// Messages are numbered per ordered pair, in the order in which the receiver uses them. Messages
// between nodes (LowerOptions::nodes) are not limited, and all belong to the first sub-round.
//
// Ports. With a budget of k, a rank has at most k messages in flight in each direction. A message
// takes a send port of its sender until its slot is released, and a receive port of its receiver
// until its data have been used. Both sides use their ports in an order that is fixed here:
// - before it sends its message i, a rank waits for the release of its message i - k;
// - before a rank sends the receiver's message j, it waits until the receiver has used its message
//   j - k. The receiver publishes the number of used messages as its progress, starting with 1 when
//   it begins the call: messages of the call before that are still in flight count, too.
//
// This cannot deadlock: rounds are cut so that in each sub-round a rank sends at most k messages
// and receives at most k. So messages i - k and j - k belong to earlier sub-rounds, and the
// induction over sub-rounds holds. An operation with more sources copies the early ones to scratch,
// which frees their ports, and adds them all up at the end: in the same order, with equal bits.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/memory.h"
#include "engine/compile/lower.h"

namespace rankine {
namespace {

struct Message {
  int operation = 0;  // the reader
  Rank from = 0, to = 0;
  Place place;
  std::size_t bytes = 0;
  std::uint32_t number = 0;  // number in its pair, in this call
  // With a budget of ports:
  std::uint32_t arrival = 0;  // number among its receiver's messages, in this call
  int subround = 0;
  std::size_t copied_to = kStaysInSlot;  // offset in its receiver's scratch

  static constexpr std::size_t kStaysInSlot = std::numeric_limits<std::size_t>::max();
  bool is_copied() const { return copied_to != kStaysInSlot; }
};

// The number of messages in a pair's latest sub-round, in the round that begins with that
// operation.
struct Filled {
  int round_begin = -1;
  int subround = 0;
  int messages = 0;
};

// The items of each sub-round, in the order of add().
class BySubround {
 public:
  void add(int subround, int what) { all_.push_back({subround, what}); }
  void sort() {
    std::stable_sort(all_.begin(), all_.end(),
                     [](const Entry& a, const Entry& b) { return a.subround < b.subround; });
  }
  // Calls visit(what) for the items of a sub-round. Ask for each sub-round once, in ascending
  // order.
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

class MailboxLowering {
 public:
  MailboxLowering(const DataflowProgram& program, const LowerOptions& options)
      : program_(program),
        options_(options),
        ranks_(static_cast<std::size_t>(program.ranks)),
        sent_(ranks_ * ranks_, 0),
        filled_(ranks_ * ranks_),
        owed_(ranks_ * ranks_, 0),
        wanted_(ranks_, 0),
        message_of_(program.sources.size(), -1),
        ports_(options.ports > 0 ? ranks_ : 0) {
    plan_.transport = Transport::mailbox;
    plan_.ports = options.ports;
    plan_.span = 1;  // no rank waits for it, but every call counts: bound_counter_skew() in walk.h
    plan_.ranks = program.ranks;
    plan_.rounds = program.rounds;
    plan_.rank.resize(ranks_);
  }

  Result<Plan> run() {
    make_room();
    if (has_ports()) begin_call();
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
  // Reserves memory for all messages and their ops.
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
        ops[r] += 2;  // to wait for it and to release it
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
  bool has_ports() const { return !ports_.empty(); }
  bool by_address(const Message& m) const { return m.bytes > options_.slot_payload; }
  bool are_far(Rank a, Rank b) const {
    return !options_.nodes.empty() && options_.nodes[static_cast<std::size_t>(a)] !=
                                          options_.nodes[static_cast<std::size_t>(b)];
  }

  // The operations and messages of a round, by sub-round.
  struct Cut {
    BySubround operations, messages, copied;  // copied: messages that come before their operation
    int subrounds = 1;
  };

  Status cut_by_pairs(int begin, int end, Cut& cut) {
    std::vector<int> rank_subround(ranks_, 0);
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
        if (from == op.rank || are_far(from, op.rank)) continue;
        const int own = wanted_[static_cast<std::size_t>(from)];
        if (own > options_.mailbox_capacity) {
          return invalid_argument("mailbox: rank " + std::to_string(op.rank) + " needs " +
                                  std::to_string(own) + " messages of rank " +
                                  std::to_string(from) + " at once; allowed are " +
                                  std::to_string(options_.mailbox_capacity));
        }
        const Filled& filled = filled_[pair(from, op.rank)];
        if (filled.round_begin != begin) continue;
        // No pair's sub-round is later than the rank's.
        const bool fits =
            filled.subround < subround || filled.messages + own <= options_.mailbox_capacity;
        if (!fits) subround = filled.subround + 1;
      }
      for (int s = 0; s < op.sources; ++s) {
        const Source& source = source_of(op, s);
        if (source.rank == op.rank) continue;
        wanted_[static_cast<std::size_t>(source.rank)] = 0;
        add_message(i, s, begin, are_far(source.rank, op.rank) ? 0 : subround, cut);
      }
      cut.operations.add(subround, i);
      cut.subrounds = std::max(cut.subrounds, subround + 1);
    }
    return {};
  }

  // With a budget of ports: each message goes to the first sub-round in which its sender and its
  // receiver have a free port, and which is not before the receiver's latest.
  void cut_by_ports(int begin, int end, Cut& cut) {
    struct Used {
      std::vector<int> sent;  // by sub-round
      // the latest sub-round in which it receives, and the number of messages there
      int subround = 0, received = 0;
    };
    std::vector<Used> used(ranks_);
    std::vector<int> sources;
    for (int i = begin; i < end; ++i) {
      const Operation& op = operation(i);
      sources.clear();
      for (int s = 0; s < op.sources; ++s) {
        if (source_of(op, s).rank != op.rank) sources.push_back(s);
      }
      // Take the nearest lower rank first: if all hear from all, each rank then sends to a
      // different one.
      const auto distance = [&](int s) {
        const Rank from = source_of(op, s).rank;
        return op.rank > from ? op.rank - from : op.rank + program_.ranks - from;
      };
      std::stable_sort(sources.begin(), sources.end(),
                       [&](int a, int b) { return distance(a) < distance(b); });
      Used& here = used[static_cast<std::size_t>(op.rank)];
      const std::size_t first = messages_.size();
      for (const int s : sources) {
        const Rank from = source_of(op, s).rank;
        std::vector<int>& sent = used[static_cast<std::size_t>(from)].sent;
        const Filled& filled = filled_[pair(from, op.rank)];
        int subround = here.subround;
        for (;; ++subround) {
          step(options_.meter);
          const auto at = static_cast<std::size_t>(subround);
          if (sent.size() <= at) sent.resize(at + 1);
          const bool pair_is_full = filled.round_begin == begin && filled.subround == subround &&
                                    filled.messages == options_.mailbox_capacity;
          const bool is_full = subround == here.subround && here.received == options_.ports;
          if (sent[at] < options_.ports && !is_full && !pair_is_full) break;
        }
        ++sent[static_cast<std::size_t>(subround)];
        if (subround != here.subround) here = {std::move(here.sent), subround, 0};
        ++here.received;
        add_message(i, s, begin, subround, cut);
        Message& message = messages_.back();
        message.arrival = ports_[static_cast<std::size_t>(op.rank)].arrivals++;
        message.subround = subround;
      }
      // Messages before the last sub-round are copied.
      std::size_t copied = 0;
      for (std::size_t m = first; m < messages_.size(); ++m) {
        if (messages_[m].subround == here.subround) break;
        messages_[m].copied_to = copied;
        copied += whole_lines(op.bytes);
        cut.copied.add(messages_[m].subround, static_cast<int>(m));
      }
      std::size_t& most = ports_[static_cast<std::size_t>(op.rank)].copied_bytes;
      most = std::max(most, copied);
      cut.operations.add(here.subround, i);
      cut.subrounds = std::max(cut.subrounds, here.subround + 1);
    }
  }

  // Adds the message for source s of operation i.
  void add_message(int i, int s, int round_begin, int subround, Cut& cut) {
    const Operation& op = operation(i);
    const Source& source = source_of(op, s);
    const std::size_t p = pair(source.rank, op.rank);
    if (filled_[p].round_begin != round_begin || filled_[p].subround != subround) {
      filled_[p] = {round_begin, subround, 0};
    }
    ++filled_[p].messages;
    const auto message = static_cast<int>(messages_.size());
    message_of_[static_cast<std::size_t>(op.first_source + s)] = message;
    cut.messages.add(subround, message);
    messages_.push_back({i, source.rank, op.rank, source.place, op.bytes, sent_[p]++});
  }

  Status lower_round(int begin, int end) {
    Cut cut;
    if (has_ports()) {
      cut_by_ports(begin, end, cut);
    } else if (Status status = cut_by_pairs(begin, end, cut); !status.ok()) {
      return status;
    }
    if (cut.subrounds > 1 && program_.eager) {
      return invalid_argument(
          "mailbox: a round has more than " + std::to_string(options_.mailbox_capacity) +
          " messages of one pair, or more messages of one rank than its ports; an eager program "
          "sends all messages of a round before it writes");
    }
    if (cut.subrounds > 1) {
      cut.operations.sort();
      cut.messages.sort();
      cut.copied.sort();
    }
    const auto sends = [&](int sub) {
      cut.messages.take(sub, [&](int m) { send(messages_[static_cast<std::size_t>(m)]); });
    };
    const auto receptions = [&](int sub) {
      cut.operations.take(sub, [&](int i) { fold(i); });
      cut.copied.take(sub, [&](int m) { copy(messages_[static_cast<std::size_t>(m)]); });
    };
    const bool sends_first = options_.mutant != LowerOptions::Mutant::receives_first;
    for (int sub = 0; sub < cut.subrounds; ++sub) {
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
    if (has_ports()) wait_for_ports(m);
    plan.ops.push_back({.code = OpCode::send,
                        .flags = flags,
                        .operands = 1,
                        .peer = static_cast<std::uint16_t>(m.to),
                        .round = round_of(operation(m.operation)),
                        .value = m.number,
                        .bytes = m.bytes});
    plan.operands.push_back(
        {static_cast<std::uint16_t>(m.from), m.place.memory, 0, m.place.offset});
    if (has_ports()) count_ports(m.from, 0, round_of(operation(m.operation)));
    if (by_address(m) || has_ports()) owed_[pair(m.from, m.to)] = m.number + 1;
  }

  // A rank publishes that it has begun, so that messages may come to it.
  void begin_call() {
    std::vector<bool> receives(ranks_);
    for (const Operation& op : program_.operations) {
      for (int s = 0; s < op.sources; ++s) {
        if (source_of(op, s).rank != op.rank) receives[static_cast<std::size_t>(op.rank)] = true;
      }
    }
    for (std::size_t r = 0; r < ranks_; ++r) {
      if (receives[r]) plan_.rank[r].ops.push_back({.code = OpCode::fold, .value = kHasBegun});
    }
  }

  // Waits until the sender and the receiver of a message have a port for it.
  void wait_for_ports(const Message& m) {
    Ports& mine = ports_[static_cast<std::size_t>(m.from)];
    const Ports& theirs = ports_[static_cast<std::size_t>(m.to)];
    const auto budget = static_cast<std::uint32_t>(options_.ports);
    const std::uint16_t round = round_of(operation(m.operation));
    if (options_.mutant != LowerOptions::Mutant::no_port_waits) {
      if (mine.sent.size() >= budget) {
        const Ports::Sent& before = mine.sent[mine.sent.size() - budget];
        wait_credit(m.from, before.to, before.number + 1, round);
      }
      plan_.rank[static_cast<std::size_t>(m.from)].ops.push_back(
          {.code = OpCode::wait_progress,
           .peer = static_cast<std::uint16_t>(m.to),
           .round = round,
           .value = m.arrival < budget ? kHasBegun : theirs.published[m.arrival - budget]});
    }
    mine.sent.push_back({m.to, m.number});
  }

  void count_ports(Rank r, std::size_t held, std::uint16_t round) {
    plan_.rank[static_cast<std::size_t>(r)].ops.push_back(
        {.code = OpCode::count_ports, .round = round, .value = static_cast<std::uint32_t>(held)});
  }

  // The value that the rank publishes with the op that uses `messages` more messages.
  std::uint32_t publish_use_of(Rank r, std::size_t messages) {
    std::vector<std::uint32_t>& published = ports_[static_cast<std::size_t>(r)].published;
    const auto value = static_cast<std::uint32_t>(kHasBegun + published.size() + messages);
    published.insert(published.end(), messages, value);
    plan_.span = std::max(plan_.span, value + 1);
    return value;
  }

  void wait_message(const Message& m) {
    const Operation& op = operation(m.operation);
    plan_.rank[static_cast<std::size_t>(m.to)].ops.push_back(
        {.code = OpCode::wait_message,
         .peer = static_cast<std::uint16_t>(m.from),
         .round = round_of(op),
         .value = m.number,
         .bytes = m.bytes});
  }

  // Copies a message that comes before the others of its operation to scratch, behind the program's
  // data.
  void copy(Message& m) {
    const auto r = static_cast<std::size_t>(m.to);
    RankPlan& plan = plan_.rank[r];
    const std::uint16_t round = round_of(operation(m.operation));
    m.copied_to += whole_lines(program_.scratch_bytes[r]);
    wait_message(m);
    count_ports(m.to, 1, round);
    plan.ops.push_back({.code = OpCode::fold,
                        .operands = 1,
                        .round = round,
                        .value = publish_use_of(m.to, 1),
                        .memory = Memory::scratch,
                        .offset = m.copied_to,
                        .bytes = m.bytes});
    plan.operands.push_back({static_cast<std::uint16_t>(m.from), Memory::message, m.number, 0});
    release(m);
  }

  void fold(int index) {
    step(options_.meter);
    const Operation& op = operation(index);
    RankPlan& plan = plan_.rank[static_cast<std::size_t>(op.rank)];
    // Readers that got the address of the overwritten data must have used it.
    if (options_.mutant != LowerOptions::Mutant::no_write_after_read) {
      for (int i = 0; i < op.earlier; ++i) {
        wait_for_reader(op, program_.earlier[static_cast<std::size_t>(op.first_earlier + i)]);
      }
    }
    std::size_t held = 0;
    for (int s = 0; s < op.sources; ++s) {
      if (const Message* message = in_slot(op, s)) {
        wait_message(*message);
        ++held;
      }
    }
    Op fold = fold_op(op);
    if (has_ports() && held > 0) {
      count_ports(op.rank, held, round_of(op));
      fold.value = publish_use_of(op.rank, held);
    }
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
        continue;
      }
      const Message& message = messages_[static_cast<std::size_t>(m)];
      if (message.is_copied()) {
        plan.operands.push_back(
            {static_cast<std::uint16_t>(op.rank), Memory::scratch, 0, message.copied_to});
      } else {
        plan.operands.push_back(
            {static_cast<std::uint16_t>(from.rank), Memory::message, message.number, 0});
      }
    }
    if (!early) release(op);
  }

  // The message in a slot that is source s of an operation; nullptr: another kind of source.
  const Message* in_slot(const Operation& op, int s) const {
    const int m = message_of_[static_cast<std::size_t>(op.first_source + s)];
    if (m < 0 || messages_[static_cast<std::size_t>(m)].is_copied()) return nullptr;
    return &messages_[static_cast<std::size_t>(m)];
  }

  // Releases all messages that an operation has used in their slots.
  void release(const Operation& op) {
    for (int s = 0; s < op.sources; ++s) {
      if (const Message* message = in_slot(op, s)) release(*message);
    }
  }
  void release(const Message& m) {
    const bool at_once = by_address(m) || has_ports() || are_far(m.from, m.to);
    plan_.rank[static_cast<std::size_t>(m.to)].ops.push_back(
        {.code = OpCode::release,
         .flags = at_once ? std::uint8_t{kByAddress} : std::uint8_t{0},
         .peer = static_cast<std::uint16_t>(m.from),
         .round = round_of(operation(m.operation)),
         .value = m.number + 1});
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
    if (has_ports() && ports_[r].copied_bytes > 0) {
      plan.scratch_bytes = whole_lines(plan.scratch_bytes) + ports_[r].copied_bytes;
    }
  }

  // A rank's use of its ports in the call, so far.
  struct Ports {
    struct Sent {
      Rank to;
      std::uint32_t number;
    };
    std::vector<Sent> sent;      // in the order in which it sends
    std::uint32_t arrivals = 0;  // messages to it
    // by arrival: the rank's progress when it has used the message
    std::vector<std::uint32_t> published;
    std::size_t copied_bytes = 0;  // scratch bytes for the messages of one operation
  };
  static constexpr std::uint32_t kHasBegun = 1;  // a value of progress

  const DataflowProgram& program_;
  const LowerOptions& options_;
  const std::size_t ranks_;
  Plan plan_;
  std::vector<std::uint32_t> sent_;  // (from, to): messages so far
  std::vector<Filled> filled_;       // (from, to): the pair's latest sub-round of this round
  std::vector<std::uint32_t> owed_;  // (from, to): one past the last message sent by address
  std::vector<int> wanted_;          // per rank: messages that the current operation needs from it
  std::vector<int> message_of_;      // per source: its message, or -1
  std::vector<Message> messages_;
  std::vector<Ports> ports_;  // by rank; empty: no budget
};

}  // namespace

Result<Plan> lower_mailbox(const DataflowProgram& program, const LowerOptions& options) {
  return MailboxLowering(program, options).run();
}

}  // namespace rankine
