// Fault families of the arguments: invalid ones, missing instruction sets, odd clocks and counters,
// calls that differ between ranks, operations of the user, and epilogues.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/api/network.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

using Spoil = std::function<void(Call&)>;

// Changes that make a call of that collective invalid.
std::vector<Spoil> spoilers(const CollectiveCase& call) {
  std::vector<Spoil> all = {
      [](Call& c) { c.collective = static_cast<Collective>(kCollectives); },
      [](Call& c) { c.type = static_cast<DataType>(kDataTypes); },
      [](Call& c) { c.op = static_cast<ReduceOp>(kReduceOps); },
      [](Call& c) { c.count = std::numeric_limits<std::size_t>::max(); },
      [](Call& c) { c.options.algorithm = "no_such_algorithm"; },
      [](Call& c) { c.options.timeout = std::chrono::milliseconds(-1); },
      [](Call& c) { c.options.transport = static_cast<Transport>(kTransports); },
      [](Call& c) { c.options.transport = static_cast<Transport>(255); },
      [](Call& c) { c.options.order = static_cast<Order>(kOrders); },
      [](Call& c) { c.options.order = static_cast<Order>(255); },
      [](Call& c) { c.options.segments = -1; },
      [](Call& c) { c.options.group = -1; },
      [counts = std::vector<std::size_t>(
           static_cast<std::size_t>(natural_blocks(call.collective, call.ranks)) + 1, 1)](Call& c) {
        c.counts = counts;
      },
  };
  // Every rank has an input and an output.
  const bool symmetric = !has_root(call.collective) && call.collective != Collective::exscan;
  if (symmetric) {
    all.push_back([](Call& c) { c.in = nullptr; });
    all.push_back([](Call& c) { c.out = nullptr; });
    all.push_back([](Call& c) { c.in = static_cast<const std::byte*>(c.out) + 1; });
  }
  if (has_root(call.collective)) {
    all.push_back([](Call& c) { c.root = -1; });
    all.push_back([ranks = call.ranks](Call& c) { c.root = ranks; });
  }
  if (call.collective == Collective::send_recv) {
    all.push_back([ranks = call.ranks](Call& c) { c.peer = ranks; });
  }
  if (reduces(call.collective) && !supports(call.type, ReduceOp::bxor)) {
    all.push_back([](Call& c) { c.op = ReduceOp::bxor; });
  }
  return all;
}

}  // namespace

void inject_bad_arguments(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                          Tally& tally) {
  CollectiveCase call = good;
  call.displaced = false;
  call.in_place = false;  // so that all buffers may be null or overlap
  // With blocks of one byte, an offset of a byte would be the in-place position of block 1.
  if (test.collective != Collective::barrier) call.count = std::max<std::size_t>(call.count, 3);
  const std::vector<Spoil> all = spoilers(call);
  {
    RankFixture fixture(test, {}, tally);
    fixture.run([&](Seat& seat) {
      for (const Spoil& spoil : all) {
        const bool taken =
            seat.call(call, {.spoil = spoil, .documented = {{Code::invalid_argument}}});
        if (taken) fixture.judge().blame("a bad argument was accepted");
        // The communicator still works.
        if (!seat.call(call)) return;
      }
    });
  }
  {
    // Only one rank makes the bad call: the other ranks wait in this call until their deadline.
    const Rank victim = dice.below(test.ranks);
    const Spoil& spoil = all[static_cast<std::size_t>(dice.below(static_cast<int>(all.size())))];
    RankFixture fixture(test, {.timeout = kShort, .documented = {Code::timeout}}, tally);
    fixture.run([&](Seat& seat) {
      if (seat.rank() != victim) {
        seat.call(call);
      } else {
        // The victim times out like the others if it waits for another rank's plan.
        seat.call(call, {.spoil = spoil, .documented = {{Code::invalid_argument, Code::timeout}}});
      }
    });
  }
}

// Missing instruction sets, clocks that jump or cost nothing, counters that wrap.

void inject_instruction_set(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                            Tally& tally) {
  Judge judge(test, {}, tally);
  const int highest = static_cast<int>(hardware_isa());
  if (highest == 0) {
    judge.excuse("this machine has the portable instructions only");
    return;
  }
  const auto cap = static_cast<Isa>(dice.below(highest));
  setenv("RANKINE_ISA", std::string(name_of(cap)).c_str(), 1);
  if (best_isa() != cap) {
    judge.blame("RANKINE_ISA is " + std::string(name_of(cap)) + ", and kernels are for " +
                std::string(name_of(best_isa())));
  }
  // Integers under every operation, floats under min and max: the output must equal the
  // element-by-element definition bit by bit.
  RankFixture fixture(test, {}, tally);
  fixture.run([&](Seat& seat) {
    CollectiveCase one = call;
    one.count = 130;
    for (int type = 0; type < kDataTypes; ++type) {
      for (int op = 0; op < kReduceOps; ++op) {
        one.type = static_cast<DataType>(type);
        one.op = static_cast<ReduceOp>(op);
        const bool exact = !rounds(one.type, one.op);
        if (takes(one.collective, one.type, one.op) && exact && !seat.call(one)) return;
      }
    }
  });
}

namespace {

// Stops this process after `delay_ns` for `for_ns`, as a sleeping machine does: clocks jump for
// threads in a timed sleep. The returned child does it.
ChildProcess stop_this_process_soon(std::int64_t delay_ns, std::int64_t for_ns) {
  return ChildProcess([=] {
    const pid_t parent = getppid();
    sleep_ns(delay_ns);
    kill(parent, SIGSTOP);
    sleep_ns(for_ns);
    kill(parent, SIGCONT);
    return 0;
  });
}

// Makes the case's call on a network with this link. Returns true if the communicator could be
// made.
bool inject_on_network(const FaultCase& test, const CollectiveCase& call, const Link& link,
                       ClockMode clock, Tally& tally) {
  auto network = std::make_shared<CallNetwork>();
  Fabric& fabric = network->fabric;
  fabric.link = fabric.between = link;
  fabric.ports = test.ranks;  // as many as a rank has partners
  fabric.multicast = fabric.alu = true;
  network->clock = clock;
  network->dilate = 1;
  const Promise promise{.documented = {Code::invalid_argument}};
  RankFixture fixture(test, promise, tally, {.network = std::move(network)});
  fixture.run([&](Seat& seat) { seat.call(call); });
  return fixture.works();
}

// Stops one process for a while, on a virtual clock or at full speed: for less than the other
// ranks' deadline, which is no fault, or for longer.
void stop_a_process(const FaultCase& test, const CollectiveCase& call, Dice& dice, Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  const std::int64_t delay_ns = dice.below(5) * 1'000'000LL;
  const bool outlasts = dice.one_in(2);
  Promise promise;
  if (outlasts) promise = {.timeout = kShort, .documented = {Code::timeout}};
  const bool on_a_network = dice.one_in(2);
  const auto asks_for = [&](Rank, CommunicatorOptions& options) {
    if (!on_a_network) return;
    options.network = std::make_shared<const CallNetwork>(
        CallNetwork{.fabric = plain_regime().fabric, .lower = true});
  };
  RankFixture fixture(test, promise, tally, {.asks_for = asks_for});
  fixture.run([&](Seat& seat) {
    const bool is_stopped = seat.rank() == victim;
    ChildProcess child;
    if (is_stopped) child = stop_this_process_soon(delay_ns, outlasts ? 400'000'000 : 20'000'000);
    for (int i = 0; i < 50; ++i) {
      if (!seat.call(meeting(test, test.ranks), {.excused = is_stopped})) break;
      if (is_stopped) sleep_ns(200'000);
    }
    seat.call(call, {.excused = is_stopped});
    if (is_stopped && child.wait() < 0) fixture.judge().excuse("fork() failed");
  });
}

}  // namespace

void inject_clocks(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally) {
  CollectiveCase call = good;
  if (test.processes) return stop_a_process(test, call, dice, tally);
  Judge judge(test, {}, tally);
  std::vector<const Algorithm*> entries;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective == test.collective && !entry.refusal({.ranks = test.ranks})) {
      entries.push_back(&entry);
    }
  }
  const Algorithm& entry =
      *entries[static_cast<std::size_t>(dice.below(static_cast<int>(entries.size())))];
  call.options = {.algorithm = entry.name};
  const Rational us(1, 1'000'000), per_gb(1, 1'000'000'000);
  const Link links[] = {
      {us, per_gb},
      {0, per_gb},                         // alpha = 0
      {us, 0},                             // beta = 0
      {0, 0},                              // no costs at all
      {us, Rational(3600)},                // an hour per byte
      {Rational(Int128{1} << 126, 1), 0},  // longer than any clock counts
      {Rational(-1), per_gb},              // negative time
  };
  constexpr std::size_t kUsual = 5;  // the first ones must work, the others must be refused
  for (std::size_t i = 0; i < std::size(links); ++i) {
    if (inject_on_network(test, call, links[i], ClockMode::virtual_time, tally) != (i < kUsual)) {
      judge.blame(std::string(entry.name) + ", clock " + std::to_string(i));
    }
  }
  // The wall clock: a jump makes many deadlines pass at once; the results must still be right.
  ChildProcess child = stop_this_process_soon(dice.below(5) * 1'000'000LL, 20'000'000);
  inject_on_network(test, call, {Rational(1, 1'000), 0}, ClockMode::wall, tally);
  if (child.wait() < 0) judge.excuse("fork() failed");
}

void inject_counters(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  constexpr std::uint32_t kFirst[] = {0U - 3U, 0x80000000U - 3U, 0U - 40U, 0x80000000U - 40U,
                                      0x20000000U - 3U};
  const std::uint32_t first = kFirst[dice.below(static_cast<int>(std::size(kFirst)))];
  RankFixture fixture(test, {}, tally, {.first_count = first});
  fixture.run([&](Seat& seat) {
    for (int i = 0; i < 8; ++i) {
      CollectiveCase one = call;
      one.seed += static_cast<std::uint64_t>(i);
      if (!seat.call(one)) return;
    }
  });
}

// Calls that differ: one rank makes another call than all other ranks.

namespace {

// A call in which every rank waits for every other, on either transport: it shows any leftover of
// the odd call.
CollectiveCase meeting_by(Transport transport, const FaultCase& test) {
  CollectiveCase all = meeting(test, test.ranks);
  all.options = {.algorithm = "direct_one_shot", .transport = transport};
  return all;
}

// The victim makes `odd`, all other ranks make `call`; then all meet. The victim may succeed in its
// odd call if no other rank has to wait for it, but then the following calls must be right.
void disagree(const FaultCase& test, const CollectiveCase& call,
              const std::vector<CollectiveCase>& odd, Rank victim, Dice& dice, Tally& tally) {
  const bool after_good_ones = dice.one_in(2);
  // With a port budget a rank may wait for a port that a message keeps which no rank takes.
  Promise promise{.documented = {Code::mismatch}};
  if (ports_of(test) > 0) {
    promise = {.timeout = std::chrono::milliseconds(500),
               .documented = {Code::mismatch, Code::timeout}};
  }
  RankFixture fixture(test, promise, tally);
  fixture.run([&](Seat& seat) {
    if (after_good_ones && !seat.call(call)) return;
    if (seat.rank() == victim) {
      for (const CollectiveCase& one : odd) {
        if (!seat.call(one)) return;
      }
    } else {
      for (std::size_t i = 0; i < odd.size(); ++i) {
        // If the victim makes two calls, the other ranks make them in reverse order.
        if (!seat.call(odd.size() == 1 ? call : odd[odd.size() - 1 - i])) return;
      }
    }
    if (!seat.call(meeting_by(Transport::mailbox, test)) || ports_of(test) > 0) return;
    seat.call(meeting_by(Transport::direct, test));
  });
}

// The victim changes one argument of the good call.
template <class Change>
void inject_odd(const FaultCase& test, Dice& dice, const CollectiveCase& good, Tally& tally,
                const Change& change) {
  CollectiveCase odd = good;
  change(odd);
  disagree(test, good, {odd}, dice.below(test.ranks), dice, tally);
}

}  // namespace

void inject_count_differs(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                          Tally& tally) {
  inject_odd(test, dice, good, tally, [&](CollectiveCase& odd) {
    switch (dice.below(3)) {
      case 0:
        odd.count -= 1;
        break;
      case 1:
        odd.count += 1;
        break;
      default:
        odd.count = odd.count * 5 + 7;
    }
  });
}

void inject_type_differs(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                         Tally& tally) {
  inject_odd(test, dice, good, tally, [&](CollectiveCase& odd) {
    const DataType before = odd.type;
    do {
      odd.type = static_cast<DataType>(dice.below(kDataTypes));
    } while (odd.type == before || !takes(odd.collective, odd.type, odd.op));
  });
}

void inject_operation_differs(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                              Tally& tally) {
  inject_odd(test, dice, good, tally, [&](CollectiveCase& odd) {
    const ReduceOp before = odd.op;
    do {
      odd.op = static_cast<ReduceOp>(dice.below(kReduceOps));
    } while (odd.op == before || !takes(odd.collective, odd.type, odd.op));
  });
}

void inject_root_differs(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                         Tally& tally) {
  inject_odd(test, dice, good, tally, [&](CollectiveCase& odd) {
    odd.root = (odd.root + 1 + dice.below(test.ranks - 1)) % test.ranks;
  });
}

void inject_collective_differs(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                               Tally& tally) {
  FaultCase other = test;
  other.algorithm = nullptr;
  do {
    other.collective = all_collectives()[static_cast<std::size_t>(dice.below(kCollectives))];
  } while (other.collective == test.collective);
  const CollectiveCase odd = good_call(other, dice);
  const Rank victim = dice.below(test.ranks);
  if (dice.one_in(2)) {
    disagree(test, call, {odd}, victim, dice, tally);
  } else {
    disagree(test, call, {odd, call}, victim, dice, tally);
  }
}

// Operations of the user, and factors.

namespace {

// Adds u32 numbers. `context`: the number of calls left before add() throws, or nullptr.
void add(const void* in, void* inout, std::size_t count, void* context) {
  auto* left = static_cast<std::atomic<int>*>(context);
  if (left != nullptr && left->fetch_sub(1) <= 0) throw std::runtime_error("no more");
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t a, b;
    std::memcpy(&a, static_cast<const std::byte*>(in) + i * sizeof(a), sizeof(a));
    std::memcpy(&b, static_cast<std::byte*>(inout) + i * sizeof(b), sizeof(b));
    b += a;
    std::memcpy(static_cast<std::byte*>(inout) + i * sizeof(b), &b, sizeof(b));
  }
}

void add_otherwise(const void* in, void* inout, std::size_t count, void* context) {
  add(in, inout, count, context);
}

}  // namespace

void inject_user_operations(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                            Tally& tally) {
  CollectiveCase call = good;
  call.type = DataType::u32;
  call.op = ReduceOp::sum;
  const Rank victim = dice.below(test.ranks);
  enum { throws, function_differs, size_differs, factors };
  const int kind = dice.below(4);
  std::atomic<int> left{dice.below(3)};
  UserOp same{.apply = add, .element_bytes = sizeof(std::uint32_t)};
  UserOp odd = same;
  if (kind == throws) odd.context = &left;
  if (kind == function_differs) odd.apply = add_otherwise;
  if (kind == size_differs) odd.element_bytes = 1;
  const std::uint32_t one = 1;
  const Promise promises[] = {{.documented = {Code::remote_error}},
                              {.documented = {Code::mismatch}},
                              {.documented = {Code::mismatch}},
                              {.timeout = kShort, .documented = {Code::timeout}}};
  RankFixture fixture(test, promises[kind], tally);
  fixture.run([&](Seat& seat) {
    const bool is_victim = seat.rank() == victim;
    How how{.spoil = [&](Call& made) {
      if (kind == factors) {
        made.factor = &one;  // changes nothing
        if (is_victim) made.op = ReduceOp::max;
        return;
      }
      made.type = DataType::raw;
      made.op = ReduceOp::user;
      made.user_op = is_victim ? &odd : &same;
      if (is_victim && kind == size_differs) made.count *= sizeof(std::uint32_t);
    }};
    if (is_victim && kind == factors) how.documented = {{Code::invalid_argument}};
    if (seat.call(call, how)) seat.call(call);
  });
}

// Epilogues.

namespace {

// `context`: the number of rows left before finish() throws, or nullptr.
void finish(const void*, std::size_t, std::size_t count, void* context) {
  auto* left = static_cast<std::atomic<int>*>(context);
  if (left == nullptr) return;
  if (left->fetch_sub(static_cast<int>(count)) < static_cast<int>(count)) {
    throw std::runtime_error("no more");
  }
}

}  // namespace

void inject_epilogues(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  enum { throws, rows_differ, is_missing, no_whole_rows };
  const int kind = dice.below(4);
  std::atomic<int> left{dice.below(3)};
  const Epilogue good{.finish = finish, .row_elements = 1};
  Epilogue odd = good;
  if (kind == throws) odd.context = &left;
  if (kind == rows_differ) odd.row_elements = call.count;
  if (kind == no_whole_rows) odd.row_elements = 0;
  // A block of one element has only one division into rows.
  const bool is_without = kind == is_missing || (kind == rows_differ && call.count <= 1);
  const Promise promises[] = {{.documented = {Code::remote_error}},
                              {.documented = {Code::mismatch}},
                              {.documented = {Code::mismatch}},
                              {.timeout = kShort, .documented = {Code::timeout}}};
  RankFixture fixture(test, promises[kind], tally);
  fixture.run([&](Seat& seat) {
    const bool is_victim = seat.rank() == victim;
    How how{.spoil = [&](Call& made) {
      made.options.epilogue = !is_victim ? &good : is_without ? nullptr : &odd;
    }};
    if (is_victim && kind == no_whole_rows) how.documented = {{Code::invalid_argument}};
    if (seat.call(call, how)) seat.call(call);
  });
}

}  // namespace rankine::faults
