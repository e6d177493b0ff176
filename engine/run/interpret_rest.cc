#include "engine/run/interpret.h"
#include "engine/run/walk.h"

namespace rankine {
namespace {

// Blocking mode from a cursor to the end.
struct TheRest {
  static constexpr bool kMayStop = false;
  static constexpr bool kIsBegun = true;
  const Cursor& cursor;
};

}  // namespace

bool interpret(const Plan& plan, RankState& state, RoundObserver& observer) noexcept {
  return walk(plan, state, Observed{observer}, InOneGo{}) == Walked::done;
}

bool interpret_rest(const Plan& plan, RankState& state, Cursor& cursor) noexcept {
  if (cursor.waited) has_come(state.waiter);
  return walk(plan, state, NoObserver{}, TheRest{cursor}) == Walked::done;
}

}  // namespace rankine
