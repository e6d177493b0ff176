// What a rank of a mapping keeps in memory while it trains.
#pragma once

#include "engine/tools/plan/mapping.h"
#include "engine/tools/plan/model.h"

namespace rankine::tools {

// Bytes, of a rank of the first pipeline stage, which keeps most.
//
// Mixed precision with Adam: a parameter has Model::bytes to compute with, `gradient_bytes` of
// gradient, and 12 of the optimizer (a copy, mean and variance, 4 each; 8 where it has 4 itself).
// What data parallelism splits of that is Mapping::zero's (Rajbhandari et al., ZeRO, 2020).
//
// A layer keeps for its backward pass (Korthikanti et al., 2022, section 4), in units of s b h
// bytes, for 2 bytes each: what tp does not split, 10 (inputs of the two norms and of the two
// halves, two dropout masks); what it does, queries, keys, values, the output of attention, and
// twice or three times the width of the feed-forward part (2 bytes each); and scores after the
// softmax, their mask and what dropout leaves of them, 5 a s / h. With split norms the first are
// split too; recomputing attention drops the last; recomputing all keeps 2, the layer's input.
struct Memory {
  double layer_parameters = 0;  // of this rank: how many, not bytes
  double embedding_parameters = 0;
  double layer_state = 0;  // parameters, gradients and optimizer of its layers
  double embedding_state = 0;
  double activations_per_layer = 0;  // of one micro-batch
  double micro_batches_kept = 0;  // of the whole stage at once, as a number that need not be whole
  double activations = 0;

  double all() const { return layer_state + embedding_state + activations; }
};
Memory memory_of(const Model& model, const Mapping& mapping);

// Of a rank of the first stage: the matrix of the input, and that of the output where this is the
// last stage as well and they are two.
double embedding_parameters(const Model& model, const Mapping& mapping);

// Bytes of state per parameter among so many ranks of data parallelism.
double state_bytes(const Model& model, const Mapping& mapping, int data_parallel);
// Of a parameter: a copy in 4 bytes where it has fewer, mean and variance.
double kept_by_optimizer(const Model& model);

}  // namespace rankine::tools
