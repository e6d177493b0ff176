// Functions that are compiled once for each width of registers. The bits are the same, because no
// product is contracted with its sum (-ffp-contract=off). What chooses among them runs before
// sanitizers are ready.
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

// What matrices hold before training.

namespace rankine::tools {

// What parameters are in the beginning follows from the matrix (a number of its own) and the
// element's place in the whole of it, so that it does not depend on who holds which part: evenly
// from both sides of zero, with a variance of 1 / whole_rows.
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

// Numbers between two uses, as a training keeps them and sends them.

std::vector<BFloat16> rounded_to_bf16(std::span<const float> values);

// f32 as they are, or rounded to bf16, which takes half the memory and half of every message.
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
  // Calls f with the vector that there is.
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

// Products by a BLAS that is found when the program asks for it. Nothing is linked, and nothing
// need be installed.

class Blas {
 public:
  // A shared library with the C interface (cblas_sgemm), which stays open. What Debian calls
  // libblas.so.3 is the BLAS that is installed. One that has threads is told to have one: the ranks
  // are threads already. Errors: invalid_argument, which says what the loader does.
  static Result<Blas> open(const std::string& library);

  // c += a b, row-major: a has rows x depth elements, b depth x cols. In an order of its own.
  void add_product(const float* a, const float* b, int rows, int depth, int cols, float* c) const;

 private:
  using Multiply = void (*)(int order, int turned_a, int turned_b, int rows, int cols, int depth,
                            float factor, const float* a, int width_a, const float* b, int width_b,
                            float kept, float* c, int width_c);
  explicit Blas(Multiply multiply) : multiply_(multiply) {}
  Multiply multiply_;
};

// From now on products of f32 (matrix.h) are its. Before there are threads that multiply.
void use_blas(const Blas& blas);
const Blas* blas_in_use();  // or nullptr: loops of ours

// Products of matrices of bf16 with sums in f32: the same bits on every set of instructions.

// c += a b, row-major: a has rows x depth elements, b depth x cols. Each element is added up by
// rising index from what is there on, rounded after every addition; a product of two bf16 is exact.
// That is what AVX512-BF16 does with pairs, if they lie the other way round. Numbers below 2^-126
// may count as zero, as they do there. Thread-safe. An isa beyond hardware_isa() gives the best one
// that there is.
void add_bf16_product(const BFloat16* a, const BFloat16* b, int rows, int depth, int cols, float* c,
                      Isa isa = best_isa());

// Row-major matrices and what a transformer does with them: they are computed in f32, and kept and
// multiplied in f32 or bf16.
//
// Every sum is added up in one order, by rising index and from what is there on, whatever the
// shapes: so a product has the same bits whether it is computed whole or in parts of its rows or
// columns. A BLAS promises nothing of the kind, which is why these loops are here, and one is used
// only where it is asked for (blas.h).

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

// Causal attention of some heads over sequences of tokens (Vaswani et al., 2017).

struct Attention {
  int heads, head_width, sequence;
  DataType type = DataType::f32;  // that `weights` are kept in

  // `qkv`: a row per token, sequences one after the other; queries, keys and values of all heads
  // beside each other, head by head: 3 x heads x head_width columns. `weights` gets what each token
  // gives to which, for the way back: by sequence and head, a square matrix.
  Matrix forward(const Matrix& qkv, std::vector<KeptMatrix>& weights) const;
  Matrix backward(const Matrix& qkv, const std::vector<KeptMatrix>& weights,
                  const Matrix& by_result) const;
};

}  // namespace rankine::tools
