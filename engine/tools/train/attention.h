// Causal attention of some heads over sequences of tokens (Vaswani et al., 2017).
#pragma once

#include <vector>

#include "engine/tools/train/matrix.h"

namespace rankine::tools {

struct Attention {
  int heads, head_width, sequence;
  DataType type = DataType::f32;  // that `weights` are kept in

  // `qkv`: a row per token, sequences one after the other; queries, keys and values of all heads
  // beside each other, head by head: 3 x heads x head_width columns. `weights` gets what each token
  // gives to which, for the way back: by sequence and head, a square matrix.
  Matrix forward(const Matrix& qkv, std::vector<KeptMatrix>& weights) const;
  Matrix backward(const Matrix& qkv, const std::vector<KeptMatrix>& weights,
                  const Matrix& by_result) const;
};

}  // namespace rankine::tools
