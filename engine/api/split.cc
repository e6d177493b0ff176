#include "engine/api/split.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <climits>
#include <mutex>
#include <new>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/communicator_state.h"
#include "engine/api/member_state.h"
#include "engine/api/threads.h"
#include "engine/base/numbers.h"
#include "numa/placement.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// A rank's contribution to the all-gather of a split.
std::int64_t word_of(int color, int key) {
  return std::int64_t{color} << 32 | static_cast<std::uint32_t>(key);
}
int color_of(std::int64_t word) { return static_cast<int>(word >> 32); }
int key_of(std::int64_t word) { return static_cast<int>(static_cast<std::uint32_t>(word)); }

// The color in words that no rank has written yet.
constexpr int kUnsaid = kNoColor - 1;

// The ranks with that color, by key, and by rank if keys are equal.
std::vector<Rank> ranks_of(int color, const std::vector<std::int64_t>& words) {
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < words.size(); ++r) {
    if (color_of(words[r]) == color) ranks.push_back(static_cast<Rank>(r));
  }
  std::stable_sort(ranks.begin(), ranks.end(), [&](Rank a, Rank b) {
    return key_of(words[static_cast<std::size_t>(a)]) < key_of(words[static_cast<std::size_t>(b)]);
  });
  return ranks;
}

}  // namespace

struct StartedSplit::Wishes {
  std::int64_t mine;
  std::vector<std::int64_t> all;
};

StartedSplit::StartedSplit(Member& member, SplitOptions options, std::unique_ptr<Wishes> wishes,
                           Request request)
    : member_(&member),
      options_(options),
      wishes_(std::move(wishes)),
      request_(std::move(request)) {}
StartedSplit::~StartedSplit() = default;
StartedSplit::StartedSplit(StartedSplit&&) noexcept = default;

Result<StartedSplit> StartedSplit::prepare(Member& member, int color, int key,
                                           const SplitOptions& options) try {
  if (color < 0 && color != kNoColor) {
    return invalid_argument("color is " + std::to_string(color) +
                            "; allowed are -1 (in no group) and more");
  }
  if (options.timeout.count() < 0) return misfit(CallOptions{.timeout = options.timeout});
  // Ranks must agree on the options of the groups; no later step compares them.
  std::uint64_t agree = mixed(kSplitMixStep, static_cast<std::uint64_t>(options.timeout.count()));
  agree = mixed(agree, options.ends_parent ? 1 : 2);
  auto wishes = std::make_unique<Wishes>();
  wishes->mine = word_of(color, key);
  wishes->all.assign(static_cast<std::size_t>(member.ranks()), word_of(kUnsaid, 0));
  auto request = member.prepare({.collective = Collective::all_gather,
                                 .in = &wishes->mine,
                                 .out = wishes->all.data(),
                                 .count = 1,
                                 .type = DataType::i64,
                                 .options = {.tag = agree}});
  if (!request.ok()) return request.status();
  return StartedSplit(member, options, std::move(wishes), std::move(*request));
} catch (const std::bad_alloc&) {
  return member.give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for the groups of rank " + std::to_string(member.rank());
  }));
}

Result<std::unique_ptr<Member>> StartedSplit::finish() try {
  MemberState& s = *member_->state_;
  if (s.shared->forked()) return forked_status();
  const auto unsaid = [](std::int64_t word) { return color_of(word) == kUnsaid; };
  const bool under_way = request_.test().ok();
  if (under_way || std::any_of(wishes_->all.begin(), wishes_->all.end(), unsaid)) {
    return invalid_argument(
        "finish: the split's request is not complete; start it and wait for it, once");
  }
  // this rank is counted as a member, so it must join
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
  const std::uint64_t number = ++s.splits;
  const int color = color_of(wishes_->mine);
  if (color == kNoColor) return std::unique_ptr<Member>();
  const std::vector<Rank> group = ranks_of(color, wishes_->all);
  wishes_->all.front() = word_of(kUnsaid, 0);  // finish() makes one member only
  const auto there = std::find(group.begin(), group.end(), member_->rank()) - group.begin();
  // belongs to no call of this rank
  Waiter waiter{.rank_control = &s.shared->rank_control, .rank = member_->rank()};
  auto shared = s.shared->group(s.owned, {number, color}, group, static_cast<std::size_t>(there),
                                options_, waiter);
  if (!shared.ok()) return s.refused(shared.status());
  auto progress_engine = options_.own_thread ? (*shared)->new_progress_engine() : s.progress_engine;
  std::unique_ptr<Member> made(
      new Member(std::move(*shared), static_cast<Rank>(there), std::move(progress_engine)));
  made->state_->made_as(s);
  return made;
} catch (const std::bad_alloc&) {
  return member_->give_up(make_error(Code::out_of_memory, [&] {
    return "no memory for the groups of rank " + std::to_string(member_->rank());
  }));
}

Result<std::unique_ptr<Member>> Member::split(int color, int key, const SplitOptions& options) {
  if (state_->progress_engine->in_group()) {
    return invalid_argument("split: a group() is open; split ranks outside of groups");
  }
  // this rank is counted as a member, so it must join
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
  auto split = StartedSplit::prepare(*this, color, key, options);
  if (!split.ok()) return split.status();
  if (Status status = split->request().start(); !status.ok()) return status;
  if (Status status = split->request().wait(); !status.ok()) return status;
  return split->finish();
}

Result<std::unique_ptr<Member>> Member::split(int color, int key) { return split(color, key, {}); }

// --- Survivors ---

namespace {

Status is_out(const RankControl& rank_control, Rank rank) {
  return make_error(Code::rank_lost, [&] {
    return "rank " + std::to_string(rank) +
           " is no survivor: it has left, or the others have gone on without it, because it did "
           "not come within " +
           std::to_string(rank_control.timeout_ns() / 1'000'000) +
           " ms; let its process end, and start a new one";
  });
}

// Takes the rank's next step, and waits until each other rank has taken it or is lost.
Result<Agreement::Decision> decide(Member& member, MemberState& s, Agreement::Use use,
                                   std::uint32_t value) {
  RankControl& rank_control = s.shared->rank_control;
  const Rank rank = s.run.waiter.rank;
  Agreement agreement(rank_control, rank);
  if (rank_control.has_left(rank) || !agreement.take_step(use, value)) {
    return is_out(rank_control, rank);
  }
  s.come_here();
  const std::int64_t begin_ns = now_ns();
  const std::int64_t until_ns = deadline_after(begin_ns, rank_control.timeout_ns());
  begin_long_wait();
  for (std::int64_t nap_ns = 10'000;; nap_ns = std::min<std::int64_t>(2 * nap_ns, 1'000'000)) {
    const std::int64_t now = now_ns();
    const auto judge = [&](Rank q) {
      const bool is_lost =
          now >= until_ns || rank_control.has_left(q) || rank_control.is_lost(q) ||
          // The next thread of a rank may still come.
          (now - begin_ns >= look_about_ns() && rank_control.is_abandoned(q, rank));
      return is_lost ? Agreement::Verdict::lost : Agreement::Verdict::waits;
    };
    if (agreement.is_complete(judge)) break;
    if (is_interrupted()) {
      s.shared->leave(rank);
      return make_error(Code::aborted, [&] {
        return interrupted("rank " + std::to_string(rank) +
                           " waits for the survivors; it has left, let its process end");
      });
    }
    static_cast<void>(member.progress());  // other communicators of this thread
    sleep_ns(nap_ns);
  }
  // Once: the others may go on without this rank at any time.
  const Agreement::Decision* const decision = agreement.decision();
  if (decision == nullptr) return is_out(rank_control, rank);
  if (!decision->same_use) {
    return make_error(Code::mismatch, [] {
      return "some survivors call agree(), shrink() or grow() and others another of the three; let "
             "all survivors make the same calls, in the same order";
    });
  }
  return *decision;
}

// decide() for the steps in rank_control.h; its error goes to `status`.
auto deciding(Member& member, MemberState& s, Status& status) {
  return [&](Agreement::Use use, std::uint32_t value) {
    auto decided = decide(member, s, use, value);
    if (decided.ok()) return std::optional(std::move(*decided));
    status = decided.status();
    return std::optional<Agreement::Decision>();
  };
}

Status may_agree(const MemberState& s, const char* call) {
  if (s.shared->forked()) return forked_status();
  if (s.progress_engine->in_group()) {
    return invalid_argument(std::string(call) + ": a group() is open; call it outside of groups");
  }
  if (s.shared->wire == nullptr) return {};
  return invalid_argument(std::string(call) +
                          ": the ranks are on several nodes; allowed are ranks of one node");
}

}  // namespace

Result<std::unique_ptr<Member>> Member::shrink(const SplitOptions& options) {
  MemberState& s = *state_;
  if (Status status = may_agree(s, "shrink"); !status.ok()) return status;
  if (options.timeout.count() < 0) return misfit(CallOptions{.timeout = options.timeout});
  if (options.ends_parent) {
    return invalid_argument(
        "shrink: ends_parent is true; allowed is false: the survivors' communicator has no parent");
  }
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // this rank is counted as a survivor
  s.finish();
  std::unique_ptr<Member> made;
  Status status;
  const auto make = [&](const Agreement::Decision& decision) -> std::uint32_t {
    made.reset();
    try {
      const auto& members = decision.survivors;
      const auto there = std::find(members.begin(), members.end(), rank()) - members.begin();
      auto shared =
          s.shared->group(s.owned, {decision.step, CommunicatorShared::kSurvivors}, members,
                          static_cast<std::size_t>(there), options, s.run.waiter);
      status = shared.status();
      if (!shared.ok()) return status.code() == Code::rank_lost ? kMayRepeat : 0;
      auto progress_engine =
          options.own_thread ? (*shared)->new_progress_engine() : s.progress_engine;
      made.reset(
          new Member(std::move(*shared), static_cast<Rank>(there), std::move(progress_engine)));
      made->state_->made_as(s);
      return kMade | kMayRepeat;
    } catch (const std::bad_alloc&) {
      status = make_error(Code::out_of_memory, [&] {
        return "no memory for the survivors' communicator of rank " + std::to_string(rank());
      });
      return 0;
    }
  };
  const auto done = shrink_in_steps(deciding(*this, s, status), make);
  if (done && (done->value & kMade) != 0) return made;
  if (!done || (!status.ok() && status.code() != Code::rank_lost)) return status;
  return make_error(Code::system, [&] {
    return "another survivor cannot make the smaller communicator; its error says why; free what "
           "it lacks and call shrink() again on all survivors, or restart them";
  });
}

Result<std::unique_ptr<Member>> Member::shrink() { return shrink(SplitOptions{}); }

Result<std::uint32_t> Member::agree(std::uint32_t value) {
  MemberState& s = *state_;
  if (Status status = may_agree(s, "agree"); !status.ok()) return status;
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // it sleeps
  s.finish();
  const auto decided = decide(*this, s, Agreement::Use::agree, value);
  if (!decided.ok()) return decided.status();
  return decided->value;
}

void Member::revoke() {
  communicator().abort("rank " + std::to_string(rank()) +
                       " has revoked the communicator; call shrink() on the surviving ranks");
}

// --- Growth ---

namespace {

// What a rank asks for when it begins to grow: fifteen bits of a hash, their complements, and ones.
// If hashes differ, the bitwise AND of the words has neither hash.
std::uint32_t word_of(std::uint64_t hash) {
  const auto bits = static_cast<std::uint32_t>(hash >> 49);
  return bits << 17 | (~bits & 0x7fff) << 2 | 3;
}

// A rank's word about the larger communicator, and the code of such words together; the lowest code
// wins. kGaveUp, the highest: this rank has failed because another rank has.
constexpr std::uint32_t kGaveUp = kHaveLarger >> 1;
std::uint32_t word_of(Code code) { return kHaveLarger ^ 1U << static_cast<int>(code); }
Code code_of(std::uint32_t word) {
  const int code = std::countr_one(word);
  return code < kCodes ? static_cast<Code>(code) : Code::rank_lost;
}

}  // namespace

Result<std::unique_ptr<Member>> Member::grow(const CommunicatorOptions& options) {
  MemberState& s = *state_;
  CommunicatorShared& shared = *s.shared;
  RankControl& rank_control = shared.rank_control;
  if (Status status = may_agree(s, "grow"); !status.ok()) return status;
  if (options.ranks <= ranks()) {
    return invalid_argument("grow: ranks is " + std::to_string(options.ranks) + "; allowed are " +
                            std::to_string(ranks() + 1) + " and more, with the " +
                            std::to_string(ranks()) + " ranks of this communicator");
  }
  if (options.rank || !options.more_ranks.empty()) {
    return invalid_argument(
        "grow: rank or more_ranks is set; allowed is neither: members keep "
        "their ranks");
  }
  if (options.name.empty() && shared.processes != nullptr) {
    return invalid_argument(
        "grow: name is ''; allowed is the name under which the new processes call create()");
  }
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // this rank is counted as a member
  s.finish();
  std::vector<Rank> members(static_cast<std::size_t>(ranks()));
  std::iota(members.begin(), members.end(), 0);
  std::uint64_t hash = mixed(kSplitMixStep, static_cast<std::uint64_t>(options.ranks));
  hash = mixed(hash, static_cast<std::uint64_t>(options.timeout.count()));
  for (const char c : options.name) hash = mixed(hash, static_cast<unsigned char>(c));

  bool gave_up = false;
  std::uint64_t step = 0;
  const auto create_larger = [&]() -> CommunicatorShared::Made {
    CommunicatorOptions mine = options;
    std::vector<Rank> more;
    if (options.name.empty()) return create_shared(mine);
    for (const Rank r : members) {
      if (r != rank() && !shared.is_elsewhere(r)) more.push_back(r);
    }
    mine.rank = rank();
    mine.more_ranks = more;
    return create_shared(mine, [&]() -> Status {
      if (rank_control.aborted()) return rank_control.reason();
      Status status = shared.may_meet(members, step, "the communicator that grows");
      gave_up = !status.ok();
      return status;
    });
  };
  std::shared_ptr<CommunicatorShared> larger;
  std::unique_ptr<Member> made;
  Status status, stopped;
  const auto make = [&](const Agreement::Decision& begun) {
    step = begun.step;
    try {
      auto found =
          shared.find_or_make_group({step, CommunicatorShared::kGrown}, members,
                                    static_cast<std::size_t>(rank()), s.run.waiter, create_larger);
      status = found.status();
      if (found.ok()) {
        larger = std::move(*found);
        made.reset(new Member(larger, rank(), larger->new_progress_engine()));
        const std::lock_guard lock(larger->mutex);
        larger->joined[static_cast<std::size_t>(rank())] = true;
      }
    } catch (const std::bad_alloc&) {
      status = make_error(Code::out_of_memory, [&] {
        return "no memory for the larger communicator of rank " + std::to_string(rank());
      });
    }
    return status.ok() ? kHaveLarger : gave_up ? kGaveUp : word_of(status.code());
  };
  const Growth growth = grow_in_steps(ranks(), word_of(hash), !rank_control.aborted(),
                                      deciding(*this, s, stopped), make, [&] {
                                        if (larger->processes != nullptr)
                                          larger->processes->admit();
                                      });
  if (growth.done) {
    static_cast<void>(made->pin_thread());
    return made;
  }
  const auto why = [&]() -> Status {
    if (!growth.last) return stopped;
    if (growth.last->survivors != members) {
      Rank lost = 0;
      for (const Rank r : growth.last->survivors) lost += r == lost ? 1 : 0;
      rank_control.abort(make_error(Code::rank_lost, [&] {
        return "rank " + std::to_string(lost) + " is lost or late while the communicator grows: " +
               rank_control.state_of(lost).text + "; call shrink() on the survivors, then grow()";
      }));
      return rank_control.reason();
    }
    if (!growth.begun && (growth.last->value | 1) != word_of(hash)) {
      return make_error(Code::mismatch, [] {
        return "ranks, name or timeout of grow() differ between the members; let all members give "
               "equal options";
      });
    }
    if (!growth.begun) return rank_control.reason();
    const Code code = code_of(growth.last->value);
    if (status.code() == code) return status;
    return make_error(code, [] {
      return "another rank cannot make the larger communicator; its error says why";
    });
  };
  const Status failed = why();
  if (larger != nullptr) larger->end_with(failed);
  return failed;
}

// --- Shared ---

Result<std::shared_ptr<CommunicatorShared>> CommunicatorShared::make_group(
    const std::shared_ptr<CommunicatorShared>& self, const std::vector<Rank>& members,
    const SplitOptions& options, std::shared_ptr<ProcessRanks> as_processes, bool is_pair) const {
  const auto n = static_cast<int>(members.size());
  std::vector<ArenaOptions> near;
  std::string who;
  for (const Rank r : members) {
    near.push_back(arena_options[static_cast<std::size_t>(r)]);
    who += (who.empty() ? "ranks " : ", ") + std::to_string(r);
  }
  std::vector<std::vector<int>> by_level;
  for (const int size : levels) {
    by_level.emplace_back();
    for (const Rank r : members) by_level.back().push_back(r / size);
  }
  const std::vector<int> sizes = level_groups(by_level);
  std::unique_ptr<CallClock> group_clock;
  const bool to_oneself =
      // messages to the rank itself do not use the network
      n == 2 && members.front() == members.back();
  if (clock != nullptr && !to_oneself) {
    const auto words = shared_clock(as_processes.get());
    if (!words.ok()) return words.status();
    auto made = CallClock::make(clock->among(members), n, rank_control.policy_alone(), *words);
    if (!made.ok()) return made.status();
    group_clock = std::move(*made);
  }
  // The group uses this communicator's network; this communicator also reports on its wall clock.
  const auto named = std::make_shared<const CallNetwork>();
  const CommunicatorOptions as_here{
      .ranks = n,
      .timeout = options.timeout.count() > 0
                     ? options.timeout
                     : std::chrono::milliseconds(rank_control.timeout_ns() / 1'000'000),
      .arenas = near,
      .levels = sizes,
      .algorithms = algorithms,
      .tuned = tuning != nullptr,
      .record_times = recorder.has_times(),
      .plan_bytes = most_plan_bytes,
      .network = named,
      .order = order,
      .ports = ports};
  auto group = make_shared_at_home<CommunicatorShared>(
      as_here, costs, rank_control.policy_alone(), rank_control.crowd(), forced,
      std::move(group_clock), std::move(as_processes));
  group->joined.assign(members.size(), true);
  if (is_pair) group->rank_control.show_ranks_as(members);  // callers know no other ranks
  if (call_sites != nullptr && !is_pair) {
    Status status = group->record_calls(call_sites->name(), who);
    if (!status.ok()) return status;
  }
  if (self == nullptr) return group;
  group->parent = self;
  group->rank_control.depend_on(self->rank_control, options.ends_parent, std::move(who));
  return group;
}

CommunicatorShared::Made CommunicatorShared::group(const std::shared_ptr<CommunicatorShared>& self,
                                                   GroupKey key, const std::vector<Rank>& members,
                                                   std::size_t there, const SplitOptions& options,
                                                   Waiter& waiter) {
  return find_or_make_group(key, members, there, waiter, [&] {
    const bool meets =
        std::any_of(members.begin(), members.end(), [&](Rank r) { return is_elsewhere(r); });
    auto made = meets ? meet_group(self, key, members, options)
                      : make_group(key.color == kSurvivors ? nullptr : self, members, options);
    if (made.ok()) (*made)->progress = progress;
    return made;
  });
}

CommunicatorShared::Made CommunicatorShared::find_or_make_group(GroupKey key,
                                                                const std::vector<Rank>& members,
                                                                std::size_t there, Waiter& waiter,
                                                                const std::function<Made()>& make) {
  // The ranks have agreed on it, and this communicator may have ended.
  const bool is_agreed = key.color == kSurvivors || key.color == kGrown;
  std::unique_lock<std::mutex> lock;
  const auto take_lock = [&]() -> Status {
    if (!is_agreed) return lock_for_call(lock, waiter);
    lock = std::unique_lock(mutex);  // no rank plans a call now
    return {};
  };
  if (Status locked = take_lock(); !locked.ok()) return locked;
  const auto [place, first] = groups.try_emplace(key);
  Group& group = place->second;  // stays valid until the last rank here has found it
  if (first) {
    group.awaited = members;
    for (Rank& r : group.awaited) r = is_elsewhere(r) ? -1 : r;
    // Other groups may be made meanwhile.
    lock.unlock();
    auto made = make();
    lock.lock();
    if (made.ok()) {
      group.shared = std::move(*made);
    } else {
      group.refusal = made.status();
    }
    for (std::size_t i = 0; i < members.size(); ++i) {
      // Acquire: pairs with leave(); after it the member removes itself from awaited lists.
      const bool ours = !is_elsewhere(members[i]);
      if (ours && rank_control.wake_futex(members[i]).left.load(std::memory_order_acquire))
        group.leave(i);
    }
  }
  Idling idling(rank_control.policy());
  while (group.shared == nullptr && group.refusal.ok()) {
    lock.unlock();
    // The thread that makes the group gives up by itself.
    if (Status status = is_agreed ? Status() : may_go_on_planning(waiter); !status.ok())
      return status;
    idling.once();
    if (Status locked = take_lock(); !locked.ok()) return locked;
  }
  const auto found = group.shared;
  const Status refusal = group.refusal;
  group.awaited[there] = -1;
  if (group.is_found()) groups.erase(key);
  if (found == nullptr) return refusal;
  return found;
}

void CommunicatorShared::find_no_groups(Rank rank) noexcept {
  std::map<GroupKey, Group> done;  // destroyed after the lock is released
  const std::lock_guard lock(mutex);
  for (auto next = groups.begin(); next != groups.end();) {
    const auto here = next++;
    Group& group = here->second;
    const auto place = std::find(group.awaited.begin(), group.awaited.end(), rank);
    if (place == group.awaited.end()) continue;
    const auto there = place - group.awaited.begin();
    group.leave(static_cast<std::size_t>(there));
    if (group.is_found()) done.insert(groups.extract(here));
  }
}

// --- Grids ---

Grid::Grid(Member& member, std::vector<GridAxis> axes) : member_(&member), axes_(std::move(axes)) {
  int rest = member.rank();
  for (std::size_t i = axes_.size(); i-- > 0;) {
    at_.insert(at_.begin(), rest % axes_[i].size);
    rest /= axes_[i].size;
  }
}

static std::string not_in_grid(std::string_view name, const std::vector<GridAxis>& axes) {
  std::string text = "axis '" + std::string(name) + "' is not in this grid; allowed are ";
  for (const GridAxis& axis : axes) text += (&axis == axes.data() ? "" : ", ") + axis.name;
  return text;
}

int Grid::index_of(std::string_view name) const {
  const auto found = std::find_if(axes_.begin(), axes_.end(),
                                  [&](const GridAxis& axis) { return axis.name == name; });
  return found == axes_.end() ? -1 : static_cast<int>(found - axes_.begin());
}

Result<Grid> Grid::make(Member& member, std::vector<GridAxis> axes, const SplitOptions& options) {
  std::int64_t product = 1;
  std::string sizes;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const GridAxis& axis = axes[i];
    if (axis.name.empty())
      return invalid_argument("axes[" + std::to_string(i) + "].name is empty; allowed are names");
    const auto same = [&](const GridAxis& other) { return other.name == axis.name; };
    if (std::find_if(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(i), same) !=
        axes.begin() + static_cast<std::ptrdiff_t>(i)) {
      return invalid_argument("axis '" + axis.name + "' is given twice; allowed is once");
    }
    if (axis.size < 1) {
      return invalid_argument("axis '" + axis.name + "' is " + std::to_string(axis.size) +
                              "; allowed are 1 and more");
    }
    product = std::min<std::int64_t>(product * axis.size, INT_MAX);
    sizes += (i > 0 ? " x " : "") + axis.name + " " + std::to_string(axis.size);
  }
  if (axes.empty() || product != member.ranks()) {
    return invalid_argument(
        "axes " + (sizes.empty() ? "(none)" : sizes) + " have " +
        std::to_string(axes.empty() ? 0 : product) +
        (product < INT_MAX ? " ranks; allowed are " : " ranks or more; allowed are ") +
        std::to_string(member.ranks()) + ", all ranks");
  }
  Grid grid(member, std::move(axes));
  for (const GridAxis& axis : grid.axes_) {
    auto along = grid.across({axis.name}, options);
    if (!along.ok()) return along.status();
    grid.along_.push_back(std::move(*along));
  }
  return grid;
}

Member& Grid::axis(std::string_view name) const {
  const int i = index_of(name);
  if (i < 0) throw std::out_of_range(not_in_grid(name, axes_));
  return *along_[static_cast<std::size_t>(i)];
}

int Grid::at(std::string_view name) const {
  const int i = index_of(name);
  if (i < 0) throw std::out_of_range(not_in_grid(name, axes_));
  return at_[static_cast<std::size_t>(i)];
}

Result<std::unique_ptr<Member>> Grid::across(const std::vector<std::string>& names,
                                             const SplitOptions& options) const {
  std::vector<bool> free(axes_.size(), false);
  int key = 0;
  for (const std::string& name : names) {
    const int i = index_of(name);
    if (i < 0) return invalid_argument(not_in_grid(name, axes_));
    const auto index = static_cast<std::size_t>(i);
    if (free[index]) return invalid_argument("axis '" + name + "' is given twice; allowed is once");
    free[index] = true;
    key = key * axes_[index].size + at_[index];
  }
  int color = 0;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    if (!free[i]) color = color * axes_[i].size + at_[i];
  }
  return member_->split(color, key, options);
}

// Groups with ranks in other processes: the members of a group meet anew. Other ranks do not wait
// for them meanwhile.

Status CommunicatorShared::may_meet(const std::vector<Rank>& members, std::uint64_t step,
                                    const char* needed_in) {
  for (const Rank r : members) {
    if (step > 0 && rank_control.ballot(r).has_reached(step + 1)) {
      return make_error(Code::rank_lost,
                        [&] { return "rank " + std::to_string(r) + " has given up the meeting"; });
    }
    if (!rank_control.has_left(r) && !rank_control.is_lost(r)) continue;
    return make_error(Code::rank_lost, [&] {
      return "rank " + std::to_string(r) + " is still needed in " + needed_in + ": " +
             rank_control.state_of(r).text;
    });
  }
  return {};
}

Result<std::shared_ptr<CommunicatorShared>> CommunicatorShared::meet_group(
    const std::shared_ptr<CommunicatorShared>& self, GroupKey key, const std::vector<Rank>& members,
    const SplitOptions& options) {
  const bool shrinks = key.color == kSurvivors;
  const auto may_wait = [&]() -> Status {
    if (!shrinks && rank_control.aborted()) return rank_control.reason();
    return may_meet(members, shrinks ? key.split : 0, "the group that it was split into");
  };
  auto met = ProcessRanks::group(*processes, members,
                                 std::to_string(key.split) + "." + std::to_string(key.color),
                                 posts_of_processes(static_cast<int>(members.size()), costs),
                                 deadline_after(now_ns(), rank_control.timeout_ns()), may_wait);
  if (!met.ok()) return met.status();
  auto made = make_group(shrinks ? nullptr : self, members, options, *met);
  if (!made.ok()) return (*met)->fail(made.status());
  if (Status status = (*met)->begin(); !status.ok()) return status;
  return made;
}

}  // namespace rankine
