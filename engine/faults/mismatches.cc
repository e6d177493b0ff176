// Calls that disagree: one rank makes another call than all others.

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

// Calls that every rank waits for every other in, on either transport: whatever the odd call has
// left behind shows here.
CollectiveCase meeting_by(Transport transport, const FaultCase& test) {
  CollectiveCase all = meeting(test, test.ranks);
  all.options = {.algorithm = "direct_one_shot", .transport = transport};
  return all;
}

// The victim makes `odd`, all others `call`; then all meet. A rank that nobody has to wait for in
// its odd call may succeed in it, and rightly so; but then nothing may go wrong afterwards.
void disagree(const FaultCase& test, const CollectiveCase& call,
              const std::vector<CollectiveCase>& odd, Rank victim, Dice& dice, Tally& tally) {
  const bool after_good_ones = dice.one_in(2);
  {
    Scene scene(test, {.documented = {Code::mismatch}}, tally);
    scene.run([&](Seat& seat) {
      if (after_good_ones && !seat.call(call)) return;
      if (seat.rank() == victim) {
        for (const CollectiveCase& one : odd) {
          if (!seat.call(one)) return;
        }
      } else {
        for (std::size_t i = 0; i < odd.size(); ++i) {
          // Where two calls change their order, the others make them the other way round.
          if (!seat.call(odd.size() == 1 ? call : odd[odd.size() - 1 - i])) return;
        }
      }
      for (const Transport transport : {Transport::mailbox, Transport::direct}) {
        if (!seat.call(meeting_by(transport, test))) return;
      }
    });
  }
  fresh_start(test, call, tally);
}

template <class Change>
void play(const FaultCase& test, Tally& tally, const Change& change) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  CollectiveCase odd = call;
  change(odd, dice);
  disagree(test, call, {odd}, dice.below(test.ranks), dice, tally);
}

}  // namespace

void play_count_differs(const FaultCase& test, Tally& tally) {
  play(test, tally, [](CollectiveCase& odd, Dice& dice) {
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

void play_type_differs(const FaultCase& test, Tally& tally) {
  play(test, tally, [](CollectiveCase& odd, Dice& dice) {
    const DataType before = odd.type;
    do {
      odd.type = static_cast<DataType>(dice.below(kDataTypes));
    } while (odd.type == before || !takes(odd.collective, odd.type, odd.op));
  });
}

void play_operation_differs(const FaultCase& test, Tally& tally) {
  play(test, tally, [](CollectiveCase& odd, Dice& dice) {
    const ReduceOp before = odd.op;
    do {
      odd.op = static_cast<ReduceOp>(dice.below(kReduceOps));
    } while (odd.op == before || !takes(odd.collective, odd.type, odd.op));
  });
}

void play_root_differs(const FaultCase& test, Tally& tally) {
  play(test, tally, [&](CollectiveCase& odd, Dice& dice) {
    odd.root = (odd.root + 1 + dice.below(test.ranks - 1)) % test.ranks;
  });
}

void play_collective_differs(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
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

}  // namespace rankine::faults
