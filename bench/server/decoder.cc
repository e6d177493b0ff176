#include "bench/server/decoder.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "engine/base/numbers.h"
#include "engine/lab/train/matrix.h"

namespace rankine::server {
namespace {

using tools::MatrixView;

// Adds its lifetime in seconds to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(sum) {}
  ~Stopwatch() { sum_ += std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  Clock::time_point begin_ = Clock::now();
};

struct Candidate {
  float logit;
  int token;
};

}  // namespace

Status check_ranks(const Model& model, int ranks) {
  const struct {
    const char* name;
    int size;
  } divided[] = {{"kv_heads", model.kv_heads},
                 {"feed_forward", model.feed_forward},
                 {"vocabulary", model.vocabulary}};
  for (const auto& [name, size] : divided) {
    if (size % ranks == 0) continue;
    return invalid_argument("ranks is " + std::to_string(ranks) + "; it must divide " + name +
                            ", which is " + std::to_string(size));
  }
  return {};
}

Decoder::Decoder(const Model& model, int positions, std::uint64_t seed, Exchange& ranks)
    : ranks_(ranks),
      vocabulary_(model.vocabulary / ranks.ranks()),
      stream_(kMostTokens, model.hidden),
      normed_(kMostTokens, model.hidden) {
  const int of = ranks.ranks(), head_width = model.hidden / model.heads;
  std::uint64_t number = 0;
  // Generates this rank's columns (or rows) of a matrix.
  const auto columns = [&](int rows, int cols) {
    Matrix part(rows, cols / of);
    tools::Beginning{mixed(seed, ++number), rows, cols}.fill(part.values, 0,
                                                             ranks.rank() * part.cols, part.cols);
    return part;
  };
  const auto rows = [&](int all_rows, int cols) {
    Matrix part(all_rows / of, cols);
    tools::Beginning{mixed(seed, ++number), all_rows, cols}.fill(
        part.values, ranks.rank() * part.rows, 0, part.cols);
    return part;
  };
  const int kv_width = model.kv_heads * head_width;
  for (int i = 0; i < model.layers; ++i) {
    layers_.push_back({.query = columns(model.hidden, model.hidden),
                       .key = columns(model.hidden, kv_width),
                       .value = columns(model.hidden, kv_width),
                       .out = rows(model.hidden, model.hidden),
                       .gate = columns(model.hidden, model.feed_forward),
                       .up = columns(model.hidden, model.feed_forward),
                       .down = rows(model.feed_forward, model.hidden),
                       .attention{model.heads / of, model.kv_heads / of, head_width, positions}});
  }
  embedding_ = columns(model.hidden, model.vocabulary);
  norm_ = RowEpilogue::make({.type = DataType::f32,
                             .row_elements = stream_.width(),
                             .residual = stream_.values.data(),
                             .norm = Norm::rms,  // all gains are 1
                             .out_type = DataType::f32,
                             .out = normed_.values.data()})
              .value();
}

void Decoder::add_up(std::span<float> part) {
  const Stopwatch watch(times_.sums);
  ranks_.all_reduce(part, *norm_);
}

void Decoder::add_up(const Matrix& a, const Matrix& b) {
  const std::span<float> part =
      ranks_.addends(static_cast<std::size_t>(a.rows) * static_cast<std::size_t>(b.cols));
  tools::put_product(a, b, part);
  add_up(part);
}

void Decoder::embed(const Batch& batch) {
  const std::size_t width = stream_.width();
  const std::span<float> part = ranks_.addends(static_cast<std::size_t>(batch.tokens) * width);
  std::fill(part.begin(), part.end(), 0.0F);
  const int first = ranks_.rank() * vocabulary_;
  for (int i = 0; i < batch.tokens; ++i) {
    const int token = batch.token[i] - first;
    if (token < 0 || token >= vocabulary_) continue;
    float* const row = part.data() + static_cast<std::size_t>(i) * width;
    for (int j = 0; j < stream_.cols; ++j) row[j] = embedding_.row(j)[token];
  }
  std::fill_n(stream_.values.begin(), part.size(), 0.0F);
  add_up(part);
}

Matrix Decoder::active(const Layer& layer, const MatrixView& in) const {
  Matrix result = tools::silu(product(in, layer.gate));
  const Matrix up = product(in, layer.up);
  for (std::size_t i = 0; i < up.values.size(); ++i) result.values[i] *= up.values[i];
  return result;
}

std::vector<int> Decoder::step(const Batch& batch) {
  if (batch.pieces == 0) return {};
  const Stopwatch watch(times_.steps);
  embed(batch);
  const MatrixView in(std::span(normed_.values), batch.tokens, normed_.cols);
  for (Layer& layer : layers_) {
    const Matrix attended = layer.attention.forward(
        batch, product(in, layer.query), product(in, layer.key), product(in, layer.value));
    add_up(attended, layer.out);
    add_up(active(layer, in), layer.down);
  }
  return likeliest(batch);
}

std::vector<int> Decoder::likeliest(const Batch& batch) {
  std::vector<int> rows;
  int end = 0;
  for (const Piece& piece : batch.all()) {
    end += piece.tokens;
    if (piece.wants_next) rows.push_back(end - 1);
  }
  if (rows.empty()) return {};
  Matrix last(static_cast<int>(rows.size()), normed_.cols);
  for (int i = 0; i < last.rows; ++i) {
    std::copy_n(normed_.row(rows[static_cast<std::size_t>(i)]), last.cols, last.row(i));
  }
  const Matrix logits = product(last, embedding_);
  std::vector<Candidate> mine;
  for (int i = 0; i < logits.rows; ++i) {
    const float* const best = std::max_element(logits.row(i), logits.row(i) + logits.cols);
    const int token = static_cast<int>(best - logits.row(i));
    mine.push_back({*best, ranks_.rank() * vocabulary_ + token});
  }
  const std::size_t n = mine.size();
  std::vector<Candidate> all(n * static_cast<std::size_t>(ranks_.ranks()));
  ranks_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  std::vector<int> tokens;
  for (std::size_t i = 0; i < n; ++i) {
    Candidate best = all[i];  // equal candidates: the lowest rank wins
    for (std::size_t at = i + n; at < all.size(); at += n) {
      if (all[at].logit > best.logit) best = all[at];
    }
    tokens.push_back(best.token);
  }
  return tokens;
}

}  // namespace rankine::server
