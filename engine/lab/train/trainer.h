// Text made on the spot: sentences of a small grammar, and what a model is trained on of them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/api/split.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/planner/pipeline.h"
#include "engine/lab/train/layer.h"

namespace rankine::tools {

class Corpus {
 public:
  explicit Corpus(std::uint64_t seed);

  static constexpr int kMostLength = 10'000;  // of a sequence, half the text

  int vocabulary() const;  // characters that occur

  // length + 1 tokens from somewhere in the text: number `sequence` of a step. The same for the
  // same arguments. Requires a length of kMostLength at most.
  std::vector<int> sequence(int step, int sequence, int length) const;

 private:
  std::uint64_t seed_;
  std::vector<int> tokens_;
};

// A small decoder, trained: on one thread, or by ranks that play its parts between them. Both add
// up the same sums in the same order (share.h), so that with the same mapping every loss has the
// same bits, however many ranks there are.
//
// In a step each shard of the batch goes through in micro-batches, forward and backward, in the
// order of its pipeline stage (plan/pipeline.h); activations travel as messages, and a gradient
// whose last micro-batch is through is being reduced while the layers below it are at work.

// What a rank's parts of a step take on a modelled machine, in seconds: of a micro-batch, a layer's
// and the head's passes forward and backward; and of a step the optimizer. Their computing is told
// to the network's clock (Member::compute), so that what hides behind it does.
struct Pace {
  double layer_forward = 0, layer_backward = 0;
  double head_forward = 0, head_backward = 0;
  double optimizer = 0;
};

struct Training {
  static constexpr std::size_t kBucketBytes = 256 << 10;  // of a small model: several in every step

  // Not gated, not tied, as many kv_heads as heads, one expert per token; in elements of 4 bytes
  // (f32) or 2 (bf16).
  Model model;
  Mapping mapping;
  Adam adam;
  std::uint64_t seed = 1;
  std::optional<Pace> pace{};  // of ranks on a network
};

// The parts that a rank plays, and its groups.
class Seat {
 public:
  // One thread that plays everything.
  explicit Seat(const Mapping& mapping);
  // This rank's part, among mapping.ranks() ranks: a call of all. Throws the call's error.
  Seat(const Mapping& mapping, Member& me);

  const Places& places() const { return places_; }

 private:
  std::optional<Grid> grid_;
  std::unique_ptr<Member> data_;
  Places places_;
};

class Trainer {
 public:
  // Both outlive it. Requires check_mapping(), and sp = 1.
  Trainer(const Training& training, const Seat& seat, const Corpus& corpus);

  // The batch's mean loss (nats per token) before the update, on all ranks; steps from 1 on. A call
  // of all ranks, which throws what calls return. Where a rank wants to stop, all get nothing.
  std::optional<double> step(int number, bool stop);

 private:
  struct MicroBatch {
    std::vector<std::vector<int>> sequences;
    std::vector<Layer::Saved> layers;
    Matrix by_out;  // of the last stage: the loss by what its layers give
  };

  bool is_first() const { return places_.stages.first == 0; }
  bool is_last() const { return places_.stages.first + places_.stages.count == places_.stages.of; }
  std::vector<Task> tasks() const;
  MicroBatch read(int number, int shard, int micro_batch) const;
  Matrix embed(const MicroBatch& b) const;
  void embed_backward(const MicroBatch& b, int shard, const Matrix& by_embedded);
  double head(MicroBatch& b, int shard, const Matrix& out);  // the loss, and by_out
  double forward(MicroBatch& b, int shard);
  void backward(MicroBatch& b, int shard, bool last);

  // Of one unit or several: while `work` is at it the parameters are here.
  template <class Work>
  auto with(const std::vector<Unit*>& units, const Work& work) const;
  void spend(double Pace::*what) const;
  void reduce(const std::vector<Unit*>& units);
  Matrix received(int from_stage) const;
  void send(Matrix rows, int to_stage);

  const Training& training_;
  const DataType type_;
  const Places& places_;
  const Corpus& corpus_;
  Weights tokens_, positions_, gains_, logits_;
  std::optional<Unit> embedding_, head_;  // of the first stage, and of the last
  std::deque<Layer> layers_;              // of this rank's stages
  std::vector<std::pair<std::unique_ptr<Kept>, Request>> sent_;
  std::map<Member*, Buckets> buckets_;
};

}  // namespace rankine::tools
