#include "algorithms/trivance.h"

#include <gtest/gtest.h>

#include <complex>
#include <set>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/torus.h"
#include "tests/algorithms/reference.h"

namespace rankine {
namespace {

const std::vector<int> kTori[] = {{5, 5}, {7, 7, 7}, {25, 25}};

// Every rank is one sum of a digit of each round, and of one choice of digits only.
TEST(TrivanceCross, SumsOfCrossesMeetEveryRankOnce) {
  for (const std::vector<int>& dims : kTori) {
    const Rotation rotation(dims, 1, Moves::nothing);
    std::vector<Rank> sums = {0};
    for (const std::vector<Rank>& ends : cross_ends(dims)) {
      EXPECT_EQ(ends.size(), 2 * dims.size());
      std::vector<Rank> more = sums;
      for (const Rank end : ends) {
        for (const Rank r : sums) more.push_back(rotation.rotated(r, end));
      }
      sums = more;
    }
    EXPECT_EQ(static_cast<int>(sums.size()), rotation.ranks());
    EXPECT_EQ(std::set<Rank>(sums.begin(), sums.end()).size(), sums.size());
  }
}

// In two dimensions crosses are i^j (2 + i)^k, the factors 2 + i and 2 - i of five taking turns.
TEST(TrivanceCross, TwoDimensionsAreTheGaussianIntegers) {
  const std::vector<int> dims = {25, 25};
  std::complex<int> centre = 1;
  int round = 0;
  for (const std::vector<Rank>& ends : cross_ends(dims)) {
    std::set<Rank> expected;
    for (const std::complex<int> unit : {std::complex{1, 0}, {0, 1}, {-1, 0}, {0, -1}}) {
      const std::complex<int> z = centre * unit;
      expected.insert(wrapped(z.real(), 25) * 25 + wrapped(z.imag(), 25));
    }
    EXPECT_EQ(std::set<Rank>(ends.begin(), ends.end()), expected) << round;
    centre *= std::complex{2, round % 2 == 0 ? 1 : -1};
    ++round;
  }
  EXPECT_EQ(round, 4);
}

// Over the ends of a cross, hops along every dimension and either way are the same number: all 2D
// ports of a rank carry as much.
TEST(TrivanceCross, LoadsAllPortsOfTheTorusAlike) {
  for (const std::vector<int>& dims : kTori) {
    const Torus torus(dims);
    for (const std::vector<Rank>& ends : cross_ends(dims)) {
      std::set<int> hops;  // of a dimension, one way
      for (int d = 0; d < torus.dimensions(); ++d) {
        int up = 0, down = 0;
        for (const Rank end : ends) {
          const int x = torus.coordinate(end, d), size = torus.size(d);
          (2 * x < size ? up : down) += 2 * x < size ? x : size - x;
        }
        hops.insert(up);
        hops.insert(down);
      }
      EXPECT_EQ(hops.size(), 1u);
    }
  }
}

// As few rounds as 2D ports allow: whoever has heard of h ranks has of (2D + 1) h a round later.
TEST(TrivanceCross, TakesAsManyRoundsAsTheLogarithmToTheBaseOfItsPorts) {
  EXPECT_EQ(trivance_cross_latency_all_reduce({27}).rounds, 3);
  EXPECT_EQ(trivance_cross_latency_all_reduce({5, 5}).rounds, 2);
  EXPECT_EQ(trivance_cross_latency_all_reduce({25, 25}).rounds, 4);
  EXPECT_EQ(trivance_cross_latency_all_reduce({7, 7, 7}).rounds, 3);
  EXPECT_EQ(trivance_latency_all_reduce({5, 5}).rounds, 4);
}

TEST(TrivanceCross, GivesTheRightNumbers) {
  for (const std::vector<int>& dims : {std::vector{1}, {2}, {9}, {14}, {5, 5}, {7, 7, 7}}) {
    SCOPED_TRACE(dims_text(dims));
    const Schedule gather = trivance_cross_all_gather(dims);
    const int n = gather.ranks;
    EXPECT_EQ(failure(gather, {Collective::all_gather, n, n, 0, 0}), "");
    const Schedule scatter = trivance_cross_reduce_scatter(dims);
    EXPECT_EQ(failure(scatter, {Collective::reduce_scatter, n, n, 0, 0}), "");
    for (const auto& make : {trivance_cross_all_reduce, trivance_cross_latency_all_reduce}) {
      const Schedule s = make(dims);
      EXPECT_EQ(failure(s, {Collective::all_reduce, n, s.blocks, 0, 0}), "");
    }
  }
}

TEST(TrivanceCross, RefusalsNameTheSizesThatAreTaken) {
  const Algorithm& line = *find_algorithm(Collective::all_gather, "trivance_cross");
  const auto refused = [&line](const std::vector<int>& dims) {
    return line.refusal({.ranks = Torus(dims).ranks(), .dims = dims}).has_value();
  };
  for (const std::vector<int>& dims : {std::vector{1}, {30}, {5, 5}, {25, 25}, {7, 7, 7}}) {
    EXPECT_FALSE(refused(dims)) << dims_text(dims);
  }
  for (const std::vector<int>& dims :
       {std::vector{3, 3}, {5, 25}, {25, 5}, {7, 7}, {5, 5, 5}, {7, 7, 49}, {2, 2, 2, 2}, {9, 9}}) {
    EXPECT_TRUE(refused(dims)) << dims_text(dims);
  }
  EXPECT_EQ(line.refusal({.ranks = 16, .dims = {4, 4}}).value_or(""),
            "all_gather 'trivance_cross': ranks is 16, dims is 4x4; the sizes of a torus must be "
            "equal and a power of 5 in two dimensions, of 7 in three, and more are not taken");
}

}  // namespace
}  // namespace rankine
