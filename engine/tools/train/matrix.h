// Row-major matrices and what a transformer does with them: they are computed in f32, and kept and
// multiplied in f32 or bf16.
//
// Every sum is added up in one order, by rising index and from what is there on, whatever the
// shapes: so a product has the same bits whether it is computed whole or in parts of its rows or
// columns. A BLAS promises nothing of the kind, which is why these loops are here, and one is used
// only where it is asked for (blas.h).
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "engine/tools/train/kept.h"

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

// A matrix between two uses.
struct KeptMatrix {
  KeptMatrix() = default;
  KeptMatrix(DataType type, Matrix m)
      : rows(m.rows), cols(m.cols), values(type, std::move(m.values)) {}

  Matrix matrix() const;

  int rows = 0, cols = 0;
  Kept values;
};

// Somebody else's matrix: a Matrix, a KeptMatrix, or a part of a vector of parameters.
struct MatrixView {
  MatrixView(const Matrix& m) : MatrixView(std::span(m.values), m.rows, m.cols) {}
  MatrixView(const KeptMatrix& m) : MatrixView(m.values, 0, m.rows, m.cols) {}
  MatrixView(std::span<const float> values, int rows_, int cols_)
      : floats(values.data()), rows(rows_), cols(cols_) {}
  MatrixView(const Kept& values, std::size_t begin, int rows_, int cols_);

  const float* floats = nullptr;  // of both one is
  const BFloat16* bf16 = nullptr;
  int rows, cols;
};

Matrix rounded(DataType type, Matrix m);  // as it would be kept
// to += row i of m, of as many elements.
void add_row(MatrixView m, int i, float* to);

// Where one of the two is bf16, the other one is rounded to it. Sums are f32 always.
Matrix product(MatrixView a, MatrixView b);                                     // a b
void put_product(MatrixView a, MatrixView b, std::span<float> result);          // result = a b
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
