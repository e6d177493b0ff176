// Products by a BLAS of the machine's. Where none is installed, only that it is missed is tested.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "engine/tools/train/blas.h"
#include "engine/tools/train/matrix.h"

namespace rankine::tools {
namespace {

TEST(Blas, IsMissedByName) {
  const auto missing = Blas::open("libnoneofthiskind.so");
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().text().find("libnoneofthiskind.so"), std::string::npos);
  const auto other = Blas::open("libc.so.6");
  ASSERT_FALSE(other.ok());
  EXPECT_NE(other.status().text().find("cblas_sgemm"), std::string::npos);
}

// The last of all, since it stays in use.
TEST(Blas, MultipliesAsWeDo) {
  const auto blas = Blas::open("libblas.so.3");
  if (!blas.ok()) GTEST_SKIP() << blas.status().text();
  Matrix a(5, 37), b(37, 11);
  for (std::size_t i = 0; i < a.values.size(); ++i) a.values[i] = std::sin(static_cast<float>(i));
  for (std::size_t i = 0; i < b.values.size(); ++i) b.values[i] = std::cos(static_cast<float>(i));
  const Matrix ours = product(a, b);
  std::vector<float> our_sum(37 * 11, 1.0F), their_sum = our_sum;
  add_transposed_product(a, ours, our_sum);
  ASSERT_EQ(blas_in_use(), nullptr);
  use_blas(*blas);
  ASSERT_NE(blas_in_use(), nullptr);
  const Matrix theirs = product(a, b);
  for (std::size_t i = 0; i < ours.values.size(); ++i) {
    EXPECT_NEAR(theirs.values[i], ours.values[i], 1e-5F);
  }
  add_transposed_product(a, ours, their_sum);
  for (std::size_t i = 0; i < our_sum.size(); ++i) EXPECT_NEAR(their_sum[i], our_sum[i], 1e-4F);
}

}  // namespace
}  // namespace rankine::tools
