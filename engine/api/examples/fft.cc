// The Fourier transform of 4,096 samples on four ranks, as a matrix of 64 x 64: it transforms
// columns, multiplies by twiddle factors, and transforms rows. Transposes give each rank whole
// columns or rows (Bailey, FFTs in external or hierarchical memory, 1990).
//
//   bazel run //engine/api/examples:fft
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdio>
#include <numbers>
#include <span>
#include <vector>

#include "engine/api/team.h"

namespace {

using Complex = std::complex<double>;

constexpr std::size_t kRanks = 4, kSide = 64, kSamples = kSide * kSide;

// Transposes a matrix that ranks hold by rows, by an all-to-all of tiles. `mine` has this rank's
// (rows / ranks) rows of `cols` elements. The result has its (cols / ranks) rows of the transposed
// matrix, of `rows` elements each. The number of ranks must divide rows and cols.
template <class T>
std::vector<T> distributed_transpose(rankine::Member& me, std::span<const T> mine, std::size_t rows,
                                     std::size_t cols) {
  const auto ranks = static_cast<std::size_t>(me.ranks());
  const std::size_t height = rows / ranks, width = cols / ranks;  // of a tile
  std::vector<T> tiles(mine.size()), arrived(mine.size()), result(mine.size());
  for (std::size_t to = 0; to < ranks; ++to) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t i = 0; i < height; ++i) {
        tiles[(to * width + j) * height + i] = mine[i * cols + to * width + j];
      }
    }
  }
  me.all_to_all(std::span<const T>(tiles), std::span<T>(arrived)).throw_if_error();
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t j = 0; j < width; ++j) {
      for (std::size_t i = 0; i < height; ++i) {
        result[j * rows + from * height + i] = arrived[(from * width + j) * height + i];
      }
    }
  }
  return result;
}

Complex root(std::size_t of, std::size_t power) {
  return std::polar(
      1.0, -2 * std::numbers::pi * static_cast<double>(power % of) / static_cast<double>(of));
}

// Transforms in place; the size is a power of two (Cooley and Tukey, 1965).
void transform(std::span<Complex> x) {
  const std::size_t n = x.size();
  if (n == 1) return;
  std::vector<Complex> even, odd;
  for (std::size_t i = 0; i < n; i += 2) {
    even.push_back(x[i]);
    odd.push_back(x[i + 1]);
  }
  transform(even);
  transform(odd);
  for (std::size_t k = 0; k < n / 2; ++k) {
    x[k] = even[k] + root(n, k) * odd[k];
    x[k + n / 2] = even[k] - root(n, k) * odd[k];
  }
}

void transform_rows(std::vector<Complex>& rows) {
  for (std::size_t at = 0; at < rows.size(); at += kSide) {
    transform(std::span(rows).subspan(at, kSide));
  }
}

// Takes this rank's samples and returns its part of the spectrum, both in order.
std::vector<Complex> distributed_transform(rankine::Member& me, std::vector<Complex> x) {
  const auto turned = [&](const std::vector<Complex>& rows) {
    return distributed_transpose(me, std::span<const Complex>(rows), kSide, kSide);
  };
  std::vector<Complex> columns = turned(x);
  transform_rows(columns);
  const std::size_t first = static_cast<std::size_t>(me.rank()) * kSide / kRanks;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i] *= root(kSamples, (first + i / kSide) * (i % kSide));
  }
  std::vector<Complex> rows = turned(columns);
  transform_rows(rows);
  return turned(rows);
}

}  // namespace

int main() {
  auto team = rankine::Team::create({.ranks = kRanks});
  team.status().throw_if_error();
  std::vector<Complex> spectrum(kSamples);
  (*team)
      ->run([&](rankine::Member& me) {
        std::vector<Complex> mine(kSamples / kRanks);
        const std::size_t first = static_cast<std::size_t>(me.rank()) * mine.size();
        for (std::size_t i = 0; i < mine.size(); ++i) {  // two waves
          mine[i] = root(kSamples, (kSamples - 3) * (first + i)) +
                    0.5 * root(kSamples, (kSamples - 1000) * (first + i));
        }
        mine = distributed_transform(me, std::move(mine));
        me.gather(std::span<const Complex>(mine), std::span(spectrum), 0).throw_if_error();
      })
      .throw_if_error();
  for (std::size_t k = 0; k < kSamples; ++k) {
    const double height = std::abs(spectrum[k]) / static_cast<double>(kSamples);
    if (height > 1e-9) std::printf("wave %zu: %.6f\n", k, height);
  }
}
