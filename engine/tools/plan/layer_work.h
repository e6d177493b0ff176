// What one layer of a model asks of one rank for one micro-batch: what is computed, and which
// collectives along which axis. All times, counts and tables of a plan are made of these lists.
#pragma once

#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/tools/plan/mapping.h"
#include "engine/tools/plan/model.h"

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

}  // namespace rankine::tools
