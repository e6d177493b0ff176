// Computes with row-major matrices of f32 and bf16 for a transformer: storage, products (own loops
// or a BLAS), norms, softmax and attention. Their sums have a fixed order.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/kernels/types.h"

#if defined(__x86_64__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define RANKINE_ANY_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RANKINE_ANY_WIDTH
#endif

namespace rankine::tools {

// Initial parameters: evenly distributed on both sides of zero, with a variance of 1 / whole_rows.
// An element depends only on the matrix (its number) and the element's place in the whole matrix,
// so it does not depend on the distribution over ranks.
struct Beginning {
  std::uint64_t matrix;
  int whole_rows, whole_cols;

  void fill(std::span<float> part, int first_row, int first_col, int cols) const {
    const float most = std::sqrt(3.0F / static_cast<float>(whole_rows));
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::size_t width = static_cast<std::size_t>(cols);
      const std::size_t row = i / width + static_cast<std::size_t>(first_row);
      const std::size_t col = i % width + static_cast<std::size_t>(first_col);
      const std::uint64_t bits =
          mixed(mixed(matrix, row * static_cast<std::size_t>(whole_cols) + col), matrix);
      part[i] = most * (static_cast<float>(bits >> 40) / static_cast<float>(1 << 23) - 1);
    }
  }
};

// Rounds each value to bf16.

std::vector<BFloat16> rounded_to_bf16(std::span<const float> values);

// A vector of numbers in storage or in a message: f32 unchanged, or rounded to bf16, which halves
// memory and messages.
class Kept {
 public:
  Kept() = default;
  // Zeroes. `type`: f32 or bf16.
  Kept(DataType type, std::size_t size);
  Kept(DataType type, std::vector<float> values);

  DataType type() const {
    return std::holds_alternative<std::vector<float>>(values_) ? DataType::f32 : DataType::bf16;
  }
  bool empty() const;
  std::vector<float> floats() const;

  // Requires the element type of type().
  template <class T>
  std::vector<T>& as() {
    return std::get<std::vector<T>>(values_);
  }
  template <class T>
  const std::vector<T>& as() const {
    return std::get<std::vector<T>>(values_);
  }
  // Calls f with the stored vector.
  template <class F>
  auto with(const F& f) {
    return std::visit(f, values_);
  }
  template <class F>
  auto with(const F& f) const {
    return std::visit(f, values_);
  }

 private:
  std::variant<std::vector<float>, std::vector<BFloat16>> values_;
};

// Multiplies with a BLAS that is loaded at run time on request. The program is not linked with a
// BLAS, and none needs to be installed.

class Blas {
 public:
  // Opens a shared library with the C interface (cblas_sgemm); it stays open. On Debian,
  // libblas.so.3 is the installed BLAS. A library with threads is told to use one, because the
  // ranks are threads already. Errors: invalid_argument with the loader's message.
  static Result<Blas> open(const std::string& library);

  // c += a b, row-major: a has rows x depth elements, b depth x cols. The order of sums is the
  // library's.
  void add_product(const float* a, const float* b, int rows, int depth, int cols, float* c) const;

 private:
  using Multiply = void (*)(int order, int turned_a, int turned_b, int rows, int cols, int depth,
                            float factor, const float* a, int width_a, const float* b, int width_b,
                            float kept, float* c, int width_c);
  explicit Blas(Multiply multiply) : multiply_(multiply) {}
  Multiply multiply_;
};

// Lets `blas` compute all further products of f32. Call it before any thread multiplies.
void use_blas(const Blas& blas);
const Blas* blas_in_use();  // nullptr: this file's own loops

// c += a b, row-major, for bf16 with sums in f32: a has rows x depth elements, b depth x cols. The
// bits are equal on every instruction set. Each element's sum starts with its present value, goes
// by rising index, and is rounded after every addition; a product of two bf16 is exact. AVX512-BF16
// computes these sums if each pair of elements is swapped. As there, numbers below 2^-126 may count
// as zero. Thread-safe. If `isa` is beyond hardware_isa(), the best isa of the hardware is used.
void add_bf16_product(const BFloat16* a, const BFloat16* b, int rows, int depth, int cols, float* c,
                      Isa isa = best_isa());

// Row-major matrices: computed in f32, stored and multiplied in f32 or bf16.
//
// Every sum goes by rising index and starts with the present value, for all shapes: so a product
// has equal bits whether it is computed whole or in parts of its rows or columns. A BLAS does not
// promise this. For this reason these loops exist, and a BLAS is used only on request (use_blas()).

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

// A matrix in storage: f32 or bf16.
struct KeptMatrix {
  KeptMatrix() = default;
  KeptMatrix(DataType type, Matrix m)
      : rows(m.rows), cols(m.cols), values(type, std::move(m.values)) {}

  Matrix matrix() const;

  int rows = 0, cols = 0;
  Kept values;
};

// A read-only view of a Matrix, a KeptMatrix, or a part of a vector of parameters, which must
// outlive it.
struct MatrixView {
  MatrixView(const Matrix& m) : MatrixView(std::span(m.values), m.rows, m.cols) {}
  MatrixView(const KeptMatrix& m) : MatrixView(m.values, 0, m.rows, m.cols) {}
  MatrixView(std::span<const float> values, int rows_, int cols_)
      : floats(values.data()), rows(rows_), cols(cols_) {}
  MatrixView(const Kept& values, std::size_t begin, int rows_, int cols_);

  const float* floats = nullptr;  // either floats or bf16 is set
  const BFloat16* bf16 = nullptr;
  int rows, cols;
};

Matrix rounded(DataType type, Matrix m);  // the values after storage in `type`
// to += row i of m; `to` has m.cols elements.
void add_row(MatrixView m, int i, float* to);

// If one of the two is bf16, the other is rounded to it. Sums are always f32.
Matrix product(MatrixView a, MatrixView b);                                     // a b
void put_product(MatrixView a, MatrixView b, std::span<float> result);          // result = a b
Matrix product_with_transposed(MatrixView a, MatrixView b);                     // a b^T
void add_transposed_product(MatrixView a, MatrixView b, std::span<float> sum);  // sum += a^T b

void add(const Matrix& from, Matrix& to);
// Both vectors have n elements.
void add_scaled(float factor, const float* from, float* to, int n);
float dot(const float* a, const float* b, int n);

// Divides each row by the root of the mean of its squares and multiplies by the gains (RMSNorm;
// Zhang & Sennrich, 2019). `scales` gets each row's factor.
Matrix normed(const Matrix& x, std::span<const float> gains, std::vector<float>& scales);
// The gradient of the loss by x, from its gradient by normed(x); adds the gains' gradient to
// by_gains.
Matrix normed_backward(const Matrix& x, std::span<const float> gains,
                       const std::vector<float>& scales, const Matrix& by_normed,
                       std::span<float> by_gains);

// x / (1 + exp(-x)), element by element (SiLU), and backwards.
Matrix silu(const Matrix& x);
Matrix silu_backward(const Matrix& x, const Matrix& by_silu);

// Turns a row into probabilities.
void softmax(std::span<float> row);

// Causal attention of some heads over sequences of tokens (Vaswani et al., 2017).

struct Attention {
  int heads, head_width, sequence;
  DataType type = DataType::f32;  // type of the stored `weights`

  // `qkv`: a row per token, sequences one after the other; queries, keys and values of all heads
  // beside each other, head by head: 3 x heads x head_width columns. `weights` gets the attention
  // weights for backward(): per sequence and head a square matrix.
  Matrix forward(const Matrix& qkv, std::vector<KeptMatrix>& weights) const;
  Matrix backward(const Matrix& qkv, const std::vector<KeptMatrix>& weights,
                  const Matrix& by_result) const;
};

}  // namespace rankine::tools
