// Epilogues.
#include <atomic>
#include <stdexcept>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

// `context`: how many rows are still finished before it throws, or nullptr.
void finish(const void*, std::size_t, std::size_t count, void* context) {
  auto* left = static_cast<std::atomic<int>*>(context);
  if (left == nullptr) return;
  if (left->fetch_sub(static_cast<int>(count)) < static_cast<int>(count)) {
    throw std::runtime_error("no more");
  }
}

}  // namespace

void play_epilogues(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const Rank victim = dice.below(test.ranks);
  enum { throws, rows_differ, is_missing, no_whole_rows };
  const int kind = dice.below(4);
  std::atomic<int> left{dice.below(3)};
  const Epilogue good{.finish = finish, .row_elements = 1};
  Epilogue odd = good;
  if (kind == throws) odd.context = &left;
  if (kind == rows_differ) odd.row_elements = call.count;
  if (kind == no_whole_rows) odd.row_elements = 0;
  // Of one row of one element no other rows can be made.
  const bool is_without = kind == is_missing || (kind == rows_differ && call.count <= 1);
  const Promise promises[] = {{.documented = {Code::remote_error}},
                              {.documented = {Code::mismatch}},
                              {.documented = {Code::mismatch}},
                              {.timeout = kShort, .documented = {Code::timeout}}};
  {
    Scene scene(test, promises[kind], tally);
    scene.run([&](Seat& seat) {
      const bool is_victim = seat.rank() == victim;
      How how{.spoil = [&](Call& made) {
        made.options.epilogue = !is_victim ? &good : is_without ? nullptr : &odd;
      }};
      if (is_victim && kind == no_whole_rows) how.documented = {{Code::invalid_argument}};
      if (seat.call(call, how)) seat.call(call);
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
