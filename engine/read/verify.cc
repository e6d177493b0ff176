#include "engine/read/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "engine/base/splitmix.h"
#include "engine/read/contributions.h"

namespace rankine {
namespace {

using Set = ContributionPool::Set;

constexpr std::array<std::string_view, kViolationKinds> kNames = {
    "bad_shape",    "too_large", "bad_index",    "bad_sizes",   "other_block",
    "many_to_copy", "not_there", "double_count", "two_copies",  "mixed_acts",
    "redundant",    "dead",      "wrong_result", "other_order", "deadlock"};

constexpr Rank kEveryone = Goal::kEveryone;

// What became of the value that the last writes brought to a place.
enum Use : std::uint16_t {
  kUsed,          // sent on, or nothing has arrived
  kUnread,        // not sent on, and the goal does not want it here
  kUnreadResult,  // not sent on; the goal wants it here, if it stays
};

// What one place of one rank holds. All bits zero: nothing, never written.
struct State {
  Set set;
  std::uint32_t written;  // 1 + the round of the last write, 0: never
  std::uint16_t copied;   // whether that write was a copy
  Use unused;
};
static_assert(sizeof(State) == 16);

// How the value of a place was added up: a hash of the tree of additions, in order, and the lowest
// rank that is in it. All bits zero: nothing is there.
struct Sum {
  std::uint64_t tree;
  Rank lowest;
};

struct Write {
  std::uint64_t state;
  Set set;
  Sum sum;
  Rank from;
  bool is_copy;
  bool is_result;  // the place is where the goal wants the block
};

// Memory that the system hands out page by page when it is first touched: with all-to-all's N * N
// blocks most places are never used.
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
template <class T>
using Table = std::unique_ptr<T[], Free>;

template <class T>
Table<T> zeroed(std::size_t count) {
  void* memory = std::calloc(count, sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return Table<T>(static_cast<T*>(memory));
}

// The index of the list that is not in [0, n), if there is one.
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

class Verifier {
 public:
  Verifier(const Schedule& schedule, const Goal& goal, const VerifyOptions& options)
      : schedule_(schedule),
        goal_(goal),
        options_(options),
        idempotent_(is_idempotent(goal.collective)),
        places_(static_cast<std::uint64_t>(schedule.places())),
        pool_(schedule.ranks),
        replay_(schedule.ranks, options.mailbox_capacity, options.order) {}

  std::optional<Violation> run() {
    start();
    for (round_ = 0; round_ < schedule_.rounds && !violation_; ++round_) {
      writes_.clear();
      for_each_transfer(schedule_, round_, [this](const Transfer& transfer) {
        if (!violation_ && well_formed(transfer)) read(transfer);
      });
      for (std::size_t i = 0; i < writes_.size() && !violation_; ++i) apply(writes_[i]);
      if (sums_ != nullptr && !violation_) add_up();
      if (options_.progress && !violation_) replay_round();
    }
    round_ = -1;
    if (!violation_) check_result();
    if (!violation_ && options_.economy && unread_ > 0) find_unread();
    return std::move(violation_);
  }

 private:
  std::uint64_t index_of(Rank r, int place) const {
    return static_cast<std::uint64_t>(r) * places_ + static_cast<std::uint64_t>(place);
  }
  State& state_of(Rank r, int place) { return states_[index_of(r, place)]; }
  Set required(Rank r, Block b) const {
    const Run heard = goal_.heard_by(r, b);
    return heard.count > 0 ? pool_.run(heard.first, heard.count) : ContributionPool::kEmpty;
  }

  void start() {
    const std::size_t states = static_cast<std::size_t>(schedule_.ranks) * places_;
    states_ = zeroed<State>(states);
    if (goal_.collective == Collective::all_reduce && goal_.same_bits) {
      sums_ = zeroed<Sum>(states);
    }
    sources_.resize(static_cast<std::size_t>(schedule_.blocks));
    targets_.resize(static_cast<std::size_t>(schedule_.blocks));
    bool anywhere = false;
    for (Block b = 0; b < schedule_.blocks; ++b) {
      const Rank source = goal_.source_of(b);
      sources_[static_cast<std::size_t>(b)] = source;
      targets_[static_cast<std::size_t>(b)] = goal_.target_of(b);
      if (source != kEveryone) state_of(source, b).set = pool_.of(source);
      anywhere = anywhere || source == kEveryone;
    }
    for (Rank r = 0; anywhere && r < schedule_.ranks; ++r) {
      for (Block b = 0; b < schedule_.blocks; ++b) {
        if (sources_[static_cast<std::size_t>(b)] != kEveryone) continue;
        state_of(r, b).set = pool_.of(r);
        if (sums_ != nullptr) {
          sums_[index_of(r, b)] = {mixed(~std::uint64_t{0}, static_cast<std::uint64_t>(r)), r};
        }
      }
    }
  }

  // Form: whatever read() relies on.
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
                    fmt::format("there is no such rank to {}; ranks are 0 to {}",
                                set == &t.from ? "send" : "receive", schedule_.ranks - 1));
      }
    }
    const Rank to = t.to.front();
    for (const BlockSet* set : {&t.what, &t.where}) {
      const char* name = set == &t.what ? "what" : "where";
      if (const auto block = outside(set->list, schedule_.blocks)) {
        return fail(ViolationKind::bad_index, to, *block,
                    fmt::format("there is no such block; `{}` may have 0 to {}", name,
                                schedule_.blocks - 1));
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
                    fmt::format("{} blocks are sent to {} places", what.size(), where.size()));
      }
      for (std::size_t i = 0; i < what.size(); ++i) {
        if (what[i] != where[i]) {
          return fail(ViolationKind::other_block, to, where[i],
                      fmt::format("rank {} sends block {} to the place of block {}", t.from.front(),
                                  what[i], where[i]));
        }
      }
    }
    if (t.act == Act::copy && t.from.size() > 1) {
      return fail(ViolationKind::many_to_copy, to, t.what.list.front(),
                  fmt::format("{} ranks are copied to it at once; only sums have several senders",
                              t.from.size()));
    }
    return true;
  }

  // All reads of the transfer; its writes wait for the end of the round.
  void read(const Transfer& t) {
    const int what_plane = t.what.plane * schedule_.blocks;
    const int where_plane = t.where.plane * schedule_.blocks;
    const bool is_copy = t.act == Act::copy;
    t.from.for_each([&](Rank from) {
      if (violation_) return;
      if (options_.progress) {
        t.to.for_each([&](Rank to) {
          if (to != from) replay_.add(from, to);
        });
      }
      t.what.list.for_each([&](Block b) {
        State& source = state_of(from, what_plane + b);
        if (source.set == ContributionPool::kEmpty) {
          if (!violation_) {
            fail(ViolationKind::not_there, from, b,
                 fmt::format("{}is to be sent to rank {} but holds nothing", on_plane(t.what.plane),
                             t.to.front()));
          }
          return;
        }
        if (source.unused != kUsed) use(source);
        const Sum sum = sums_ != nullptr ? sums_[index_of(from, what_plane + b)] : Sum{};
        const Rank target = targets_[static_cast<std::size_t>(b)];
        t.to.for_each([&](Rank to) {
          const bool is_result =
              where_plane == 0 && (target == kEveryone ? goal_.needs(to, b) : target == to);
          writes_.push_back(
              {index_of(to, where_plane + b), source.set, sum, from, is_copy, is_result});
        });
      });
    });
  }

  void apply(const Write& write) {
    State& state = states_[write.state];
    const std::uint32_t now = static_cast<std::uint32_t>(round_) + 1;
    const bool written_before = state.written == now;
    if (written_before && (write.is_copy || state.copied != 0)) {
      const bool both = write.is_copy && state.copied != 0;
      fail_at(both ? ViolationKind::two_copies : ViolationKind::mixed_acts, write,
              both ? "is copied there, where another copy goes in the same round"
                   : "goes where a copy and a reduction meet in one round");
      return;
    }
    if (write.is_copy) {
      if (options_.economy && state.set == write.set) {
        fail_at(ViolationKind::redundant, write, "is copied there, where the same is already");
        return;
      }
      if (options_.economy && state.unused != kUsed) {
        fail_at(ViolationKind::dead, write,
                fmt::format("overwrites {}, which arrived in round {} and was never used",
                            pool_.to_string(state.set), state.written - 1));
        return;
      }
      state.set = write.set;
    } else {
      const Set sum =
          idempotent_ ? pool_.united(state.set, write.set) : pool_.sum(state.set, write.set);
      if (sum == ContributionPool::kOverlap) {
        fail_at(ViolationKind::double_count, write,
                fmt::format("is added to {}: {} would be there twice", pool_.to_string(state.set),
                            pool_.common(state.set, write.set)));
        return;
      }
      if (options_.economy && sum == state.set) {
        fail_at(ViolationKind::redundant, write,
                fmt::format("is added to {}, which has it already", pool_.to_string(state.set)));
        return;
      }
      state.set = sum;
    }
    state.written = now;
    state.copied = write.is_copy ? 1 : 0;
    if (state.unused == kUsed) {
      state.unused = write.is_result ? kUnreadResult : kUnread;
      if (state.unused == kUnread) ++unread_;
    }
  }

  // What the round's writes make of the sums, all at once: a place adds what is there and all that
  // it receives, in the language's order.
  void add_up() {
    std::stable_sort(writes_.begin(), writes_.end(), [](const Write& a, const Write& b) {
      return std::pair(a.state, a.sum.lowest) < std::pair(b.state, b.sum.lowest);
    });
    for (std::size_t begin = 0, end; begin < writes_.size(); begin = end) {
      const Write& first = writes_[begin];
      end = begin;
      while (end < writes_.size() && writes_[end].state == first.state) ++end;
      Sum& there = sums_[first.state];
      const bool adds = !first.is_copy && (there.tree != 0 || end - begin > 1);
      if (!adds) {
        there = first.sum;
        continue;
      }
      bool own = there.tree != 0;  // is still to be added
      std::uint64_t tree = 2;
      for (std::size_t i = begin; i < end; ++i) {
        if (own && there.lowest < writes_[i].sum.lowest) {
          tree = mixed(tree, there.tree);
          own = false;
        }
        tree = mixed(tree, writes_[i].sum.tree);
      }
      if (own) tree = mixed(tree, there.tree);
      const Rank lowest = first.sum.lowest;
      there = {tree, there.tree != 0 ? std::min(there.lowest, lowest) : lowest};
    }
  }

  void use(State& state) {
    if (state.unused == kUnread) --unread_;
    state.unused = kUsed;
  }

  void replay_round() {
    if (const auto circle = replay_.end_round()) {
      fail(ViolationKind::deadlock, circle->rank, -1, circle->text);
    }
  }

  void check_result() {
    for (Block b = 0; b < schedule_.blocks; ++b) {
      const Rank target = targets_[static_cast<std::size_t>(b)];
      if (target != kEveryone && !check_place(target, b)) return;
    }
    for (Rank r = 0; r < schedule_.ranks; ++r) {
      for (Block b = 0; b < schedule_.blocks; ++b) {
        const bool needed = targets_[static_cast<std::size_t>(b)] == kEveryone && goal_.needs(r, b);
        if (needed && !check_place(r, b)) return;
      }
    }
  }
  bool check_place(Rank r, Block b) {
    const Set held = state_of(r, b).set;
    const Set needed = required(r, b);
    if (held == needed) {
      if (sums_ == nullptr || sums_[index_of(r, b)].tree == sums_[index_of(0, b)].tree) return true;
      return fail(ViolationKind::other_order, r, b,
                  "is added up in another way than at rank 0: sums of floats would differ");
    }
    return fail(ViolationKind::wrong_result, r, b,
                fmt::format("ends with the contributions of {}; needed are {}",
                            pool_.to_string(held), pool_.to_string(needed)));
  }

  void find_unread() {
    const std::uint64_t all = static_cast<std::uint64_t>(schedule_.ranks) * places_;
    for (std::uint64_t i = 0; i < all; ++i) {
      if (states_[i].unused != kUnread) continue;
      const int place = static_cast<int>(i % places_);
      round_ = static_cast<int>(states_[i].written) - 1;
      fail(ViolationKind::dead, static_cast<Rank>(i / places_), place % schedule_.blocks,
           fmt::format("{}what arrives, {}, is neither sent on nor needed at the end",
                       on_plane(place / schedule_.blocks), pool_.to_string(states_[i].set)));
      return;
    }
  }

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
  void fail_at(ViolationKind kind, const Write& write, const std::string& what) {
    const int place = static_cast<int>(write.state % places_);
    fail(kind, static_cast<Rank>(write.state / places_), place % schedule_.blocks,
         fmt::format("{}{} from rank {} {}", on_plane(place / schedule_.blocks),
                     pool_.to_string(write.set), write.from, what));
  }

  const Schedule& schedule_;
  const Goal& goal_;
  const VerifyOptions& options_;
  const bool idempotent_;
  const std::uint64_t places_;
  ContributionPool pool_;
  MailboxReplay replay_;
  Table<State> states_;                  // rank major
  Table<Sum> sums_;                      // likewise; none where they do not matter
  std::vector<Rank> sources_, targets_;  // of each block
  std::vector<Write> writes_;            // of this round
  std::int64_t unread_ = 0;              // states that are kUnread
  int round_ = -1;
  std::optional<Violation> violation_;
};

std::optional<Violation> bad_shape(const Schedule& schedule, const Goal& goal) {
  const auto fail = [](std::string text) {
    return Violation{ViolationKind::bad_shape, -1, -1, -1, std::move(text)};
  };
  if (schedule.ranks < 1 || schedule.blocks < 1 || schedule.planes < 1 || schedule.rounds < 0) {
    return fail(fmt::format("the schedule has {} ranks, {} blocks, {} planes and {} rounds",
                            schedule.ranks, schedule.blocks, schedule.planes, schedule.rounds));
  }
  if (schedule.rounds > 0 && !schedule.round) return fail("the schedule has no rounds to call");
  if (goal.ranks != schedule.ranks || goal.blocks != schedule.blocks) {
    return fail(fmt::format("the schedule is for {} ranks and {} blocks, the goal for {} and {}",
                            schedule.ranks, schedule.blocks, goal.ranks, goal.blocks));
  }
  const int natural = natural_blocks(goal.collective, goal.ranks);
  if (goal.blocks % natural != 0) {
    return fail(fmt::format("{} among {} ranks moves {} blocks or a multiple; the schedule has {}",
                            name_of(goal.collective), goal.ranks, natural, goal.blocks));
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
      return fail(fmt::format("the phases have {} rounds together, the schedule {}", rounds,
                              schedule.rounds));
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(ViolationKind kind) { return kNames[static_cast<std::size_t>(kind)]; }

std::optional<Violation> verify(const Schedule& schedule, const Goal& goal,
                                const VerifyOptions& options) {
  if (auto violation = bad_shape(schedule, goal)) return violation;
  const std::int64_t states =
      std::int64_t{schedule.ranks} * std::int64_t{schedule.blocks} * std::int64_t{schedule.planes};
  if (states > options.max_states || std::int64_t{schedule.blocks} * schedule.planes > 0x7fffffff) {
    return Violation{
        ViolationKind::too_large, -1, -1, -1,
        fmt::format("{} ranks x {} blocks x {} planes are {} states; allowed are {}",
                    schedule.ranks, schedule.blocks, schedule.planes, states, options.max_states)};
  }
  return Verifier(schedule, goal, options).run();
}

}  // namespace rankine
