#include "engine/lab/train/matrix.h"

#include <algorithm>
#include <cmath>

namespace rankine::tools {
namespace {

template <class T>
std::vector<T> transposed(const T* from, int rows, int cols) {
  const auto height = static_cast<std::size_t>(rows), width = static_cast<std::size_t>(cols);
  std::vector<T> to(height * width);
  for (std::size_t i = 0; i < height; ++i) {
    for (std::size_t j = 0; j < width; ++j) to[j * height + i] = from[i * width + j];
  }
  return to;
}

// Does add_scaled() for four rows that lie one after the other, one by one.
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

namespace {

// c += a b, of f32, row-major.
void add_own_product(const float* a, const float* b, int rows, int depth, int cols, float* c) {
  constexpr int kTogether = 4;  // rows of b per reading and writing of a row of c
  constexpr int kNear = 32;     // rows of b that stay in a cache during the loop over the rows of a
  const auto row_of_b = [&](int k) { return b + std::ptrdiff_t{k} * cols; };
  for (int first = 0; first < depth; first += kNear) {
    const int end = std::min(first + kNear, depth);
    for (int i = 0; i < rows; ++i) {
      const float* factors = a + std::ptrdiff_t{i} * depth;
      float* const row = c + std::ptrdiff_t{i} * cols;
      int k = first;
      for (; k + kTogether <= end; k += kTogether) {
        add_four_scaled(factors + k, row_of_b(k), row, cols);
      }
      for (; k < end; ++k) add_scaled(factors[k], row_of_b(k), row, cols);
    }
  }
}

// A factor of a product in the product's type, transposed on request; copies only if needed.
class Factor {
 public:
  Factor(MatrixView m, bool in_bf16, bool turned)
      : rows_(turned ? m.cols : m.rows), cols_(turned ? m.rows : m.cols) {
    const std::size_t all = static_cast<std::size_t>(m.rows) * static_cast<std::size_t>(m.cols);
    if (!in_bf16) {
      floats_ = m.floats;
      if (!turned) return;
      own_floats_ = transposed(m.floats, m.rows, m.cols);
      floats_ = own_floats_.data();
      return;
    }
    bf16_ = m.bf16;
    if (m.bf16 == nullptr) {
      own_bf16_ = rounded_to_bf16(std::span(m.floats, all));
      bf16_ = own_bf16_.data();
    }
    if (!turned) return;
    own_bf16_ = transposed(bf16_, m.rows, m.cols);
    bf16_ = own_bf16_.data();
  }

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  const float* floats() const { return floats_; }
  const BFloat16* bf16() const { return bf16_; }

 private:
  int rows_, cols_;
  const float* floats_ = nullptr;
  const BFloat16* bf16_ = nullptr;
  std::vector<float> own_floats_;
  std::vector<BFloat16> own_bf16_;
};

// c += a b, either factor transposed on request. All products use this function.
void add_product(MatrixView a, bool a_turned, MatrixView b, bool b_turned, float* c) {
  const bool in_bf16 = a.bf16 != nullptr || b.bf16 != nullptr;
  const Factor left(a, in_bf16, a_turned), right(b, in_bf16, b_turned);
  const int rows = left.rows(), depth = left.cols(), cols = right.cols();
  if (in_bf16) return add_bf16_product(left.bf16(), right.bf16(), rows, depth, cols, c);
  if (const Blas* blas = blas_in_use()) {
    return blas->add_product(left.floats(), right.floats(), rows, depth, cols, c);
  }
  add_own_product(left.floats(), right.floats(), rows, depth, cols, c);
}

}  // namespace

Matrix KeptMatrix::matrix() const {
  Matrix m;
  m.rows = rows;
  m.cols = cols;
  m.values = values.floats();
  return m;
}

MatrixView::MatrixView(const Kept& values, std::size_t begin, int rows_, int cols_)
    : rows(rows_), cols(cols_) {
  if (values.type() == DataType::bf16) {
    bf16 = values.as<BFloat16>().data() + begin;
  } else {
    floats = values.as<float>().data() + begin;
  }
}

Matrix rounded(DataType type, Matrix m) {
  if (type == DataType::bf16) return KeptMatrix(type, std::move(m)).matrix();
  return m;
}

void add_row(MatrixView m, int i, float* to) {
  const std::ptrdiff_t begin = std::ptrdiff_t{i} * m.cols;
  if (m.floats != nullptr) return add_scaled(1, m.floats + begin, to, m.cols);
  for (int j = 0; j < m.cols; ++j) to[j] += static_cast<float>(m.bf16[begin + j]);
}

Matrix product(MatrixView a, MatrixView b) {
  Matrix c(a.rows, b.cols);
  add_product(a, false, b, false, c.values.data());
  return c;
}

void put_product(MatrixView a, MatrixView b, std::span<float> result) {
  std::fill(result.begin(), result.end(), 0.0F);
  add_product(a, false, b, false, result.data());
}

Matrix product_with_transposed(MatrixView a, MatrixView b) {
  Matrix c(a.rows, b.rows);
  add_product(a, false, b, true, c.values.data());
  return c;
}

void add_transposed_product(MatrixView a, MatrixView b, std::span<float> sum) {
  add_product(a, true, b, false, sum.data());
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
