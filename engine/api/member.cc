#include "engine/api/member.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "engine/api/agenda.h"
#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/communicator_state.h"
#include "engine/api/member_state.h"
#include "engine/api/rank_threads.h"
#include "engine/run/interpret.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/sharing.h"
#include "numa/cancel_state.h"

namespace rankine {

MemberState::MemberState(std::shared_ptr<CommunicatorShared> shared_, Rank rank,
                         std::shared_ptr<Agenda> agenda_)
    : owned(std::move(shared_)), shared(owned.get()), agenda(std::move(agenda_)), handle(owned) {
  const auto n = static_cast<std::size_t>(shared->ranks);
  if (shared->clock != nullptr) clock = &shared->clock->clock().of(rank);
  run.waiter = {.crossbar = &shared->crossbar, .rank = rank, .call = shared->first_count};
  run.progress_base = shared->first_count;
  run.outbox.resize(n);
  run.inbox.resize(n);
  run.memory.resize(n * 4);
  run.boards.resize(n);
  run.posts = shared->first_count;
}

Member::Member(std::shared_ptr<CommunicatorShared> shared, Rank rank,
               std::shared_ptr<Agenda> agenda)
    : state_(make_shared_at_home<MemberState>(std::move(shared), rank, std::move(agenda))) {
  MemberState& s = *state_;
  {
    const Agenda::Turn turn(*s.agenda);
    s.agenda->add(s);  // nothing fails from here on
  }
  s.shared->payloads[static_cast<std::size_t>(rank)] = s.payloads;
  s.count_tables();
}

Member::~Member() {
  // In a forked child nobody is there to be told, and a lock may be held for ever. The state is
  // left alone, too.
  MemberState& s = *state_;
  if (s.shared->forked()) return;
  s.sending.clear();
  s.receiving.clear();
  {
    const Agenda::Turn turn(*s.agenda);
    if (s.started.front != nullptr) {
      s.shared->end_with(make_error(Code::aborted, [&] {
        return "the member of rank " + std::to_string(rank()) +
               " was destroyed while calls that it had started were under way";
      }));
      s.agenda->finish(s);
    }
    s.agenda->remove(s);
  }
  if (s.thread != 0) RankThreads::remove(s.thread);
  s.gone = true;  // requests may outlive us
  s.shared->leave(s.run.waiter.rank);
  s.shared->member_bytes.fetch_sub(s.counted_bytes, std::memory_order_relaxed);
  s.shared->find_no_groups(s.run.waiter.rank);
  const std::lock_guard lock(s.shared->mutex);
  s.shared->scratch[static_cast<std::size_t>(s.run.waiter.rank)] = {};
}

// Without `operands`, which grow with the plans and are small.
std::size_t MemberState::table_bytes() const {
  return sizeof(MemberState) + taken_bytes(run.outbox) + taken_bytes(run.inbox) +
         taken_bytes(run.memory) + taken_bytes(run.boards) + plans.table_bytes() +
         sizeof(Payloads) + products.capacity() + displaced.bytes();
}

Rank Member::rank() const { return state_->run.waiter.rank; }
int Member::ranks() const { return state_->shared->ranks; }
Communicator& Member::communicator() const { return state_->handle; }

Status size_mismatch(std::string_view what, std::size_t got, std::size_t allowed, int ranks) {
  return invalid_argument(std::string(what) + " has " + std::to_string(got) +
                          " elements; the other argument and " + std::to_string(ranks) +
                          " ranks ask for " + std::to_string(allowed));
}

Status check_sizes(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out) {
  Status status = check_call(call, ranks);
  if (!status.ok()) return status;
  const Goal goal{call.collective, ranks, natural_blocks(call.collective, ranks), call.root,
                  call.peer};
  const Layout layout = make_layout(goal, natural_counts(call, ranks), 1, Borders::plain);
  const BufferRule rule = buffer_rule(layout, goal, rank);
  if (rule.input_bytes > in) return size_mismatch("in", in, rule.input_bytes, ranks);
  if (rule.output_bytes > out) return size_mismatch("out", out, rule.output_bytes, ranks);
  return {};
}

Result<PayloadMemory> Member::allocate_elements(std::size_t n, std::size_t element_bytes) {
  if (state_->shared->forked()) return forked_status();
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the arena looks into files
  const Rank self = rank();
  try {
    if (const auto& processes = state_->shared->processes; processes != nullptr) {
      return state_->payloads->allocate_shared(processes, self, n, element_bytes);
    }
    return state_->payloads->allocate(state_->shared->arena_options[static_cast<std::size_t>(self)],
                                      self, n, element_bytes);
  } catch (const std::bad_alloc&) {
    return make_error(Code::out_of_memory, [&] {
      return "n is " + std::to_string(n) + "; there is no memory to keep account of it";
    });
  }
}

Status Member::barrier(const CallOptions& options) {
  return call(barrier_of(state_->barrier_in, state_->barrier_out, options));
}

// Our ends of the mailboxes, room for operands, and scratch. Only when a plan is first met.
Status MemberState::adopt(const Prepared& prepared) {
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const auto n = static_cast<std::size_t>(shared->ranks);
  const RankPlan& plan = prepared.plan.rank[self];
  const auto operands = static_cast<std::size_t>(prepared.plan.most_operands);
  if (run.operands.size() < operands) run.operands.resize(operands);
  // What a plan uses is there before the plan can be found, and stays as it is: no lock.
  for (const Traffic& traffic : plan.traffic) {
    // The other direction may be just being made, for another plan.
    if (traffic.sent > 0) {
      Outbox& to = run.outbox[traffic.peer];
      if (to.mailbox.slots == nullptr) to.base = to.credit_seen = shared->first_count;
      to.mailbox = shared->mailboxes[self * n + traffic.peer];
    }
    if (traffic.received > 0) {
      Inbox& from = run.inbox[traffic.peer];
      if (from.mailbox.slots == nullptr) from.base = shared->first_count;
      from.mailbox = shared->mailboxes[traffic.peer * n + self];
    }
  }
  if (prepared.plan.transport == Transport::board) run.boards = shared->boards;
  if (plan.scratch_bytes > scratch_bytes) {
    // Between calls nobody reads our scratch, so it may move.
    const std::size_t bytes = std::max(plan.scratch_bytes, 2 * scratch_bytes);
    if (shared->processes != nullptr) return share_scratch(plan.scratch_bytes);
    ArenaOptions options = shared->arena_options[self];
    options.chunk_bytes = 4096;
    auto larger = std::make_unique<Arena>(options);
    void* memory = larger->allocate(bytes);
    if (memory == nullptr) {
      return {Code::out_of_memory,
              "scratch of rank " + std::to_string(self) + ": " + std::to_string(bytes) + " bytes"};
    }
    std::unique_lock<std::mutex> lock;  // for who asks about our memory
    if (Status locked = shared->lock_for_call(lock, run.waiter); !locked.ok()) return locked;
    scratch = std::move(larger);
    scratch_bytes = bytes;
    run.memory_of(self, Memory::scratch) = static_cast<std::byte*>(memory);
    shared->scratch[self] = {
        {memory, bytes}, scratch->binding(), scratch->huge_pages(), scratch->locking()};
  }
  return {};
}

Status MemberState::share_scratch(std::size_t bytes) {
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  auto memory = shared->processes->scratch(run.waiter.rank, bytes);
  if (!memory.ok()) return memory.status();
  scratch_bytes = bytes;
  run.memory_of(self, Memory::scratch) = *memory;
  const std::lock_guard lock(shared->mutex);
  shared->scratch[self].range = {*memory, bytes};
  return {};
}

Result<MemberState::Found> MemberState::find(const Call& call, bool calls) {
  const PlanKey key(call);
  RankPlans::Slot* slot = plans.find(key, key.hash());
  if (slot == nullptr) {
    auto prepared = shared->prepare(key, run.waiter);
    if (!prepared.ok()) return prepared.status();
    if (Status status = adopt(**prepared); !status.ok()) return status;
    if (shared->plan_bytes.load(std::memory_order_relaxed) > 2 * PlanTable::kMostBytes) {
      plans.clear();  // ranks hold more than the communicator does: let go of what is old
    }
    slot = &plans.insert(std::move(*prepared));
    count_tables();
  }
  const Found found{&slot->prepared, !slot->called};
  slot->called |= calls;
  return found;
}

Status MemberState::refused(Status status) {
  if (goes_on(status.code())) return status;
  // Else peers would wait for this rank in vain. Where another reason came first, that is the one.
  shared->end_with(std::move(status));
  return ended();
}

// What a call returns where the communicator has ended: the flight record is left before.
Status MemberState::ended() {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // files come next
  shared->leave_flight_record();
  return shared->crossbar.reason();
}

void MemberState::count_thread() {
  if (RankThreads::add(thread_id())) thread = thread_id();
}

Result<MemberState::Found> MemberState::plan(const Call& call, bool calls) {
  auto found = ask(call, calls);
  if (!found.ok() && !shared->forked()) return refused(found.status());
  return found;
}

Result<MemberState::Found> MemberState::ask(const Call& call, bool calls) {
  if (shared->forked()) [[unlikely]]
    return forked_status();
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // naps are taken while another rank plans
  try {
    if (thread == 0) count_thread();
    return find(call, calls);
  } catch (const std::bad_alloc&) {
    return make_error(Code::out_of_memory, [&] {
      return "rank " + std::to_string(run.waiter.rank) + " has no memory for the plan of " +
             std::string(name_of(call.collective));
    });
  }
}

bool MemberState::are_payloads(const BufferRule& rule, const void* in,
                               const void* out) const noexcept {
  const ProcessPayloads& ours = shared->processes->payloads(run.waiter.rank);
  return ours.holds(in, rule.input_bytes) && ours.holds(out, rule.output_bytes);
}

Status MemberState::misfit_of(const Prepared& prepared, const void* in,
                              const void* out) const noexcept {
  const BufferRule& rule = prepared.rules[static_cast<std::size_t>(run.waiter.rank)];
  if (buffers_fit(rule, in, out)) {
    const bool of_in = !shared->processes->payloads(run.waiter.rank).holds(in, rule.input_bytes);
    const Buffer buffer = of_in ? buffers_of(rule, in, out).in : buffers_of(rule, in, out).out;
    return make_error(Code::invalid_argument, [&] {
      return std::string(of_in ? "in" : "out") + " is " + to_string(buffer) +
             ", which is not of this member's allocate(), and shared_payloads says that all "
             "ranks' buffers are";
    });
  }
  return misfit(rule, in, out);
}

Status MemberState::broken() noexcept {
  Crossbar& crossbar = shared->crossbar;
  crossbar.end(run.waiter.rank);
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // waits come next
  if (!crossbar.aborted()) {
    crossbar.abort(make_error(Code::aborted, [&] {
      return "the observer of rank " + std::to_string(run.waiter.rank) + " ended its call";
    }));
  }
  crossbar.wait_until_quiet(run.waiter.rank, lends);
  return ended();
}

Call without_factor(const Call& call) {
  Call plain = call;
  plain.factor = nullptr;
  plain.options.shared_payloads = false;  // products may lie elsewhere
  if (call.collective == Collective::all_reduce) plain.in = call.out;
  return plain;
}

Result<const void*> MemberState::multiply(const Call& call, const Prepared& prepared) {
  if (!fits(prepared, call.in, call.out)) return misfit_of(prepared, call.in, call.out);
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const std::size_t bytes = prepared.rules[self].input_bytes;
  void* to = call.out;
  const bool at_root = call.collective == Collective::reduce && call.root == run.waiter.rank;
  const bool same_length =
      call.collective == Collective::all_reduce || call.collective == Collective::scan || at_root;
  if (!same_length) {
    try {
      if (products.size() < bytes) products.resize(bytes);
      count_tables();
    } catch (const std::bad_alloc&) {
      return refused(make_error(Code::out_of_memory, [&] {
        return "rank " + std::to_string(self) + " has no memory for " + std::to_string(bytes) +
               " bytes of products";
      }));
    }
    to = products.data();
  }
  find_scale(call.type, best_isa())(to, call.in, bytes / size_of(call.type), call.factor);
  return static_cast<const void*>(to);
}

Result<Call> MemberState::multiplied(const Call& call) {
  if (!timeout_fits(call.options)) return misfit(call.options);
  if (Status status = check_factor(call); !status.ok()) return status;
  Call plain = without_factor(call);
  wait_as(call.options);
  const auto found = plan(plain, false);
  if (!found.ok()) return found.status();
  const auto products_in = multiply(call, **found->held);
  if (!products_in.ok()) return products_in.status();
  plain.in = *products_in;
  return plain;
}

template <class Run>
Status Member::run_displaced(const Call& call, Run interpreted) try {
  MemberState& s = *state_;
  if (s.shared->forked()) return forked_status();
  const auto plain = s.displaced.plain(call, rank(), ranks());
  if (!plain.ok()) return plain.status();
  s.count_tables();
  s.displaced.bring_together();
  Status status = run(*plain, interpreted);
  if (status.ok()) s.displaced.hand_out();
  return status;
} catch (const std::bad_alloc&) {
  return give_up(make_error(Code::out_of_memory, [&] {
    return "rank " + std::to_string(rank()) + " has no memory for the displaced blocks of " +
           std::string(name_of(call.collective));
  }));
}

template <class Run>
Status Member::run(const Call& call, Run interpreted) {
  MemberState& s = *state_;
  if (call.displacements != nullptr) [[unlikely]]
    return run_displaced(call, interpreted);
  if (call.user_op != nullptr) [[unlikely]] {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (call.options.epilogue != nullptr) [[unlikely]] {
    if (Status status = check_epilogue(call); !status.ok()) return status;
  }
  if (call.factor != nullptr) [[unlikely]] {
    const auto multiplied = s.multiplied(call);
    return multiplied.ok() ? run(*multiplied, interpreted) : multiplied.status();
  }
  if (!timeout_fits(call.options)) [[unlikely]]
    return misfit(call.options);
  s.wait_as(call.options);
  MemberState::Found known{s.shared->forked() ? nullptr : s.known(call)};
  if (known.held == nullptr) [[unlikely]] {
    auto found = s.plan(call, true);
    if (!found.ok()) return found.status();
    known = *found;
  }
  const Prepared& prepared = **known.held;
  if (!s.fits(prepared, call.in, call.out)) [[unlikely]]
    return s.misfit_of(prepared, call.in, call.out);
  if (!s.begin(prepared, s.given(prepared, call, call.in))) [[unlikely]] {
    return s.ended();  // it may be the first call that fails: where the end came between calls
  }
  const bool apart = !known.first || all_keep_apart(prepared.plan, s.run.waiter);
  return s.end(apart && interpreted(prepared, s.run));
}

namespace {

// The clock first, then who observes the call.
struct Both : RoundObserver {
  Both(RoundObserver& a, RoundObserver& b) : first(a), second(b) {}
  bool before_round(int k) noexcept override {
    return first.before_round(k) && second.before_round(k);
  }
  RoundObserver &first, &second;
};

// On a modelled network: the clock takes the call's schedule up and observes it, and with it
// `other`, where there is one.
bool interpret_timed(const Prepared& prepared, RankState& state, NetworkClock::OfRank& clock,
                     std::optional<Ticks> start, RoundObserver* other) noexcept {
  bool done = clock.begin(*prepared.timed, state.waiter, start);
  if (done && other == nullptr) {
    done = interpret(prepared.plan, state, clock);
  } else if (done) {
    Both both(clock, *other);
    done = interpret(prepared.plan, state, both);
  }
  done = clock.finish(done);
  if (!start) clock.go_to(clock.ended());
  return done;
}

}  // namespace

bool interpret_call(const Prepared& prepared, RankState& state, NetworkClock::OfRank* clock,
                    RoundObserver* observer) noexcept {
  if (clock != nullptr) return interpret_timed(prepared, state, *clock, std::nullopt, observer);
  if (observer != nullptr) return interpret(prepared.plan, state, *observer);
  return interpret(prepared.plan, state);
}

bool interpret_at(Ticks start, const Prepared& prepared, RankState& state,
                  NetworkClock::OfRank& clock) noexcept {
  return interpret_timed(prepared, state, clock, start, nullptr);
}

Status Member::call(const Call& call) {
  if (!state_->agenda->idle()) [[unlikely]]
    return call_among_others(call);
  if (state_->clock != nullptr) [[unlikely]] {
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // clocks are observers
    return run(call, [clock = state_->clock](const Prepared& prepared, RankState& state) {
      return interpret_timed(prepared, state, *clock, std::nullopt, nullptr);
    });
  }
  return run(call, [](const Prepared& prepared, RankState& state) {
    return interpret(prepared.plan, state);
  });
}

Status Member::call(const Call& call, RoundObserver& observer) {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // observers may sleep, and may not throw
  if (!state_->shared->forked()) state_->finish();
  return run(call, [&](const Prepared& prepared, RankState& state) {
    return interpret_call(prepared, state, state_->clock, &observer);
  });
}

void Member::give_way_to(OtherWork* work) {
  state_->other_work = work;
  state_->run.waiter.others = work;
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

// The plan that the call would have.
Result<const Prepared*> Member::planned(const Call& call) {
  if (call.user_op != nullptr) {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (call.options.epilogue != nullptr) {
    if (Status status = check_epilogue(call); !status.ok()) return status;
  }
  if (!timeout_fits(call.options)) return misfit(call.options);
  if (!state_->shared->forked()) state_->finish();  // it makes room for its plan
  state_->wait_as(call.options);
  Call plain = call;
  if (call.displacements != nullptr) plain.in = plain.out = nullptr;  // apart, wherever they are
  auto found = state_->ask(plain, false);
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
  const Prepared& prepared = **found;
  const std::optional<Order> order =
      call.options.order ? call.options.order : state_->shared->order;
  return std::string(prepared.algorithm) +
         (prepared.parameters.empty() ? "" : ", " + prepared.parameters) + ", " +
         std::string(name_of(prepared.plan.transport)) + " transport" +
         (order ? ", order " + std::string(name_of(*order)) : "");
}

Status Member::give_up(Status reason) { return state_->refused(std::move(reason)); }

}  // namespace rankine
