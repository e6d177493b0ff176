// A model and a load for tests.
#pragma once

#include "bench/server/load.h"
#include "engine/tools/plan/model.h"

namespace rankine::server {

inline const tools::Model kSmallModel{.layers = 3,
                                      .hidden = 64,
                                      .heads = 8,
                                      .kv_heads = 4,
                                      .feed_forward = 96,
                                      .gated = true,
                                      .vocabulary = 240,
                                      .tied = true};

inline const Load kSmallLoad{.requests = 24,
                             .rate = 200,
                             .prompt = {1, 40},
                             .answer = {1, 12},
                             .vocabulary = kSmallModel.vocabulary,
                             .seed = 3};

}  // namespace rankine::server
