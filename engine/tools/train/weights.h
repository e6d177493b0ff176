// Matrices within a unit's parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/tools/train/unit.h"

namespace rankine::tools {

struct Weights {
  std::size_t begin = 0;
  int rows = 0, cols = 0;

  std::size_t size() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  MatrixView of(const Unit& unit) const { return {unit.values(), begin, rows, cols}; }
  std::vector<float> values_of(const Unit& unit) const {
    Matrix values(rows, cols);
    for (int i = 0; i < rows; ++i) add_row(of(unit), i, values.row(i));
    return std::move(values.values);
  }
  std::span<float> gradient_of(Unit& unit, int shard) const {
    return unit.gradient(shard).subspan(begin, size());
  }
};

// One after the other in a unit.
class WeightsLayout {
 public:
  Weights next(int rows, int cols) {
    const Weights weights{size_, rows, cols};
    size_ += weights.size();
    return weights;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

}  // namespace rankine::tools
