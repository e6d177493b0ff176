// One rank's side of a communicator: its cache of plans, its ends of the mailboxes, its scratch.
#include <algorithm>
#include <mutex>
#include <new>

#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/communicator_state.h"
#include "engine/base/deadline.h"
#include "engine/base/huge_pages.h"
#include "engine/run/interpret.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/sharing.h"
#include "numa/cancel_state.h"

namespace rankine {

struct Member::State {
  struct Found {
    const Prepared* prepared;
    bool first = false;  // call of its kind, as far as this rank remembers
  };

  Communicator* communicator;
  Communicator::Shared* shared;
  NetworkClock::OfRank* clock = nullptr;  // of a modelled network
  RankState run;
  RankPlans plans;
  std::unique_ptr<Arena> scratch;
  std::size_t scratch_bytes = 0;
  std::uint32_t barrier_in = 0, barrier_out = 0;

  // The plan of a call that this rank has made before, or nullptr: then plan() is to be asked. All
  // calls but the first pass here, and a Result would cost as much as the look-up.
  const Prepared* known(const Call& call) noexcept;
  // find(), without exceptions.
  Result<Found> plan(const Call& call, bool calls);
  // `calls`: the call will be made.
  Result<Found> find(const Call& call, bool calls);
  // The call's time runs from its first long wait, while planning or later.
  void wait_as(const Call& call) noexcept {
    run.waiter.deadline_ns = 0;
    run.waiter.timeout_ns = saturated_ns(call.options.timeout);
  }
  // A sum in which this rank brings its input times its factor (call.factor), as the same without:
  // the products are made, and lie in its output or in `products`.
  Result<Call> multiplied(const Call& call);
  HugeVector<std::byte> products;
  // What the machine refuses ends the communicator; arguments that are wrong do not.
  Status refused(Status status);
  Status ended();
  Status adopt(const Prepared& prepared);
  std::size_t table_bytes() const;
  std::size_t counted_bytes = 0;  // of the tables, in the communicator's count
  std::shared_ptr<Payloads> payloads = std::make_shared<Payloads>();
  // Tables grow with the plans: what the communicator counts follows.
  void count_tables() noexcept {
    const std::size_t now = table_bytes();
    shared->member_bytes.fetch_add(now - counted_bytes, std::memory_order_relaxed);  // a count
    counted_bytes = now;
  }
};

Member::Member(Communicator& communicator, Rank rank) : state_(make_process_owned<State>()) {
  State& s = *state_;
  s.communicator = &communicator;
  s.shared = communicator.shared_.get();
  const auto n = static_cast<std::size_t>(s.shared->ranks);
  if (s.shared->clock != nullptr) s.clock = &s.shared->clock->clock().of(rank);
  s.run.waiter = {.crossbar = &s.shared->crossbar, .rank = rank, .call = s.shared->first_count};
  s.run.progress_base = s.shared->first_count;
  s.run.outbox.resize(n);
  s.run.inbox.resize(n);
  s.run.memory.resize(n * 4);
  s.run.boards.resize(n);
  s.run.posts = s.shared->first_count;
  for (std::size_t q = 0; q < n; ++q) {
    s.run.outbox[q].base = s.run.outbox[q].credit_seen = s.shared->first_count;
    s.run.inbox[q].base = s.shared->first_count;
  }
  s.shared->payloads[static_cast<std::size_t>(rank)] = s.payloads;
  s.count_tables();
}

Member::~Member() {
  // In a forked child nobody is there to be told, and a lock may be held for ever. The state is
  // left alone, too.
  if (state_->shared->forked()) return;
  state_->communicator->leave(state_->run.waiter.rank);
  state_->shared->member_bytes.fetch_sub(state_->counted_bytes, std::memory_order_relaxed);
  const std::lock_guard lock(state_->shared->mutex);
  state_->shared->scratch[static_cast<std::size_t>(state_->run.waiter.rank)] = {};
}

// Without `operands`, which grow with the plans and are small.
std::size_t Member::State::table_bytes() const {
  return sizeof(State) + run.outbox.capacity() * sizeof(Outbox) +
         run.inbox.capacity() * sizeof(Inbox) + run.memory.capacity() * sizeof(std::byte*) +
         run.boards.capacity() * sizeof(Board) + plans.table_bytes() + sizeof(Payloads) +
         products.capacity();
}

Rank Member::rank() const { return state_->run.waiter.rank; }
int Member::ranks() const { return state_->shared->ranks; }

Status Member::size_mismatch(std::string_view what, std::size_t got, std::size_t allowed) const {
  return invalid_argument(std::string(what) + " has " + std::to_string(got) +
                          " elements; the other argument and " + std::to_string(ranks()) +
                          " ranks ask for " + std::to_string(allowed));
}

Status Member::check_sizes(const Call& call, std::size_t in, std::size_t out) const {
  Status status = check_call(call, ranks());
  if (!status.ok()) return status;
  const Goal goal{call.collective, ranks(), natural_blocks(call.collective, ranks()), call.root,
                  call.peer};
  const Layout layout = make_layout(goal, natural_counts(call, ranks()), 1, Borders::plain);
  const BufferRule rule = buffer_rule(layout, goal, rank());
  if (rule.input_bytes > in) return size_mismatch("in", in, rule.input_bytes);
  if (rule.output_bytes > out) return size_mismatch("out", out, rule.output_bytes);
  return {};
}

Result<PayloadMemory> Member::allocate_elements(std::size_t n, std::size_t element_bytes) {
  if (state_->shared->forked()) return forked_status();
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the arena looks into files
  const Rank self = rank();
  try {
    return state_->payloads->allocate(state_->shared->arena_options[static_cast<std::size_t>(self)],
                                      self, n, element_bytes);
  } catch (const std::bad_alloc&) {
    return make_error(Code::out_of_memory, [&] {
      return "n is " + std::to_string(n) + "; there is no memory to keep account of it";
    });
  }
}

Status Member::barrier(const CallOptions& options) {
  // A barrier is an all-reduce of one word under "or", which may hear from a rank twice.
  return call({.collective = Collective::barrier,
               .in = &state_->barrier_in,
               .out = &state_->barrier_out,
               .count = 1,
               .type = DataType::u32,
               .op = ReduceOp::bor,
               .options = options});
}

// Our ends of the mailboxes, room for operands, and scratch. Only when a plan is first met.
Status Member::State::adopt(const Prepared& prepared) {
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const auto n = static_cast<std::size_t>(shared->ranks);
  const RankPlan& plan = prepared.plan.rank[self];
  const auto operands = static_cast<std::size_t>(prepared.plan.most_operands);
  if (run.operands.size() < operands) run.operands.resize(operands);
  // What a plan uses is there before the plan can be found, and stays as it is: no lock.
  for (const Traffic& traffic : plan.traffic) {
    // The other direction may be just being made, for another plan.
    if (traffic.sent > 0) {
      run.outbox[traffic.peer].mailbox = shared->mailboxes[self * n + traffic.peer];
    }
    if (traffic.received > 0) {
      run.inbox[traffic.peer].mailbox = shared->mailboxes[traffic.peer * n + self];
    }
  }
  if (prepared.plan.transport == Transport::board) run.boards = shared->boards;
  if (plan.scratch_bytes > scratch_bytes) {
    // Between calls nobody reads our scratch, so it may move.
    const std::size_t bytes = std::max(plan.scratch_bytes, 2 * scratch_bytes);
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

const Prepared* Member::State::known(const Call& call) noexcept {
  const PlanKey key(call);
  const RankPlans::Slot* slot = plans.find(key, key.hash());
  return slot != nullptr && slot->called ? slot->prepared.get() : nullptr;
}

Result<Member::State::Found> Member::State::find(const Call& call, bool calls) {
  const PlanKey key(call);
  RankPlans::Slot* slot = plans.find(key, key.hash());
  if (slot == nullptr) {
    auto prepared = shared->prepare(key, run.waiter);
    if (!prepared.ok()) return refused(prepared.status());
    Status status = adopt(**prepared);
    if (!status.ok()) return refused(std::move(status));
    if (shared->plan_bytes.load(std::memory_order_relaxed) > 2 * PlanTable::kMostBytes) {
      plans.clear();  // ranks hold more than the communicator does: let go of what is old
    }
    slot = &plans.insert(std::move(*prepared));
    count_tables();
  }
  const Found found{slot->prepared.get(), !slot->called};
  slot->called |= calls;
  return found;
}

Status Member::State::refused(Status status) {
  if (goes_on(status.code())) return status;
  // Else peers would wait for this rank in vain. Where another reason came first, that is the one.
  communicator->abort(std::move(status));
  return ended();
}

// What a call returns where the communicator has ended: the flight record is left before.
Status Member::State::ended() {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // files come next
  shared->leave_flight_record();
  return shared->crossbar.reason();
}

Result<Member::State::Found> Member::State::plan(const Call& call, bool calls) {
  if (shared->forked()) [[unlikely]]
    return forked_status();
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // naps are taken while another rank plans
  try {
    return find(call, calls);
  } catch (const std::bad_alloc&) {
    return refused(make_error(Code::out_of_memory, [&] {
      return "rank " + std::to_string(run.waiter.rank) + " has no memory for the plan of " +
             std::string(name_of(call.collective));
    }));
  }
}

Result<Call> Member::State::multiplied(const Call& call) {
  if (!timeout_fits(call.options)) return misfit(call.options);
  if (Status status = check_factor(call); !status.ok()) return status;
  Call plain = call;
  plain.factor = nullptr;
  const bool all_reduces = call.collective == Collective::all_reduce;
  if (all_reduces) plain.in = call.out;
  wait_as(call);
  const auto found = plan(plain, false);
  if (!found.ok()) return found.status();
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const BufferRule& rule = found->prepared->rules[self];
  if (!buffers_fit(rule, call.in, call.out)) return misfit(rule, call.in, call.out);
  void* to = call.out;
  const bool at_root = call.collective == Collective::reduce && call.root == run.waiter.rank;
  if (!all_reduces && !at_root) {
    try {
      if (products.size() < rule.input_bytes) products.resize(rule.input_bytes);
      count_tables();
    } catch (const std::bad_alloc&) {
      return refused(make_error(Code::out_of_memory, [&] {
        return "rank " + std::to_string(self) + " has no memory for " +
               std::to_string(rule.input_bytes) + " bytes of products";
      }));
    }
    to = products.data();
  }
  plain.in = to;
  find_scale(call.type, best_isa())(to, call.in, rule.input_bytes / size_of(call.type),
                                    call.factor);
  return plain;
}

template <class Run>
Status Member::run(const Call& call, Run interpreted) {
  State& s = *state_;
  Crossbar& crossbar = s.shared->crossbar;
  if (call.user_op != nullptr) [[unlikely]] {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (call.factor != nullptr) [[unlikely]] {
    const auto multiplied = s.multiplied(call);
    return multiplied.ok() ? run(*multiplied, interpreted) : multiplied.status();
  }
  const auto self = static_cast<std::size_t>(s.run.waiter.rank);
  if (!timeout_fits(call.options)) [[unlikely]]
    return misfit(call.options);
  s.wait_as(call);
  State::Found known{s.shared->forked() ? nullptr : s.known(call)};
  if (known.prepared == nullptr) [[unlikely]] {
    auto found = s.plan(call, true);
    if (!found.ok()) return found.status();
    known = *found;
  }
  const Prepared& prepared = *known.prepared;
  const BufferRule& rule = prepared.rules[self];
  if (!buffers_fit(rule, call.in, call.out)) [[unlikely]]
    return misfit(rule, call.in, call.out);

  RankState& run = s.run;
  ++run.waiter.call;
  std::uint64_t tag = call.options.tag;
  if (call.user_op != nullptr) [[unlikely]] {
    tag ^= identity_of(*call.user_op);
    run.user_op = call.user_op;
  }
  run.waiter.fingerprint =
      with_tag(with_call(prepared.fingerprint, static_cast<std::uint32_t>(run.waiter.call)), tag)
          .bits;
  run.waiter.marks = marks_of(buffers_of(rule, call.in, call.out));
  crossbar.record(run.waiter.rank)
      .announce(run.waiter.call, run.waiter.fingerprint, call.count, prepared.algorithm);
  const std::uint64_t number = run.waiter.call - s.shared->first_count;
  s.shared->recorder.begin(run.waiter.rank, number, run.waiter.fingerprint);

  run.memory_of(self, Memory::input) = static_cast<std::byte*>(const_cast<void*>(call.in));
  run.memory_of(self, Memory::output) = static_cast<std::byte*>(call.out);
  offer_buffers(run.waiter, run.memory_of(self, Memory::input),
                run.memory_of(self, Memory::output));
  if (!crossbar.begin(run.waiter.rank)) [[unlikely]] {
    return s.ended();  // it may be the first call that fails: where the end came between calls
  }
  const bool apart = !known.first || all_keep_apart(prepared.plan, run.waiter);
  const bool done = apart && interpreted(prepared, run);
  crossbar.end(run.waiter.rank);
  if (!done) [[unlikely]] {
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // waits come next
    if (!crossbar.aborted()) {
      crossbar.abort(make_error(Code::aborted, [&] {
        return "the observer of rank " + std::to_string(run.waiter.rank) + " ended its call";
      }));
    }
    crossbar.wait_until_quiet(run.waiter.rank);
    return s.ended();
  }
  s.shared->recorder.end(run.waiter.rank, number);
  return {};
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
                     RoundObserver* other) noexcept {
  bool done = clock.begin(*prepared.timed, state.waiter);
  if (done && other == nullptr) {
    done = interpret(prepared.plan, state, clock);
  } else if (done) {
    Both both(clock, *other);
    done = interpret(prepared.plan, state, both);
  }
  return clock.finish(done);
}

}  // namespace

Status Member::call(const Call& call) {
  if (state_->clock != nullptr) [[unlikely]] {
    const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // clocks are observers
    return run(call, [clock = state_->clock](const Prepared& prepared, RankState& state) {
      return interpret_timed(prepared, state, *clock, nullptr);
    });
  }
  return run(call, [](const Prepared& prepared, RankState& state) {
    return interpret(prepared.plan, state);
  });
}

Status Member::call(const Call& call, RoundObserver& observer) {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // observers may sleep, and may not throw
  return run(call, [&](const Prepared& prepared, RankState& state) {
    if (state_->clock != nullptr)
      return interpret_timed(prepared, state, *state_->clock, &observer);
    return interpret(prepared.plan, state, observer);
  });
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

Result<std::string> Member::plan_of(const Call& call) {
  if (call.user_op != nullptr) {
    if (Status status = check_user_op(call); !status.ok()) return status;
  }
  if (!timeout_fits(call.options)) return misfit(call.options);
  state_->wait_as(call);
  auto found = state_->plan(call, false);
  if (!found.ok()) return found.status();
  const Prepared& prepared = *found->prepared;
  return std::string(prepared.algorithm) +
         (prepared.parameters.empty() ? "" : ", " + prepared.parameters) + ", " +
         std::string(name_of(prepared.plan.transport)) + " transport";
}

Status Member::give_up(Status reason) { return state_->refused(std::move(reason)); }

}  // namespace rankine
