// Torus numbers ranks on a grid of D dimensions in which every line is a ring.
//   D dimensions    a size of one    the last varies fastest: r = (x0 * a1 + x1) * a2 + x2
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/schedule.h"

namespace rankine {

inline constexpr std::size_t kMostDims = 14;

// "4x4x2"; read_dims() returns nullopt unless the text is a list of 1 to kMostDims sizes >= 1.
std::string dims_text(const std::vector<int>& dims);
std::optional<std::vector<int>> read_dims(std::string_view text);

// The reason why `ranks` ranks cannot form a torus of these sizes, as an error text; nullopt if
// they can.
std::optional<std::string> dims_refusal(const std::vector<int>& dims, int ranks);

// The torus with `dimensions` sizes nearest to each other, largest first; empty if `ranks` has too
// few factors.
std::vector<int> balanced_dims(int ranks, int dimensions);

class Torus {
 public:
  explicit Torus(std::vector<int> dims);
  int ranks() const { return ranks_; }
  int dimensions() const { return static_cast<int>(dims_.size()); }
  int size(int d) const { return at(dims_, d); }
  int stride(int d) const { return at(strides_, d); }  // between neighbours
  int coordinate(Rank r, int d) const { return r / stride(d) % size(d); }

  // visit(Rank) for all ranks with coordinate x in dimension d, ascending.
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
