// Seeded perturbation: ranks are delayed at random, between the rounds of their calls, so that what
// hides in good timing comes to light. Results and virtual times must stay exact; wall times get
// worse. The same seed delays the same ranks in the same rounds by the same amounts.
//
//   slow rank      one rank in four is late in every second round or so, by up to 50 us
//   slow link      one round in eight, what a rank is about to send is late by up to 200 us
//   late wake-up   one round in sixteen, a rank gives its core away a few times
#pragma once

#include <cstdint>
#include <random>

#include "engine/run/interpret.h"

namespace rankine {

// One rank's; used by its thread only, for any number of calls.
class Perturbation : public RoundObserver {
 public:
  Perturbation(std::uint64_t seed, Rank rank);
  bool before_round(int k) noexcept override;

  std::int64_t delays() const { return delays_; }

 private:
  bool one_in(std::uint64_t n) { return random_() % n == 0; }
  void sleep_up_to(std::uint64_t ns);

  std::mt19937_64 random_;
  bool slow_ = false;
  std::int64_t delays_ = 0;
};

}  // namespace rankine
