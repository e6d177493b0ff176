#include "numa/cpus.h"

#include <gtest/gtest.h>

#include <numeric>

namespace rankine {
namespace {

TEST(CpuList, ReadsNumbersAndRanges) {
  EXPECT_EQ(parse_cpu_list("0,2,4-7").cpus, (std::vector<int>{0, 2, 4, 5, 6, 7}));
  EXPECT_EQ(parse_cpu_list("5").cpus, std::vector<int>{5});
  EXPECT_EQ(parse_cpu_list("3-3").cpus, std::vector<int>{3});
  EXPECT_EQ(parse_cpu_list("7,1").cpus, (std::vector<int>{7, 1})) << "the order written is kept";
  EXPECT_EQ(parse_cpu_list("0-8191").cpus.size(), 8192u);
}

TEST(CpuList, BadTextNamesThePart) {
  for (const char* text : {"", ",", "1,", ",1", "1,,2", "a", "1-", "-1", "--1", "4-2", "1-2-3",
                           " 1", "1 ", "0x1", "8192", "0-99999999999", "1.5", "+1"}) {
    const CpuList list = parse_cpu_list(text);
    EXPECT_FALSE(list.ok()) << '"' << text << '"';
    EXPECT_TRUE(list.cpus.empty()) << '"' << text << '"';
  }
  EXPECT_NE(parse_cpu_list("1,x,3").error.find("\"x\""), std::string::npos);
  EXPECT_NE(parse_cpu_list("0-3,2").error.find("CPU 2 is listed twice"), std::string::npos);
}

TEST(CpuList, FormatIsTheInverse) {
  for (const char* text : {"0", "0,2,4-7", "0-127", "7,1", "9,8,7", "0-1,5-6,3"}) {
    EXPECT_EQ(format_cpu_list(parse_cpu_list(text).cpus), text);
  }
  EXPECT_EQ(format_cpu_list({}), "");
}

}  // namespace
}  // namespace rankine
