#include "engine/run/interpret.h"

#include "engine/run/walk.h"

namespace rankine {

bool interpret(const Plan& plan, RankState& state) noexcept {
  return walk(plan, state, NoObserver{}, InOneGo{}) == Walked::done;
}

}  // namespace rankine
