#include "engine/run/interpret.h"

#include "engine/run/walk.h"

namespace rankine {

bool interpret(const Plan& plan, RankState& state) noexcept {
  if (plan.exchanges && Exchange::fits(state)) {
    const auto self = static_cast<std::size_t>(state.waiter.rank);
    const Exchange exchange(plan, state, state.memory_of(self, Memory::input),
                            state.memory_of(self, Memory::output), state.waiter.buffer_hashes);
    exchange.post_input(state, state.waiter.rank_control->lines(state.waiter.rank));
    return exchange.sum_posts(state);
  }
  return walk(plan, state, NoObserver{}, InOneGo{}) == Walked::done;
}

}  // namespace rankine
