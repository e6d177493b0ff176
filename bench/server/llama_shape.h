// The model that is served: the shape of Llama 3.2 1B with its widths divided.
#pragma once

#include "engine/tools/plan/model.h"

namespace rankine::server {

// divisor: 1, 2, 4 or 8.
inline tools::Model llama_shape(int layers, int divisor) {
  return {.name = "llama3.2_1b",
          .layers = layers,
          .hidden = 2048 / divisor,
          .heads = 32 / divisor,
          .kv_heads = 8 / divisor,
          .feed_forward = 8192 / divisor,
          .gated = true,
          .vocabulary = 128256 / divisor,
          .tied = true};
}

}  // namespace rankine::server
