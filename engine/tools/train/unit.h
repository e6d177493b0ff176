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
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/buckets.h"
#include "engine/api/request.h"
#include "engine/tools/train/kept.h"
#include "engine/tools/train/share.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
