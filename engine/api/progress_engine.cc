#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "engine/api/member_state.h"
#include "engine/api/threads.h"
#include "engine/base/numbers.h"
#include "engine/run/machine.h"
#include "engine/run/rank_control.h"
#include "engine/run/sharing.h"
#include "engine/run/wait.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// Runs the call on a modelled network, from the rank's modelled time at the start of the call.
bool play(MemberState& member, PendingCall& call) noexcept {
  const bool done = interpret_at(call.model_start, *call.cached, member.run, *member.clock);
  call.model_end = member.clock->ended();
  return done;
}

// Advances a call on a modelled network: the call runs on a separate thread, which yields when it
// would wait.
[[gnu::noinline]] Walked advance_on_network(MemberState& member, PendingCall& call) noexcept {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the code below uses condition variables
  if (call.thread == nullptr) {
    try {
      call.thread =
          std::make_unique<CallThread>([&member, &call] { call.done = play(member, call); });
    } catch (const std::exception& error) {
      member.shared->end_with(make_error(Code::system, [&] {
        return "a thread for a started call of " +
               member.shared->rank_control.name(member.run.waiter.rank) + ": " + error.what();
      }));
      return Walked::failed;
    }
    member.run.waiter.others = call.thread.get();
  }
  if (!call.thread->go_on()) return Walked::waiting;
  member.run.waiter.others = member.other_work;
  call.thread.reset();
  return call.done ? Walked::done : Walked::failed;
}

}  // namespace

void ProgressEngine::add(MemberState& member) {
  busy_.reserve(members_.size() + 1);
  members_.push_back(&member);
}

void ProgressEngine::remove(MemberState& member) noexcept {
  std::erase(members_, &member);
  std::erase(busy_, &member);
}

void ProgressEngine::take_from_helper() noexcept {
  wanted_.store(true, std::memory_order_relaxed);  // a hint: pairs with nothing
  if (!mutex_.try_lock()) {
    begin_long_wait();
    mutex_.lock();
  }
  wanted_.store(false, std::memory_order_relaxed);
}

void ProgressEngine::give_to_helper() noexcept {
  const bool has_work = had_work_;
  mutex_.unlock();
  if (has_work) helper_->wake();
}

// Plans a call that was queued behind another one, when its turn has come.
bool ProgressEngine::attach_plan(MemberState& member, PendingCall& call) noexcept {
  Call planned = call.unplanned->view().call();
  planned.user_op = call.call.user_op;
  planned.options.epilogue = call.call.options.epilogue;
  auto found = member.plan_call(planned, true);
  if (!found.ok()) {
    end(member, call, found.status());
    return false;
  }
  call.cached = *found->held;
  call.first = found->first;
  call.call.counts = {};  // the caller or `unplanned` owned them
  call.unplanned.reset();
  if (call.call.factor == nullptr && !member.fits(*call.cached, call.call.in, call.call.out)) {
    end(member, call, member.misfit_of(*call.cached, call.call.in, call.call.out));
    return false;
  }
  return true;
}

// Prepares a call, once for all its starts; a call with a factor or displacements needs it at each
// start.
bool ProgressEngine::make_ready(MemberState& member, PendingCall& call) noexcept {
  if (call.cached == nullptr && !attach_plan(member, call)) return false;
  const void* in = call.call.in;
  if (call.call.factor != nullptr) {
    const auto products = member.multiply(call.call, *call.cached);
    if (!products.ok()) {
      end(member, call, products.status());
      return false;
    }
    in = *products;
  }
  if (call.displaced != nullptr) call.displaced->pack_blocks();
  call.given = member.given(*call.cached, call.call, in);
  call.ready = call.call.factor == nullptr && call.displaced == nullptr;
  // With a helper it stays full: the owner reads it while the helper is here.
  if (helper_ == nullptr && call.ready) call.way = member.way_of(*call.cached);
  if (call.way == Way::exchanges) {
    call.exchange = {call.cached->plan, member.run, call.given.in, call.given.out,
                     call.given.buffer_hashes};
    call.start_again = start_by<Way::exchanges>;
  } else if (call.way != Way::full) {
    call.start_again = call.way == Way::copies ? start_by<Way::copies> : start_by<Way::walks>;
  }
  return true;
}

// always_inline here and below: separate stack frames would take a good part of the time for
// starting a small call and waiting for it.
[[gnu::always_inline]] inline bool ProgressEngine::begin(MemberState& member,
                                                         PendingCall& call) noexcept {
  member.wait_at_most(call.timeout_ns);
  if (!call.ready && !make_ready(member, call)) [[unlikely]]
    return false;
  if (!member.begin(*call.cached, call.given)) [[unlikely]] {
    end(member, call, member.ended());
    return false;
  }
  if (member.track->timer.figures != nullptr) [[unlikely]]
    member.track->timer.set_site(call.call_site);
  call.cursor = {};
  call.phase = PendingCall::Phase::under_way;
  return !call.first || begin_first(member, call);
}

bool ProgressEngine::begin_first(MemberState& member, PendingCall& call) noexcept {
  call.first = false;
  if (!check_no_alias_of_all(call.cached->plan, member.run.waiter)) {
    fail(member, call);
    return false;
  }
  member.has_called(*call.cached);
  return true;
}

bool ProgressEngine::is_owners(const MemberState& member) const noexcept {
  return member.started.front->phase == PendingCall::Phase::broken ||
         member.shared->rank_control.aborted();
}

// After a failure the owner waits until no other rank uses its buffers, and writes the flight
// record (broken()). The helper must not wait: it has other ranks to advance, and another failed
// rank may be waiting for one of them.
void ProgressEngine::fail(MemberState& member, PendingCall& call) noexcept {
  break_off();
  if (!helps_) end_broken(member, call);
}

[[gnu::always_inline]] inline void ProgressEngine::strike(MemberState& member,
                                                          PendingCall& call) noexcept {
  call.phase = PendingCall::Phase::over;
  if (member.started.front != &call) return;  // it has ended during start()
  member.started.front = call.next;
  if (call.next == nullptr) {
    // This member is usually the last one in the list.
    busy_.back() == &member ? busy_.pop_back() : static_cast<void>(std::erase(busy_, &member));
  } else {
    // A call of a communicator begins after the previous one has ended.
    call.next->model_start = std::max(call.next->model_start, call.model_end);
  }
}

void ProgressEngine::end(MemberState& member, PendingCall& call, Status status) noexcept {
  call.status = std::move(status);
  strike(member, call);
}

// Not inlined, here and in end(): their texts would need a larger frame.
ShortStart ProgressEngine::end_unbegun(PendingCall& call) noexcept {
  MemberState& member = *call.member;
  member.progress_engine->end(member, call, member.ended());
  return ShortStart::started;
}

void ProgressEngine::end_broken(MemberState& member, PendingCall& call) noexcept {
  end(member, call, member.broken());
}

[[gnu::always_inline]] inline void ProgressEngine::end_well(MemberState& member,
                                                            PendingCall& call) noexcept {
  member.end_well();
  if (call.displaced != nullptr) [[unlikely]]
    call.displaced->unpack_blocks();
  strike(member, call);
}

[[gnu::always_inline]] inline Walked ProgressEngine::walk(MemberState& member,
                                                          PendingCall& call) noexcept {
  const CachedPlan& cached = *call.cached;
  if (cached.copy(call.given.in, call.given.out)) return Walked::done;
  const Walked walked = interpret_some(cached.plan, member.run, call.cursor);
  if (walked == Walked::waiting) put_down(*member.lines);
  return walked;
}

inline Walked ProgressEngine::go_on(MemberState& member, PendingCall& call) noexcept {
  if (call.phase == PendingCall::Phase::broken) return Walked::failed;
  if (member.clock != nullptr) [[unlikely]]
    return advance_on_network(member, call);
  if (!member.come_back()) return Walked::failed;
  return walk(member, call);
}

// A failed call waits until no other rank is inside it. Other ranks must not wait for this thread
// while it waits inside another call: two threads that meet their failed calls in different orders
// would wait for each other. So this ends all failed calls of the thread at once.
void ProgressEngine::break_off() noexcept {
  for (MemberState* member : busy_) {
    PendingCall& call = *member->started.front;
    if (call.phase == PendingCall::Phase::queued || call.phase > PendingCall::Phase::posted ||
        call.thread != nullptr) {
      continue;
    }
    if (!member->shared->rank_control.aborted()) continue;
    member->shared->rank_control.end(member->run.waiter.rank);
    call.phase = PendingCall::Phase::broken;
  }
}

[[gnu::always_inline]] inline bool ProgressEngine::end_if_over(MemberState& member,
                                                               PendingCall& call,
                                                               Walked walked) noexcept {
  if (walked == Walked::waiting) return false;
  if (walked == Walked::done) [[likely]] {
    end_well(member, call);
  } else {
    fail(member, call);
  }
  return true;
}

[[gnu::always_inline]] inline void ProgressEngine::list(MemberState& member,
                                                        PendingCall& call) noexcept {
  member.started.front = member.started.back = &call;
  if (busy_.size() == busy_.capacity()) __builtin_unreachable();  // see add()
  busy_.push_back(&member);
  had_work_ = true;
  idle_ = false;
}

void ProgressEngine::start(PendingCall& call) noexcept {
  MemberState& member = *call.member;
  StartedCalls& calls = member.started;
  call.rests = false;
  call.phase = PendingCall::Phase::queued;
  if (!call.status.ok()) call.status = {};
  call.next = nullptr;
  if (member.clock != nullptr) call.model_start = member.clock->now();
  if (calls.front != nullptr) {
    calls.back = calls.back->next = &call;
    return;
  }
  // Begins the call at once if no other call is in flight, so that the other ranks do not wait. On
  // a modelled network the call begins later: if the rank next waits for this call, it runs like a
  // blocking call, without a separate thread.
  if (member.clock != nullptr) return list(member, call);
  if (begin(member, call)) walk_begun(member, call);
}

// A call that ends at once is never listed.
[[gnu::noinline]] void ProgressEngine::walk_begun(MemberState& member, PendingCall& call) noexcept {
  if (!end_if_over(member, call, walk(member, call))) list(member, call);
}

ShortStart Request::start_again(bool waits) noexcept {
  PendingCall* const call = call_.get();
  return call != nullptr && call->rests ? call->start_again(*call, waits) : ShortStart::nothing;
}

bool Request::wait_again() noexcept {
  PendingCall* const call = call_.get();
  return call != nullptr && ProgressEngine::wait_again(*call);
}

template <Way kWay>
ShortStart ProgressEngine::start_by(PendingCall& call, bool waits) noexcept {
  MemberState& member = *call.member;
  if (member.started.front != nullptr || !member.is_here()) [[unlikely]]
    return ShortStart::nothing;
  if (kWay == Way::exchanges && !Exchange::fits(member.run)) [[unlikely]]
    return start_by<Way::walks>(call, waits);
  if (kWay != Way::copies) member.wait_at_most(call.timeout_ns);
  const bool begun = member.begin<kWay>(*call.cached, call.given);
  call.rests = false;
  if (!begun) [[unlikely]]
    return end_unbegun(call);
  if constexpr (kWay == Way::copies) {
    if (!copy_few_bytes(call.given.out, call.given.in, call.cached->copied_bytes))
      return copy_at_once(call, waits);
    member.end_well<true>();  // and so the call is over, as it was
    call.rests = waits;
    return ShortStart::over;
  } else if constexpr (kWay == Way::exchanges) {
    std::uint32_t number;
    if (!call.exchange.post_few_bytes(member.run, number)) return post_late(call, waits, false);
    if (member.shared->rank_control.has_sleepers(*member.lines)) [[unlikely]]
      return post_late(call, waits, true);
    return call.exchange.has_come(number) ? sum_at_once(call, waits) : list_posted(call);
  } else {
    call.next = nullptr;
    call.phase = PendingCall::Phase::under_way;
    call.cursor = {};
    member.progress_engine->walk_begun(member, call);
    if (call.phase == PendingCall::Phase::over && call.status.ok()) {
      call.rests = waits;
      return ShortStart::over;
    }
    return ShortStart::started;
  }
}

[[gnu::noinline]] ShortStart ProgressEngine::post_late(PendingCall& call, bool waits,
                                                       bool is_posted) noexcept {
  MemberState& member = *call.member;
  is_posted ? call.exchange.wake(member.run, *member.lines)
            : call.exchange.post_input(member.run, *member.lines);
  return call.exchange.has_come(member.run.posts) ? sum_at_once(call, waits) : list_posted(call);
}

[[gnu::noinline]] ShortStart ProgressEngine::list_posted(PendingCall& call) noexcept {
  MemberState& member = *call.member;
  put_down(*member.lines);
  call.next = nullptr;
  call.phase = PendingCall::Phase::posted;
  member.progress_engine->list(member, call);
  return ShortStart::started;
}

[[gnu::noinline]] ShortStart ProgressEngine::copy_at_once(PendingCall& call, bool waits) noexcept {
  call.cached->copy(call.given.in, call.given.out);
  call.member->end_well<true>();
  call.rests = waits;
  return ShortStart::over;
}

[[gnu::noinline]] ShortStart ProgressEngine::sum_at_once(PendingCall& call, bool waits) noexcept {
  MemberState& member = *call.member;
  if (!call.exchange.sum_posts(member.run)) [[unlikely]] {
    member.progress_engine->fail(member, call);
    return ShortStart::started;
  }
  member.end_well<true>();  // and so the call is over, as it was
  call.rests = waits;
  return ShortStart::over;
}

[[gnu::always_inline]] inline bool ProgressEngine::wait_again(PendingCall& call) noexcept {
  MemberState& member = *call.member;
  if (call.rests || call.way == Way::full || !member.is_here()) [[unlikely]]
    return false;
  if (call.phase == PendingCall::Phase::over) {
    call.rests = call.status.ok();
    return call.rests;
  }
  return call.phase == PendingCall::Phase::posted ? member.progress_engine->end_posted(member, call)
                                                  : member.progress_engine->end_only(member, call);
}

// Waits for the call if it is the only one in flight, as for a blocking call. Here the next call of
// the communicator may be queued behind it.
[[gnu::noinline]] bool ProgressEngine::end_posted(MemberState& member, PendingCall& call) noexcept {
  if (busy_.size() != 1) [[unlikely]]
    return false;
  RankLines& mine = *member.lines;
  // The thread that put the call down resumes it; come_back_to() gives the order.
  mine.record.thread.store(static_cast<int>(member.caller), std::memory_order_relaxed);
  bool done = member.shared->rank_control.begin<true>(mine);
  if (done && call.exchange.is_as_expected(member.run, member.run.posts)) [[likely]] {
    call.exchange.add_up(member.run, member.run.posts);
  } else {
    done = done && call.exchange.sum_posts(member.run);
  }
  if (!done) [[unlikely]] {
    end_broken(member, call);
    note_work();
    return false;
  }
  member.end_well<true>();
  call.phase = PendingCall::Phase::over;
  call.rests = true;
  member.started.front = call.next;
  if (call.next == nullptr) {
    busy_.clear();
    note_work();
  }
  return true;
}

// As end_posted(), for a call that the interpreter walks.
[[gnu::noinline]] bool ProgressEngine::end_only(MemberState& member, PendingCall& call) noexcept {
  if (busy_.size() != 1 || member.started.front != &call) return false;
  run_alone(member);
  note_work();
  call.rests = call.phase == PendingCall::Phase::over && call.status.ok();
  return call.rests;
}

void ProgressEngine::take_up(MemberState& member, PendingCall& call) noexcept {
  member.know_buffers(call.given);
  member.run.waiter.buffer_hashes = call.given.buffer_hashes;
  call.cursor = kPosted;
  call.phase = PendingCall::Phase::under_way;
}

// Advances the member's first call, and the following calls as long as the first one ends.
bool ProgressEngine::step(MemberState& member) noexcept {
  bool moved = false;
  while (PendingCall* call = member.started.front) {
    if (helps_ && is_owners(member)) {
      break_off();
      return moved;
    }
    if (call->phase == PendingCall::Phase::queued) {
      moved = true;
      if (!begin(member, *call)) continue;
    } else if (call->phase == PendingCall::Phase::posted) {
      take_up(member, *call);
    }
    const std::size_t before = call->cursor.op;
    if (!end_if_over(member, *call, go_on(member, *call)))
      return moved || call->cursor.op != before;
    moved = true;
  }
  return moved;
}

bool ProgressEngine::step() noexcept {
  bool moved = false;
  // A member leaves the list when its last call ends.
  for (std::size_t i = busy_.size(); i-- > 0;) {
    if (i < busy_.size()) moved |= step(*busy_[i]);
  }
  return moved;
}

Progress ProgressEngine::help() noexcept {
  // The owner wants or has the progress engine; it wakes the helper again.
  if (wanted_.load(std::memory_order_relaxed)) return Progress::nothing_to_do;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return Progress::nothing_to_do;
  helps_ = true;
  const bool moved = step();
  helps_ = false;
  if (moved) return Progress::moved;
  const auto is_ours = [&](const MemberState* member) { return !is_owners(*member); };
  return std::any_of(busy_.begin(), busy_.end(), is_ours) ? Progress::all_waits
                                                          : Progress::nothing_to_do;
}

[[gnu::always_inline]] inline bool ProgressEngine::is_alone(std::int64_t until_ns) const noexcept {
  return until_ns == kForEverNs && busy_.size() == 1 &&
         busy_.front()->started.front->thread == nullptr;
}

// Waits for the only call in flight as for a blocking call.
[[gnu::always_inline]] inline void ProgressEngine::run_alone(MemberState& member) noexcept {
  PendingCall* call = member.started.front;
  if (call->phase == PendingCall::Phase::queued && !begin(member, *call)) return;
  if (call->phase == PendingCall::Phase::posted) take_up(member, *call);
  bool done = call->phase != PendingCall::Phase::broken;
  if (done && member.clock != nullptr) {
    done = play(member, *call);
  } else if (done) {
    done = member.come_back() && interpret_rest(call->cached->plan, member.run, call->cursor);
  }
  if (done) [[likely]]
    return end_well(member, *call);
  end_broken(member, *call);
}

bool ProgressEngine::wait(const PendingCall& call, std::int64_t until_ns) noexcept {
  if (call.phase == PendingCall::Phase::over) return true;
  if (is_alone(until_ns)) run_alone(*busy_.front());
  return call.phase == PendingCall::Phase::over || wait_in_turn(call, until_ns);
}

bool ProgressEngine::wait_in_turn(const PendingCall& call, std::int64_t until_ns) noexcept {
  Idling idling(call.member->shared->rank_control.policy());
  while (call.phase != PendingCall::Phase::over) {
    if (is_alone(until_ns)) {
      run_alone(*busy_.front());
    } else if (step()) {
      idling.begin_again();
    } else {
      if (until_ns != kForEverNs && now_ns() >= until_ns) return false;
      call.member->end_if_interrupted();
      const RecordedWait recorded(call.member->run.waiter.timer, -1);
      idling.once();
    }
  }
  return true;
}

void ProgressEngine::finish(MemberState& member) noexcept {
  if (member.started.back == nullptr) return;
  while (member.started.front != nullptr) wait(*member.started.front, kForEverNs);
}

bool ProgressEngine::begin_group() {
  if (group_) return false;
  group_.emplace();
  idle_ = false;
  return true;
}

bool ProgressEngine::take(Request& request) {
  if (!group_) return false;
  group_->push_back(std::move(request));
  return true;
}

std::vector<Request> ProgressEngine::end_group() {
  std::vector<Request> all = std::move(*group_);
  group_.reset();
  idle_ = !had_work_;
  return all;
}

void ProgressEngine::leave() noexcept {
  for (MemberState* member : members_) member->shared->leave(member->run.waiter.rank);
}

void ProgressEngine::come_back() noexcept {
  for (MemberState* member : members_) {
    member->shared->come_back(member->run.waiter.rank);
  }
}

}  // namespace rankine
