// What matrices hold before training.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/base/numbers.h"

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

}  // namespace rankine::tools
