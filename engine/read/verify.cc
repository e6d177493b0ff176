#include "engine/read/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/schedule/rotation_symmetric.h"
#include "engine/base/units.h"
#include "engine/network/cells.h"
#include "engine/read/contributions.h"

namespace rankine {
namespace {

using Set = ContributionPool::Set;

constexpr std::array<std::string_view, kViolationKinds> kNames = {
    "bad_shape",    "too_large", "bad_index",    "bad_sizes",   "other_block",
    "many_to_copy", "not_there", "double_count", "two_copies",  "mixed_acts",
    "redundant",    "dead",      "wrong_result", "other_order", "deadlock"};

constexpr Rank kEveryone = CollectiveSpec::kEveryone;

// The content of one place of one rank. All bits zero: empty, never written. The state of the last
// write is kept until the place is sent: after that, neighbours with equal sets are equal.
struct State {
  Set set;
  std::uint32_t written;  // 1 + the round of the last write, 0: none since the last read
  bool copied;            // that write was a copy
  bool unread;            // the last arrival has not been sent on
  bool operator==(const State&) const = default;
};
static_assert(sizeof(State) == 16);

// Neighbouring blocks of a message with equal content, in the sender's numbering.
struct Content {
  Block first;
  int count;
  Set set;
  Sum sum;
};

// A write of one content to neighbouring blocks at a rank.
struct Write {
  std::size_t rank;  // the rank's index in the tables
  int plane;
  Block first;
  int count;
  Set set;
  Rank from;  // from the receiver's view if one rank stands for all
  bool is_copy;
};

// An index of the list outside [0, n); nullopt if all are inside.
std::optional<int> outside(const IndexList& list, int n) {
  for (int i = 0; i < list.runs(); ++i) {
    const Run& run = list.run(i);
    const std::int64_t last = run.first + std::int64_t{run.count - 1} * run.stride;
    if (run.first < 0 || run.first >= n) return run.first;
    if (last < 0 || last >= n) return run.first < last ? n : -1;
  }
  return std::nullopt;
}

bool same_runs(const IndexList& a, const IndexList& b) {
  if (a.runs() != b.runs()) return false;
  for (int i = 0; i < a.runs(); ++i) {
    if (!(a.run(i) == b.run(i))) return false;
  }
  return true;
}

Violation too_large(const Schedule& schedule, const std::string& states,
                    const VerifyOptions& options) {
  return {ViolationKind::too_large, -1, -1, -1,
          fmt::format("{} x {} x {} take {} states; allowed are {}",
                      counted(schedule.ranks, "rank"), counted(schedule.blocks, "block"),
                      counted(schedule.planes, "plane"), states, options.max_states)};
}

class Verifier {
 public:
  // `one`: the part of the rank that stands for all; nullptr: verify all ranks.
  Verifier(const Schedule& schedule, const RotationSymmetric* one, const CollectiveSpec& goal,
           const VerifyOptions& options)
      : schedule_(one != nullptr ? one->part() : schedule),
        one_(one),
        goal_(goal),
        options_(options),
        idempotent_(is_idempotent(goal.collective)),
        ranks_(one != nullptr ? 1 : schedule.ranks),
        pool_(schedule.ranks),
        replay_(one != nullptr
                    ? MailboxReplay(*one, options.mailbox_capacity, options.order)
                    : MailboxReplay(schedule.ranks, options.mailbox_capacity, options.order)),
        states_(schedule, goal, static_cast<std::size_t>(ranks_)) {
    if (goal.collective == Collective::all_reduce && goal.same_bits) {
      sums_.emplace(schedule, goal, one);
    }
  }

  std::optional<Violation> run() {
    start();
    for (round_ = 0; round_ < schedule_.rounds && !violation_; ++round_) {
      writes_.clear();
      for_each_transfer(schedule_, round_, [this](const Transfer& transfer) {
        if (!violation_ && well_formed(transfer)) read(transfer);
      });
      for (std::size_t i = 0; i < writes_.size() && !violation_; ++i) apply(writes_[i]);
      if (sums_ && !violation_) sums_->end_round();
      if (options_.progress && !violation_) replay_round();
      if (!violation_ && too_many(states_.held())) return std::move(violation_);
    }
    round_ = -1;
    if (!violation_) check_result();
    if (!violation_ && sums_ && one_ != nullptr) {
      if (const auto other = sums_->difference_to_next()) fail_order(other->first, other->second);
    }
    if (!violation_ && options_.economy && unread_ > 0) find_unread();
    return std::move(violation_);
  }

 private:
  std::size_t index_of(Rank r) const { return one_ != nullptr ? 0 : static_cast<std::size_t>(r); }
  // Converts a rank, or a list of blocks, to the numbering of rank `seen_by`: if one rank stands
  // for all, each rank sees itself as rank 0.
  Rank seen(Rank r, Rank seen_by) const {
    return one_ == nullptr ? r : one_->rotation().rotated(r, one_->rotation().back(seen_by));
  }
  template <class Visit>
  void for_each_run(const IndexList& blocks, Rank seen_by, const Visit& visit) const {
    if (one_ == nullptr) {
      for (int i = 0; i < blocks.runs(); ++i) visit(blocks.run(i));
      return;
    }
    const IndexList own = one_->rotation().rotated(blocks, one_->rotation().back(seen_by));
    for (int i = 0; i < own.runs(); ++i) visit(own.run(i));
  }

  // If all blocks start at one rank each, a place holds that rank's contribution or nothing. The
  // tables then store it as rank 0's, so that neighbouring blocks are equal; real() converts it
  // back. Other collectives store the actual sets.
  bool of_one_source() const { return source_of_all_ != kEveryone; }
  Set real(Set set, Block b) const {
    return set == ContributionPool::kEmpty || !of_one_source() ? set : pool_.of(goal_.source_of(b));
  }
  Set required(Rank r, Block b) const {
    if (of_one_source()) return pool_.of(0);
    const Run heard = goal_.contributors(r, b);
    return heard.count > 0 ? pool_.run(heard.first, heard.count) : ContributionPool::kEmpty;
  }
  // The number of neighbouring blocks that the goal does not want at that place of a rank. All
  // blocks have one target, or natural block n is for rank n mod N.
  std::int64_t unwanted(Rank r, int plane, Block first, int count) const {
    if (plane > 0) return count;
    const Rank target = goal_.target_of(first);
    if (count == 1 || target_of_all_ != kSeveral) {
      return target == r || (target == kEveryone && goal_.must_hold(r, first)) ? 0 : count;
    }
    const std::int64_t parts = goal_.blocks / natural_blocks(goal_.collective, goal_.ranks);
    const std::int64_t period = parts * goal_.ranks;
    const auto wanted_below = [&](std::int64_t b) {
      return b / period * parts + std::clamp<std::int64_t>(b % period - r * parts, 0, parts);
    };
    return count - (wanted_below(first + count) - wanted_below(first));
  }

  void start() {
    source_of_all_ = goal_.source_of(0);
    const Rank target = goal_.target_of(0);
    target_of_all_ = goal_.target_of(goal_.blocks - 1) == target ? target : kSeveral;
    if (!of_one_source()) {
      for (Rank r = 0; r < ranks_; ++r) begin_with(r, 0, schedule_.blocks, pool_.of(r));
      return;
    }
    // Neighbouring blocks with one source are set together.
    for (Block first = 0, end; first < schedule_.blocks; first = end) {
      const Rank source = goal_.source_of(first);
      end = first + 1;
      while (end < schedule_.blocks && goal_.source_of(end) == source) ++end;
      if (source < ranks_) begin_with(source, first, end - first, pool_.of(0));
    }
  }
  void begin_with(Rank r, Block first, int count, Set set) {
    const Run run{first, count, 1};
    states_.change(static_cast<std::size_t>(r), 0, run,
                   [set](Block, int, State& state) { state.set = set; });
    if (sums_) sums_->begin_with(r, run);
  }

  // Checks the form of a transfer, which read() relies on.
  bool well_formed(const Transfer& t) {
    if (t.from.empty() || t.to.empty() || t.what.list.empty()) {
      return fail(ViolationKind::bad_sizes, -1, -1,
                  fmt::format("a transfer without {}", t.from.empty() ? "sender"
                                                       : t.to.empty() ? "receiver"
                                                                      : "block"));
    }
    for (const RankSet* set : {&t.from, &t.to}) {
      if (const auto rank = outside(*set, schedule_.ranks)) {
        return fail(ViolationKind::bad_index, *rank, t.what.list.front(),
                    fmt::format("invalid rank to {}; ranks are 0 to {}",
                                set == &t.from ? "send" : "receive", schedule_.ranks - 1));
      }
    }
    const Rank to = t.to.front();
    for (const BlockSet* set : {&t.what, &t.where}) {
      const char* name = set == &t.what ? "what" : "where";
      if (const auto block = outside(set->list, schedule_.blocks)) {
        return fail(
            ViolationKind::bad_index, to, *block,
            fmt::format("invalid block; `{}` may have 0 to {}", name, schedule_.blocks - 1));
      }
      if (set->plane < 0 || set->plane >= schedule_.planes) {
        return fail(ViolationKind::bad_index, to, set->list.empty() ? -1 : set->list.front(),
                    fmt::format("`{}` is on plane {}; the schedule's planes are 0 to {}", name,
                                set->plane, schedule_.planes - 1));
      }
    }
    if (!same_runs(t.what.list, t.where.list)) {
      const std::vector<int> what = t.what.list.to_vector(), where = t.where.list.to_vector();
      if (what.size() != where.size()) {
        return fail(ViolationKind::bad_sizes, to, t.what.list.front(),
                    fmt::format("{} sent to {}", counted(what.size(), "block"),
                                counted(where.size(), "place")));
      }
      for (std::size_t i = 0; i < what.size(); ++i) {
        if (what[i] != where[i]) {
          return fail(ViolationKind::other_block, to, where[i],
                      fmt::format("rank {} sends block {} to the place of block {}", t.from.front(),
                                  what[i], where[i]));
        }
      }
    }
    if (t.kind == TransferKind::copy && t.from.size() > 1) {
      return fail(ViolationKind::many_to_copy, to, t.what.list.front(),
                  fmt::format("{} ranks are copied to it at once; only sums have several senders",
                              t.from.size()));
    }
    return true;
  }

  // Does all reads of the transfer; its writes wait for the end of the round.
  void read(const Transfer& t) {
    t.from.for_each([&](Rank from) {
      if (options_.progress) {
        t.to.for_each([&](Rank to) {
          if (to != from) replay_.add(from, to);
        });
      }
      contents_.clear();
      for_each_run(t.what.list, from, [&](const Run& run) {
        states_.change(index_of(from), t.what.plane, run,
                       [&](Block first, int count, State& source) {
                         if (!violation_) read(t, from, first, count, source);
                       });
      });
      if (violation_) return;
      for (const Content& content : contents_) {
        t.to.for_each([&](Rank to) { write(t, from, to, content); });
      }
    });
  }
  void read(const Transfer& t, Rank from, Block first, int count, State& source) {
    if (source.set == ContributionPool::kEmpty) {
      fail(ViolationKind::not_there, seen(from, from), first,
           fmt::format("{}is to be sent to rank {} but holds nothing", on_plane(t.what.plane),
                       seen(t.to.front(), from)));
      return;
    }
    if (source.unread) unread_ -= unwanted(seen(from, from), t.what.plane, first, count);
    source = {source.set, 0, false, false};
    const auto send = [&](Block b, int alike, const Sum& sum) {
      if (!contents_.empty()) {
        Content& before = contents_.back();
        if (before.first + before.count == b && before.set == source.set && before.sum == sum) {
          before.count += alike;
          return;
        }
      }
      contents_.push_back({b, alike, source.set, sum});
    };
    if (!sums_) return send(first, count, {});
    sums_->read(index_of(from), t.what.plane, {first, count, 1}, send);
  }
  void write(const Transfer& t, Rank from, Rank to, const Content& content) {
    const Run run{content.first, content.count, 1};
    Set set = content.set;
    Sum sum = content.sum;
    const int plane = t.where.plane;
    const bool is_copy = t.kind == TransferKind::copy;
    const auto arrives = [&](std::size_t rank, const Run& at, Rank sender) {
      writes_.push_back({rank, plane, at.first, at.count, set, sender, is_copy});
      if (sums_) sums_->arrives(rank, plane, at, sum, is_copy);
    };
    if (one_ == nullptr) return arrives(index_of(to), run, from);
    const Rotation& rotation = one_->rotation();
    const Rank sender = seen(from, to);
    if (!of_one_source()) set = pool_.rotated(set, rotation, sender);
    if (sums_) sum = sums_->rotated(sum, sender);
    const IndexList blocks = rotation.rotated(IndexList(run), sender);
    for (int i = 0; i < blocks.runs(); ++i) arrives(0, blocks.run(i), sender);
  }

  void apply(const Write& write) {
    states_.change(write.rank, write.plane, {write.first, write.count, 1},
                   [&](Block first, int count, State& state) {
                     if (!violation_) apply(write, first, count, state);
                   });
  }
  void apply(const Write& write, Block first, int count, State& state) {
    const std::uint32_t now = static_cast<std::uint32_t>(round_) + 1;
    const bool written_before = state.written == now;
    if (written_before && (write.is_copy || state.copied)) {
      const bool both = write.is_copy && state.copied;
      fail_at(both ? ViolationKind::two_copies : ViolationKind::mixed_acts, write, first,
              both ? "is copied there, but another copy goes there in the same round"
                   : "goes where a copy and a reduction meet in one round");
      return;
    }
    if (write.is_copy) {
      if (options_.economy && state.set == write.set) {
        fail_at(ViolationKind::redundant, write, first, "is copied there, but it is there already");
        return;
      }
      if (options_.economy && state.unread) {
        fail_at(ViolationKind::dead, write, first,
                fmt::format("overwrites {}, which arrived in round {} and was never used",
                            text_of(state.set, first), state.written - 1));
        return;
      }
      state.set = write.set;
    } else {
      const Set sum =
          idempotent_ ? pool_.united(state.set, write.set) : pool_.sum(state.set, write.set);
      if (sum == ContributionPool::kOverlap) {
        fail_at(ViolationKind::double_count, write, first,
                fmt::format("is added to {}: {} would be there twice", text_of(state.set, first),
                            pool_.common(real(state.set, first), real(write.set, first))));
        return;
      }
      if (options_.economy && sum == state.set) {
        fail_at(ViolationKind::redundant, write, first,
                fmt::format("is added to {}, which has it already", text_of(state.set, first)));
        return;
      }
      state.set = sum;
    }
    state.written = now;
    state.copied = write.is_copy;
    if (!state.unread) unread_ += unwanted(rank_of(write), write.plane, first, count);
    state.unread = true;
  }

  void replay_round() {
    if (const auto circle = replay_.end_round()) {
      fail(ViolationKind::deadlock, circle->rank, -1, circle->text);
    }
  }

  void check_result() {
    if (target_of_all_ == kEveryone) {
      for (Rank r = 0; r < ranks_; ++r) {
        if (!goal_.must_hold(r, 0)) continue;
        states_.read(static_cast<std::size_t>(r), 0, {0, schedule_.blocks, 1},
                     [&](Block first, int count, const State& state) {
                       if (!violation_) check_places(r, first, count, state.set);
                     });
      }
      return;
    }
    for (Block b = 0; b < schedule_.blocks && !violation_; ++b) {
      const Rank target = goal_.target_of(b);
      if (target >= ranks_) continue;
      check_places(target, b, 1, states_.at(static_cast<std::size_t>(target), 0, b).set);
    }
  }
  void check_places(Rank r, Block first, int count, Set held) {
    if (held != required(r, first)) {
      fail(ViolationKind::wrong_result, r, first,
           fmt::format("ends with the contributions of {}; needed are {}", text_of(held, first),
                       text_of(required(r, first), first)));
      return;
    }
    if (!sums_ || one_ != nullptr || r == 0) return;
    if (const auto other = sums_->difference(r, first, count)) fail_order(r, *other);
  }
  void fail_order(Rank r, Block b) {
    fail(ViolationKind::other_order, r, b,
         "is added up in another way than at rank 0: sums of floats would differ");
  }

  void find_unread() {
    for (Rank r = 0; r < ranks_; ++r) {
      for (int plane = 0; plane < schedule_.planes; ++plane) {
        states_.read(static_cast<std::size_t>(r), plane, {0, schedule_.blocks, 1},
                     [&](Block first, int count, const State& state) {
                       for (Block b = first; state.unread && !violation_ && b < first + count;
                            ++b) {
                         if (unwanted(r, plane, b, 1) == 0) continue;
                         round_ = static_cast<int>(state.written) - 1;
                         fail(ViolationKind::dead, r, b,
                              fmt::format("{}the arrival {} is neither sent on nor needed at the "
                                          "end",
                                          on_plane(plane), text_of(state.set, b)));
                       }
                     });
      }
    }
  }

  std::string text_of(Set set, Block b) const { return pool_.to_string(real(set, b)); }
  static std::string on_plane(int plane) {
    return plane == 0 ? std::string() : fmt::format("(plane {}) ", plane);
  }

  bool fail(ViolationKind kind, Rank rank, Block block, const std::string& what) {
    std::string text;
    if (round_ >= 0) text = fmt::format("round {}", round_);
    if (rank >= 0) text += fmt::format("{}rank {}", text.empty() ? "" : ", ", rank);
    if (block >= 0) text += fmt::format("{}block {}", text.empty() ? "" : ", ", block);
    violation_ = Violation{kind, round_, rank, block, text + ": " + what};
    return false;
  }
  void fail_at(ViolationKind kind, const Write& write, Block b, const std::string& what) {
    fail(kind, rank_of(write), b,
         fmt::format("{}{} from rank {} {}", on_plane(write.plane), text_of(write.set, b),
                     write.from, what));
  }
  static Rank rank_of(const Write& write) { return static_cast<Rank>(write.rank); }
  bool too_many(std::size_t states) {
    if (states <= static_cast<std::size_t>(options_.max_states)) return false;
    violation_ = too_large(schedule_, std::to_string(states), options_);
    return true;
  }

  static constexpr Rank kSeveral = -2;

  const Schedule& schedule_;            // the verified schedule: the whole, or one rank's part
  const RotationSymmetric* const one_;  // set if schedule_ is its part
  const CollectiveSpec& goal_;
  const VerifyOptions& options_;
  const bool idempotent_;
  const int ranks_;  // ranks with states
  // kEveryone: every rank; kSeveral: the target differs by block
  Rank source_of_all_ = kEveryone, target_of_all_ = kEveryone;
  ContributionPool pool_;
  MailboxReplay replay_;
  CellTable<State> states_;
  std::optional<SumOrder> sums_;   // nullopt if the order does not matter
  std::vector<Content> contents_;  // contents of the message being read
  std::vector<Write> writes_;      // writes of this round
  std::int64_t unread_ = 0;        // unread states that the goal does not want
  int round_ = -1;
  std::optional<Violation> violation_;
};

std::optional<Violation> bad_shape(const Schedule& schedule, const CollectiveSpec& goal) {
  const auto fail = [](std::string text) {
    return Violation{ViolationKind::bad_shape, -1, -1, -1, std::move(text)};
  };
  if (schedule.ranks < 1 || schedule.blocks < 1 || schedule.planes < 1 || schedule.rounds < 0) {
    return fail(fmt::format("the schedule has {}, {}, {} and {}", counted(schedule.ranks, "rank"),
                            counted(schedule.blocks, "block"), counted(schedule.planes, "plane"),
                            counted(schedule.rounds, "round")));
  }
  if (schedule.rounds > 0 && !schedule.round) return fail("the schedule has no rounds to call");
  if (goal.ranks != schedule.ranks || goal.blocks != schedule.blocks) {
    return fail(fmt::format("the schedule is for {} and {}, the goal for {} and {}",
                            counted(schedule.ranks, "rank"), counted(schedule.blocks, "block"),
                            goal.ranks, goal.blocks));
  }
  const int natural = natural_blocks(goal.collective, goal.ranks);
  if (goal.blocks % natural != 0) {
    return fail(fmt::format("{} among {} moves {} or a multiple; the schedule has {}",
                            name_of(goal.collective), counted(goal.ranks, "rank"),
                            counted(natural, "block"), goal.blocks));
  }
  for (const Rank r : {goal.root, goal.peer}) {
    if (r < 0 || r >= goal.ranks) {
      return fail(fmt::format("the goal's root is {} and its peer {}; ranks are 0 to {}", goal.root,
                              goal.peer, goal.ranks - 1));
    }
  }
  if (!schedule.phases.empty()) {
    std::int64_t rounds = 0;
    for (const Phase& phase : schedule.phases) rounds += phase.rounds;
    if (rounds != schedule.rounds) {
      return fail(fmt::format("the phases have {} together, the schedule {}",
                              counted(rounds, "round"), schedule.rounds));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(ViolationKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<Violation> verify(const Schedule& schedule, const CollectiveSpec& goal,
                                const VerifyOptions& options) {
  if (auto violation = bad_shape(schedule, goal)) return violation;
  if (std::int64_t{schedule.blocks} * schedule.planes > 0x7fffffff ||
      schedule.blocks > options.max_states || schedule.ranks > options.max_states) {
    return too_large(schedule, "more", options);
  }
  // In the order `statement` ranks differ: the rank stated first sends before it receives.
  const bool all_at_once = !options.progress || options.order != MessageOrder::statement;
  const RotationSymmetric* one =
      options.one_for_all && all_at_once ? symmetry_for(schedule, goal) : nullptr;
  return Verifier(schedule, one, goal, options).run();
}

}  // namespace rankine
