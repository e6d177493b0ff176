// Row-major matrices of f32 and what a transformer does with them.
//
// Every sum is added up in one order, by rising index and from what is there on, whatever the
// shapes: so a product has the same bits whether it is computed whole or in parts of its rows or
// columns. A BLAS promises nothing of the kind, which is why these loops are here.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace rankine::tools {

struct Matrix {
  Matrix() = default;
  Matrix(int rows_, int cols_)
      : rows(rows_),
        cols(cols_),
        values(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(cols_)) {}

  float* row(int i) { return values.data() + static_cast<std::size_t>(i) * width(); }
  const float* row(int i) const { return values.data() + static_cast<std::size_t>(i) * width(); }
  std::size_t width() const { return static_cast<std::size_t>(cols); }

  int rows = 0, cols = 0;
  std::vector<float> values;
};

// Somebody else's matrix: a Matrix, or a part of a vector of parameters.
struct MatrixView {
  MatrixView(const Matrix& m) : values(m.values.data()), rows(m.rows), cols(m.cols) {}
  MatrixView(std::span<const float> values_, int rows_, int cols_)
      : values(values_.data()), rows(rows_), cols(cols_) {}

  const float* values;
  int rows, cols;
};

Matrix product(MatrixView a, MatrixView b);                                     // a b
Matrix product_with_transposed(MatrixView a, MatrixView b);                     // a b^T
void add_transposed_product(MatrixView a, MatrixView b, std::span<float> sum);  // sum += a^T b

void add(const Matrix& from, Matrix& to);
// Of two vectors of n.
void add_scaled(float factor, const float* from, float* to, int n);
float dot(const float* a, const float* b, int n);

// Each row over its root of the mean of squares, times the gains (RMSNorm; Zhang & Sennrich, 2019).
// `scales` gets what each row was multiplied with.
Matrix normed(const Matrix& x, std::span<const float> gains, std::vector<float>& scales);
// Of the loss by x, from that by normed(x); adds what is due to the gains.
Matrix normed_backward(const Matrix& x, std::span<const float> gains,
                       const std::vector<float>& scales, const Matrix& by_normed,
                       std::span<float> by_gains);

// x / (1 + exp(-x)), element by element (SiLU), and backwards.
Matrix silu(const Matrix& x);
Matrix silu_backward(const Matrix& x, const Matrix& by_silu);

// Rows become probabilities.
void softmax(std::span<float> row);

}  // namespace rankine::tools
