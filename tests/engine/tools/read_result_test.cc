// One read of a result: every byte of it, wherever it lies.
#include "engine/tools/read_result.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rankine::tools {
namespace {

std::uint64_t expected(const unsigned char* from, std::size_t bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < bytes; at += sizeof(sum)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + at, std::min(sizeof(word), bytes - at));
    sum += word;
  }
  return sum;
}

TEST(ReadResult, IsTheSumOfTheWords) {
  EXPECT_EQ(read_result(nullptr, 0), 0u);
  std::vector<unsigned char> data(2000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 37 + 11);
  for (std::size_t offset = 0; offset < 3; ++offset) {
    for (std::size_t bytes = 0; bytes + offset <= data.size(); ++bytes) {
      ASSERT_EQ(read_result(data.data() + offset, bytes), expected(data.data() + offset, bytes))
          << offset << " " << bytes;
    }
  }
}

TEST(ReadResult, EveryWidthGivesTheSame) {
  std::vector<unsigned char> data(1500, 0xab);
  for (std::size_t bytes = 0; bytes <= data.size(); ++bytes) {
    using namespace read_result_detail;
    const std::uint64_t sum = sum_of<Words2>(data.data(), bytes);
    EXPECT_EQ(sum, read_result(data.data(), bytes));
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
      EXPECT_EQ(sum, sum_avx2(data.data(), bytes));
    }
    if (__builtin_cpu_supports("avx512f")) {
      EXPECT_EQ(sum, sum_avx512(data.data(), bytes));
    }
#endif
  }
}

}  // namespace
}  // namespace rankine::tools
