#include "engine/network/perturb.h"

#include <sched.h>

#include <ctime>

namespace rankine {

Perturbation::Perturbation(std::uint64_t seed, Rank rank)
    : random_(seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(rank)) {
  random_.discard(16);  // neighbouring seeds begin alike
  slow_ = one_in(4);
}

void Perturbation::sleep_up_to(std::uint64_t ns) {
  const timespec time{0, static_cast<long>(random_() % ns)};
  nanosleep(&time, nullptr);  // a signal may end it early: a shorter delay
  ++delays_;
}

bool Perturbation::before_round(int) noexcept {
  if (slow_ && one_in(2)) sleep_up_to(50'000);
  if (one_in(8)) sleep_up_to(200'000);
  if (one_in(16)) {
    for (std::uint64_t yields = 1 + random_() % 8; yields > 0; --yields) sched_yield();
    ++delays_;
  }
  return true;
}

}  // namespace rankine
