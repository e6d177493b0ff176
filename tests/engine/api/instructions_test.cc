// A small call takes no more instructions than it did, through any interface. Fails if a call gets
// a look-up, a copy, a lock or an allocation more. `bench/call:instructions` counts them.

#include "tests/testing.h"

namespace rankine {
namespace {

// A tenth more than the counts of GCC 12 on x86-64.
const std::map<std::string, double> kMost = {
    {"cxx", 83}, {"cxx_changing", 370}, {"cxx_prepared", 107}, {"cxx_in_turn", 475},
    {"c", 138},  {"c_prepared", 175},   {"c_in_turn", 653},    {"c_group", 253},
};

TEST(Instructions, NoMoreThanBefore) {
#if !defined(__x86_64__) || defined(__clang__) || defined(__SANITIZE_ADDRESS__) || \
    defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the counts are those of plain builds by GCC on x86-64";
#endif
  if (std::system("valgrind --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "valgrind is not installed";
  }
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> output(
      popen("bench/call/instructions", "r"), pclose);
  ASSERT_NE(output, nullptr);
  std::array<char, 512> line{}, name{};
  std::size_t rows = 0;
  while (std::fgets(line.data(), line.size(), output.get()) != nullptr) {
    double count = 0;
    if (std::sscanf(line.data(), "%511s %lf", name.data(), &count) != 2) continue;
    ++rows;
    ASSERT_TRUE(kMost.contains(name.data())) << name.data();
    EXPECT_GT(count, 0) << name.data();
    EXPECT_LE(count, kMost.at(name.data())) << name.data();
  }
  EXPECT_EQ(rows, kMost.size());
}

}  // namespace
}  // namespace rankine
