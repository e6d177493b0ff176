// What backward passes give is what the loss changes by.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <span>
#include <vector>

#include "engine/base/numbers.h"
#include "engine/tools/train/attention.h"
#include "engine/tools/train/bf16_product.h"
#include "engine/tools/train/layer.h"
#include "engine/tools/train/matrix.h"

namespace rankine::tools {
namespace {

Matrix some(int rows, int cols, std::uint64_t seed) {
  Matrix m(rows, cols);
  for (float& x : m.values) {
    x = static_cast<float>(splitmix(seed += kSplitMixStep) >> 40) / static_cast<float>(1 << 23) - 1;
  }
  return m;
}

// A loss of anything: the sum of the elements with these weights.
double weighed(const Matrix& m, const Matrix& weights) {
  return std::inner_product(m.values.begin(), m.values.end(), weights.values.begin(), 0.0);
}

// by_x is what f(x), weighed, changes by, element by element.
void expect_gradient(Matrix x, const Matrix& weights, const Matrix& by_x,
                     const std::function<Matrix(const Matrix&)>& f) {
  constexpr float kStep = 1e-2F;
  constexpr double kBound = 5e-3;  // the rounding of f32 over the step, and the second derivative
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const float before = x.values[i];
    x.values[i] = before + kStep;
    const double above = weighed(f(x), weights);
    x.values[i] = before - kStep;
    const double below = weighed(f(x), weights);
    x.values[i] = before;
    EXPECT_NEAR(static_cast<double>(by_x.values[i]), (above - below) / (2 * double{kStep}), kBound)
        << "element " << i;
  }
}

TEST(Matrices, MultiplyByTheDefinition) {
  const Matrix a = some(3, 5, 1), b = some(5, 4, 2);
  const Matrix c = product(a, b);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 5; ++k) sum += a.row(i)[k] * b.row(k)[j];
      EXPECT_EQ(c.row(i)[j], sum);
    }
  }
  EXPECT_EQ(product_with_transposed(a, some(2, 5, 3)).row(2)[1],
            product(a,
                    [] {
                      const Matrix t = some(2, 5, 3);
                      Matrix back(5, 2);
                      for (int i = 0; i < 5; ++i) {
                        for (int j = 0; j < 2; ++j) back.row(i)[j] = t.row(j)[i];
                      }
                      return back;
                    }())
                .row(2)[1]);
  std::vector<float> sum(5 * 4, 1.0F);
  const Matrix d = some(3, 4, 4);
  add_transposed_product(a, d, sum);
  float expected = 1;
  for (int k = 0; k < 3; ++k) expected += a.row(k)[2] * d.row(k)[3];
  EXPECT_EQ(sum[2 * 4 + 3], expected);
}

// A product has the same bits in parts of its columns.
TEST(Matrices, HaveTheSameBitsInParts) {
  const Matrix a = some(7, 33, 1), b = some(33, 29, 2);
  const Matrix whole = product(a, b);
  for (const int cols : {1, 2, 3, 5, 8, 16, 17}) {
    Matrix part(33, cols);
    for (int k = 0; k < 33; ++k) {
      for (int j = 0; j < cols; ++j) part.row(k)[j] = b.row(k)[j + 4];
    }
    const Matrix c = product(a, part);
    for (int i = 0; i < 7; ++i) {
      for (int j = 0; j < cols; ++j) EXPECT_EQ(c.row(i)[j], whole.row(i)[j + 4]) << cols;
    }
  }
}

// bf16: by the definition, on every set of instructions, whole and with an odd row and column more.
TEST(Matrices, OfBf16AreAddedUpByRisingIndex) {
  for (const auto& [rows, depth, cols] :
       {std::array{3, 8, 16}, {2, 7, 5}, {1, 1, 1}, {4, 33, 131}}) {
    const KeptMatrix a(DataType::bf16, some(rows, depth, 1)),
        b(DataType::bf16, some(depth, cols, 2));
    const Matrix begin = some(rows, cols, 3), exact_a = a.matrix(), exact_b = b.matrix();
    for (const Isa isa : {Isa::portable, hardware_isa()}) {
      Matrix c = begin;
      add_bf16_product(a.values.as<BFloat16>().data(), b.values.as<BFloat16>().data(), rows, depth,
                       cols, c.values.data(), isa);
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < cols; ++j) {
          float sum = begin.row(i)[j];
          for (int k = 0; k < depth; ++k) sum += exact_a.row(i)[k] * exact_b.row(k)[j];
          EXPECT_EQ(c.row(i)[j], sum) << name_of(isa) << " " << i << ", " << j;
        }
      }
    }
  }
}

// What is multiplied by bf16 is rounded to it first, whichever of the two it is.
TEST(Matrices, RoundWhatMeetsBf16) {
  const Matrix a = some(3, 6, 1), b = some(6, 4, 2);
  const KeptMatrix rounded_a(DataType::bf16, a), rounded_b(DataType::bf16, b);
  const Matrix expected = product(rounded_a.matrix(), rounded_b.matrix());
  EXPECT_EQ(product(rounded_a, rounded_b).values, expected.values);
  EXPECT_EQ(product(a, rounded_b).values, expected.values);
  EXPECT_EQ(product(rounded_a, b).values, expected.values);
  EXPECT_NE(product(a, b).values, expected.values);
}

TEST(Gradients, OfNorms) {
  const Matrix x = some(3, 8, 1), weights = some(3, 8, 2);
  const Matrix gains = some(1, 8, 3);
  std::vector<float> scales, by_gains(8);
  normed(x, gains.values, scales);
  const Matrix by_x = normed_backward(x, gains.values, scales, weights, by_gains);
  expect_gradient(x, weights, by_x, [&](const Matrix& changed) {
    std::vector<float> unused;
    return normed(changed, gains.values, unused);
  });
  Matrix by(1, 8);
  by.values = by_gains;
  expect_gradient(gains, weights, by, [&](const Matrix& changed) {
    std::vector<float> unused;
    return normed(x, changed.values, unused);
  });
}

TEST(Gradients, OfSilu) {
  const Matrix x = some(2, 9, 1), weights = some(2, 9, 2);
  expect_gradient(x, weights, silu_backward(x, weights), silu);
}

TEST(Gradients, OfAttention) {
  const Attention attention{2, 3, 4};
  const Matrix x = some(8, 18, 1), by = some(8, 6, 2);
  std::vector<KeptMatrix> weights;
  attention.forward(x, weights);
  expect_gradient(x, by, attention.backward(x, weights, by), [&](const Matrix& changed) {
    std::vector<KeptMatrix> unused;
    return attention.forward(changed, unused);
  });
}

// A whole layer, with one feed-forward part and with experts.
TEST(Gradients, OfLayers) {
  for (const int experts : {0, 3}) {
    const Model model{.layers = 1,
                      .hidden = 6,
                      .heads = 2,
                      .kv_heads = 2,
                      .feed_forward = 5,
                      .experts = experts,
                      .top_k = experts > 0 ? 1 : 0,
                      .vocabulary = 4,
                      .sequence = 4,
                      .bytes = 4};
    Layer layer(model, Places{}, 0, 7);
    const Matrix x = some(8, 6, 1), weights = some(8, 6, 2);
    Layer::Saved saved;
    layer.forward(x, saved);
    const Matrix by_x = layer.backward(weights, 0, saved);
    expect_gradient(x, weights, by_x, [&](const Matrix& changed) {
      Layer::Saved unused;
      return layer.forward(changed, unused);
    });
  }
}

}  // namespace
}  // namespace rankine::tools
