// Calls that take longer to plan than they may.
#include <chrono>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/machine.h"

namespace rankine::faults {

void play_long_planning(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase good = good_call(test, dice);
  // As many segments as there may be, of a cache line at least: empty ones are not planned.
  CollectiveCase call = good;
  call.type = DataType::f32;
  call.op = ReduceOp::sum;
  call.count = std::size_t{1} << 18;
  call.options = {.algorithm = "double_tree", .segments = 1 << 14};
  enum { deadline, abort, asked_for };
  const int kind = dice.below(3);
  {
    Promise promise{.timeout = std::chrono::milliseconds(1 + dice.below(5)),
                    .documented = {Code::timeout}};
    if (kind == abort) promise = {.at_once = true, .documented = {Code::aborted}};
    Scene scene(test, promise, tally);
    if (!scene.works()) return;
    scene.run(
        [&](Seat& seat) {
          if (kind != asked_for) {
            seat.call(call);
          } else if (seat.rank() == 0) {
            CaseBuffers buffers;
            buffers.fill(call, seat.rank());
            scene.judge().answer(seat.member->plan_of(call_of(call, buffers)).status());
          }
        },
        [&] {
          if (kind != abort) return;
          wait_for([&] { return scene.started() == test.ranks; });
          sleep_ns(dice.below(20) * 1'000'000);
          scene.judge().mark_fault();
          scene.communicator().abort("a stranger pressed a key");
        });
  }
  fresh_start(test, good, tally);
}

}  // namespace rankine::faults
