// How to wait. Chosen once per communicator: see patience.h for the reasons.
#pragma once

#include <cstdint>

namespace rankine {

struct WaitPolicy {
  enum class Mode : std::uint8_t { spin, yield, park };
  Mode mode = Mode::spin;            // what follows the first probes
  std::uint32_t probes = 64;         // before anything else
  std::int64_t yield_ns = 200'000;   // yield mode: before parking, after a few
  std::int64_t spin_ns = 1'000'000;  // spin mode: before parking
  // Whoever spins for longer gives its turn away now and then: a rank that is nowhere pinned may be
  // on the core that the one it waits for is to have.
  static constexpr std::int64_t kAloneNs = 50'000;
};
inline constexpr int kWaitModes = 3;

}  // namespace rankine
