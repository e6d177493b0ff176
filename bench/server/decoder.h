// What all ranks compute in one step of a server: tokens of several sequences, some at work on
// their prompts, some on their answers. It is plain bytes, so that rank 0 can tell it to the
// others.
#pragma once

#include <barrier>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/epilogues.h"
#include "engine/api/member.h"
#include "engine/base/status.h"
#include "engine/lab/planner/model.h"
#include "engine/lab/train/matrix.h"
#include "engine/run/user_functions.h"

namespace rankine::server {

inline constexpr int kMostSequences = 32, kMostTokens = 256;

// Tokens of one sequence that follow each other.
struct Piece {
  int sequence = 0;  // the place of its keys and values: 0 .. kMostSequences - 1
  int position = 0;  // of the first of them in the sequence
  int tokens = 0;
  bool wants_next = false;  // the token that follows the last of them
};

struct Batch {
  bool stop = false;  // no step: all ranks are done
  int pieces = 0, tokens = 0;
  Piece piece[kMostSequences];
  int token[kMostTokens] = {};  // of all pieces, one after the other

  std::span<const Piece> all() const { return {piece, static_cast<std::size_t>(pieces)}; }
  void add(const Piece& next, std::span<const int> its_tokens) {
    piece[pieces++] = next;
    for (const int t : its_tokens) token[tokens++] = t;
  }
};

// What the ranks of a server need of a collective library: three calls, which all ranks make in the
// same order, each rank on a thread or process of its own, and memory for the largest of them. They
// throw what goes wrong.

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Rank 0's bytes are everyone's.
  virtual void broadcast(std::span<std::byte> data) = 0;
  // Room for n numbers that this rank brings to a sum, until it asks again.
  virtual std::span<float> addends(std::size_t n) = 0;
  // Everyone's x, which addends() gave, is the sum of all, in the order of the ranks, whose rows
  // `then` is called on.
  virtual void all_reduce(std::span<float> x, const Epilogue& then) = 0;
  // all = the ranks' bytes one after the other.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

// The same among threads as one would write it in an hour: a pointer from each rank, a
// std::barrier, and loops. What Rankine is measured beside.

// What the ranks share; it outlives their exchanges. A rank that throws leaves the others waiting.
struct Barrier {
  explicit Barrier(int ranks) : all(ranks), data(static_cast<std::size_t>(ranks)) {}

  std::barrier<> all;
  std::vector<const void*> data;  // by rank: what the others may read until the next meeting
  std::vector<float> sums;
};

class BarrierExchange : public Exchange {
 public:
  BarrierExchange(Barrier& barrier, int rank) : barrier_(barrier), rank_(rank) {}
  int rank() const override { return rank_; }
  int ranks() const override { return static_cast<int>(barrier_.data.size()); }

  void broadcast(std::span<std::byte> data) override;
  std::span<float> addends(std::size_t n) override {
    addends_.resize(n);
    return addends_;
  }
  void all_reduce(std::span<float> x, const Epilogue& then) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;

 private:
  void meet() { barrier_.all.arrive_and_wait(); }
  void show(const void* data) {
    barrier_.data[static_cast<std::size_t>(rank_)] = data;
    meet();
  }

  Barrier& barrier_;
  int rank_;
  std::vector<float> addends_;
};

// Rankine's collectives, of threads and of processes alike.

class RankineExchange : public Exchange {
 public:
  explicit RankineExchange(Member& me) : me_(me) {}  // which outlives it
  int rank() const override { return me_.rank(); }
  int ranks() const override { return me_.ranks(); }

  void broadcast(std::span<std::byte> data) override {
    me_.broadcast(bytes(data), 0).throw_if_error();
  }
  // Of the member's memory: processes reach it, too, so they copy nothing on its way.
  std::span<float> addends(std::size_t n) override {
    if (n > addends_.span().size()) addends_ = me_.allocate<float>(std::bit_ceil(n)).value();
    return addends_.span().first(n);
  }
  // A sum's bits depend on what is added alone, so a request gets the same tokens whatever other
  // requests are in its batch.
  void all_reduce(std::span<float> x, const Epilogue& then) override {
    const CallOptions options{
        .order = Order::size_invariant, .shared_payloads = true, .epilogue = &then};
    me_.all_reduce(x, options).throw_if_error();
  }
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    const std::span<const std::uint8_t> in(reinterpret_cast<const std::uint8_t*>(mine.data()),
                                           mine.size());
    me_.all_gather(in, bytes(all)).throw_if_error();
  }

 private:
  static std::span<std::uint8_t> bytes(std::span<std::byte> data) {
    return {reinterpret_cast<std::uint8_t*>(data.data()), data.size()};
  }

  Member& me_;
  Payload<float> addends_;
};

// Causal attention of one layer's heads at one rank, over keys and values of all tokens so far
// (Vaswani et al., 2017), several heads to one of keys and values (Ainslie et al., 2023), positions
// by rotation (Su et al., 2021).

using tools::Matrix;

class Attention {
 public:
  // Sequences have `positions` tokens at most. `kv_heads` divides `heads`; the width is even.
  Attention(int heads, int kv_heads, int head_width, int positions);

  // A row per token of the batch, heads beside each other. Keeps the keys and values: a piece's
  // sequence has had all positions before its first, in earlier batches, and forgets later ones.
  Matrix forward(const Batch& batch, Matrix queries, Matrix keys, const Matrix& values);

 private:
  struct Past {
    Matrix keys;    // head_width x positions, so that a query meets many keys at once
    Matrix values;  // positions x head_width
  };

  void rotate(float* head, int position) const;

  int heads_, kv_heads_, width_, positions_;
  std::vector<Past> past_;  // by sequence and head; made when a sequence first comes
};

// One rank's part of a decoder-only transformer that answers requests: in the shape of Llama 3
// (RMSNorm, rotated positions, SwiGLU, tied embeddings), in f32, with parameters made on the spot.
//
// Tensor parallel (Shoeybi et al., 2019): each rank has its heads, its columns of what goes up and
// its rows of what comes down, and its part of the vocabulary. What ranks add up are the embeddings
// and, of each layer, what attention and the feed-forward part give; the residual and the norm
// behind it are the epilogue of that sum.
//
// A row's values follow from its sequence alone, not from the batch: products are added up by
// rising index (engine/lab/train/matrix.h), sums in the order of the ranks. Another number of
// ranks has other brackets, and so other last bits.

using tools::Model;

// Whether the model can be divided among so many ranks. Errors: invalid_argument.
Status check_ranks(const Model& model, int ranks);

class Decoder {
 public:
  // Sequences have `positions` tokens at most. Requires check_ranks(); the ranks outlive it.
  Decoder(const Model& model, int positions, std::uint64_t seed, Exchange& ranks);

  // The likeliest next token of each piece that wants one, in their order, the same on every rank.
  // A call of all ranks, with the same batch; throws what the exchange throws.
  std::vector<int> step(const Batch& batch);

  // Seconds in step() so far, and of these in sums with their epilogues: waiting for ranks that are
  // later is in it.
  struct Times {
    double steps = 0, sums = 0;
  };
  const Times& times() const { return times_; }

 private:
  struct Layer {
    Matrix query, key, value, out, gate, up, down;
    Attention attention;
  };

  void embed(const Batch& batch);
  // stream += the ranks' sum of `part`, which the exchange gave, and normed = norm(stream).
  void add_up(std::span<float> part);
  // Of that sum this rank's part is a product.
  void add_up(const Matrix& a, const Matrix& b);
  Matrix active(const Layer& layer, const tools::MatrixView& in) const;
  std::vector<int> likeliest(const Batch& batch);

  Exchange& ranks_;
  int vocabulary_;  // of this rank
  std::vector<Layer> layers_;
  Matrix embedding_;  // hidden x vocabulary_
  Matrix stream_, normed_;
  std::optional<RowEpilogue> norm_;
  Times times_;
};

// The model that is served: the shape of Llama 3.2 1B with its widths divided.

// divisor: 1, 2, 4 or 8.
inline tools::Model llama_shape(int layers, int divisor) {
  return {.name = "llama3.2_1b",
          .layers = layers,
          .hidden = 2048 / divisor,
          .heads = 32 / divisor,
          .kv_heads = 8 / divisor,
          .feed_forward = 8192 / divisor,
          .gated = true,
          .vocabulary = 128256 / divisor,
          .tied = true};
}

}  // namespace rankine::server
