// One rank's part of a decoder-only transformer that answers requests: in the shape of Llama 3
// (RMSNorm, rotated positions, SwiGLU, tied embeddings), in f32, with parameters made on the spot.
//
// Tensor parallel (Shoeybi et al., 2019): each rank has its heads, its columns of what goes up and
// its rows of what comes down, and its part of the vocabulary. What ranks add up are the embeddings
// and, of each layer, what attention and the feed-forward part give; the residual and the norm
// behind it are the epilogue of that sum.
//
// A row's values follow from its sequence alone, not from the batch: products are added up by
// rising index (engine/tools/train/matrix.h), sums in the order of the ranks. Another number of
// ranks has other brackets, and so other last bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bench/server/attention.h"
#include "bench/server/batch.h"
#include "bench/server/exchange.h"
#include "engine/api/epilogues.h"
#include "engine/base/status.h"
#include "engine/tools/plan/model.h"

namespace rankine::server {

using tools::Model;

// Whether the model can be divided among so many ranks. Errors: invalid_argument.
Status check_ranks(const Model& model, int ranks);

class Decoder {
 public:
  // Sequences have `positions` tokens at most. Requires check_ranks(); the ranks outlive it.
  Decoder(const Model& model, int positions, std::uint64_t seed, Exchange& ranks);

  // The likeliest next token of each piece that wants one, in their order, the same on every rank.
  // A call of all ranks, with the same batch; throws what the exchange throws.
  std::vector<int> step(const Batch& batch);

  // Seconds in step() so far, and of these in sums with their epilogues: waiting for ranks that are
  // later is in it.
  struct Times {
    double steps = 0, sums = 0;
  };
  const Times& times() const { return times_; }

 private:
  struct Layer {
    Matrix query, key, value, out, gate, up, down;
    Attention attention;
  };

  void embed(const Batch& batch);
  // stream += the ranks' sum of `part`, which the exchange gave, and normed = norm(stream).
  void add_up(std::span<float> part);
  // Of that sum this rank's part is a product.
  void add_up(const Matrix& a, const Matrix& b);
  Matrix active(const Layer& layer, const tools::MatrixView& in) const;
  std::vector<int> likeliest(const Batch& batch);

  Exchange& ranks_;
  int vocabulary_;  // of this rank
  std::vector<Layer> layers_;
  Matrix embedding_;  // hidden x vocabulary_
  Matrix stream_, normed_;
  std::optional<RowEpilogue> norm_;
  Times times_;
};

}  // namespace rankine::server
