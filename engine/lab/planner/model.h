// Describes a transformer by its sizes (Model) and its layout over ranks (Mapping), and reads and
// checks both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/blocks.h"
#include "engine/base/status.h"

namespace rankine::tools {

// The words after "the nearest" in an error about a number that must be one of several: "are 2 or
// 4"; "is 4" if one side has no allowed value, which is 0 then. shown(n) writes a number.
template <class Shown>
std::string nearest_of(std::int64_t below, std::int64_t above, const Shown& shown) {
  if (below == 0 || above == 0) return "is " + shown(below + above);
  return "are " + shown(below) + " or " + shown(above);
}
inline std::string nearest_of(std::int64_t below, std::int64_t above) {
  return nearest_of(below, above, [](std::int64_t n) { return std::to_string(n); });
}

// A decoder of equal layers: attention, then a feed-forward part; in a mixture, `experts` such
// parts. Counts matrices only: vectors (norms, biases) are a thousandth of the parameters, and the
// papers leave them out, too.
struct Model {
  std::string name = "custom";
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // heads of keys and values; fewer than heads if several heads share one
  int feed_forward = 0;
  bool gated = false;  // a third matrix beside up and down (SwiGLU)
  int experts = 0;     // 0: not a mixture
  int top_k = 0;       // experts per token
  int vocabulary = 0;
  bool tied = false;  // output and input share one vocabulary x hidden matrix
  int sequence = 0;   // tokens
  int bytes = 2;      // bytes of a parameter or an activation in computations: 1, 2 or 4

  bool is_mixture() const { return experts > 0; }
  std::int64_t kv_width() const { return std::int64_t{hidden} / heads * kv_heads; }
  int matrices() const { return gated ? 3 : 2; }  // per feed-forward part

  // Numbers of parameters.
  std::int64_t attention() const;  // per layer
  std::int64_t expert() const;     // one feed-forward part
  std::int64_t router() const;     // per layer; 0 without experts
  std::int64_t layer() const;      // all parameters of a layer
  std::int64_t embedding() const;  // vocabulary x hidden
  std::int64_t all() const;
  std::int64_t active() const;  // all(), but only the experts that one token uses
};

// A shape that has been published, with its source.
struct PublishedModel {
  Model model;
  std::string_view source;
};
std::span<const PublishedModel> published_models();
const PublishedModel* find_published_model(std::string_view name);  // or nullptr

// Reads a model: a published model's name, or a JSON file with members named as the fields above;
// "preset" starts from a published model. Errors name the member, its value and the allowed values.
Result<Model> find_model(std::string_view argument, const std::string& name_or_path);
Result<Model> parse_model(std::string_view json, std::string_view name);
Status check_model(const Model& model);

// A mapping lays a model over ranks: it has the size of each axis.
//
//   axis  splits                      collectives along it
//   tp    every matrix                all-reduces of activations; with split norms all-gathers and
//                                     reduce-scatters
//   sp    every sequence              all-gathers of keys and values, reduce-scatters backward
//   ep    the experts of a layer      all-to-alls of tokens, there and back
//   dp    the batch                   gradients: all-reduce, or reduce-scatter and all-gather
//   pp    the layers                  activations from stage to stage
//
// Ranks = tp x sp x ep x dp x pp. Each rank along ep has its own batch: for all parts except the
// experts, ep is a further part of the data parallelism.

enum class Axis : unsigned char { tp, sp, ep, dp, pp };
inline constexpr std::size_t kAxes = 5;
// The usual nesting: axes that communicate most often have the nearest neighbours.
inline constexpr std::array<Axis, kAxes> kNested = {Axis::tp, Axis::sp, Axis::ep, Axis::dp,
                                                    Axis::pp};
std::string_view name_of(Axis axis);

// The activations that the forward pass discards and the backward pass computes again.
enum class Recompute : unsigned char { none, selective, full };
inline constexpr std::size_t kRecomputes = 3;
std::string_view name_of(Recompute recompute);

// The order of a stage's work; see pipeline.h.
enum class PipelineOrder : unsigned char { gpipe, one_f_one_b, zb1p, zb2p, zbv };
inline constexpr std::size_t kPipelineOrders = 5;
std::string_view name_of(PipelineOrder order);
// Converts part number `part` of a stage to its number in the whole model: a micro-batch meets part
// 0 first.
int part_number(PipelineOrder order, int stages, int stage, int part);
// The stage that has the model's last part, and so the loss.
int last_stage(PipelineOrder order, int stages);
// True if the order has separate tasks for weight gradients.
bool has_weights_apart(PipelineOrder order);

struct Mapping {
  std::array<int, kAxes> axes{1, 1, 1, 1, 1};
  bool splits_norms = false;  // between its matrices tp splits the sequence (Megatron's sequence
                              // parallelism): an all-reduce becomes a reduce-scatter and an
                              // all-gather
  int micro_batch = 1;        // sequences that go through the layers together
  int micro_batches = 1;      // per step, one after the other
  int interleave = 1;         // parts of the model per pipeline stage
  PipelineOrder order = PipelineOrder::one_f_one_b;
  Recompute recompute = Recompute::none;
  int zero = 0;            // data parallelism splits: 1 the optimizer's state, 2 also gradients,
                           // 3 also parameters
  int gradient_bytes = 4;  // bytes of a stored gradient
  double router_skew = 1;  // tokens of the busiest rank along ep over the mean; the plan takes this
                           // rank, because the others wait for it
  double capacity = 0;     // rows that every expert takes of a rank's tokens, over the mean: empty
                           // rows fill them up, further tokens are dropped; 0: takes all tokens
  bool sends_once = false;  // a token goes to a rank once, even if several of its experts are there
  std::size_t bucket_bytes = std::size_t{25} << 20;  // bytes of gradients per bucket
  // From the inside out: ranks along the first are neighbours.
  std::array<Axis, kAxes> nested = kNested;

  int operator[](Axis axis) const { return axes[static_cast<std::size_t>(axis)]; }
  int& operator[](Axis axis) { return axes[static_cast<std::size_t>(axis)]; }
  int ranks() const;
  // Parts of the model per pipeline stage.
  int parts() const { return order == PipelineOrder::zbv ? 2 : interleave; }
  int data_parallel() const { return (*this)[Axis::dp] * (*this)[Axis::ep]; }
  int batch() const;  // sequences per step
  bool operator==(const Mapping&) const = default;
};

// "tp 8, pp 8, interleaved 3": lists axes that are not 1.
std::string describe(const Mapping& mapping);

// "ep x dp": lists those of `axes` that are not 1.
std::string axes_text(const Mapping& mapping, std::span<const Axis> axes);

// The ranks of rank 0's group along one axis or several axes, in the order of ranks.
std::vector<Rank> group_of(const Mapping& mapping, std::span<const Axis> axes);
// Splits all ranks into their groups along these axes; rank 0's group is the first.
std::vector<std::vector<Rank>> groups_of(const Mapping& mapping, std::span<const Axis> axes);

// Checks that the mapping can split the model. The error names the axis, its value, the number that
// it must divide, and the nearest allowed values.
Status check_mapping(const Model& model, const Mapping& mapping);

}  // namespace rankine::tools
