// These helpers check a contender's results in tests, for all sizes, protocols and collectives that
// it takes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>

#include "bench/rivals/protocol.h"

namespace rankine::rivals {

inline constexpr std::size_t kMaxFloats = 270001;
inline constexpr std::size_t kFewFloats[] = {0, 1, 2, 4, 17, 1031, kMaxFloats};

inline void expect_right(Contender& contender, Batch batch, std::uint32_t& seed) {
  const bool small = batch.bytes < kMaxFloats * sizeof(float);
  batch.calls = small ? 3 : 1;
  batch.warmups = small ? 2 : 1;
  batch.seed = seed += 10;
  EXPECT_EQ(contender.run(batch).wrong, 0u)
      << contender.name << ", " << name_of(batch.collective) << ", " << batch.bytes / sizeof(float)
      << " floats, " << name_of(batch.protocol) << (batch.in_place ? ", in place" : "");
  EXPECT_EQ(contender.missing, "") << contender.name;
}

inline void expect_right_all_reduces(Contender& contender) {
  std::uint32_t seed = 0;
  Batch batch;
  for (const std::size_t count : kFewFloats) {
    batch.bytes = count * sizeof(float);
    if (!contender.takes(Collective::all_reduce, batch.bytes)) continue;
    for (const bool in_place : {false, true}) {
      for (const Protocol protocol : {Protocol::warm, Protocol::fresh}) {
        if (in_place && protocol == Protocol::warm) continue;
        batch.protocol = protocol;
        batch.in_place = in_place;
        expect_right(contender, batch, seed);
      }
    }
  }
}

// All collectives but all-reduce. Returns the number of pairs of collective and size that it takes.
inline int expect_right_other_collectives(Contender& contender) {
  int taken = 0;
  std::uint32_t seed = 0;
  Batch batch;
  for (int c = 1; c < kCollectives; ++c) {
    batch.collective = static_cast<Collective>(c);
    for (const std::size_t count : kFewFloats) {
      batch.bytes = count * sizeof(float);
      if (!contender.takes(batch.collective, batch.bytes)) continue;
      ++taken;
      for (const Protocol protocol : {Protocol::warm, Protocol::fresh}) {
        batch.protocol = protocol;
        expect_right(contender, batch, seed);
      }
    }
  }
  return taken;
}

}  // namespace rankine::rivals
