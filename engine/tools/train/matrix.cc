#include "engine/tools/train/matrix.h"

#include <algorithm>
#include <cmath>

// Compiled once for each width of registers. The bits are the same, because no product is
// contracted with its sum (-ffp-contract=off). What chooses among them runs before sanitizers are
// ready.
#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define RANKINE_ANY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RANKINE_ANY_WIDTH
#endif

namespace rankine::tools {
namespace {

Matrix transposed(MatrixView a) {
  Matrix t(a.cols, a.rows);
  for (int i = 0; i < a.rows; ++i) {
    for (int j = 0; j < a.cols; ++j) t.row(j)[i] = a.values[std::ptrdiff_t{i} * a.cols + j];
  }
  return t;
}

// What add_scaled() does with four rows that lie one after the other, one by one.
RANKINE_ANY_WIDTH void add_four_scaled(const float* factors, const float* __restrict from,
                                       float* __restrict to, int n) {
  const float *second = from + n, *third = second + n, *fourth = third + n;
  const float f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
  for (int j = 0; j < n; ++j) {
    float sum = to[j];
    sum += f0 * from[j];
    sum += f1 * second[j];
    sum += f2 * third[j];
    sum += f3 * fourth[j];
    to[j] = sum;
  }
}

}  // namespace

RANKINE_ANY_WIDTH void add_scaled(float factor, const float* __restrict from, float* __restrict to,
                                  int n) {
  for (int j = 0; j < n; ++j) to[j] += factor * from[j];
}

float dot(const float* a, const float* b, int n) {
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

Matrix product(MatrixView a, MatrixView b) {
  constexpr int kTogether = 4;  // rows of b for each time that a row of c is read and written
  constexpr int kNear = 32;     // rows of b that stay in a cache while the rows of a come by
  Matrix c(a.rows, b.cols);
  const auto row_of_b = [&](int k) { return b.values + std::ptrdiff_t{k} * b.cols; };
  for (int first = 0; first < a.cols; first += kNear) {
    const int end = std::min(first + kNear, a.cols);
    for (int i = 0; i < a.rows; ++i) {
      const float* factors = a.values + std::ptrdiff_t{i} * a.cols;
      int k = first;
      for (; k + kTogether <= end; k += kTogether) {
        add_four_scaled(factors + k, row_of_b(k), c.row(i), b.cols);
      }
      for (; k < end; ++k) add_scaled(factors[k], row_of_b(k), c.row(i), b.cols);
    }
  }
  return c;
}

Matrix product_with_transposed(MatrixView a, MatrixView b) { return product(a, transposed(b)); }

void add_transposed_product(MatrixView a, MatrixView b, std::span<float> sum) {
  for (int k = 0; k < a.rows; ++k) {
    for (int i = 0; i < a.cols; ++i) {
      add_scaled(a.values[std::ptrdiff_t{k} * a.cols + i], b.values + std::ptrdiff_t{k} * b.cols,
                 sum.data() + std::ptrdiff_t{i} * b.cols, b.cols);
    }
  }
}

void add(const Matrix& from, Matrix& to) {
  for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] += from.values[i];
}

Matrix normed(const Matrix& x, std::span<const float> gains, std::vector<float>& scales) {
  constexpr float kEpsilon = 1e-5F;
  Matrix y(x.rows, x.cols);
  scales.resize(static_cast<std::size_t>(x.rows));
  for (int i = 0; i < x.rows; ++i) {
    const float* from = x.row(i);
    float squares = 0;
    for (int j = 0; j < x.cols; ++j) squares += from[j] * from[j];
    const float scale = 1 / std::sqrt(squares / static_cast<float>(x.cols) + kEpsilon);
    scales[static_cast<std::size_t>(i)] = scale;
    float* to = y.row(i);
    for (int j = 0; j < x.cols; ++j) to[j] = from[j] * scale * gains[static_cast<std::size_t>(j)];
  }
  return y;
}

Matrix normed_backward(const Matrix& x, std::span<const float> gains,
                       const std::vector<float>& scales, const Matrix& by_normed,
                       std::span<float> by_gains) {
  Matrix by_x(x.rows, x.cols);
  for (int i = 0; i < x.rows; ++i) {
    const float scale = scales[static_cast<std::size_t>(i)];
    const float* from = x.row(i);
    const float* by_y = by_normed.row(i);
    float dot = 0;
    for (int j = 0; j < x.cols; ++j) {
      const auto column = static_cast<std::size_t>(j);
      dot += by_y[j] * gains[column] * from[j];
      by_gains[column] += by_y[j] * from[j] * scale;
    }
    const float along = dot * scale * scale * scale / static_cast<float>(x.cols);
    float* to = by_x.row(i);
    for (int j = 0; j < x.cols; ++j) {
      to[j] = by_y[j] * gains[static_cast<std::size_t>(j)] * scale - along * from[j];
    }
  }
  return by_x;
}

Matrix silu(const Matrix& x) {
  Matrix y(x.rows, x.cols);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    y.values[i] = x.values[i] / (1 + std::exp(-x.values[i]));
  }
  return y;
}

Matrix silu_backward(const Matrix& x, const Matrix& by_silu) {
  Matrix by_x(x.rows, x.cols);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const float sigmoid = 1 / (1 + std::exp(-x.values[i]));
    by_x.values[i] = by_silu.values[i] * sigmoid * (1 + x.values[i] * (1 - sigmoid));
  }
  return by_x;
}

void softmax(std::span<float> row) {
  const float most = *std::max_element(row.begin(), row.end());
  float sum = 0;
  for (float& x : row) sum += x = std::exp(x - most);
  for (float& x : row) x /= sum;
}

}  // namespace rankine::tools
