#include "engine/tools/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

namespace rankine::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

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

TEST(UnknownName, OffersAWayOut) {
  constexpr std::array<std::string_view, 2> kNames = {"ring", "direct"};
  EXPECT_EQ(unknown_name("--algo", "rnig", kNames).text(),
            "--algo is 'rnig'; allowed are ring, direct; did you mean 'ring'?");
  EXPECT_EQ(unknown_name("--algo", "tree9", kNames).text(),
            "--algo is 'tree9'; allowed are ring, direct");
}

TEST(Errors, ShowWhatIsLegibleOfAnything) {
  const std::string_view kNames[] = {"ring"};
  EXPECT_EQ(unknown_name("it", "a\x1b[2J\n\x7f", kNames).text(),
            "it is 'a?[2J?\?'; allowed are ring");
  EXPECT_EQ(unknown_name("it", std::string(1'000'000, 'y'), kNames).text(),
            "it is '" + std::string(80, 'y') + " ...'; allowed are ring");
  EXPECT_EQ(unknown_name("it", "Müller", kNames).text(), "it is 'Müller'; allowed are ring");
  EXPECT_LT(parse_whole("n", std::string(1000, '9'), 1, 2).status().text().size(), 200U);
  EXPECT_LT(parse_whole_list("n", std::string(1000, '9'), 1, 2).status().text().size(), 400U);
}

}  // namespace
}  // namespace rankine::tools
