// Torus: ranks on a grid of D dimensions whose every line is a ring.
//   D dimensions    a size of one    the last varies fastest: r = (x0 * a1 + x1) * a2 + x2
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

inline constexpr std::size_t kMostDims = 14;

// "4x4x2"; reading gives nullopt where the text is no list of 1 to kMostDims sizes from 1.
std::string dims_text(const std::vector<int>& dims);
std::optional<std::vector<int>> read_dims(std::string_view text);

// Why `ranks` ranks cannot form a torus of these sizes, as text that says what is needed; nothing
// where they can.
std::optional<std::string> dims_refusal(const std::vector<int>& dims, int ranks);

// The torus of so many dimensions whose sizes are nearest to each other, largest first; nothing
// where `ranks` has too few factors.
std::vector<int> balanced_dims(int ranks, int dimensions);

class Torus {
 public:
  explicit Torus(std::vector<int> dims);
  int ranks() const { return ranks_; }
  int dimensions() const { return static_cast<int>(dims_.size()); }
  int size(int d) const { return at(dims_, d); }
  int stride(int d) const { return at(strides_, d); }  // between neighbours
  int coordinate(Rank r, int d) const { return r / stride(d) % size(d); }

  // visit(Rank) for all whose coordinate in dimension d is x, ascending.
  template <class Visit>
  void for_each_at(int d, int x, const Visit& visit) const {
    for (Rank line = x * stride(d); line < ranks_; line += size(d) * stride(d)) {
      for (int i = 0; i < stride(d); ++i) visit(line + i);
    }
  }

 private:
  std::vector<int> dims_, strides_;
  int ranks_ = 1;
};

}  // namespace rankine
