// A layer's mixture of experts: each token goes to one of them (Fedus et al., Switch Transformers,
// 2022), wherever it is, and comes back; none is dropped. Tokens travel by all-to-alls with counts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/tools/plan/model.h"
#include "engine/tools/train/share.h"
#include "engine/tools/train/unit.h"
#include "engine/tools/train/weights.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
