// One rank's side of a communicator: its cache of plans, its ends of the mailboxes, its scratch.
#include <algorithm>
#include <array>
#include <mutex>
#include <new>

#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/communicator_state.h"
#include "engine/exec/interpret.h"

namespace rankine {
namespace {

constexpr std::size_t kLocalPlans = 64;  // a rank's direct-mapped cache

bool has_lists(const CallOptions& options) noexcept {
  return !options.dims.empty() || !options.skips.empty() || !options.levels.empty();
}

}  // namespace

struct Member::State {
  struct Local {
    Key key;
    PreparedPtr prepared;
    bool has_counts = false;  // which the key does not hold: only kept alive, never found here
  };

  Communicator* communicator;
  Communicator::Shared* shared;
  RankState run;
  std::array<Local, kLocalPlans> local;
  std::unique_ptr<Arena> scratch;
  std::size_t scratch_bytes = 0;
  const Algorithm* last_named = nullptr;  // the algorithm last asked for by name
  Shape last_shape{CallOptions()};        // the lists last asked for, and their number
  int last_shape_number = 0;
  std::uint32_t barrier_in = 0, barrier_out = 0;

  // The plan of a call that this rank has made before, or nullptr: then plan() is to be asked. All
  // calls but the first pass here, and a Result would cost as much as the look-up.
  const Prepared* known(const Call& call) const noexcept;
  // find(), without exceptions.
  Result<const Prepared*> plan(const Call& call);
  Result<const Prepared*> find(const Call& call);
  // The call's time runs from its first long wait, while planning or later.
  void wait_as(const Call& call) noexcept {
    run.waiter.deadline_ns = 0;
    run.waiter.timeout_ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(call.options.timeout).count();
  }
  // What the machine refuses ends the communicator; arguments that are wrong do not.
  Result<const Prepared*> refused(Status status);
  Status adopt(const Prepared& prepared);
  std::size_t table_bytes() const;
  // What a call asks for by name and by lists, which key_of() then takes from last_named and
  // last_shape.
  Status remember_algorithm(const Call& call);
  Status remember_shape(const CallOptions& options);
  bool is_last_named(const Call& call) const noexcept {
    return last_named != nullptr && last_named->collective == call.collective &&
           last_named->name == call.options.algorithm;
  }
  inline Key key_of(const Call& call) const noexcept;
};

Member::Member(Communicator& communicator, Rank rank) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.communicator = &communicator;
  s.shared = communicator.shared_.get();
  const auto n = static_cast<std::size_t>(s.shared->ranks);
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
  s.shared->member_bytes.fetch_add(s.table_bytes(), std::memory_order_relaxed);  // a count
}

Member::~Member() {
  // In a forked child nobody is there to be told, and a lock may be held for ever.
  if (state_->shared->forked()) return;
  state_->communicator->leave(state_->run.waiter.rank);
  state_->shared->member_bytes.fetch_sub(state_->table_bytes(), std::memory_order_relaxed);
  const std::lock_guard lock(state_->shared->mutex);
  state_->shared->scratch[static_cast<std::size_t>(state_->run.waiter.rank)] = {};
}

// Without `operands`, which grow with the plans and are small.
std::size_t Member::State::table_bytes() const {
  return sizeof(State) + run.outbox.capacity() * sizeof(Outbox) +
         run.inbox.capacity() * sizeof(Inbox) + run.memory.capacity() * sizeof(std::byte*) +
         run.boards.capacity() * sizeof(Board);
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

Status Member::State::remember_algorithm(const Call& call) {
  const std::string_view name = call.options.algorithm;
  if (name.empty() || is_last_named(call)) return {};
  const Algorithm* found = find_algorithm(call.collective, name);
  if (found == nullptr) {
    Status status = check_call(call, shared->ranks);  // a collective that is none has no name
    if (!status.ok()) return status;
    return invalid_argument("algorithm is '" + std::string(name) + "'; " +
                            std::string(name_of(call.collective)) + " has " +
                            algorithm_names(call.collective));
  }
  last_named = found;
  return {};
}

Status Member::State::remember_shape(const CallOptions& options) {
  if (!has_lists(options) || last_shape.is(options)) return {};
  Shape shape(options);
  const auto number = shared->shape_of(shape, run.waiter);
  if (!number.ok()) return number.status();
  last_shape = std::move(shape);
  last_shape_number = *number;
  return {};
}

// Our ends of the mailboxes, room for operands, and scratch. Only when a plan is first met.
Status Member::State::adopt(const Prepared& prepared) {
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const auto n = static_cast<std::size_t>(shared->ranks);
  const RankPlan& plan = prepared.plan.rank[self];
  const auto operands = static_cast<std::size_t>(prepared.plan.most_operands);
  if (run.operands.size() < operands) run.operands.resize(operands);
  std::unique_lock<std::mutex> lock;
  if (Status locked = shared->lock_for_call(lock, run.waiter); !locked.ok()) return locked;
  for (const Traffic& traffic : plan.traffic) {
    run.outbox[traffic.peer].mailbox = shared->mailboxes[self * n + traffic.peer];
    run.inbox[traffic.peer].mailbox = shared->mailboxes[traffic.peer * n + self];
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
    scratch = std::move(larger);
    scratch_bytes = bytes;
    run.memory_of(self, Memory::scratch) = static_cast<std::byte*>(memory);
    shared->scratch[self] = {
        {memory, bytes}, scratch->binding(), scratch->huge_pages(), scratch->locking()};
  }
  return {};
}

Key Member::State::key_of(const Call& call) const noexcept {
  Key key{.count = call.count,
          .algorithm = call.options.algorithm.empty() ? nullptr : last_named,
          .root = call.root != 0 && has_root(call.collective) ? call.root : 0,
          .peer = call.collective == Collective::send_recv ? call.peer : 0,
          .segments = call.options.segments,
          .group = call.options.group,
          .collective = call.collective,
          .type = call.type,
          .op = call.op,
          .in_place = call.in == call.out && call.in != nullptr &&
                      (call.collective == Collective::all_reduce ||
                       call.collective == Collective::all_to_all),
          .shape = has_lists(call.options) ? last_shape_number : 0};
  if (call.options.transport) key.transport = static_cast<std::int8_t>(*call.options.transport);
  return key;
}

const Prepared* Member::State::known(const Call& call) const noexcept {
  if (!call.counts.empty() || (!call.options.algorithm.empty() && !is_last_named(call)) ||
      (has_lists(call.options) && !last_shape.is(call.options))) {
    return nullptr;
  }
  const Key key = key_of(call);
  const Local& slot = local[key.hash() % kLocalPlans];
  const bool is_it = slot.prepared != nullptr && slot.key == key && !slot.has_counts;
  return is_it ? slot.prepared.get() : nullptr;
}

Result<const Prepared*> Member::State::find(const Call& call) {
  if (Status status = remember_algorithm(call); !status.ok()) return status;
  if (Status status = remember_shape(call.options); !status.ok()) return refused(std::move(status));
  if (const Prepared* prepared = known(call)) return prepared;  // another name, met before
  const Key key = key_of(call);
  Local& slot = local[key.hash() % kLocalPlans];
  auto prepared = shared->prepare(key, call, run.waiter);
  if (!prepared.ok()) return refused(prepared.status());
  Status status = adopt(**prepared);
  if (!status.ok()) return refused(std::move(status));
  const Prepared* found = prepared->get();
  if (shared->plan_bytes.load(std::memory_order_relaxed) > 2 * kSharedPlanBytes) {
    local.fill({});  // ranks hold more than the communicator does: let go of what is old
  }
  slot = {key, std::move(*prepared), !call.counts.empty()};
  return found;
}

Result<const Prepared*> Member::State::refused(Status status) {
  if (goes_on(status.code())) return status;
  // Else peers would wait for this rank in vain. Where another reason came first, that is the one.
  communicator->abort(std::move(status));
  return shared->crossbar.reason();
}

Result<const Prepared*> Member::State::plan(const Call& call) {
  if (shared->forked()) [[unlikely]]
    return forked_status();
  try {
    return find(call);
  } catch (const std::bad_alloc&) {
    return refused(make_error(Code::out_of_memory, [&] {
      return "rank " + std::to_string(run.waiter.rank) + " has no memory for the plan of " +
             std::string(name_of(call.collective));
    }));
  }
}

template <class Run>
Status Member::run(const Call& call, Run interpreted) {
  State& s = *state_;
  Crossbar& crossbar = s.shared->crossbar;
  const auto self = static_cast<std::size_t>(s.run.waiter.rank);
  if (call.options.timeout.count() < 0) [[unlikely]] {
    return make_error(Code::invalid_argument, [&] {
      return "timeout is " + std::to_string(call.options.timeout.count()) +
             " ms; allowed are 0 (the communicator's) and more";
    });
  }
  s.wait_as(call);
  const Prepared* known = s.shared->forked() ? nullptr : s.known(call);
  if (known == nullptr) [[unlikely]] {
    auto found = s.plan(call);
    if (!found.ok()) return found.status();
    known = *found;
  }
  const Prepared& prepared = *known;
  const BufferRule& rule = prepared.rules[self];
  if (!buffers_fit(rule, call.in, call.out)) [[unlikely]]
    return misfit(rule, call.in, call.out);

  RankState& run = s.run;
  ++run.waiter.call;
  run.waiter.fingerprint =
      with_call(prepared.fingerprint, static_cast<std::uint32_t>(run.waiter.call)).bits;
  crossbar.record(run.waiter.rank)
      .announce(run.waiter.call, run.waiter.fingerprint, call.count, prepared.algorithm);
  const std::uint64_t number = run.waiter.call - s.shared->first_count;
  s.shared->recorder.begin(run.waiter.rank, number, run.waiter.fingerprint);

  run.memory_of(self, Memory::input) = static_cast<std::byte*>(const_cast<void*>(call.in));
  run.memory_of(self, Memory::output) = static_cast<std::byte*>(call.out);
  if (!crossbar.begin(run.waiter.rank)) [[unlikely]]
    return crossbar.reason();
  const bool done = interpreted(prepared.plan, run);
  crossbar.end(run.waiter.rank);
  if (!done) [[unlikely]] {
    if (!crossbar.aborted()) {
      crossbar.abort(make_error(Code::aborted, [&] {
        return "the observer of rank " + std::to_string(run.waiter.rank) + " ended its call";
      }));
    }
    crossbar.wait_until_quiet(run.waiter.rank);
    s.communicator->leave_flight_record();
    return crossbar.reason();
  }
  s.shared->recorder.end(run.waiter.rank, number);
  return {};
}

Status Member::call(const Call& call) {
  return run(call, [](const Plan& plan, RankState& state) { return interpret(plan, state); });
}

Status Member::call(const Call& call, RoundObserver& observer) {
  return run(call,
             [&](const Plan& plan, RankState& state) { return interpret(plan, state, observer); });
}

Result<std::string> Member::plan_of(const Call& call) {
  state_->wait_as(call);
  auto found = state_->plan(call);
  if (!found.ok()) return found.status();
  return std::string((*found)->algorithm) + ", " + std::string(name_of((*found)->plan.transport)) +
         " transport";
}

}  // namespace rankine
