// A layer of the decoder: normed attention, then a normed feed-forward part or a mixture, each
// added to what came in. Along tp every matrix is cut as in Megatron-LM (Shoeybi et al., 2019): two
// all-reduces forward, two backward.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/tools/plan/model.h"
#include "engine/tools/train/attention.h"
#include "engine/tools/train/experts.h"
#include "engine/tools/train/share.h"
#include "engine/tools/train/weights.h"

namespace rankine::tools {

class Layer {
 public:
  Layer(const Model& model, const Places& places, int zero, std::uint64_t seed);

  // Of a micro-batch that comes back later.
  struct Saved {
    KeptMatrix in, between;    // before each norm
    KeptMatrix attended, fed;  // after it
    std::vector<float> in_scales, between_scales;
    struct Part {  // of tp
      KeptMatrix qkv, context, up, active;
      std::vector<KeptMatrix> weights;
    };
    std::vector<Part> parts;
    Experts::Saved experts;
  };

  // A row per token, of numbers as they are kept; backward() adds to the gradients of `shard`.
  Matrix forward(const Matrix& in, Saved& saved) const;
  Matrix backward(const Matrix& by_result, int shard, const Saved& saved);

  std::vector<Unit*> units();

 private:
  // A part of tp's.
  struct Matrices {
    Weights qkv, out, up, down;
  };

  Matrix feed(Saved& saved) const;
  Matrix feed_backward(const Matrix& by_result, int shard, const Saved& saved);

  DataType type_;
  Places places_;
  Attention attention_;
  Weights in_gains_, between_gains_;
  std::vector<Matrices> parts_;
  std::optional<Unit> unit_;
  std::optional<Experts> experts_;
};

}  // namespace rankine::tools
