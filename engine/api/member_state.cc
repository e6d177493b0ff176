#include "engine/api/member_state.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "engine/api/check.h"
#include "engine/api/threads.h"
#include "engine/api/typed_calls.h"
#include "engine/base/memory.h"
#include "engine/run/interpret.h"
#include "engine/run/kernels/reduce.h"
#include "numa/placement.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());

std::string name_of_list(bool out) { return out ? "displacements.out" : "displacements.in"; }

std::span<const std::size_t> list_of(const Call& call, bool out) {
  return out ? call.displacements->out : call.displacements->in;
}

// Checks all of the displacements except addresses.
Status check_lists(const Call& call, int ranks) {
  if (call.collective != Collective::all_to_all) {
    return invalid_argument("displacements are given to " + std::string(name_of(call.collective)) +
                            "; allowed is all_to_all");
  }
  Call bare = call;
  bare.displacements = nullptr;
  if (Status status = check_call(bare, ranks); !status.ok()) return status;
  for (const bool out : {false, true}) {
    const std::size_t size = list_of(call, out).size();
    if (size == 0 || size == static_cast<std::size_t>(ranks)) continue;
    return invalid_argument(name_of_list(out) + " has " + std::to_string(size) +
                            " entries; allowed are none or " + std::to_string(ranks));
  }
  return {};
}

}  // namespace

DisplacedCall::Side DisplacedCall::side_of(const Call& call, Rank rank, int ranks, bool out) {
  const std::span<const std::size_t> list = list_of(call, out);
  Side side;
  side.displaced = !list.empty();
  std::size_t next = 0;
  for (Rank other = 0; other < ranks; ++other) {
    const Rank from = out ? other : rank, to = out ? rank : other;
    const auto pair = static_cast<std::size_t>(from * ranks + to);
    const std::size_t bytes =
        (call.counts.empty() ? call.count : call.counts[pair]) * element_bytes(call);
    side.blocks.push_back({list.empty() ? next : list[static_cast<std::size_t>(other)], bytes});
    next += bytes;
  }
  return side;
}

Status DisplacedCall::check(const Side& side, bool out) {
  if (!side.displaced) return {};
  std::vector<std::size_t> order;  // indices of blocks with bytes
  for (std::size_t i = 0; i < side.blocks.size(); ++i) {
    const Block& block = side.blocks[i];
    if (block.bytes == 0) continue;
    if (block.at > kMost - block.bytes) {
      return invalid_argument(name_of_list(out) + "[" + std::to_string(i) + "] is " +
                              std::to_string(block.at) + "; allowed are 0 to " +
                              std::to_string(kMost - block.bytes));
    }
    order.push_back(i);
  }
  if (!out) return {};  // several ranks may get the same bytes
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return side.blocks[a].at < side.blocks[b].at; });
  for (std::size_t k = 1; k < order.size(); ++k) {
    const Block &before = side.blocks[order[k - 1]], &after = side.blocks[order[k]];
    if (before.at + before.bytes <= after.at) continue;
    return invalid_argument(name_of_list(out) + "[" + std::to_string(order[k]) + "] is " +
                            std::to_string(after.at) + ", but " + std::to_string(before.bytes) +
                            " bytes from rank " + std::to_string(order[k - 1]) + " lie from " +
                            std::to_string(before.at) + " on; received blocks may not overlap");
  }
  return {};
}

Result<Call> DisplacedCall::plain(const Call& call, Rank rank, int ranks) {
  if (Status status = check_lists(call, ranks); !status.ok()) return status;
  sent_ = side_of(call, rank, ranks, false);
  received_ = side_of(call, rank, ranks, true);
  in_ = static_cast<const std::byte*>(call.in);
  out_ = static_cast<std::byte*>(call.out);
  Call plain = call;
  plain.displacements = nullptr;
  plain.options.shared_payloads = false;  // packed blocks lie in private memory
  std::size_t end = 0;
  for (Side* side : {&sent_, &received_}) {
    const bool out = side == &received_;
    if (Status status = check(*side, out); !status.ok()) return status;
    std::size_t bytes = 0;
    for (const Block& block : side->blocks) bytes += block.bytes;
    if (bytes > 0 && (out ? call.out : call.in) == nullptr) {
      return invalid_argument(std::string(out ? "out" : "in") + " is null; " +
                              std::to_string(bytes) + " bytes are needed");
    }
    side->begin = end;
    // At least one line per side, so that the two sides never look like one buffer.
    if (side->displaced) end += (bytes + kCacheLine) / kCacheLine * kCacheLine;
  }
  if (memory_.size() < end) memory_.resize(end);
  if (sent_.displaced) plain.in = memory_.data() + sent_.begin;
  if (received_.displaced) plain.out = memory_.data() + received_.begin;
  return plain;
}

void DisplacedCall::pack_blocks() noexcept {
  if (!sent_.displaced) return;
  std::byte* to = memory_.data() + sent_.begin;
  for (const Block& block : sent_.blocks) {
    if (block.bytes > 0) std::memcpy(to, in_ + block.at, block.bytes);
    to += block.bytes;
  }
}

void DisplacedCall::unpack_blocks() const noexcept {
  if (!received_.displaced) return;
  const std::byte* from = memory_.data() + received_.begin;
  for (const Block& block : received_.blocks) {
    if (block.bytes > 0) std::memcpy(out_ + block.at, from, block.bytes);
    from += block.bytes;
  }
}

Status check_reach(const Call& call, Rank rank, int ranks, std::size_t in, std::size_t out) {
  if (Status status = check_lists(call, ranks); !status.ok()) return status;
  for (const bool is_out : {false, true}) {
    const auto side = DisplacedCall::side_of(call, rank, ranks, is_out);
    if (Status status = DisplacedCall::check(side, is_out); !status.ok()) return status;
    const std::size_t size = is_out ? out : in;
    for (std::size_t i = 0; i < side.blocks.size(); ++i) {
      const auto& block = side.blocks[i];
      if (block.bytes == 0 || block.at + block.bytes <= size) continue;
      return invalid_argument(std::string(is_out ? "out" : "in") + " has " + std::to_string(size) +
                              " bytes; the block " + (is_out ? "from" : "to") + " rank " +
                              std::to_string(i) + " ends at byte " +
                              std::to_string(block.at + block.bytes));
    }
  }
  return {};
}

MemberState::MemberState(std::shared_ptr<CommunicatorShared> shared_, Rank rank,
                         std::shared_ptr<ProgressEngine> engine_)
    : owned(std::move(shared_)),
      shared(owned.get()),
      lines(&shared->rank_control.lines(rank)),
      track(&shared->recorder.track_of(rank)),
      progress_engine(std::move(engine_)),
      handle(owned) {
  const auto n = static_cast<std::size_t>(shared->ranks);
  if (const auto& processes = shared->processes;
      processes != nullptr && processes->have_payloads()) {
    lent = &processes->payloads(rank);
  }
  if (shared->clock != nullptr) clock = &shared->clock->clock().of(rank);
  run.waiter = {.rank_control = &shared->rank_control, .rank = rank, .call = shared->first_count};
  if (track->timer.figures != nullptr) run.waiter.timer = &track->timer;
  made_by(thread_id());
  run.progress_base = shared->first_count;
  run.outbox.resize(n);
  run.inbox.resize(n);
  run.memory.resize(n * 4);
  own_memory = &run.memory_of(static_cast<std::size_t>(rank), Memory::input);
  run.boards.resize(n);
  run.posts = shared->first_count;
  is_to_be_pinned = shared->places != nullptr;
}

// Without `operands`, which grow with the plans and are small.
std::size_t MemberState::table_bytes() const {
  return sizeof(MemberState) + taken_bytes(run.outbox) + taken_bytes(run.inbox) +
         taken_bytes(run.memory) + taken_bytes(run.boards) + plans.table_bytes() +
         sizeof(Payloads) + products.capacity() + displaced.bytes() + run.read_room.capacity() +
         (run.trials != nullptr ? sizeof(FormTrials) : 0);
}

// Takes from a new plan the ends of its mailboxes, room for operands, and scratch.
Status MemberState::adopt(const CachedPlan& cached) {
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const auto n = static_cast<std::size_t>(shared->ranks);
  const RankPlan& plan = cached.plan.rank[self];
  const auto operands = static_cast<std::size_t>(cached.plan.most_operands);
  if (run.operands.size() < operands) run.operands.resize(operands);
  if (cached.plan.reaches && run.read_room.empty()) run.read_room.resize(kReadRoom);
  if (runner != nullptr) runner->make_room(cached.plan, run);
  // A plan's mailboxes exist before the plan can be found, and never change: no lock.
  for (const Traffic& traffic : plan.traffic) {
    if (shared->are_far(static_cast<Rank>(self), traffic.peer)) continue;
    // The other direction may be under construction, for another plan.
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
  if (uses_boards(cached.plan)) run.boards = shared->boards;
  if (!cached.plan.further_forms.empty() && run.trials == nullptr)
    run.trials = std::make_unique<FormTrials>();
  std::size_t least = plan.scratch_bytes;
  if (cached.plan.runs_ahead) {
    for (Readers& readers : run.readers) readers.all.reserve(n);
    run.scratch.ring_bytes = ring_bytes(shared->ranks);
    least = std::max(least, run.scratch.ring_bytes);
  }
  if (least > scratch_bytes) {
    if (shared->processes != nullptr) return share_scratch(least);
    // No other rank reads this rank's scratch between calls, so it may move.
    const std::size_t bytes = std::max(least, 2 * scratch_bytes);
    ArenaOptions options = shared->arena_options[self];
    options.chunk_bytes = 4096;
    auto larger = std::make_unique<Arena>(options);
    void* memory = larger->allocate(bytes);
    if (memory == nullptr) {
      return {Code::out_of_memory, "no memory for scratch of " +
                                       shared->rank_control.name(run.waiter.rank) + ": " +
                                       std::to_string(bytes) + " bytes"};
    }
    std::unique_lock<std::mutex> lock;  // for threads that ask about this memory
    if (Status locked = shared->lock_for_call(lock, run.waiter); !locked.ok()) return locked;
    scratch = std::move(larger);
    scratch_bytes = bytes;
    run.scratch.begin = run.memory_of(self, Memory::scratch) = static_cast<std::byte*>(memory);
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
  run.scratch.begin = run.memory_of(self, Memory::scratch) = *memory;
  const std::lock_guard lock(shared->mutex);
  shared->scratch[self].range = {*memory, bytes};
  return {};
}

Result<MemberState::Found> MemberState::find_or_make_plan(const Call& call, bool calls) {
  const PlanKey key(call);
  RankPlans::Slot* slot = plans.find(key);
  if (slot == nullptr) {
    repeated = {};  // its plan may go
    auto cached = shared->prepare(key, run.waiter);
    if (!cached.ok()) return cached.status();
    if (Status status = adopt(**cached); !status.ok()) return status;
    if (shared->plan_bytes.load(std::memory_order_relaxed) > 2 * PlanTable::kMostBytes) {
      plans.clear();  // ranks hold more than the communicator does: drop old plans
    }
    slot = &plans.insert(std::move(*cached));
    count_tables();
  }
  const Found found{&slot->cached, !slot->called};
  slot->called |= calls;
  return found;
}

Status MemberState::refused(Status status) {
  if (goes_on(status.code())) return status;
  // Otherwise peers would wait for this rank in vain. The first reason counts.
  shared->end_with(std::move(status));
  return ended();
}

// Returns the error of a communicator that has ended, after writing the flight record.
Status MemberState::ended() {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the code below writes files
  shared->leave_flight_record();
  return shared->rank_control.reason();
}

void MemberState::made_by(int maker) {
  shared->rank_control.wake_futex(run.waiter.rank).made_by.store(maker, std::memory_order_relaxed);
}

void MemberState::made_as(const MemberState& other) {
  made_by(other.shared->rank_control.wake_futex(other.run.waiter.rank)
              .made_by.load(std::memory_order_relaxed));
}

void MemberState::end_if_interrupted() {
  if (!is_interrupted()) return;
  shared->end_with(make_error(Code::aborted, [&] {
    return interrupted(shared->rank_control.describe_waits(run.waiter.rank));
  }));
}

Enforcement MemberState::pin_thread() {
  if (shared->forked() || shared->places == nullptr) return {};
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // it may print a warning
  is_to_be_pinned = false;
  const RankPlace& place =
      shared->places->placement.ranks[static_cast<std::size_t>(run.waiter.rank)];
  Enforcement pin = pin_calling_thread(shared->places->topology, place);
  if (pin.enforced()) cpu.store(place.cpu, std::memory_order_relaxed);
  return pin;
}

void MemberState::count_thread() {
  // Relaxed: see WakeFutex.
  auto& first = shared->rank_control.wake_futex(run.waiter.rank).first_caller;
  if (first.load(std::memory_order_relaxed) == 0) {
    first.store(thread_id(), std::memory_order_relaxed);
  }
  if (RankThreads::add(thread_id())) thread = thread_id();
}

Result<MemberState::Found> MemberState::plan_call(const Call& call, bool calls) {
  auto found = plan_query(call, calls);
  if (!found.ok() && !shared->forked()) return refused(found.status());
  return found;
}

Result<MemberState::Found> MemberState::plan_query(const Call& call, bool calls) {
  if (shared->forked()) [[unlikely]]
    return forked_status();
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // it sleeps while another rank plans
  try {
    if (thread == 0) count_thread();
    begin_long_wait();
    return find_or_make_plan(call, calls);
  } catch (const std::bad_alloc&) {
    return make_error(Code::out_of_memory, [&] {
      return shared->rank_control.name(run.waiter.rank) + " has no memory for the plan of " +
             std::string(name_of(call.collective));
    });
  }
}

Status MemberState::misfit_of(const CachedPlan& cached, const void* in,
                              const void* out) const noexcept {
  const BufferRule& rule = cached.rules[static_cast<std::size_t>(run.waiter.rank)];
  if (buffers_fit(rule, in, out)) {
    const bool of_in = !lent->holds(in, rule.input_bytes);
    const Buffer buffer = of_in ? buffers_of(rule, in, out).in : buffers_of(rule, in, out).out;
    return make_error(Code::invalid_argument, [&] {
      return std::string(of_in ? "in" : "out") + " is " + to_string(buffer) +
             "; allowed with shared_payloads is memory of this member's allocate() only";
    });
  }
  return misfit(rule, in, out);
}

Status MemberState::broken() noexcept {
  RankControl& rank_control = shared->rank_control;
  rank_control.end(run.waiter.rank);
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the code below waits
  if (!rank_control.aborted()) {
    rank_control.abort(make_error(Code::aborted, [&] {
      return "the observer of " + shared->rank_control.name(run.waiter.rank) + " ended its call";
    }));
  }
  begin_long_wait();
  rank_control.wait_until_quiet(run.waiter.rank, lends);
  return ended();
}

Call without_factor(const Call& call) {
  Call plain = call;
  plain.factor = nullptr;
  plain.options.shared_payloads = false;  // products may lie in private memory
  if (call.collective == Collective::all_reduce) plain.in = call.out;
  return plain;
}

Result<const void*> MemberState::multiply(const Call& call, const CachedPlan& cached) {
  if (!fits(cached, call.in, call.out)) return misfit_of(cached, call.in, call.out);
  const auto self = static_cast<std::size_t>(run.waiter.rank);
  const std::size_t bytes = cached.rules[self].input_bytes;
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
        return shared->rank_control.name(run.waiter.rank) + " has no memory for " +
               std::to_string(bytes) + " bytes of products";
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
  const auto found = plan_call(plain, false);
  if (!found.ok()) return found.status();
  const auto products_in = multiply(call, **found->held);
  if (!products_in.ok()) return products_in.status();
  plain.in = *products_in;
  return plain;
}

namespace {

// Observes a call with both: the clock first, then the caller's observer.
struct Both : RoundObserver {
  Both(RoundObserver& a, RoundObserver& b) : first(a), second(b) {}
  bool before_round(int k) noexcept override {
    return first.before_round(k) && second.before_round(k);
  }
  RoundObserver &first, &second;
};

// Runs a call on a modelled network: the clock starts the call's schedule and observes the call;
// `other`, if not null, observes it too.
bool interpret_timed(const CachedPlan& cached, RankState& state, NetworkClock::RankClock& clock,
                     std::optional<Ticks> start, RoundObserver* other) noexcept {
  bool done = clock.begin(*cached.timed, state.waiter, start);
  if (done && other == nullptr) {
    done = interpret(cached.plan, state, clock);
  } else if (done) {
    Both both(clock, *other);
    done = interpret(cached.plan, state, both);
  }
  done = clock.finish(done);
  if (!start) clock.go_to(clock.ended());
  return done;
}

}  // namespace

bool interpret_call(const CachedPlan& cached, RankState& state, NetworkClock::RankClock* clock,
                    RoundObserver* observer) noexcept {
  if (clock != nullptr) return interpret_timed(cached, state, *clock, std::nullopt, observer);
  if (observer != nullptr) return interpret(cached.plan, state, *observer);
  return interpret(cached.plan, state);
}

bool interpret_at(Ticks start, const CachedPlan& cached, RankState& state,
                  NetworkClock::RankClock& clock) noexcept {
  return interpret_timed(cached, state, clock, start, nullptr);
}

}  // namespace rankine
