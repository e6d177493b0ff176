// What one layer of a model asks of one rank for one micro-batch: what is computed, and which
// collectives along which axis. All times, counts and tables of a plan are made of these lists.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/lab/planner/model.h"

namespace rankine::tools {

enum class Phase : unsigned char { forward, backward, recompute };
inline constexpr std::size_t kPhases = 3;
std::string_view name_of(Phase phase);

// Of a backward pass: gradients of what came in are needed by the layer before, those of weights by
// nobody until the step ends.
struct Computation {
  std::string_view what;
  Phase phase = Phase::forward;
  double flops = 0;         // of matrix products
  double bytes = 0;         // through memory, where that is what it waits for
  double weight_flops = 0;  // of `flops`, backward: gradients of weights
};

struct Exchange {
  std::string_view what;
  Phase phase = Phase::forward;
  Collective collective = Collective::all_reduce;
  std::vector<Axis> along;
  double bytes = 0;  // M of that collective (collective.h): the whole vector, or for an all-to-all
                     // all that a rank sends
};

struct LayerWork {
  std::vector<Computation> computations;
  std::vector<Exchange> exchanges;
};

// Rows of a mixture's experts per token of a rank: what the busiest rank computes and keeps, with
// padding, and what it sends in a dispatch and gets back, its own experts' included.
//   computed  top_k times the skew; with a capacity, E C rows for all tokens together
//   sent      likewise; where a token goes once to a rank, the Z ranks that it reaches if each of
//             its experts is on any of them alike: Z (1 - ((Z - 1) / Z)^top_k)
struct ExpertRows {
  double computed = 1, sent = 1;
};
ExpertRows expert_rows(const Model& model, const Mapping& mapping);

LayerWork layer_work(const Model& model, const Mapping& mapping);

// The output matrix and the loss, forward and backward, on the last stage.
std::vector<Computation> head_work(const Model& model, const Mapping& mapping);

// Bytes that go from stage to stage for a micro-batch, in each direction.
double boundary_bytes(const Model& model, const Mapping& mapping);

// What a rank of a mapping keeps in memory while it trains.

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
