// c_real: how many times as long a call takes in reality as the alpha-beta model says of its
// schedule (Lu, Collective Algorithms, 5.3): pipelines that are not deep enough, what every step
// costs beside its messages, steps that overlap less than they might.
//
// The survey has one number, of the part that is bytes. Measured ones differ by what takes the
// time, alphas or bytes, so there are two.
#pragma once

namespace rankine {

struct CReal {
  double latency = 1;    // where all of the model's time is alphas
  double bandwidth = 1;  // where none of it is

  // Allowed of both. Measured ones lie between 0.1 and 10.
  static constexpr double kLeast = 1e-3, kMost = 1e3;
  static bool allows(double factor) { return factor >= kLeast && factor <= kMost; }

  // Of a time of which alphas make up this part, 0 to 1.
  double at(double latency_share) const {
    return latency_share * latency + (1 - latency_share) * bandwidth;
  }
  bool operator==(const CReal&) const = default;
};

}  // namespace rankine
