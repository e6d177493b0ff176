// Skips of a circulant graph: in round k rank r sends to r + skips[k]. The rules that make them,
// and how people write them.
// Traff, "Optimal, Non-pipelined Reduce-scatter and Allreduce Algorithms", 2024/2025, section 2.
//   p ranks    s skip    k round
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/list_text.h"

namespace rankine {

// Repeated halving of p with rounding up, until 1: 22 gives 11, 6, 3, 2, 1.
std::vector<int> halving_skips(int p);

// A rule that makes skips for any p.
struct SkipScheme {
  std::string_view name;
  std::vector<int> (*skips)(int p);
  std::string_view summary;
};

//   halving        halving_skips(), the paper's
//   powers_of_two  the largest power of two below p, then below the skip before: Bruck's
//   linear         p - 1, p - 2, ... 1: everyone to everyone directly
//   square_root    p - k ceil(sqrt p) while greater than ceil(sqrt p), then halving
//   halving_near   halving, nearest first: 1, 2, 3, 6, 11
std::span<const SkipScheme> skip_schemes();
const SkipScheme* find_skip_scheme(std::string_view name);  // or nullptr
std::string skip_scheme_names();                            // "halving, powers_of_two, ..."

// "halving" for p ranks, or "11,6,3,2,1" for any; nullopt where it is neither a scheme nor whole
// numbers with commas. skips_refusal() (circulant_rounds.h) says whether p ranks can use them.
std::optional<std::vector<int>> read_skips(std::string_view text, int p);
// "11,6,3,2,1"
inline std::string skips_text(const std::vector<int>& skips) { return list_text(skips, ','); }

}  // namespace rankine
