// What errors say behind "the nearest" of a number that must be one of several.
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

// "are 2 or 4"; "is 4" where nothing is allowed on the other side, which is 0 then. shown(n): how a
// number is written.
template <class Shown>
std::string nearest_of(std::int64_t below, std::int64_t above, const Shown& shown) {
  if (below == 0 || above == 0) return "is " + shown(below + above);
  return "are " + shown(below) + " or " + shown(above);
}
inline std::string nearest_of(std::int64_t below, std::int64_t above) {
  return nearest_of(below, above, [](std::int64_t n) { return std::to_string(n); });
}

// A transformer as a planner needs it: sizes, and how many parameters they make.

// A decoder of equal layers: attention, then a feed-forward part, which is `experts` of that size
// where it is a mixture. Matrices only; vectors (norms, biases) are a thousandth and left out, as
// the papers leave them out.
struct Model {
  std::string name = "custom";
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int kv_heads = 0;  // of keys and values; fewer than heads where several share one
  int feed_forward = 0;
  bool gated = false;  // a third matrix beside up and down (SwiGLU)
  int experts = 0;     // 0: not a mixture
  int top_k = 0;       // experts per token
  int vocabulary = 0;
  bool tied = false;  // output and input share one vocabulary x hidden matrix
  int sequence = 0;   // tokens
  int bytes = 2;      // of a parameter or an activation while it is computed with: 1, 2 or 4

  bool is_mixture() const { return experts > 0; }
  std::int64_t kv_width() const { return std::int64_t{hidden} / heads * kv_heads; }
  int matrices() const { return gated ? 3 : 2; }  // of a feed-forward part

  // Parameters.
  std::int64_t attention() const;  // of a layer
  std::int64_t expert() const;     // one feed-forward part
  std::int64_t router() const;     // of a layer; 0 without experts
  std::int64_t layer() const;      // all of a layer
  std::int64_t embedding() const;  // vocabulary x hidden
  std::int64_t all() const;
  std::int64_t active() const;  // all() with the experts that a token meets only
};

// A shape that has been published, with its source.
struct PublishedModel {
  Model model;
  std::string_view source;
};
std::span<const PublishedModel> published_models();
const PublishedModel* find_published_model(std::string_view name);  // or nullptr

// A published model's name, or a JSON file with members named as the fields above; "preset" begins
// with another. Errors name the member, its value and what is allowed.
Result<Model> find_model(std::string_view argument, const std::string& name_or_path);
Result<Model> parse_model(std::string_view json, std::string_view name);
Status check_model(const Model& model);

// How a model is laid over ranks: the sizes of the axes, and what travels along each.
//
//   axis  splits                      collectives along it
//   tp    every matrix                all-reduces of activations; with split norms all-gathers and
//                                     reduce-scatters
//   sp    every sequence              all-gathers of keys and values, reduce-scatters backward
//   ep    the experts of a layer      all-to-alls of tokens, there and back
//   dp    the batch                   gradients: all-reduce, or reduce-scatter and all-gather
//   pp    the layers                  activations from stage to stage
//
// Ranks = tp x sp x ep x dp x pp. Ranks along ep have batches of their own: for all that is no
// expert, ep is one more part of the data parallelism.

enum class Axis : unsigned char { tp, sp, ep, dp, pp };
inline constexpr std::size_t kAxes = 5;
// As most have it: what meets most often lies closest together.
inline constexpr std::array<Axis, kAxes> kNested = {Axis::tp, Axis::sp, Axis::ep, Axis::dp,
                                                    Axis::pp};
std::string_view name_of(Axis axis);

// What is thrown away in the forward pass and computed again in the backward one.
enum class Recompute : unsigned char { none, selective, full };
inline constexpr std::size_t kRecomputes = 3;
std::string_view name_of(Recompute recompute);

// The order of a stage's work; see pipeline.h.
enum class PipelineOrder : unsigned char { gpipe, one_f_one_b, zb1p, zb2p, zbv };
inline constexpr std::size_t kPipelineOrders = 5;
std::string_view name_of(PipelineOrder order);
// Of a stage's parts of the model, which one that is in the whole: a micro-batch meets 0 first.
int part_number(PipelineOrder order, int stages, int stage, int part);
// The stage that has the last one, and so the loss.
int last_stage(PipelineOrder order, int stages);
// Whether weight gradients are work of their own.
bool has_weights_apart(PipelineOrder order);

struct Mapping {
  std::array<int, kAxes> axes{1, 1, 1, 1, 1};
  bool splits_norms = false;  // between its matrices tp splits the sequence (Megatron's sequence
                              // parallelism): an all-reduce becomes a reduce-scatter and an
                              // all-gather
  int micro_batch = 1;        // sequences that go through the layers together
  int micro_batches = 1;      // of a step, one after the other
  int interleave = 1;         // parts of the model per pipeline stage
  PipelineOrder order = PipelineOrder::one_f_one_b;
  Recompute recompute = Recompute::none;
  int zero = 0;            // what data parallelism splits: 1 the optimizer's state, 2 gradients as
                           // well, 3 parameters as well
  int gradient_bytes = 4;  // of a gradient while it is kept
  double router_skew = 1;  // tokens that the busiest rank along ep gets, over their mean: it is the
                           // one that is planned, since others wait for it
  double capacity = 0;     // rows that every expert takes of a rank's tokens, over the mean: filled
                           // up with empty ones, and what is beyond is dropped; 0: as many as come
  bool sends_once = false;  // a token goes once to a rank, however many of its experts are there
  std::size_t bucket_bytes = std::size_t{25} << 20;  // of gradients that go together
  // From the inside out: ranks along the first are neighbours.
  std::array<Axis, kAxes> nested = kNested;

  int operator[](Axis axis) const { return axes[static_cast<std::size_t>(axis)]; }
  int& operator[](Axis axis) { return axes[static_cast<std::size_t>(axis)]; }
  int ranks() const;
  // Of the model, on each pipeline stage.
  int parts() const { return order == PipelineOrder::zbv ? 2 : interleave; }
  int data_parallel() const { return (*this)[Axis::dp] * (*this)[Axis::ep]; }
  int batch() const;  // sequences of a step
  bool operator==(const Mapping&) const = default;
};

// "tp 8, pp 8, interleaved 3": axes that are not 1.
std::string describe(const Mapping& mapping);

// "ep x dp": of these the axes that are not 1.
std::string axes_text(const Mapping& mapping, std::span<const Axis> axes);

// The ranks that rank 0 meets along an axis, or along several at once, each in the order of ranks.
std::vector<Rank> group_of(const Mapping& mapping, std::span<const Axis> axes);
// All ranks, each in the group that it meets along these axes: rank 0's first.
std::vector<std::vector<Rank>> groups_of(const Mapping& mapping, std::span<const Axis> axes);

// Whether the model can be laid out so. The error names the axis, its value, what it must divide,
// and the nearest values that do.
Status check_mapping(const Model& model, const Mapping& mapping);

}  // namespace rankine::tools
