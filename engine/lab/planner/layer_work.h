// Lists the computations and collectives of one layer on one rank for one micro-batch, and sizes
// the rank's memory. All times, counts and tables of a plan are made of these lists.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/lab/planner/model.h"

namespace rankine::tools {

enum class Phase : unsigned char { forward, backward, recompute };
inline constexpr std::size_t kPhases = 3;
std::string_view name_of(Phase phase);

// In a backward pass, the layer before needs the gradients of the inputs; the gradients of weights
// are not needed until the step ends.
struct Computation {
  std::string_view what;
  Phase phase = Phase::forward;
  double flops = 0;         // of matrix products
  double bytes = 0;         // through memory, if memory limits the computation; else 0
  double weight_flops = 0;  // of `flops`, backward: gradients of weights
};

struct Exchange {
  std::string_view what;
  Phase phase = Phase::forward;
  Collective collective = Collective::all_reduce;
  std::vector<Axis> along;
  double bytes = 0;  // M of that collective (collective.h): the whole vector; for an all-to-all all
                     // bytes that a rank sends
};

struct LayerWork {
  std::vector<Computation> computations;
  std::vector<Exchange> exchanges;
};

// Rows of a mixture's experts per token of a rank. `computed`: rows that the busiest rank computes
// and keeps, with padding. `sent`: rows that it sends in a dispatch and gets back, including rows
// for its own experts.
//   computed  top_k times the skew; with a capacity, E C rows for all tokens together
//   sent      equal to `computed`; with sends_once, the expected number of distinct ranks, out of
//             Z, if each expert is on any rank with equal probability: Z (1 - ((Z - 1) / Z)^top_k)
struct ExpertRows {
  double computed = 1, sent = 1;
};
ExpertRows expert_rows(const Model& model, const Mapping& mapping);

LayerWork layer_work(const Model& model, const Mapping& mapping);

// The output matrix and the loss, forward and backward, on the last stage.
std::vector<Computation> head_work(const Model& model, const Mapping& mapping);

// Bytes per micro-batch between neighbouring stages, in each direction.
double boundary_bytes(const Model& model, const Mapping& mapping);

// Memory of a rank in training, in bytes. The rank is of the first pipeline stage, which keeps
// most.
//
// Mixed precision with Adam: a parameter has Model::bytes for computations, `gradient_bytes` of
// gradient, and 12 bytes of optimizer state (a copy, mean and variance, 4 each; 8 if the parameter
// has 4 bytes itself). Mapping::zero says which of these data parallelism splits (Rajbhandari et
// al., ZeRO, 2020).
//
// For its backward pass a layer keeps (Korthikanti et al., 2022, section 4), in units of s b h
// bytes, at 2 bytes per element: 10 that tp does not split (inputs of the two norms and of the two
// halves, two dropout masks); a part that tp splits: queries, keys, values, the output of
// attention, and two or three times the width of the feed-forward part (2 bytes each); and scores
// after the softmax, their mask and their values after dropout, 5 a s / h. Split norms split the
// first part, too; recomputing attention removes the last part; recomputing all keeps 2, the
// layer's input.
struct Memory {
  double layer_parameters = 0;  // parameters of this rank, not bytes
  double embedding_parameters = 0;
  double layer_state = 0;  // parameters, gradients and optimizer state of its layers
  double embedding_state = 0;
  double activations_per_layer = 0;  // for one micro-batch
  double micro_batches_kept = 0;     // by the whole stage at the same time; may be a fraction
  double activations = 0;

  double all() const { return layer_state + embedding_state + activations; }
};
Memory memory_of(const Model& model, const Mapping& mapping);

// Parameters of the embedding on a rank of the first stage: the input matrix, and the output matrix
// if the first stage is also the last one and the two matrices are not tied.
double embedding_parameters(const Model& model, const Mapping& mapping);

// Bytes of state per parameter on a rank among `data_parallel` ranks.
double state_bytes(const Model& model, const Mapping& mapping, int data_parallel);
// Bytes of optimizer state per parameter: a copy in 4 bytes if Model::bytes is less, mean and
// variance.
double kept_by_optimizer(const Model& model);

}  // namespace rankine::tools
