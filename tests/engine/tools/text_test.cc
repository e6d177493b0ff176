#include "engine/tools/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace rankine::tools {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(ParseSize, ReadsWhatPeopleWrite) {
  constexpr std::size_t kMi = std::size_t{1} << 20;
  const std::vector<std::pair<const char*, std::size_t>> cases = {
      {"0", 0},
      {"8", 8},
      {"8B", 8},
      {"8 b", 8},
      {"4K", 4096},
      {"4k", 4096},
      {"4KB", 4096},
      {"4KiB", 4096},
      {"4Ki", 4096},
      {"1M", kMi},
      {"64MiB", 64 * kMi},
      {"64 MiB", 64 * kMi},
      {"1.5M", kMi + kMi / 2},
      {"0.5K", 512},
      {"1.0", 1},
      {" 16 ", 16},
      {"2G", 2048 * kMi},
      {"1T", kMi * kMi},
      {"007", 7},
      {".5K", 512},
      {"9223372036854775807", 9223372036854775807U},
      {"8388607T", 8388607U * kMi * kMi},
      {"0.0009765625K", 1},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size("--minbytes", text);
    ASSERT_TRUE(size.ok()) << text << ": " << size.status().text();
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseSize, NamesArgumentValueAndWhatIsAllowed) {
  for (const char* text : {"", "x", "-8", "+8", "8X", "8KK", "K", "8 4", "0x10", "1e3", "8KiBs",
                           "1.2.3", ".", "4P", "MiB", "1,000", "nan", "inf"}) {
    const auto size = parse_size("--minbytes", text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), Code::invalid_argument);
    EXPECT_THAT(size.status().text(), HasSubstr("--minbytes is '" + std::string(text) + "'"));
    EXPECT_THAT(size.status().text(), HasSubstr("64MiB"));
  }
}

TEST(ParseSize, RefusesWhatOverflows) {
  for (const char* text :
       {"9223372036854775808", "8388608T", "99999999999999999999999999T",
        "123456789012345678901234567890123456789012345678901234567890", "8796093022208M"}) {
    const auto size = parse_size("-e", text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(size.status().text(), HasSubstr("does not fit into 63 bits")) << text;
  }
}

TEST(ParseSize, RefusesPartsOfBytes) {
  for (const char* text :
       {"1.5", "0.3K", "0.0001K", "0.00000000000000000000000000000000000000001T"}) {
    EXPECT_THAT(parse_size("-b", text).status().text(), HasSubstr("whole number of bytes")) << text;
  }
}

TEST(FormatSize, IsReadBack) {
  for (const std::size_t bytes : {0UL, 1UL, 8UL, 1000UL, 1024UL, 1536UL, 1UL << 20, 3UL << 30,
                                  (1UL << 62), (1UL << 62) + 1}) {
    const std::string text = format_size(bytes);
    EXPECT_EQ(*parse_size("x", text), bytes) << text;
  }
  EXPECT_EQ(format_size(64 << 20), "64M");
  EXPECT_EQ(format_size(1500), "1500");
}

TEST(FormatBytes, RoundsForReaders) {
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(64.0 * (1 << 20)), "64 MiB");
  EXPECT_EQ(format_bytes(1.5 * (1 << 30)), "1.5 GiB");
}

TEST(ParseWhole, StaysWithinItsEnds) {
  EXPECT_EQ(*parse_whole("--ranks", "1", 1, 1024), 1);
  EXPECT_EQ(*parse_whole("--ranks", "1024", 1, 1024), 1024);
  EXPECT_EQ(*parse_whole("--x", "-3", -5, 5), -3);
  for (const char* text : {"0", "1025", "-1", "x", "", "1.5", "2x", "99999999999999999999"}) {
    const auto value = parse_whole("--ranks", text, 1, 1024);
    ASSERT_FALSE(value.ok()) << text;
    EXPECT_EQ(value.status().text(),
              "--ranks is '" + std::string(text) + "'; allowed are whole numbers from 1 to 1024");
  }
}

TEST(ParseWholeList, ReadsRangesAndSorts) {
  EXPECT_THAT(*parse_whole_list("--ranks", "3", 1, 130), ElementsAre(3));
  EXPECT_THAT(*parse_whole_list("--ranks", "8,2,2..4", 1, 130), ElementsAre(2, 3, 4, 8));
  EXPECT_EQ(parse_whole_list("--ranks", "1..130", 1, 130)->size(), 130U);
  for (const char* text : {"", "0", "4..2", "1..", "..3", "1,,2", "1-3", "131", "a..b"}) {
    EXPECT_THAT(parse_whole_list("--ranks", text, 1, 130).status().text(),
                HasSubstr("allowed are whole numbers from 1 to 130"))
        << text;
  }
}

TEST(ParseDuration, KnowsUnits) {
  EXPECT_EQ(*parse_duration("-T", "30"), milliseconds(30'000));
  EXPECT_EQ(*parse_duration("-T", "0.5"), milliseconds(500));
  EXPECT_EQ(*parse_duration("-T", "250ms"), milliseconds(250));
  EXPECT_EQ(*parse_duration("-T", "3min"), milliseconds(180'000));
  EXPECT_EQ(*parse_duration("-T", "10us"), milliseconds(1));  // never 0
  for (const char* text : {"", "0", "-1", "1h", "x", "1d", "86401", "1e9", "ms"}) {
    EXPECT_THAT(parse_duration("-T", text).status().text(), HasSubstr("-T is '")) << text;
  }
}

TEST(Closest, FindsWhatWasMeant) {
  constexpr std::array<std::string_view, 4> kNames = {"all_reduce", "all_gather", "reduce",
                                                      "broadcast"};
  EXPECT_EQ(closest("allreduce", kNames), "all_reduce");
  EXPECT_EQ(closest("all_reduec", kNames), "all_reduce");
  EXPECT_EQ(closest("ALL-GATHER", kNames), "all_gather");
  EXPECT_EQ(closest("broad", kNames), "broadcast");
  EXPECT_EQ(closest("xyz", kNames), "");
  EXPECT_EQ(closest("", kNames), "");
  EXPECT_EQ(closest(std::string(1000, 'a'), kNames), "");
}

TEST(UnknownName, OffersAWayOut) {
  constexpr std::array<std::string_view, 2> kNames = {"ring", "direct"};
  EXPECT_EQ(unknown_name("--algo", "rnig", kNames).text(),
            "--algo is 'rnig'; allowed are ring, direct; did you mean 'ring'?");
  EXPECT_EQ(unknown_name("--algo", "tree9", kNames).text(),
            "--algo is 'tree9'; allowed are ring, direct");
}

}  // namespace
}  // namespace rankine::tools
