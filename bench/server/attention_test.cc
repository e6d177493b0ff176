#include "bench/server/decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/lab/train/matrix.h"

namespace rankine::server {
namespace {

constexpr int kHeads = 4, kKvHeads = 2, kWidth = 6, kTokens = 5;

Matrix drawn(int rows, int cols, std::uint64_t seed) {
  Matrix m(rows, cols);
  tools::Beginning{seed, 1, cols}.fill(m.values, 0, 0, cols);
  return m;
}

// Computes attention by its definition, for all tokens of one sequence at once. Pairs of elements
// are complex numbers that the position rotates.
Matrix by_definition(const Matrix& queries, const Matrix& keys, const Matrix& values) {
  const auto element = [](const Matrix& m, int token, int head, int i) {
    const float* const begin = m.row(token) + head * kWidth;
    return std::polar(1.0, token * std::pow(500'000.0, -2.0 * i / kWidth)) *
           std::complex<double>(begin[i], begin[i + kWidth / 2]);
  };
  Matrix result(queries.rows, queries.cols);
  for (int token = 0; token < queries.rows; ++token) {
    for (int head = 0; head < kHeads; ++head) {
      const int kv = head / (kHeads / kKvHeads);
      std::vector<double> sums(kWidth);
      double all = 0;
      for (int past = 0; past <= token; ++past) {
        double score = 0;
        for (int i = 0; i < kWidth / 2; ++i) {
          const auto key = std::conj(element(keys, past, kv, i));
          score += (element(queries, token, head, i) * key).real();
        }
        const double weight = std::exp(score / std::sqrt(kWidth));
        all += weight;
        for (int i = 0; i < kWidth; ++i) {
          sums[static_cast<std::size_t>(i)] += weight * values.row(past)[kv * kWidth + i];
        }
      }
      for (int i = 0; i < kWidth; ++i) {
        result.row(token)[head * kWidth + i] =
            static_cast<float>(sums[static_cast<std::size_t>(i)] / all);
      }
    }
  }
  return result;
}

Matrix rows(const Matrix& of, int first, int count) {
  Matrix some(count, of.cols);
  some.values.assign(of.row(first), of.row(first) + some.values.size());
  return some;
}

TEST(Attention, IsItsDefinitionForTokensThatComeInPiecesBesideOthers) {
  const Matrix queries = drawn(kTokens, kHeads * kWidth, 1),
               keys = drawn(kTokens, kKvHeads * kWidth, 2),
               values = drawn(kTokens, kKvHeads * kWidth, 3);
  const Matrix expected = by_definition(queries, keys, values);
  Attention attention(kHeads, kKvHeads, kWidth, 8);
  const std::vector<int> ids(3);
  for (const auto& [first, count] : {std::pair{0, 3}, {3, 1}, {4, 1}}) {
    Batch batch;  // each token belongs to two sequences
    for (const int sequence : {7, 2}) {
      batch.add({.sequence = sequence, .position = first, .tokens = count},
                std::span(ids).first(static_cast<std::size_t>(count)));
    }
    const auto twice = [first = first, count = count](const Matrix& m) {
      Matrix both(2 * count, m.cols);
      const Matrix one = rows(m, first, count);
      std::copy(one.values.begin(), one.values.end(), both.row(0));
      std::copy(one.values.begin(), one.values.end(), both.row(count));
      return both;
    };
    const Matrix got = attention.forward(batch, twice(queries), twice(keys), twice(values));
    for (int row = 0; row < got.rows; ++row) {
      for (int i = 0; i < got.cols; ++i) {
        EXPECT_NEAR(got.row(row)[i], expected.row(first + row % count)[i], 1e-5) << row << " " << i;
      }
    }
  }
}

}  // namespace
}  // namespace rankine::server
