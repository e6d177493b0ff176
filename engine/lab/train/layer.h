// Builds a decoder's layer from parts that ranks share: Share and Places distribute the work, Unit
// keeps parameters and gradients, Experts is a mixture, Layer joins them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/api/buckets.h"
#include "engine/api/member.h"
#include "engine/api/request.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/train/matrix.h"
#include "engine/run/kernels/types.h"

namespace rankine::tools {

// The type in which a model's matrices are stored and multiplied.
inline DataType kept_type(const Model& model) {
  return model.bytes == 2 ? DataType::bf16 : DataType::f32;
}

// One rank's work in a training step: one part of each axis, or all parts one after the other if
// one thread plays the whole step. Both add up sums part by part, so the bits are equal.

// The parts [first, first + count) of `of` parts. The ranks of `group` together play all parts, in
// the order of parts; nullptr: this rank plays all parts.
struct Share {
  int of = 1, first = 0, count = 1;
  Member* group = nullptr;

  bool is_alone() const { return group == nullptr || group->ranks() == 1; }
};

// A rank's shares of a model under a Mapping (planner/model.h) without sp.
struct Places {
  Share tensor;       // tp: columns and rows of matrices, and heads
  Share stages;       // pp: layers
  Share data;         // dp x ep: the batch
  Share experts;      // ep: experts of a layer; their tokens come from these ranks
  Share expert_data;  // dp x ep: shards of the batch with tokens for this rank's experts;
                      // the group has the ranks with equal experts
  Member* everybody = nullptr;
};

// Computes the sum of all parts' vectors, which have equal lengths, in the order of parts. All
// ranks of the group get the sum, each in its first vector. Throws the call's error.
void add_up(const Share& share, std::span<const std::span<float>> parts);
// Returns the sum of all parts' matrices, in `type`. For bf16, parts are rounded and added up in
// f32, and the sum is rounded once.
Matrix add_up(const Share& share, DataType type, std::vector<Matrix> parts);

// A unit holds parameters that are fetched, reduced and updated together, such as the parameters of
// a layer. Data parallelism splits it (ZeRO; Rajbhandari et al., 2020):
//
//   zero  a rank keeps                        in a step
//   0     parameters, gradients, state        all-reduce of gradients, in buckets
//   1     its part of the optimizer's state   reduce-scatter of gradients, all-gather of parameters
//   3     also its part of the parameters     as 1, and an all-gather before each use
//
// If parameters are bf16 in computations, the optimizer keeps an f32 copy, because a step is
// smaller than the resolution of bf16. Gradients are f32.
//
// A unit keeps whole gradients until all micro-batches are done, so that all mappings give sums
// with equal bits.

// Adam (Kingma & Ba, 2015).
struct Adam {
  float rate = 3e-3F, first_decay = 0.9F, second_decay = 0.98F, epsilon = 1e-8F;
};

class Unit {
 public:
  // `shards`: shards of the batch. Gradients of `bracket` neighbouring shards are added up first,
  // then these sums. `fill` sets the initial parameters. The group outlives the unit.
  Unit(std::size_t size, const Share& shards, int bracket, int zero, DataType type,
       const std::function<void(std::span<float>)>& fill);

  // Valid between fetch() and drop(). Without ZeRO-3 always valid; with ZeRO-3, fetch() is a call
  // of the group.
  const Kept& values() const { return whole_; }
  void fetch();
  void drop();

  // The gradient of one of this rank's shards, to be added to; zero at the beginning of a step.
  std::span<float> gradient(int shard);

  // Starts the sum over shards after all gradients have been added. The sum goes on beside this
  // thread's other work until update(), which ends it. With ZeRO-0 the unit joins its group's
  // buckets; the caller must wait for these before update().
  void start_reducing(std::map<Member*, Buckets>& buckets);
  void update(const Adam& adam, int step);  // steps from 1 on

 private:
  bool has_copy() const { return type_ != DataType::f32 || zero_ == 3; }
  std::span<float> my_part();  // parameters in the optimizer's precision
  std::span<float> part_of(std::vector<float>& values) const;  // this rank's part of `values`
  void gather();  // all ranks' parts: a call of the group

  std::size_t size_;
  Share shards_;
  int bracket_, zero_;
  DataType type_;
  std::size_t parts_ = 1,
              part_ = 0;     // ranks that share the optimizer's state; elements per rank
  Kept whole_;               // parameters, and zeroes up to a multiple of the parts
  std::vector<float> mine_;  // this rank's part of them, if has_copy()
  std::vector<std::vector<float>> gradients_;  // by shard
  std::vector<float> my_sum_;                  // sum of gradients, this rank's part, with ZeRO
  std::vector<float> first_, second_;          // moments of this rank's part
  std::optional<Request> reducing_;
};

// A matrix within a unit's parameters: its first element and its shape.

struct Weights {
  std::size_t begin = 0;
  int rows = 0, cols = 0;

  std::size_t size() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  MatrixView of(const Unit& unit) const { return {unit.values(), begin, rows, cols}; }
  std::vector<float> values_of(const Unit& unit) const {
    Matrix values(rows, cols);
    for (int i = 0; i < rows; ++i) add_row(of(unit), i, values.row(i));
    return std::move(values.values);
  }
  std::span<float> gradient_of(Unit& unit, int shard) const {
    return unit.gradient(shard).subspan(begin, size());
  }
};

// Places matrices one after the other in a unit.
class WeightsLayout {
 public:
  Weights next(int rows, int cols) {
    const Weights weights{size_, rows, cols};
    size_ += weights.size();
    return weights;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

// A layer's mixture of experts: each token goes to one expert (Fedus et al., Switch Transformers,
// 2022), on any rank, and comes back; no token is dropped. Tokens travel by all-to-alls with
// counts.

class Experts {
 public:
  Experts(const Model& model, const Places& places, int zero, std::uint64_t seed);

  // One source's tokens that one of this rank's experts got, and the layer's results for them.
  struct Worked {
    KeptMatrix inputs, up, active;
  };
  // Values of a micro-batch that the backward pass needs.
  struct Saved {
    KeptMatrix tokens;
    Matrix probabilities;
    std::vector<int> expert_of;      // [token]
    std::vector<int> sent;           // tokens in the order in which they were sent: by expert
    std::vector<std::int32_t> each;  // tokens from a source to an expert: [source * experts + e]
    std::vector<Worked> worked;      // [source * experts here + e]
    KeptMatrix outputs;              // a row per token
  };

  Matrix forward(const KeptMatrix& tokens, Saved& saved) const;
  // `shard`: the tokens' shard of the batch.
  Matrix backward(const Matrix& by_result, int shard, const Saved& saved);

  std::vector<Unit*> units();

 private:
  int sources() const { return places_.experts.is_alone() ? 1 : places_.experts.of; }
  int here() const { return static_cast<int>(experts_.size()); }
  int source_shard(int source, int shard) const;
  // Sends rows from every source to the experts, or back, in the type of storage.
  Matrix travel(const Matrix& rows, const Saved& saved, bool back) const;

  DataType type_;
  int all_, hidden_, feed_forward_;
  Places places_;
  Weights router_weights_, up_, down_;
  Unit router_;
  std::vector<Unit> experts_;  // this rank's experts
};

// A layer of the decoder: normed attention, then a normed feed-forward part or a mixture; each adds
// its result to its input. Along tp every matrix is cut as in Megatron-LM (Shoeybi et al., 2019):
// two all-reduces forward, two backward.

class Layer {
 public:
  Layer(const Model& model, const Places& places, int zero, std::uint64_t seed);

  // Values of a micro-batch that the backward pass needs.
  struct Saved {
    KeptMatrix in, between;    // before each norm
    KeptMatrix attended, fed;  // after each norm
    std::vector<float> in_scales, between_scales;
    struct Part {  // a part along tp
      KeptMatrix qkv, context, up, active;
      std::vector<KeptMatrix> weights;
    };
    std::vector<Part> parts;
    Experts::Saved experts;
  };

  // Matrices have a row per token, in the type of storage; backward() adds to the gradients of
  // `shard`.
  Matrix forward(const Matrix& in, Saved& saved) const;
  Matrix backward(const Matrix& by_result, int shard, const Saved& saved);

  std::vector<Unit*> units();

 private:
  // The matrices of a part along tp.
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
