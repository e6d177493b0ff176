// Causal attention of one layer's heads at one rank, over keys and values of all tokens so far
// (Vaswani et al., 2017), several heads to one of keys and values (Ainslie et al., 2023), positions
// by rotation (Su et al., 2021).
#pragma once

#include <vector>

#include "bench/server/batch.h"
#include "engine/tools/train/matrix.h"

namespace rankine::server {

using tools::Matrix;

class Attention {
 public:
  // Sequences have `positions` tokens at most. `kv_heads` divides `heads`; the width is even.
  Attention(int heads, int kv_heads, int head_width, int positions);

  // A row per token of the batch, heads beside each other. Keeps the keys and values: a piece's
  // sequence has had all positions before its first, in earlier batches, and forgets later ones.
  Matrix forward(const Batch& batch, Matrix queries, Matrix keys, const Matrix& values);

 private:
  struct Past {
    Matrix keys;    // head_width x positions, so that a query meets many keys at once
    Matrix values;  // positions x head_width
  };

  void rotate(float* head, int position) const;

  int heads_, kv_heads_, width_, positions_;
  std::vector<Past> past_;  // by sequence and head; made when a sequence first comes
};

}  // namespace rankine::server
