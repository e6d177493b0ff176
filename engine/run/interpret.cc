#include "engine/run/interpret.h"

#include "engine/run/walk.h"

namespace rankine {
namespace {

// Whoever walks a call to its end in one go waits in its ops.
struct InOneGo {
  static constexpr bool kMayStop = false;
  static constexpr bool kIsBegun = false;
};
}  // namespace

bool interpret(const Plan& plan, RankState& state) noexcept {
  return walk(plan, state, NoObserver{}, InOneGo{}) == Walked::done;
}

bool interpret(const Plan& plan, RankState& state, RoundObserver& observer) noexcept {
  return walk(plan, state, Observed{observer}, InOneGo{}) == Walked::done;
}

}  // namespace rankine
