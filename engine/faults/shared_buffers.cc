// Ranks that share what they may not: communicator.h says what is found out when.
#include <algorithm>
#include <vector>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

enum class Kind {
  one_output,       // for all
  one_in_place,     // the buffers of one rank, in place, for all
  another_input,    // one rank's output is another one's input
  outputs_in_part,  // two ranks' outputs overlap in part
};

std::size_t natural_bytes(const CollectiveCase& call) {
  return call.count * size_of(call.type) *
         static_cast<std::size_t>(natural_blocks(call.collective, call.ranks));
}

// A call of one rank with its own buffers becomes one with memory that others use, too.
void share(Kind kind, Call& call, Rank rank, Rank a, Rank b, std::vector<std::byte>& memory) {
  const auto* const in = static_cast<const std::byte*>(call.in);
  const auto* const out = static_cast<const std::byte*>(call.out);
  switch (kind) {
    case Kind::one_output:
      call.out = memory.data();
      break;
    case Kind::one_in_place: {
      const std::byte* const first = std::min(in, out);
      call.in = memory.data() + (in - first);
      call.out = memory.data() + (out - first);
      break;
    }
    case Kind::another_input:
      if (rank == a) call.in = memory.data();
      if (rank == b) call.out = memory.data();
      break;
    case Kind::outputs_in_part:
      if (rank == a) call.out = memory.data();
      if (rank == b) call.out = memory.data() + size_of(call.type) * (call.count / 2);
      break;
  }
}

}  // namespace

void play_shared_buffers(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  const auto kind = static_cast<Kind>(dice.below(4));
  const Rank a = dice.below(test.ranks);
  const Rank b = (a + 1 + dice.below(test.ranks - 1)) % test.ranks;
  call.in_place = kind == Kind::one_in_place;
  call.displaced = false;  // what ranks then share is their own memory, not the caller's
  // In the first call of its kind everybody is told; later, those that share with all whom they
  // hear from, and so not the rank with the first block of a reduce-scatter in place. But then
  // ranks store before they know, which a thread sanitizer need not be shown.
  const bool all_share =
      kind == Kind::one_output ||
      (kind == Kind::one_in_place && test.collective != Collective::reduce_scatter);
  const bool after_good_ones = dice.one_in(2) && all_share && !kThreadSanitizer;
  std::vector<std::byte> memory(2 * natural_bytes(call) + 64);
  {
    Scene scene(test, {.documented = {Code::mismatch}}, tally);
    scene.run([&](Seat& seat) {
      if (after_good_ones && !seat.call(call)) return;
      const bool taken =
          seat.call(call, {.spoil = [&](Call& c) { share(kind, c, seat.rank(), a, b, memory); }});
      if (taken) scene.judge().blame("shared buffers are taken");
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
