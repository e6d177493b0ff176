// Arguments that are refused before any byte moves.
#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

using Spoil = std::function<void(Call&)>;

// What can be wrong with a call of that collective at that rank.
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
  // Every rank brings and gets something.
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

void play_bad_arguments(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  call.displaced = false;
  call.in_place = false;  // so that all buffers may be null, or overlap
  // A byte apart is in place for the second of blocks of one byte.
  if (test.collective != Collective::barrier) call.count = std::max<std::size_t>(call.count, 3);
  const std::vector<Spoil> all = spoilers(call);
  {
    Scene scene(test, {}, tally);
    scene.run([&](Seat& seat) {
      for (const Spoil& spoil : all) {
        const bool taken =
            seat.call(call, {.spoil = spoil, .documented = {{Code::invalid_argument}}});
        if (taken) scene.judge().blame("a bad argument is taken");
        // The communicator goes on.
        if (!seat.call(call)) return;
      }
    });
  }
  {
    // One rank alone: the others wait for this call until their deadline.
    const Rank victim = dice.below(test.ranks);
    const Spoil& spoil = all[static_cast<std::size_t>(dice.below(static_cast<int>(all.size())))];
    Scene scene(test, {.timeout = kShort, .documented = {Code::timeout}}, tally);
    scene.run([&](Seat& seat) {
      if (seat.rank() != victim) {
        seat.call(call);
      } else {
        // Told by the others, where it has to wait for one of them that plans.
        seat.call(call, {.spoil = spoil, .documented = {{Code::invalid_argument, Code::timeout}}});
      }
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
