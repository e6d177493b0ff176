// Times of the figures by another fidelity than Eq. (1): the messages of an algorithm (skeleton.h),
// carried over its torus with the links and ports of the preset "torus". Ranks go from round to
// round each on its own, as processes do that wait for all of a round's messages (MPI_Waitall,
// which section 7 of Trivance names).
#pragma once

#include <map>
#include <tuple>

#include "engine/network/fabric.h"
#include "engine/papers/profiles.h"
#include "engine/read/fidelity.h"

namespace rankine::reproduce {

// Each time is worked out once. Not thread-safe; `profiles` must outlive it.
class Carriage {
 public:
  // Flow or packet.
  Carriage(Fidelity fidelity, Profiles& profiles) : fidelity_(fidelity), profiles_(profiles) {}

  // Of one of the profiles' schedules, over links of so many Gb/s.
  double seconds(const Profile& profile, int gigabits, double bytes);
  // No more than that, and known at once: what the busiest link has to carry in all rounds, and
  // what every message takes where no other one is in its way.
  double at_least(const Profile& profile, int gigabits, double bytes);

 private:
  using Key = std::tuple<const Profile*, int, double>;
  const Fidelity fidelity_;
  Profiles& profiles_;
  std::map<Key, double> known_;
  std::map<const Profile*, double> loads_;  // of the busiest links, in parts of M
};

}  // namespace rankine::reproduce
