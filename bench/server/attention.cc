#include "bench/server/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

namespace rankine::server {

Attention::Attention(int heads, int kv_heads, int head_width, int positions)
    : heads_(heads),
      kv_heads_(kv_heads),
      width_(head_width),
      positions_(positions),
      past_(static_cast<std::size_t>(kMostSequences) * static_cast<std::size_t>(kv_heads)) {}

void Attention::rotate(float* head, int position) const {
  constexpr float kBase = 500'000;  // as in Llama 3
  const int half = width_ / 2;
  for (int i = 0; i < half; ++i) {
    const float angle = static_cast<float>(position) *
                        std::pow(kBase, -static_cast<float>(i) / static_cast<float>(half));
    const float c = std::cos(angle), s = std::sin(angle), x = head[i], y = head[i + half];
    head[i] = x * c - y * s;
    head[i + half] = x * s + y * c;
  }
}

Matrix Attention::forward(const Batch& batch, Matrix queries, Matrix keys, const Matrix& values) {
  Matrix result(queries.rows, queries.cols);
  std::vector<float> weights;
  const float scale = 1 / std::sqrt(static_cast<float>(width_));
  const auto of_head = [this](int head) { return std::ptrdiff_t{head} * width_; };
  int row = 0;
  for (const Piece& piece : batch.all()) {
    for (int position = piece.position; position < piece.position + piece.tokens;
         ++position, ++row) {
      for (int h = 0; h < kv_heads_; ++h) {
        Past& past = past_[static_cast<std::size_t>(piece.sequence * kv_heads_ + h)];
        if (past.keys.rows == 0) {
          past = {Matrix(width_, positions_), Matrix(positions_, width_)};
        }
        float* const key = keys.row(row) + of_head(h);
        rotate(key, position);
        for (int i = 0; i < width_; ++i) past.keys.row(i)[position] = key[i];
        std::copy_n(values.row(row) + of_head(h), width_, past.values.row(position));
      }
      for (int h = 0; h < heads_; ++h) {
        const Past& past =
            past_[static_cast<std::size_t>(piece.sequence * kv_heads_ + h / (heads_ / kv_heads_))];
        float* const query = queries.row(row) + of_head(h);
        rotate(query, position);
        weights.assign(static_cast<std::size_t>(position) + 1, 0);
        for (int i = 0; i < width_; ++i) {
          tools::add_scaled(scale * query[i], past.keys.row(i), weights.data(), position + 1);
        }
        tools::softmax(std::span(weights));
        for (int p = 0; p <= position; ++p) {
          tools::add_scaled(weights[static_cast<std::size_t>(p)], past.values.row(p),
                            result.row(row) + of_head(h), width_);
        }
      }
    }
  }
  return result;
}

}  // namespace rankine::server
