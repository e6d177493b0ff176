// walk() walks over a rank's ops and runs each: the inside of interpret.h, for its source files
// only. Each source file has its own walk and its own copy (so everything here is unnamed): the
// compiler inlines code used by one walk and calls code used by several.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/exchange.h"
#include "engine/run/interpret.h"
#include "engine/run/sharing.h"
#include "engine/run/wait.h"

namespace rankine {
namespace {

// Offers this rank's buffers to the others.
void enter(RankState& state) {
  RankControl& rank_control = *state.waiter.rank_control;
  const auto self = static_cast<std::size_t>(state.waiter.rank);
  Entry& entry = rank_control.entry(state.waiter.rank, state.waiter.call);
  entry.base.store(state.progress_base, std::memory_order_relaxed);
  entry.fingerprint.store(state.waiter.fingerprint, std::memory_order_relaxed);
  will_write(&entry.scratch, sizeof(entry.scratch));
  entry.scratch = state.memory_of(self, Memory::scratch);
  entry.input.store(state.memory_of(self, Memory::input), std::memory_order_relaxed);
  entry.output.store(state.memory_of(self, Memory::output), std::memory_order_relaxed);
  publish(rank_control, state.waiter.rank, entry.call,
          static_cast<std::uint32_t>(state.waiter.call));
}

// Counters are compared modulo 2^32 (see reached()), so no counter may run 2^31 away from another,
// even if no rank waits for it or its rank waits for none. Whenever its base enters a new stretch,
// a rank publishes that and waits until all ranks have reached the stretch before. Every call
// advances the base, so call numbers keep together as well. False: aborted.
bool bound_counter_skew(const Plan& plan, RankState& state, std::uint32_t former_base) noexcept {
  constexpr std::uint32_t kStretch = kCounterStretch;
  if ((former_base ^ state.progress_base) < kStretch) [[likely]]
    return true;
  RankControl& rank_control = *state.waiter.rank_control;
  const Rank self = state.waiter.rank;
  // Everything before the next call's base is done, so this is always true.
  publish(rank_control, self, rank_control.progress(self).value, state.progress_base);
  for (const std::uint64_t call : {state.waiter.call - 1, state.waiter.call}) {
    publish(rank_control, self, rank_control.entry(self, call).call,
            static_cast<std::uint32_t>(call));
  }
  const std::uint32_t stretch = state.progress_base & ~(kStretch - 1);
  for (Rank q = 0; q < plan.ranks; ++q) {
    if (q == self) continue;
    if (!wait_until(state.waiter, rank_control.progress(q).value, stretch - kStretch, q,
                    plan.rounds + 1)) {
      return false;
    }
  }
  return true;
}

// The buffers of a rank, at the addresses that this rank knows.
RankBuffers known_buffers(const Plan& plan, RankState& state, std::size_t rank) {
  const RankPlan& sizes = plan.rank[rank];
  return {{state.memory_of(rank, Memory::input), sizes.input_bytes},
          {state.memory_of(rank, Memory::output), sizes.output_bytes}};
}

bool wait_entry(const Op& op, const Plan& plan, RankState& state) noexcept {
  Entry& entry = state.waiter.rank_control->entry(op.peer, state.waiter.call);
  const auto call = static_cast<std::uint32_t>(state.waiter.call);
  if (!wait_for_call(state.waiter, entry.call, call, op.peer, op.round,
                     [&entry] { return entry.fingerprint.load(std::memory_order_relaxed); })) {
    return false;
  }
  if (entry.base.load(std::memory_order_relaxed) != state.progress_base) [[unlikely]] {
    report_call_history_mismatch(*state.waiter.rank_control, state.waiter.rank, op.peer);
    return false;
  }
  will_read(&entry.scratch, sizeof(entry.scratch));
  state.memory_of(op.peer, Memory::scratch) = entry.scratch;
  state.memory_of(op.peer, Memory::input) = entry.input.load(std::memory_order_relaxed);
  state.memory_of(op.peer, Memory::output) = entry.output.load(std::memory_order_relaxed);
  const auto self = static_cast<std::size_t>(state.waiter.rank);
  const RankBuffers ours = known_buffers(plan, state, self);
  const RankBuffers peers = known_buffers(plan, state, op.peer);
  if (share(ours, peers)) [[unlikely]] {
    report_sharing(*state.waiter.rank_control, state.waiter.rank, ours, op.peer, peers);
    return false;
  }
  return true;
}

bool wait_message(const Op& op, const Plan& plan, RankState& state) noexcept {
  Inbox& inbox = state.inbox[op.peer];
  const PostHeader* slot = inbox.wait(state.waiter, op.peer, inbox.base + op.value, op.round);
  if (slot == nullptr) return false;
  // All messages of a call carry one mark, so the first message suffices.
  if (op.value == 0 && state.waiter.buffer_hashes.suspect(slot->buffer_hash)) [[unlikely]] {
    return check_no_alias(plan, state.waiter, op.peer);
  }
  return true;
}

[[gnu::always_inline]] inline const std::byte* address(const Operand& operand, RankState& state,
                                                       std::size_t bytes) noexcept {
  if (operand.memory < Memory::message) {
    return state.memory_of(operand.rank, operand.memory) + operand.offset;
  }
  if (operand.memory == Memory::board) {
    return state.boards[operand.rank].at(state.posts - 1, operand.offset);
  }
  const Inbox& inbox = state.inbox[operand.rank];
  PostHeader& slot = inbox.mailbox.slot(inbox.base + operand.message);
  if (slot.bytes_or_history == bytes) return payload(slot);
  const std::byte* elsewhere;
  const std::byte* there = payload(slot);
  will_read(there, sizeof(elsewhere));
  std::memcpy(&elsewhere, there, sizeof(elsewhere));
  return elsewhere;
}

// Adds up one part at a time and copies it to the other destinations while it is in our cache.
void fold_and_copy(const Plan& plan, void** destinations, std::size_t copies, void** sources,
                   std::size_t operands, std::size_t bytes, int divisor) noexcept {
  const std::size_t most = plan.costs.sum_part_bytes / plan.element_bytes * plan.element_bytes;
  const auto skip = [](void** from, std::size_t n, std::size_t by) {
    for (std::size_t i = 0; i < n; ++i) from[i] = static_cast<std::byte*>(from[i]) + by;
  };
  while (bytes > 0) {
    // Avoid a last part too short to claim its lines.
    const std::size_t part = bytes < 2 * most ? bytes : most;
    plan.fold(destinations[0], sources, static_cast<int>(operands), part / plan.element_bytes,
              divisor);
    for (std::size_t i = 1; i <= copies; ++i) {
      copy_bytes_claiming(destinations[i], destinations[0], part, plan.costs);
    }
    bytes -= part;
    skip(sources, operands, part);
    skip(destinations, 1 + copies, part);
  }
}

// Copies one part at a time to all destinations, unless it is there.
void copy_in_parts(const Plan& plan, void** destinations, std::size_t copies, const void* source,
                   std::size_t bytes) noexcept {
  const std::size_t most = source == destinations[0] ? bytes : plan.costs.sum_part_bytes;
  for (std::size_t at = 0; at < bytes;) {
    const std::size_t part = bytes - at < 2 * most ? bytes - at : most;
    const std::byte* const from = static_cast<const std::byte*>(source) + at;
    const auto to = [&](std::size_t i) { return static_cast<std::byte*>(destinations[i]) + at; };
    copy_bytes(to(0), from, part, plan.costs);
    for (std::size_t i = 1; i <= copies; ++i) copy_bytes_claiming(to(i), from, part, plan.costs);
    at += part;
  }
}

// Types that can be folded have element sizes that are powers of two.
std::size_t count_of(const Op& op, const Plan& plan) noexcept {
  return op.bytes >> __builtin_ctzll(plan.element_bytes);
}
int divisor_of(const Op& op, const Plan& plan) noexcept {
  return (op.flags & kDivides) != 0 ? plan.divisor : 0;
}

// Stores the addresses of an op's sources in state.operands, and its destinations behind them.
[[gnu::always_inline]] inline void find_operands(const Op& op, const Operand* operands,
                                                 RankState& state) noexcept {
  const auto self = static_cast<std::size_t>(state.waiter.rank);
  void** sources = state.operands.data();
  for (std::size_t i = 0; i < op.operands; ++i) {
    sources[i] = const_cast<std::byte*>(address(operands[i], state, op.bytes));
    will_read(sources[i], op.bytes);
  }
  void** destinations = sources + op.operands;
  destinations[0] = state.memory_of(self, op.memory) + op.offset;
  for (std::size_t i = 0; i < op.copies; ++i) {
    const Operand& to = operands[op.operands + i];
    destinations[i + 1] = state.memory_of(to.rank, to.memory) + to.offset;
    will_write(destinations[i + 1], op.bytes);
  }
}

// Moves an op's data, after find_operands(), unless the op is a copy or fold to one place.
// `streams`: store past the caches. Not inlined, so that small calls carry none of it.
[[gnu::noinline]] void move_otherwise(const Op& op, const Plan& plan, RankState& state,
                                      bool streams) noexcept {
  void** const sources = state.operands.data();
  void** const destinations = sources + op.operands;
  const bool claims = (op.flags & kClaims) != 0;
  if (op.operands == 1 && claims && !streams) {
    // In parts, so that each destination gets the source from the cache.
    copy_in_parts(plan, destinations, op.copies, sources[0], op.bytes);
  } else if (op.operands == 1) {
    const std::size_t first = sources[0] == destinations[0] ? 1 : 0;
    copy_bytes_spread(destinations + first, static_cast<int>(1 + op.copies - first), sources[0],
                      op.bytes, streams);
  } else if (claims && !streams) {
    fold_and_copy(plan, destinations, op.copies, sources, op.operands, op.bytes,
                  divisor_of(op, plan));
  } else {
    const int skipped = op.memory == Memory::message ? 1 : 0;
    plan.spread(destinations + skipped, 1 + op.copies - skipped, sources, op.operands,
                count_of(op, plan), divisor_of(op, plan), streams);
  }
}

// Finds an op's addresses and moves its data.
[[gnu::always_inline]] inline void move_data(const Op& op, const Operand* operands,
                                             const Plan& plan, RankState& state,
                                             bool streams) noexcept {
  find_operands(op, operands, state);
  void** sources = state.operands.data();
  void* destination = sources[op.operands];
  if (destination != nullptr && (op.operands > 1 || sources[0] != destination))
    will_write(destination, op.bytes);
  if (op.copies > 0 || streams) {
    move_otherwise(op, plan, state, streams);
  } else if (op.operands > 1) {
    plan.fold(destination, sources, op.operands, count_of(op, plan), divisor_of(op, plan));
  } else if (sources[0] != destination) {
    copy_bytes(destination, sources[0], op.bytes, plan.costs);
  }
}

// True if a call that begins with OpCode::wait_readers waits for these.
bool awaits(const Op& op, const RankState& state, const Readers& readers) noexcept {
  return op.value == 1 || readers.call + 1 != state.waiter.call;
}

// Not inlined: calls that stage nothing pay nothing for it.
[[gnu::noinline]] bool wait_readers(const Op& op, const Plan& plan, RankState& state) noexcept {
  state.waiter.behind = 1;
  for (Readers& readers : state.readers) {
    if (!awaits(op, state, readers)) continue;
    for (const WaitTarget& reader : readers.all) {
      if (!wait_until(state.waiter, *reader.word, reader.value, reader.owner, op.round))
        return false;
    }
    readers.all.clear();
  }
  state.waiter.behind = 0;
  const auto self = static_cast<std::size_t>(state.waiter.rank);
  state.memory_of(self, Memory::scratch) =
      state.scratch.place(op.value == 1, plan.rank[self].scratch_bytes);
  if (plan.stages) {
    state.staging.begin_call(state.waiter.rank, plan.ranks, [&](Rank r) -> StagingTimes& {
      return state.waiter.rank_control->staging(r);
    });
  }
  return true;
}

void leave_reader(const Op& op, RankState& state) noexcept {
  Readers& readers = state.readers[state.waiter.call & 1];
  readers.call = state.waiter.call;
  readers.all.push_back({&state.waiter.rank_control->progress(op.peer).value,
                         state.progress_base + op.value, op.peer});
}

// Moves data of an op that stages, or that reads staged data. Not inlined: other ops pay nothing.
[[gnu::noinline]] void move_staged(const Op& op, const Operand* operands, const Plan& plan,
                                   RankState& state) noexcept {
  StagingStores& stores = state.staging;
  const std::int64_t begin = stores.is_timed() ? now_ns() : 0;
  move_data(op, operands, plan, state, (op.flags & kStages) != 0 && stores.past_caches());
  if (!stores.is_timed()) return;
  wait_for_stores();
  stores.add((op.flags & kStages) != 0, op.bytes, now_ns() - begin);
}

void publish_progress(const Op& op, RankState& state) noexcept {
  if (op.value == 0) return;
  publish(*state.waiter.rank_control, state.waiter.rank,
          state.waiter.rank_control->progress(state.waiter.rank).value,
          state.progress_base + op.value);
}

void fold(const Op& op, const Operand* operands, const Plan& plan, RankState& state) noexcept {
  if (op.operands > 0) {
    if ((op.flags & (kStages | kFetches)) != 0) [[unlikely]] {
      move_staged(op, operands, plan, state);
    } else {
      move_data(op, operands, plan, state, (op.flags & kStreams) != 0);
    }
  }
  publish_progress(op, state);
}

// Ends the call on all ranks because a user's function threw. Returns false, for the caller to
// return.
bool end_call(RankState& state, const char* function, const std::string& why) noexcept {
  state.waiter.rank_control->abort(make_error(Code::remote_error, [&] {
    return "the " + std::string(function) + " of rank " + std::to_string(state.waiter.rank) +
           " threw: " + why;
  }));
  return false;
}

// If the operation throws, nothing is published.
bool apply(const Op& op, const Operand* operands, RankState& state) noexcept {
  find_operands(op, operands, state);
  void** sources = state.operands.data();
  const std::size_t skipped = op.memory == Memory::message ? 1 : 0;
  if (skipped == 0) will_write(sources[op.operands], op.bytes);
  std::string why;
  if (!combine(*state.user_op, sources + op.operands + skipped, 1 + op.copies - skipped, sources,
               op.operands, op.bytes, why)) {
    return end_call(state, "operation", why);
  }
  publish_progress(op, state);
  return true;
}

[[gnu::noinline]] void convert(const Op& op, const Operand& operand, const Plan& plan,
                               RankState& state) noexcept {
  const bool widens = op.code == OpCode::widen;
  const std::size_t count = op.bytes / (widens ? sizeof(float) : plan.narrow_bytes);
  const std::byte* from = state.memory_of(operand.rank, operand.memory) + operand.offset;
  std::byte* to =
      state.memory_of(static_cast<std::size_t>(state.waiter.rank), op.memory) + op.offset;
  will_read(from, count * (widens ? plan.narrow_bytes : sizeof(float)));
  will_write(to, op.bytes);
  (widens ? plan.conversions.widen : plan.conversions.narrow)(to, from, count);
}

// Other ranks may have finished this call well if their data were published before the throw.
bool finish(const Op& op, const Plan& plan, RankState& state) noexcept {
  const auto self = static_cast<std::size_t>(state.waiter.rank);
  const std::byte* rows = state.memory_of(self, Memory::output) + op.offset;
  will_read(rows, op.bytes);
  std::string why;
  return finish_rows(*state.epilogue, rows, op.offset / plan.row_bytes, op.bytes / plan.row_bytes,
                     why) ||
         end_call(state, "epilogue", why);
}

// Records the number of ports that this rank uses now (OpCode::count_ports). Messages sent are
// counted best just after a send, messages received just before their use: in between both numbers
// only fall.
void count_ports(const Op* op, const Plan& plan, RankState& state) noexcept {
  const Op* const first = plan.rank[static_cast<std::size_t>(state.waiter.rank)].ops.data();
  WakeFutex& wake_futex = state.waiter.rank_control->wake_futex(state.waiter.rank);
  const auto raise = [](Atomic<int>& most, int count) {
    if (count > most.load(std::memory_order_relaxed)) most.store(count, std::memory_order_relaxed);
  };
  // Relaxed loads of others' words: the numbers are for a report. At most the budget is in flight.
  if (op->value == 0) {
    int in_flight = 0;
    for (int sent = 0; op != first && sent < plan.ports;) {
      if ((--op)->code != OpCode::send) continue;
      const Outbox& outbox = state.outbox[op->peer];
      const std::uint32_t used = outbox.mailbox.credit->value.load(std::memory_order_relaxed);
      // The first one found was sent just now, even if its receiver has already finished with it.
      if (sent == 0 || !reached(used, outbox.base + op->value + 1)) ++in_flight;
      ++sent;
    }
    return raise(wake_futex.most_sent, in_flight);
  }
  int in_flight = static_cast<int>(op->value), looked_at = in_flight;
  for (++op; op->code != OpCode::end && looked_at < plan.ports; ++op) {
    if (op->code != OpCode::wait_message) continue;
    ++looked_at;
    const Inbox& inbox = state.inbox[op->peer];
    const std::uint32_t number = inbox.base + op->value;
    const std::uint32_t there = inbox.mailbox.slot(number).flag.load(std::memory_order_relaxed);
    if (reached(there, number + 1)) ++in_flight;
  }
  raise(wake_futex.most_received, in_flight);
}

// Ends the call on all ranks because the memory of another process cannot be reached.
bool cannot_reach(const char* how, const Operand& there, std::size_t bytes, int error,
                  RankState& state) noexcept {
  RankControl& rank_control = *state.waiter.rank_control;
  const std::string peer = "rank " + std::to_string(rank_control.shown(there.rank));
  rank_control.abort(make_error(error == ESRCH ? Code::rank_lost : Code::system, [&] {
    if (error == ESRCH) {
      return peer + " is still needed: " + rank_control.describe_waits(there.rank);
    }
    const Buffer at{state.memory_of(there.rank, there.memory) + there.offset, bytes};
    return "rank " + std::to_string(rank_control.shown(state.waiter.rank)) + " cannot " + how +
           (there.memory == Memory::input ? " in of " : " out of ") + peer + ", " + to_string(at) +
           ": " + std::strerror(error) +
           "; allowed is memory that other processes can reach, or a larger "
           "private_min_bytes (Costs)";
  }));
  return false;
}

// True if the operand lies in private memory of another process.
bool is_private(const Operand& operand, const RankState& state) noexcept {
  return operand.rank != state.waiter.rank && operand.memory < Memory::scratch;
}

// OpCode::reach. A copy is read into its place; sources of a sum are read into read_room, in
// pieces.
bool reach(const Op& op, const Operand* operands, const Plan& plan, RankState& state) noexcept {
  find_operands(op, operands, state);
  const RankProcesses& processes = *state.waiter.rank_control->processes();
  void** sources = state.operands.data();
  auto* const to = static_cast<std::byte*>(sources[op.operands]);
  const auto from_others = static_cast<std::size_t>(std::count_if(
      operands, operands + op.operands, [&](const Operand& o) { return is_private(o, state); }));
  const bool copies = op.operands == 1;
  const std::size_t piece =
      copies || from_others == 0 ? op.bytes : kReadRoom / from_others / kCacheLine * kCacheLine;
  if (!copies || sources[0] != to) will_write(to, op.bytes);
  for (std::size_t begin = 0; begin < op.bytes; begin += piece) {
    const std::size_t bytes = std::min(piece, op.bytes - begin);
    std::byte* room = copies ? to : state.read_room.data();
    for (std::size_t i = 0; i < op.operands; ++i) {
      const std::byte* from = address(operands[i], state, op.bytes) + begin;
      if (is_private(operands[i], state)) {
        const int error = processes.read(operands[i].rank, room, from, bytes);
        if (error != 0) return cannot_reach("read", operands[i], op.bytes, error, state);
        from = std::exchange(room, room + piece);
      }
      sources[i] = const_cast<std::byte*>(from);
    }
    if (copies) {
      if (sources[0] != to) copy_bytes(to, sources[0], bytes, plan.costs);
    } else {
      plan.fold(to + begin, sources, op.operands, bytes >> __builtin_ctzll(plan.element_bytes),
                divisor_of(op, plan));
    }
    for (std::size_t i = op.operands; i < std::size_t{op.operands} + op.copies; ++i) {
      std::byte* const there =
          state.memory_of(operands[i].rank, operands[i].memory) + operands[i].offset + begin;
      const int error = processes.write(operands[i].rank, there, to + begin, bytes);
      if (error != 0) return cannot_reach("copy its data to", operands[i], op.bytes, error, state);
    }
  }
  publish_progress(op, state);
  return true;
}

// The ops that few plans have. One function, not inlined: otherwise every walk would have a frame
// for their texts, and fewer registers for the rest.
[[gnu::noinline]] bool do_rarely(const Op* op, const Operand* operand, const Plan& plan,
                                 RankState& state) noexcept {
  if (op->code == OpCode::apply) return apply(*op, operand, state);
  if (op->code == OpCode::finish) return finish(*op, plan, state);
  if (op->code == OpCode::reach) return reach(*op, operand, plan, state);
  count_ports(op, plan, state);
  return true;
}

// Begins the choice among the forms of a call. True: the rank waits for exchange_of() of all.
bool begin_choice(const Plan& plan, RankState& state) noexcept {
  RankControl& rank_control = *state.waiter.rank_control;
  FormTimes& mine = rank_control.form_times(state.waiter.rank);
  return state.trials->begin_call(
      plan.trials, state.waiter.call, mine, now_ns, [&](std::uint32_t exchange) {
        publish(rank_control, state.waiter.rank, mine.exchanges, exchange);
      });
}
WaitTarget exchange_of(Rank rank, const RankState& state) noexcept {
  return {&state.waiter.rank_control->form_times(rank).exchanges, state.trials->exchange(), rank};
}

// Moves `op` and `operand` to before the form that is chosen. False: aborted.
[[gnu::noinline]] bool choose(const Op*& op, const Operand*& operand, const Plan& plan,
                              RankState& state) noexcept {
  if (begin_choice(plan, state)) {
    for (Rank r = 0; r < plan.ranks; ++r) {
      const WaitTarget told = exchange_of(r, state);
      if (r != state.waiter.rank &&
          !wait_until(state.waiter, *told.word, told.value, r, op->round)) {
        return false;
      }
    }
    RankControl& rank_control = *state.waiter.rank_control;
    const FormFigures mine = state.trials->conclude(
        plan.trials, plan.ranks, [&](Rank r) -> FormTimes& { return rank_control.form_times(r); });
    rank_control.slow_waits(state.waiter.rank).trials[plan.trials.trial_class].store(mine);
  }
  const Op& begins = op[static_cast<std::size_t>(state.trials->form(plan.trials))];
  operand += begins.offset;
  op += begins.value;
  return true;
}

bool send(const Op& op, const Operand& operand, RankState& state) noexcept {
  Outbox& outbox = state.outbox[op.peer];
  const std::byte* data = address(operand, state, op.bytes);
  const std::uint32_t number = outbox.base + op.value;
  if ((op.flags & kByAddress) != 0) {
    return outbox.send(state.waiter, op.peer, number, &data, sizeof(data), op.round);
  }
  will_read(data, op.bytes);
  return outbox.send(state.waiter, op.peer, number, data, op.bytes, op.round);
}

void post(const Op& op, const Operand* operand, RankState& state) noexcept {
  const Board& board = state.boards[static_cast<std::size_t>(state.waiter.rank)];
  if (op.operands > 0) {
    const std::byte* data = address(*operand, state, op.bytes);
    std::byte* place = board.at(state.posts, op.offset);
    will_read(data, op.bytes);
    will_write(place, op.bytes);
    if (!copy_few_bytes(place, data, op.bytes)) std::memcpy(place, data, op.bytes);
  }
  if ((op.flags & kMoreToPost) != 0) return;
  post(state.waiter, state.waiter.rank_control->lines(state.waiter.rank), board.half(state.posts),
       state.posts + 1, static_cast<std::uint16_t>(state.call_history >> 16),
       state.waiter.buffer_hashes.own);
  ++state.posts;
}

[[gnu::always_inline]] inline bool wait_post(Rank peer, const Op& op, const Plan& plan,
                                             RankState& state) noexcept {
  return wait_post(state.boards[static_cast<std::size_t>(peer)].half(state.posts - 1), peer,
                   op.round, plan, state);
}

bool wait_posts(const Op& op, const Plan& plan, RankState& state) noexcept {
  for (Rank q = 0; q < plan.ranks; ++q) {
    if (q != state.waiter.rank && !wait_post(q, op, plan, state)) return false;
  }
  return true;
}

// Announces rounds to an observer as their ops come up; without an observer it costs nothing.
struct NoObserver {
  bool come_to(int) const noexcept { return true; }
};
struct Observed {
  RoundObserver& observer;
  int next = 0;
  // Ops count rounds from 1; 0 is staging.
  bool come_to(int op_round) noexcept {
    while (next < op_round) {
      if (!observer.before_round(next++)) return false;
    }
    return true;
  }
};

// Blocking mode: ops block until their operands are ready.
struct InOneGo {
  static constexpr bool kMayStop = false;
  static constexpr bool kIsBegun = false;
};

// Pace tells if the walk resumes (kIsBegun), and then from where (cursor). It also tells if the
// walk may stop before an op (kMayStop), and stop() decides.
template <class Observing, class Pace>
Walked walk(const Plan& plan, RankState& state, Observing observing, Pace pace) noexcept {
  const RankPlan& mine = plan.rank[static_cast<std::size_t>(state.waiter.rank)];
  const Operand* operand = mine.operands.data();
  const Op* op = mine.ops.data();
  if constexpr (Pace::kIsBegun) {
    op += pace.cursor.op;
    operand += pace.cursor.operand;
  }
  for (;; ++op) {
    bool going = true;
    fault_point();
    if constexpr (Pace::kMayStop) {
      const auto ops = static_cast<std::size_t>(op - mine.ops.data());
      const auto operands = static_cast<std::size_t>(operand - mine.operands.data());
      if (const auto stopped = pace.stop(*op, ops, operands, plan, state)) return *stopped;
    }
    if (op->code != OpCode::end && !observing.come_to(std::min<int>(op->round, plan.rounds))) {
      return Walked::failed;
    }
    if (op->code > OpCode::count_ports) __builtin_unreachable();  // the last code
    switch (op->code) {
      case OpCode::end:
        if (!observing.come_to(plan.rounds)) return Walked::failed;
        for (const Traffic& t : mine.traffic) {
          if (op->value != 0) break;
          state.outbox[t.peer].base += t.sent;
          state.inbox[t.peer].base += t.received;
        }
        state.progress_base += plan.span;
        state.call_history = history_after(state.call_history, state.waiter.fingerprint);
        return bound_counter_skew(plan, state, state.progress_base - plan.span) ? Walked::done
                                                                                : Walked::failed;
      case OpCode::enter:
        enter(state);
        break;
      case OpCode::wait_readers:
        going = wait_readers(*op, plan, state);
        break;
      case OpCode::leave_reader:
        leave_reader(*op, state);
        break;
      case OpCode::wait_entry:
        going = wait_entry(*op, plan, state);
        break;
      case OpCode::wait_progress:
        going = wait_until(state.waiter, state.waiter.rank_control->progress(op->peer).value,
                           state.progress_base + op->value, op->peer, op->round);
        break;
      case OpCode::wait_message:
        going = wait_message(*op, plan, state);
        break;
      case OpCode::wait_credit:
        going = state.outbox[op->peer].wait_credit(
            state.waiter, op->peer, state.outbox[op->peer].base + op->value, op->round);
        break;
      case OpCode::fold:
        fold(*op, operand, plan, state);
        operand += op->operands + op->copies;
        break;
      case OpCode::apply:
      case OpCode::finish:
      case OpCode::reach:
      case OpCode::count_ports:
        going = do_rarely(op, operand, plan, state);
        operand += op->operands + op->copies;
        break;
      case OpCode::widen:
      case OpCode::narrow:
        convert(*op, *operand, plan, state);
        ++operand;
        break;
      case OpCode::send:
        going = send(*op, *operand, state);
        ++operand;
        break;
      case OpCode::release:
        state.inbox[op->peer].release(state.waiter, state.inbox[op->peer].base + op->value,
                                      (op->flags & kByAddress) != 0);
        break;
      case OpCode::post:
        post(*op, operand, state);
        operand += op->operands;
        break;
      case OpCode::wait_post:
        going = wait_post(op->peer, *op, plan, state);
        break;
      case OpCode::wait_posts:
        going = wait_posts(*op, plan, state);
        break;
      case OpCode::choose:
        going = choose(op, operand, plan, state);
        break;
      case OpCode::chosen:
        state.trials->end_call(now_ns);
        break;
    }
    if (!going) [[unlikely]]
      return Walked::failed;
  }
}

}  // namespace
}  // namespace rankine
