// Ranks that share what they may not: communicator.h says what is found out when.
#include <algorithm>
#include <cstdint>
#include <span>
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

// What can be wrong with the payloads that processes share: memory of any kind is said to be such,
// or another rank's, on all ranks; or one rank does not say so. The communicator goes on after the
// first two.
void misuse_payloads(const FaultCase& test, CollectiveCase call, Dice& dice, Tally& tally) {
  enum { any_memory, of_another, one_is_silent };
  const int kind = dice.below(3);
  const Rank silent = dice.below(test.ranks);
  call.displaced = false;
  call.in_place = false;
  const std::size_t half = natural_bytes(call) + 64;
  Scene scene(test,
              {.documented = {kind == one_is_silent ? Code::mismatch : Code::invalid_argument}},
              tally);
  scene.run([&](Seat& seat) {
    auto memory = seat.member->allocate<std::byte>(2 * half);
    if (!scene.judge().answer(memory.status())) return;
    std::byte* const mine = memory->span().data();
    std::vector<std::uintptr_t> all(static_cast<std::size_t>(test.ranks));
    const auto address = reinterpret_cast<std::uintptr_t>(mine);
    const Status status =
        seat.member->all_gather(std::span<const std::uintptr_t>(&address, 1), std::span(all));
    if (!scene.judge().answer(status)) return;
    const auto next = static_cast<std::size_t>((seat.rank() + 1) % test.ranks);
    auto* const base = reinterpret_cast<std::byte*>(kind == of_another ? all[next] : address);
    const bool taken = seat.call(call, {.spoil = [&](Call& c) {
                                   c.options.shared_payloads =
                                       kind != one_is_silent || seat.rank() != silent;
                                   if (kind == any_memory) return;
                                   c.in = base;
                                   c.out = base + half;
                                 }});
    if (taken) scene.judge().blame("misused payloads are taken");
    if (kind != one_is_silent) seat.call(call);
    // The payload is this rank's as long as others may come to it.
    scene.arrive();
    wait_for([&] { return scene.arrived() == test.ranks || scene.over(); });
  });
}

}  // namespace

void play_shared_buffers(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  if (test.processes) return misuse_payloads(test, call, dice, tally);
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
