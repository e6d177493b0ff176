// Algorithms on rings and tori at sizes beyond the catalogue's sweep, and on the tori that papers
// use: proved, and stated truthfully.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "algorithms/torus.h"
#include "engine/read/sweep.h"

namespace rankine {
namespace {

bool on_tori(const SweepResult& result) { return result.algorithm->takes("dims"); }

// All lines that take dims, on one torus or ring; those that the sizes refuse are left out.
std::vector<SweepResult> swept(const std::vector<int>& dims) {
  SweepOptions options;
  options.ranks_from = options.ranks_to = Torus(dims).ranks();
  options.values["dims"] = {dims_text(dims)};
  options.all_roots_up_to = 0;  // the first, the middle and the last one
  std::vector<SweepResult> out;
  for (const Algorithm& line : catalogue()) {
    if (!line.takes("dims")) continue;
    options.collective = line.collective;
    options.algorithm = line.name;
    for (SweepResult& result : sweep(options)) out.push_back(std::move(result));
  }
  return out;
}

class TorusSweep : public testing::TestWithParam<std::vector<int>> {};

TEST_P(TorusSweep, IsProvedAndStatedTruthfully) {
  const std::vector<SweepResult> results = swept(GetParam());
  const std::vector<int>& dims = GetParam();
  // All-reduces in eleven forms, all-gathers and reduce-scatters in six; broadcasts and reduces in
  // one, from three roots. One each along cycles that share no link, which there are but along
  // lines of two. And on crosses, of all-reduces in two forms.
  const bool has_cycles =
      dims.size() == 1 || std::all_of(dims.begin(), dims.end(), [](int a) { return a > 2; });
  const bool equal = std::count(dims.begin(), dims.end(), dims.front()) == std::ssize(dims);
  const int ports = 2 * static_cast<int>(dims.size());
  const bool has_crosses =
      dims.size() == 1 || (equal && dims.size() < 4 && dims.front() % (ports + 1) == 0);
  EXPECT_EQ(results.size(), 29u + (has_cycles ? 3u : 0u) + (has_crosses ? 4u : 0u));
  for (const SweepResult& result : results) {
    EXPECT_TRUE(on_tori(result));
    EXPECT_EQ(result.failure, "") << result.name();
  }
}

std::string name_of_case(const testing::TestParamInfo<std::vector<int>>& info) {
  return dims_text(info.param);
}

INSTANTIATE_TEST_SUITE_P(Rings, TorusSweep,
                         testing::Values(std::vector{130}, std::vector{243}, std::vector{256},
                                         std::vector{512}, std::vector{729}, std::vector{1000}),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Tori, TorusSweep,
                         testing::Values(std::vector{3, 3}, std::vector{4, 4}, std::vector{3, 5},
                                         std::vector{8, 8}, std::vector{9, 9}, std::vector{3, 3, 3},
                                         std::vector{4, 4, 4}, std::vector{27, 27},
                                         std::vector{5, 3}, std::vector{2, 3, 4},
                                         std::vector{2, 2, 2, 2}, std::vector{3, 3, 3, 3},
                                         std::vector{16, 16}, std::vector{5, 5},
                                         std::vector{25, 25}, std::vector{7, 7, 7}),
                         name_of_case);

}  // namespace
}  // namespace rankine
