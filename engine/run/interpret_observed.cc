#include "engine/run/interpret.h"
#include "engine/run/walk.h"

namespace rankine {

bool interpret(const Plan& plan, RankState& state, RoundObserver& observer) noexcept {
  return walk(plan, state, Observed{observer}, InOneGo{}) == Walked::done;
}

}  // namespace rankine
