// The type in which a model's matrices are kept and multiplied.
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

inline DataType kept_type(const Model& model) {
  return model.bytes == 2 ? DataType::bf16 : DataType::f32;
}

// What one rank plays of a training step: of each axis one part, or, where the step is played by
// one thread alone, all parts one after the other. Sums over parts are added up part by part in
// both, so the bits are the same.

// The parts [first, first + count) of `of`. `group` are the ranks that play all of them between
// them, in the order of parts; nullptr: this one plays them all.
struct Share {
  int of = 1, first = 0, count = 1;
  Member* group = nullptr;

  bool is_alone() const { return group == nullptr || group->ranks() == 1; }
};

// Of a model that is laid over ranks as plan/mapping.h has it, without sp.
struct Places {
  Share tensor;       // tp: columns and rows of matrices, and heads
  Share stages;       // pp: layers
  Share data;         // dp x ep: the batch
  Share experts;      // ep: experts of a layer; their tokens come from these ranks
  Share expert_data;  // dp x ep: shards of the batch whose tokens come to the experts played here;
                      // the group are the ranks with the same experts
  Member* everybody = nullptr;
};

// The sum of all parts' vectors, of equal lengths, in the order of parts, on all ranks of the group
// and in each rank's first. Throws the call's error.
void add_up(const Share& share, std::span<const std::span<float>> parts);
// Of matrices that are kept in this type: where that is bf16, parts are rounded, added up in f32,
// and the sum is rounded once.
Matrix add_up(const Share& share, DataType type, std::vector<Matrix> parts);

// Parameters that are fetched, reduced and updated together, such as those of a layer, and what
// data parallelism splits of them (ZeRO; Rajbhandari et al., 2020).
//
//   zero  a rank keeps                        in a step
//   0     parameters, gradients, state        all-reduce of gradients, in buckets
//   1     its part of the optimizer's state   reduce-scatter of gradients, all-gather of parameters
//   3     its part of the parameters as well  the same, and an all-gather wherever they are used
//
// Parameters that are computed with in bf16 are f32 to the optimizer, which keeps a copy: steps are
// smaller than what bf16 can tell apart. Gradients are f32.
//
// Gradients are kept whole until all micro-batches are through, so that their sums have the same
// bits everywhere.

// Adam (Kingma & Ba, 2015).
struct Adam {
  float rate = 3e-3F, first_decay = 0.9F, second_decay = 0.98F, epsilon = 1e-8F;
};

class Unit {
 public:
  // `shards`: of the batch. Gradients of `bracket` neighbouring shards are added up first, then
  // those sums. `fill` says what parameters are in the beginning. The group outlives the unit.
  Unit(std::size_t size, const Share& shards, int bracket, int zero, DataType type,
       const std::function<void(std::span<float>)>& fill);

  // Between fetch() and drop(); always there but with ZeRO-3, where fetch() is a call of the group.
  const Kept& values() const { return whole_; }
  void fetch();
  void drop();

  // What a shard that this rank plays adds to; zeroes at the beginning of a step.
  std::span<float> gradient(int shard);

  // All gradients have been added: the sum over shards begins, and goes on beside what this thread
  // does until update(), which ends it. With ZeRO-0 it takes its place in its group's buckets,
  // which are waited for before update().
  void start_reducing(std::map<Member*, Buckets>& buckets);
  void update(const Adam& adam, int step);  // steps from 1 on

 private:
  bool has_copy() const { return type_ != DataType::f32 || zero_ == 3; }
  std::span<float> my_part();  // of the parameters, as the optimizer has them
  std::span<float> part_of(std::vector<float>& values) const;  // this rank's, of the whole
  void gather();  // all ranks' parts: a call of the group

  std::size_t size_;
  Share shards_;
  int bracket_, zero_;
  DataType type_;
  std::size_t parts_ = 1,
              part_ = 0;     // that the optimizer's state lies in, on as many ranks; of one
  Kept whole_;               // parameters, and zeroes up to a multiple of the parts
  std::vector<float> mine_;  // this rank's part of them, where it has a copy
  std::vector<std::vector<float>> gradients_;  // by shard
  std::vector<float> my_sum_;                  // of gradients, this rank's part, with ZeRO
  std::vector<float> first_, second_;          // moments of this rank's part
  std::optional<Request> reducing_;
};

// Matrices within a unit's parameters.

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

// One after the other in a unit.
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

// A layer's mixture of experts: each token goes to one of them (Fedus et al., Switch Transformers,
// 2022), wherever it is, and comes back; none is dropped. Tokens travel by all-to-alls with counts.

class Experts {
 public:
  Experts(const Model& model, const Places& places, int zero, std::uint64_t seed);

  // The tokens of one source that one expert here got, and what became of them.
  struct Worked {
    KeptMatrix inputs, up, active;
  };
  // Of a micro-batch that comes back later.
  struct Saved {
    KeptMatrix tokens;
    Matrix probabilities;
    std::vector<int> expert_of;      // by token
    std::vector<int> sent;           // tokens in the order in which they were sent: by expert
    std::vector<std::int32_t> each;  // tokens from a source to an expert: [source * experts + e]
    std::vector<Worked> worked;      // [source * experts here + e]
    KeptMatrix outputs;              // of the experts, by token
  };

  Matrix forward(const KeptMatrix& tokens, Saved& saved) const;
  // `shard`: of the batch, that the tokens are of.
  Matrix backward(const Matrix& by_result, int shard, const Saved& saved);

  std::vector<Unit*> units();

 private:
  int sources() const { return places_.experts.is_alone() ? 1 : places_.experts.of; }
  int here() const { return static_cast<int>(experts_.size()); }
  int source_shard(int source, int shard) const;
  // Rows from every source to the experts, or back, as they are kept.
  Matrix travel(const Matrix& rows, const Saved& saved, bool back) const;

  DataType type_;
  int all_, hidden_, feed_forward_;
  Places places_;
  Weights router_weights_, up_, down_;
  Unit router_;
  std::vector<Unit> experts_;  // that this rank plays
};

// A layer of the decoder: normed attention, then a normed feed-forward part or a mixture, each
// added to what came in. Along tp every matrix is cut as in Megatron-LM (Shoeybi et al., 2019): two
// all-reduces forward, two backward.

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
