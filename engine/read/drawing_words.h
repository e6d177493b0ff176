// The words of a drawing (draw.h): signs, and sets of ranks and blocks as short texts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "algorithms/schedule/schedule.h"

namespace rankine {

// The signs that a drawing is made of.
struct Signs {
  std::string_view nothing, held, written, range, rule;
  std::string_view wire, wire_end, swap_begin;  // 0 -1-> 2, 0 <-1-> 2
  std::string_view switched, switched_end;      // 0 =1=> 2,3
};
inline constexpr Signs kAscii = {".", "o", "*", "..", "|", "-", "->", "<-", "=", "=>"};
inline constexpr Signs kUtf8 = {"·", "●", "▸", "‥", "│", "─", "→", "←", "═", "⇒"};

std::size_t width_of(std::string_view text);  // in columns

// 0..3, 6..1 (over the end of n), 0..6/2 (every second), 0..2+5; "+" stands for the joint.
// `indices` is ascending; `suffix` follows every number.
std::string set_text(const std::vector<int>& indices, int n, std::string_view joint,
                     const Signs& signs, const std::string& suffix = "");

// One for each plane of scratch.
std::string primes(int plane);

// How many neighbours each of the collective's blocks is split into.
int parts_of(const Goal& goal);
bool is_all_to_all(const Goal& goal);

// 0>1..3 2>1: all-to-all's blocks by source; parts of a block as 0>1.0.
std::string routes_text(const std::vector<Block>& blocks, const Goal& goal, const Signs& signs);

}  // namespace rankine
