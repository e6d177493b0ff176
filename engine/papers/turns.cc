#include "engine/papers/turns.h"

#include <pthread.h>

#include <utility>

namespace rankine::claims {

void Turns::run(int ranks, const std::function<void(Rank)>& part,
                const std::function<void()>& stuck) {
  ended_.assign(static_cast<std::size_t>(ranks), false);
  awaited_.assign(static_cast<std::size_t>(ranks), {});  // nothing: each can begin
  left_ = ranks;
  in_vain_ = 0;
  stuck_ = &stuck;
  std::vector<std::function<void()>> bodies;
  for (Rank r = 0; r < ranks; ++r) {
    bodies.emplace_back([this, &part, r] {
      part(r);
      ended_[static_cast<std::size_t>(r)] = true;
      --left_;
      in_vain_ = 0;
    });
  }
  // Calls disable cancellation of their thread and bring back what they found. Here they end in any
  // order, so what they find is the same for all.
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  fibers_.run(std::move(bodies), 0, [this] { return next(); });
  pthread_setcancelstate(before, nullptr);
}

void Turns::wait_for(const Awaited& awaited) noexcept {
  awaited_[static_cast<std::size_t>(fibers_.current())] = awaited;
}

void Turns::give_way(int turn) noexcept {
  if (turn == 0) {  // a new wait: this rank has got on
    in_vain_ = 0;
  } else if (++in_vain_ > left_ && stuck_ != nullptr) {
    (*std::exchange(stuck_, nullptr))();
  }
  fibers_.go_to(next());
}

int Turns::next() const {
  const int ranks = static_cast<int>(ended_.size());
  int waits = -1;
  for (int i = 1; i <= ranks; ++i) {
    const int rank =
        fibers_.current() + i < ranks ? fibers_.current() + i : fibers_.current() + i - ranks;
    if (ended_[static_cast<std::size_t>(rank)]) continue;
    if (awaited_[static_cast<std::size_t>(rank)].is_there()) return rank;
    if (waits < 0) waits = rank;
  }
  return waits;
}

}  // namespace rankine::claims
