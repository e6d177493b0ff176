// Trains a small decoder on generated text: Corpus makes sentences of a small grammar, and Trainer
// runs the steps on one thread or on ranks.
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

  static constexpr int kMostLength = 10'000;  // of a sequence: half of the text

  int vocabulary() const;  // characters that occur

  // length + 1 tokens from a random place in the text, for sequence number `sequence` of a step.
  // Equal arguments give equal tokens. Requires a length of at most kMostLength.
  std::vector<int> sequence(int step, int sequence, int length) const;

 private:
  std::uint64_t seed_;
  std::vector<int> tokens_;
};

// A small decoder is trained on one thread, or by ranks that divide its parts. Both add up sums in
// one order (layer.h), so for a mapping every loss has equal bits on any number of ranks.
//
// In a step each shard of the batch goes through in micro-batches, forward and backward, in the
// order of its pipeline stage (planner/pipeline.h). Activations travel as messages. A gradient
// is reduced after its last micro-batch, while the layers below it compute.

// Seconds of a rank's work on a modelled machine: per micro-batch, a layer's and the head's passes
// forward and backward; per step, the optimizer. The network's clock gets these times
// (Member::compute), so communication can hide behind them.
struct Pace {
  double layer_forward = 0, layer_backward = 0;
  double head_forward = 0, head_backward = 0;
  double optimizer = 0;
};

struct Training {
  static constexpr std::size_t kBucketBytes = 256 << 10;  // small: several buckets in every step

  // Not gated, not tied, as many kv_heads as heads, one expert per token; elements of 4 bytes (f32)
  // or 2 bytes (bf16).
  Model model;
  Mapping mapping;
  Adam adam;
  std::uint64_t seed = 1;
  std::optional<Pace> pace{};  // only for ranks on a modelled network
};

// The parts that a rank plays, and its groups.
class Seat {
 public:
  // One thread that plays all parts.
  explicit Seat(const Mapping& mapping);
  // This rank's part among mapping.ranks() ranks: a call of all ranks. Throws the call's error.
  Seat(const Mapping& mapping, Member& me);

  const Places& places() const { return places_; }

 private:
  std::optional<Grid> grid_;
  std::unique_ptr<Member> data_;
  Places places_;
};

class Trainer {
 public:
  // Both references must outlive it. Requires check_mapping(), and sp = 1.
  Trainer(const Training& training, const Seat& seat, const Corpus& corpus);

  // Runs one step; numbers start at 1. Returns the batch's mean loss (nats per token) before the
  // update, on all ranks. A call of all ranks; throws the calls' errors. If a rank sets `stop`, all
  // ranks get an empty result.
  std::optional<double> step(int number, bool stop);

 private:
  struct MicroBatch {
    std::vector<std::vector<int>> sequences;
    std::vector<Layer::Saved> layers;
    Matrix by_out;  // last stage: gradient of the loss by the output of its layers
  };

  bool is_first() const { return places_.stages.first == 0; }
  bool is_last() const { return places_.stages.first + places_.stages.count == places_.stages.of; }
  std::vector<Task> tasks() const;
  MicroBatch read(int number, int shard, int micro_batch) const;
  Matrix embed(const MicroBatch& b) const;
  void embed_backward(const MicroBatch& b, int shard, const Matrix& by_embedded);
  double head(MicroBatch& b, int shard, const Matrix& out);  // returns the loss; fills b.by_out
  double forward(MicroBatch& b, int shard);
  void backward(MicroBatch& b, int shard, bool last);

  // Fetches the units' parameters, calls `work`, and drops the parameters.
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
  std::optional<Unit> embedding_, head_;  // on the first stage; on the last stage
  std::deque<Layer> layers_;              // layers of this rank's stages
  std::vector<std::pair<std::unique_ptr<Kept>, Request>> sent_;
  std::map<Member*, Buckets> buckets_;
};

}  // namespace rankine::tools
