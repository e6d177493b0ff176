#include <cmath>
#include <cstddef>
#include <span>
#include <utility>

#include "engine/lab/train/matrix.h"

namespace rankine::tools {
namespace {

// The first columns of a head's queries, keys and values in a row.
struct Columns {
  int query, key, value;
};

Columns columns_of(int head, int head_width) {
  const int first = 3 * head * head_width;
  return {first, first + head_width, first + 2 * head_width};
}

}  // namespace

Matrix Attention::forward(const Matrix& qkv, std::vector<KeptMatrix>& weights) const {
  Matrix result(qkv.rows, heads * head_width);
  const float scale = 1 / std::sqrt(static_cast<float>(head_width));
  weights.clear();
  for (int first = 0; first < qkv.rows; first += sequence) {
    for (int head = 0; head < heads; ++head) {
      const auto [query, key, value] = columns_of(head, head_width);
      Matrix w(sequence, sequence);
      for (int i = 0; i < sequence; ++i) {
        for (int j = 0; j <= i; ++j) {
          w.row(i)[j] =
              scale * dot(qkv.row(first + i) + query, qkv.row(first + j) + key, head_width);
        }
        softmax(std::span(w.row(i), static_cast<std::size_t>(i) + 1));
      }
      w = rounded(type, std::move(w));
      for (int i = 0; i < sequence; ++i) {
        float* out = result.row(first + i) + std::ptrdiff_t{head} * head_width;
        for (int j = 0; j <= i; ++j) {
          add_scaled(w.row(i)[j], qkv.row(first + j) + value, out, head_width);
        }
      }
      weights.emplace_back(type, std::move(w));
    }
  }
  return result;
}

Matrix Attention::backward(const Matrix& qkv, const std::vector<KeptMatrix>& weights,
                           const Matrix& by_result) const {
  Matrix by_qkv(qkv.rows, qkv.cols);
  const float scale = 1 / std::sqrt(static_cast<float>(head_width));
  std::vector<float> by_weight(static_cast<std::size_t>(sequence));
  auto kept = weights.begin();
  for (int first = 0; first < qkv.rows; first += sequence) {
    for (int head = 0; head < heads; ++head, ++kept) {
      const Matrix w = kept->matrix();
      const auto [query, key, value] = columns_of(head, head_width);
      for (int i = 0; i < sequence; ++i) {
        const float* by_out = by_result.row(first + i) + std::ptrdiff_t{head} * head_width;
        const float* given = w.row(i);
        float mean = 0;
        for (int j = 0; j <= i; ++j) {
          by_weight[static_cast<std::size_t>(j)] =
              dot(by_out, qkv.row(first + j) + value, head_width);
          mean += given[j] * by_weight[static_cast<std::size_t>(j)];
          add_scaled(given[j], by_out, by_qkv.row(first + j) + value, head_width);
        }
        for (int j = 0; j <= i; ++j) {
          const float by_score = scale * given[j] * (by_weight[static_cast<std::size_t>(j)] - mean);
          add_scaled(by_score, qkv.row(first + j) + key, by_qkv.row(first + i) + query, head_width);
          add_scaled(by_score, qkv.row(first + i) + query, by_qkv.row(first + j) + key, head_width);
        }
      }
    }
  }
  return by_qkv;
}

}  // namespace rankine::tools
