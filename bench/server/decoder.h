// The decoder computes one rank's part of a language model. This header also declares the batches
// that it computes, the exchanges (Rankine or a std::barrier) that connect its ranks, its attention
// and the shape of the served model.
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

// Consecutive tokens of one sequence.
struct Piece {
  int sequence = 0;  // index of its keys and values: 0 .. kMostSequences - 1
  int position = 0;  // the first token's, in its sequence
  int tokens = 0;
  bool wants_next = false;  // wants the token after the last of these tokens
};

// The tokens that all ranks compute in one step: some sequences work on their prompts, some on
// their answers. Plain bytes, because rank 0 broadcasts it.
struct Batch {
  bool stop = false;  // no step: all ranks are done
  int pieces = 0, tokens = 0;
  Piece piece[kMostSequences];
  int token[kMostTokens] = {};  // the pieces' tokens, in their order

  std::span<const Piece> all() const { return {piece, static_cast<std::size_t>(pieces)}; }
  void add(const Piece& next, std::span<const int> its_tokens) {
    piece[pieces++] = next;
    for (const int t : its_tokens) token[tokens++] = t;
  }
};

// The three collectives of a server, over one collective library. All ranks call them in the same
// order, each rank on its own thread or process. Calls throw on errors.

class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  // Sends rank 0's bytes to all ranks.
  virtual void broadcast(std::span<std::byte> data) = 0;
  // Memory for n numbers that this rank adds to a sum; valid until the next call of addends().
  virtual std::span<float> addends(std::size_t n) = 0;
  // x = the sum over all ranks, added in the order of the ranks; then calls `then` on its rows. x
  // is memory of addends().
  virtual void all_reduce(std::span<float> x, const Epilogue& then) = 0;
  // all = the bytes of all ranks, in the order of the ranks.
  virtual void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
};

// The simple exchange among threads that Rankine is compared with: a pointer from each rank, a
// std::barrier, and loops.

// The ranks' shared state; it must outlive their exchanges. If a rank throws, the others wait for
// ever.
struct Barrier {
  explicit Barrier(int ranks) : all(ranks), data(static_cast<std::size_t>(ranks)) {}

  std::barrier<> all;
  std::vector<const void*> data;  // by rank: memory that the others may read until the next meeting
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

// Rankine's collectives, among threads or processes. The member must outlive the exchange.

class RankineExchange : public Exchange {
 public:
  explicit RankineExchange(Member& me) : me_(me) {}
  int rank() const override { return me_.rank(); }
  int ranks() const override { return me_.ranks(); }

  void broadcast(std::span<std::byte> data) override {
    me_.broadcast(bytes(data), 0).throw_if_error();
  }
  // Returns memory of Member::allocate(): other processes can read it, so ranks copy nothing.
  std::span<float> addends(std::size_t n) override {
    if (n > addends_.span().size()) addends_ = me_.allocate<float>(std::bit_ceil(n)).value();
    return addends_.span().first(n);
  }
  // Order::size_invariant: the bits of a sum depend only on its addends, so a request gets the same
  // tokens in every batch.
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

// Causal attention of one layer's heads at one rank, over the keys and values of all tokens so far
// (Vaswani et al., 2017). Several heads share one head of keys and values (Ainslie et al., 2023);
// positions by rotation (Su et al., 2021).

using tools::Matrix;

class Attention {
 public:
  // `positions`: the greatest length of a sequence. `kv_heads` divides `heads`; the width is even.
  Attention(int heads, int kv_heads, int head_width, int positions);

  // The matrices have one row for each token of the batch, heads beside each other. Keeps the keys
  // and values. Requires that earlier batches had all positions of the sequence before a piece's
  // first one; forgets later positions.
  Matrix forward(const Batch& batch, Matrix queries, Matrix keys, const Matrix& values);

 private:
  struct Past {
    Matrix keys;    // head_width x positions, because a query multiplies many keys at once
    Matrix values;  // positions x head_width
  };

  void rotate(float* head, int position) const;

  int heads_, kv_heads_, width_, positions_;
  std::vector<Past> past_;  // by sequence and head; created at a sequence's first batch
};

// One rank's part of a decoder-only transformer that answers requests. It has the shape of Llama 3
// (RMSNorm, rotated positions, SwiGLU, tied embeddings), in f32, with generated parameters.
//
// Tensor parallel (Shoeybi et al., 2019): each rank has some heads, some columns of the matrices
// that go up, some rows of the matrices that go down, and a part of the vocabulary. The ranks sum
// the embeddings and, in each layer, the outputs of attention and of the feed-forward part. The
// residual and the next norm are the epilogue of that sum.
//
// A row's values depend on its sequence only, not on the batch: products add by rising index
// (engine/lab/train/matrix.h), sums add in the order of the ranks. Another number of ranks adds in
// other groups, so the last bits differ.

using tools::Model;

// Checks that the model can be divided among this number of ranks. Errors: invalid_argument.
Status check_ranks(const Model& model, int ranks);

class Decoder {
 public:
  // `positions`: the greatest length of a sequence. Requires check_ranks(); `ranks` must outlive
  // the decoder.
  Decoder(const Model& model, int positions, std::uint64_t seed, Exchange& ranks);

  // Returns the most probable next token of each piece with wants_next, in the order of the pieces,
  // equal on all ranks. All ranks must call step() with the same batch. Throws the errors of the
  // exchange.
  std::vector<int> step(const Batch& batch);

  // Seconds in step() so far; `sums` is the part in sums with their epilogues, including the wait
  // for later ranks.
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
  // stream += the ranks' sum of `part` (memory of addends()); normed = norm(stream).
  void add_up(std::span<float> part);
  // As above; this rank's part is the product a * b.
  void add_up(const Matrix& a, const Matrix& b);
  Matrix active(const Layer& layer, const tools::MatrixView& in) const;
  std::vector<int> likeliest(const Batch& batch);

  Exchange& ranks_;
  int vocabulary_;  // this rank's part
  std::vector<Layer> layers_;
  Matrix embedding_;  // hidden x vocabulary_
  Matrix stream_, normed_;
  std::optional<RowEpilogue> norm_;
  Times times_;
};

// The served model: the shape of Llama 3.2 1B with its widths divided.

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
