#include "engine/api/member.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/member_state.h"
#include "engine/api/threads.h"
#include "engine/run/sharing.h"
#include "engine/run/wait.h"
#include "numa/cpus.h"
#include "numa/refusals.h"

namespace rankine {

Member::Member(std::shared_ptr<CommunicatorShared> shared, Rank rank,
               std::shared_ptr<ProgressEngine> progress_engine)
    : state_(
          make_shared_at_home<MemberState>(std::move(shared), rank, std::move(progress_engine))) {
  MemberState& s = *state_;
  {
    const ProgressEngine::Turn turn(*s.progress_engine);
    s.progress_engine->add(s);  // no failure is possible from here on
  }
  s.shared->payloads[static_cast<std::size_t>(rank)] = s.payloads;
  s.count_tables();
}

Member::~Member() {
  // In a forked child the rank has no peers to tell, and a lock may be held forever. The child also
  // leaves the state untouched.
  MemberState& s = *state_;
  if (s.shared->forked()) return;
  s.sending.clear();
  s.receiving.clear();
  {
    const ProgressEngine::Turn turn(*s.progress_engine);
    if (s.started.front != nullptr) {
      s.shared->end_with(make_error(Code::aborted, [&] {
        return "the member of rank " + std::to_string(rank()) +
               " was destroyed while its started calls were under way; wait for them first";
      }));
      s.progress_engine->finish(s);
    }
    s.progress_engine->remove(s);
  }
  if (s.thread != 0) RankThreads::remove(s.thread);
  s.gone = true;  // requests may outlive the member
  s.caller = kNoThread;
  s.shared->leave(s.run.waiter.rank);
  s.shared->member_bytes.fetch_sub(s.counted_bytes, std::memory_order_relaxed);
  s.shared->find_no_groups(s.run.waiter.rank);
  const std::lock_guard lock(s.shared->mutex);
  s.shared->scratch[static_cast<std::size_t>(s.run.waiter.rank)] = {};
}

bool Member::leave() {
  MemberState& s = *state_;
  if (s.shared->forked()) return true;
  {
    const ProgressEngine::Turn turn(*s.progress_engine);
    const auto is_busy = [](const std::unique_ptr<Member>& end) {
      return end != nullptr && end->state_->started.front != nullptr;
    };
    if (s.started.front != nullptr || std::any_of(s.sending.begin(), s.sending.end(), is_busy) ||
        std::any_of(s.receiving.begin(), s.receiving.end(), is_busy)) {
      return false;
    }
  }
  s.shared->leave(rank());
  return true;
}

Rank Member::rank() const { return state_->run.waiter.rank; }
int Member::ranks() const { return state_->shared->ranks; }
Communicator& Member::communicator() const { return state_->handle; }

Enforcement Member::pin_thread() { return state_->pin_thread(); }

int Member::cpu() const {
  const int thread =
      state_->shared->rank_control.record(rank()).thread.load(std::memory_order_relaxed);
  if (thread == 0 || state_->shared->forked()) return state_->cpu.load(std::memory_order_relaxed);
  const std::vector<int> cpus = allowed_cpus(thread);
  return cpus.size() == 1 ? cpus.front() : kNotPlaced;
}

PortsInUse Member::ports_in_use() const { return state_->handle.ports_in_use(rank()); }

Status size_mismatch(std::string_view what, std::size_t got, std::size_t allowed, int ranks) {
  return invalid_argument(std::string(what) + " has " + std::to_string(got) +
                          " elements; allowed are " + std::to_string(allowed) +
                          ", by the other argument and " + std::to_string(ranks) + " ranks");
}

Status check_sizes(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out) {
  Status status = check_call(call, ranks);
  if (!status.ok()) return status;
  const CollectiveSpec goal{call.collective, ranks, natural_blocks(call.collective, ranks),
                            call.root, call.peer};
  const Layout layout = make_layout(goal, natural_counts(call, ranks), 1, Borders::plain);
  const BufferRule rule = buffer_rule(layout, goal, rank);
  if (rule.input_bytes > in) return size_mismatch("in", in, rule.input_bytes, ranks);
  if (rule.output_bytes > out) return size_mismatch("out", out, rule.output_bytes, ranks);
  return {};
}

Result<PayloadMemory> Member::allocate_elements(std::size_t n, std::size_t element_bytes) {
  if (state_->shared->forked()) return forked_status();
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the arena reads files
  const Rank self = rank();
  try {
    if (const auto& processes = state_->shared->processes; processes != nullptr) {
      return state_->payloads->allocate_shared(processes, self, n, element_bytes);
    }
    return state_->payloads->allocate(state_->shared->arena_options[static_cast<std::size_t>(self)],
                                      self, n, element_bytes);
  } catch (const std::bad_alloc&) {
    return make_error(Code::out_of_memory,
                      [&] { return "n is " + std::to_string(n) + "; no memory to record it"; });
  }
}

Status Member::barrier(const CallOptions& options) {
  return call(barrier_of(state_->barrier_in, state_->barrier_out, options));
}

namespace {

// Makes a call; `interpreted` runs its plan. Code that all calls need is inlined. Code for rare
// features is a function call, so that it does not enlarge the stack frame.
template <class Run>
[[gnu::always_inline]] inline Status run_call(MemberState& s, const Call& call, Run interpreted);

template <class Run>
[[gnu::always_inline]] inline Status run_with_plan(MemberState& s, const CachedPlan& cached,
                                                   const Call& call, Run interpreted) {
  if (!s.fits(cached, call.in, call.out)) [[unlikely]]
    return s.misfit_of(cached, call.in, call.out);
  if (!s.begin(cached, s.given(cached, call, call.in))) [[unlikely]] {
    // the communicator ended between calls, and this may be the first call to fail
    return s.ended();
  }
  return s.end(interpreted(cached, s.run));
}

// Makes a call that this rank has not made before.
template <class Run>
[[gnu::noinline]] Status run_first_call(MemberState& s, const Call& call, Run interpreted) {
  if (s.is_to_be_pinned && !s.shared->forked()) static_cast<void>(s.pin_thread());
  const auto found = s.plan_call(call, true);
  if (!found.ok()) return found.status();
  const bool first = found->first;
  return run_with_plan(s, **found->held, call, [&](const CachedPlan& cached, RankState& state) {
    return (!first || check_no_alias_of_all(cached.plan, state.waiter)) &&
           interpreted(cached, state);
  });
}

template <class Run>
[[gnu::always_inline]] inline Status run_basic_call(MemberState& s, const Call& call,
                                                    Run interpreted) {
  if (!timeout_fits(call.options)) [[unlikely]]
    return misfit(call.options);
  s.wait_as(call.options);
  const CachedPlanPtr* held = s.shared->forked() ? nullptr : s.cached_plan(call);
  if (held == nullptr) [[unlikely]]
    return run_first_call(s, call, interpreted);
  return run_with_plan(s, **held, call, interpreted);
}

template <class Run>
Status run_displaced_call(MemberState& s, const Call& call, Run interpreted) try {
  if (s.shared->forked()) return forked_status();
  const auto plain = s.displaced.plain(call, s.run.waiter.rank, s.shared->ranks);
  if (!plain.ok()) return plain.status();
  s.count_tables();
  s.displaced.pack_blocks();
  Status status = run_call(s, *plain, interpreted);
  if (status.ok()) s.displaced.unpack_blocks();
  return status;
} catch (const std::bad_alloc&) {
  return s.refused(make_error(Code::out_of_memory, [&] {
    return "rank " + std::to_string(s.run.waiter.rank) +
           " has no memory for the displaced blocks of " + std::string(name_of(call.collective));
  }));
}

template <class Run>
[[gnu::noinline]] Status run_extended_call(MemberState& s, const Call& call, Run interpreted) {
  if (call.displacements != nullptr) return run_displaced_call(s, call, interpreted);
  if (call.user_op != nullptr) {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (call.options.epilogue != nullptr) {
    if (Status status = check_epilogue(call); !status.ok()) return status;
  }
  if (call.factor != nullptr) {
    const auto multiplied = s.multiplied(call);
    return multiplied.ok() ? run_call(s, *multiplied, interpreted) : multiplied.status();
  }
  return run_basic_call(s, call, interpreted);
}

template <class Run>
Status run_call(MemberState& s, const Call& call, Run interpreted) {
  const bool is_extended = (call.displacements != nullptr) | (call.user_op != nullptr) |
                           (call.options.epilogue != nullptr) | (call.factor != nullptr);
  if (is_extended) [[unlikely]]
    return run_extended_call(s, call, interpreted);
  return run_basic_call(s, call, interpreted);
}

}  // namespace

Status Member::call_in_full(const Call& call) {
  if (!state_->progress_engine->idle()) [[unlikely]]
    return call_in_turn(call);
  if (state_->clock != nullptr) [[unlikely]] {
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // clocks are observers
    return run_call(*state_, call,
                    [clock = state_->clock](const CachedPlan& cached, RankState& state) {
                      return interpret_call(cached, state, clock, nullptr);
                    });
  }
  if (state_->runner != nullptr) [[unlikely]] {
    return run_call(*state_, call,
                    [runner = state_->runner](const CachedPlan& cached, RankState& state) {
                      return runner->run(cached.plan, state);
                    });
  }
  return run_call(*state_, call, [](const CachedPlan& cached, RankState& state) {
    return interpret(cached.plan, state);
  });
}

namespace {

// Moves the data of a call that has begun, and ends it.
[[gnu::noinline]] bool run_begun(MemberState& s, const CachedPlan& cached,
                                 const CallArguments& given) noexcept {
  if (!cached.copy(given.in, given.out) && !interpret(cached.plan, s.run)) [[unlikely]]
    return s.keep(s.broken());
  s.end_well();
  return true;
}

[[gnu::noinline]] bool note_end(MemberState& s) noexcept { return s.keep(s.ended()); }
[[gnu::noinline]] bool note_break(MemberState& s) noexcept { return s.keep(s.broken()); }

// The rest of an exchange that is not over at once.
[[gnu::noinline]] bool sum_late(MemberState& s) noexcept {
  if (!s.repeated.exchange.sum_posts(s.run)) [[unlikely]]
    return note_break(s);
  s.end_well<true>();
  return true;
}
[[gnu::noinline]] bool post_late(MemberState& s, bool is_posted) noexcept {
  const Exchange& exchange = s.repeated.exchange;
  is_posted ? exchange.wake(s.run, *s.lines) : exchange.post_input(s.run, *s.lines);
  return sum_late(s);
}

// Makes the repeated call its way.
template <Way kWay>
bool make_again(MemberState& s) noexcept {
  const RepeatedCall& again = s.repeated;
  if (kWay == Way::exchanges && !Exchange::fits(s.run)) [[unlikely]]
    return make_again<Way::walks>(s);
  if (kWay != Way::copies) s.wait_at_most(0);
  if (!s.begin<kWay>(*again.cached, again.given)) [[unlikely]]
    return note_end(s);
  if (kWay == Way::exchanges) {
    std::uint32_t number;
    if (!again.exchange.post_few_bytes(s.run, number)) return post_late(s, false);
    if (s.shared->rank_control.has_sleepers(*s.lines)) [[unlikely]]
      return post_late(s, true);
    if (!again.exchange.is_as_expected(s.run, number)) return sum_late(s);
    again.exchange.add_up(s.run, number);
  } else if (kWay == Way::walks ||
             !copy_few_bytes(again.given.out, again.given.in, again.cached->copied_bytes)) {
    return run_begun(s, *again.cached, again.given);
  }
  s.end_well<true>();
  return true;
}

bool make_in_full(MemberState& s) noexcept {
  s.wait_at_most(0);
  if (!s.begin(*s.repeated.cached, s.repeated.given)) [[unlikely]]
    return note_end(s);
  return run_begun(s, *s.repeated.cached, s.repeated.given);
}

constexpr bool (*kMake[])(MemberState&) noexcept = {
    make_in_full, make_again<Way::walks>, make_again<Way::exchanges>, make_again<Way::copies>};

}  // namespace

// The short way from a call to its data. Nothing that it calls returns to it, so that no value must
// outlive a function call.
bool Member::try_plain(const void* in, void* out, std::size_t count, std::uint64_t kinds) noexcept {
  MemberState& s = *state_;
  const RepeatedCall& again = s.repeated;
  // idle() comes first: while a call is in flight, the helper may write what follows.
  if (!s.progress_engine->idle() || !(again.call == PlainCall{in, out, count, kinds}) ||
      !s.is_here()) [[unlikely]]
    return call_anew(in, out, count, kinds);
  return again.make(s);
}

Status Member::failure() noexcept { return std::exchange(state_->failure, {}); }

// Makes a plain call that is not as the latest one, and notes it if it can be repeated.
[[gnu::noinline]] bool Member::call_anew(const void* in, void* out, std::size_t count,
                                         std::uint64_t kinds) noexcept try {
  MemberState& s = *state_;
  const PlainCall plain{in, out, count, kinds};
  RepeatedCall& again = s.repeated;
  if (!s.progress_engine->idle() || s.shared->forked() || s.clock != nullptr ||
      s.runner != nullptr) {
    return s.keep(call_in_full(plain.call()));
  }
  if (!(again.call == plain)) {
    const Call call = plain.call();
    const CachedPlanPtr* held = s.cached_plan(call);
    if (held == nullptr || !s.fits(**held, call.in, call.out)) return s.keep(call_in_full(call));
    const Way way = s.way_of(**held);
    again.call = plain;
    again.make = kMake[static_cast<std::size_t>(way)];
    again.cached = held->get();
    again.given = s.given(**held, call, call.in);
    if (way == Way::exchanges) {
      again.exchange = {again.cached->plan, s.run, in, out, again.given.buffer_hashes};
    }
  }
  s.come_here();
  return again.make(s);
} catch (const std::bad_alloc&) {
  return state_->keep(state_->refused(make_error(Code::out_of_memory, [&] {
    return "rank " + std::to_string(rank()) + " has no memory for its call";
  })));
}

Status Member::call(const Call& call, RoundObserver& observer) {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // observers may sleep and must not throw
  if (!state_->shared->forked()) state_->finish();
  return run_call(*state_, call, [&](const CachedPlan& cached, RankState& state) {
    return interpret_call(cached, state, state_->clock, &observer);
  });
}

void Member::set_yield_callback(YieldCallback* work) {
  state_->other_work = work;
  state_->run.waiter.others = work;
}

void Member::run_by(PlanRunner* runner) {
  state_->runner = runner;
  state_->repeated = {};
}

double Member::model_time() const {
  if (state_->clock == nullptr) return 0;
  return state_->shared->clock->seconds(state_->clock->now());
}

Status Member::compute(double seconds) {
  if (state_->clock == nullptr) {
    return invalid_argument("compute() is for modelled networks; this communicator has none");
  }
  constexpr double kMost = 1e9;  // thirty years
  if (!(seconds >= 0 && seconds <= kMost)) {
    return invalid_argument("seconds is " + std::to_string(seconds) + "; allowed are 0 to 1e9");
  }
  const auto per_second = static_cast<long double>(state_->clock->ticks_per_second());
  state_->clock->work(static_cast<Ticks>(static_cast<long double>(seconds) * per_second + 0.5L));
  return {};
}

// Returns the plan that the call would have.
Result<const CachedPlan*> Member::planned(const Call& call) {
  if (call.user_op != nullptr) {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (call.options.epilogue != nullptr) {
    if (Status status = check_epilogue(call); !status.ok()) return status;
  }
  if (Status status = check_factor(call); !status.ok()) return status;
  if (!timeout_fits(call.options)) return misfit(call.options);
  if (!state_->shared->forked()) state_->finish();  // planning allocates memory for the plan
  state_->wait_as(call.options);
  Call plain = call;
  // not in place, at any addresses
  if (call.displacements != nullptr) plain.in = plain.out = nullptr;
  auto found = state_->plan_query(plain, false);
  if (!found.ok()) return found.status();
  return found->held->get();
}

Result<OrderSet> Member::orders_of(const Call& call) {
  const auto found = planned(call);
  if (!found.ok()) return found.status();
  return (*found)->orders;
}

Result<std::string> Member::plan_of(const Call& call) {
  const auto found = planned(call);
  if (!found.ok()) return found.status();
  const CachedPlan& cached = **found;
  const std::optional<Order> order =
      call.options.order ? call.options.order : state_->shared->order;
  std::string others;
  for (const Plan::FurtherForm& form : cached.plan.further_forms) {
    others += (others.empty() ? ", by trials also " : " or ") + std::string(name_of(form.form)) +
              " (" + form.algorithm + ")";
  }
  return std::string(cached.algorithm) +
         (cached.parameters.empty() ? "" : ", " + cached.parameters) + ", " +
         std::string(name_of(cached.plan.transport)) + " transport" + others +
         (order ? ", order " + std::string(name_of(*order)) : "");
}

Status Member::give_up(Status reason) { return state_->refused(std::move(reason)); }

}  // namespace rankine
