// Bounds of JSON that others wrote.
#include "engine/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace rankine {
namespace {

using testing::HasSubstr;

std::string repeated(const char* text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string nested(std::size_t levels) { return repeated("[", levels) + repeated("]", levels); }

TEST(ReadJson, ReadsWhatIsInBounds) {
  const auto read = read_json("the text", R"({"a": [1, "x"]})");
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ((*read)["a"][1], "x");
  const auto ordered = read_json<nlohmann::ordered_json>("the text", R"({"b": 1, "a": 2})");
  ASSERT_TRUE(ordered.ok());
  EXPECT_EQ(ordered->dump(), R"({"b":1,"a":2})");
  EXPECT_TRUE(read_json("the text", nested(kMostJsonLevels)).ok());
}

TEST(ReadJson, RefusesWhatNestsTooDeep) {
  const Status status = read_json("the text", nested(kMostJsonLevels + 1)).status();
  EXPECT_EQ(status.code(), Code::invalid_argument);
  EXPECT_EQ(status.text(), "the text nests 65 levels deep; allowed are up to 64");
  constexpr std::size_t kDeep = 1'000'000;
  EXPECT_FALSE(read_json("it", repeated("[", kDeep)).ok());
  EXPECT_FALSE(read_json("it", nested(kDeep)).ok());
  EXPECT_FALSE(read_json("it", repeated("{\"a\":", kDeep) + "1" + repeated("}", kDeep)).ok());
  EXPECT_FALSE(read_json("it", repeated("[{\"a\":", kDeep)).ok());
}

TEST(ReadJson, BracketsInTextsAndSideBySideAreNotDeep) {
  const std::string brackets = repeated("[", 1000);
  EXPECT_TRUE(read_json("it", "[\"" + brackets + "\"]").ok());
  EXPECT_TRUE(read_json("it", "[\"\\\"" + brackets + "\", {\"\\\\\": \"" + brackets + "\"}]").ok());
  EXPECT_TRUE(read_json("it", "[" + repeated("[],", 1000) + "{}]").ok());
  // A text that ends within an escape is no JSON, and no reason to read past its end.
  EXPECT_FALSE(read_json("it", "\"\\").ok());
}

// Else the last one would count, and nobody would hear of the others.
TEST(ReadJson, RefusesAMemberThatIsThereTwice) {
  EXPECT_EQ(
      read_json("the network", R"({"alpha": "1us", "ports": 2, "alpha" : "2us"})").status().text(),
      "the network has the member \"alpha\" twice in one object; allowed is once");
  EXPECT_FALSE(read_json("it", R"([{"a": {"b": 1, "c": [{"b": 2}], "b": 3}}])").ok());
  EXPECT_FALSE(read_json("it", R"({"\"a": {}, "\"a": {}})").ok());
  // In other objects, as a value, and as part of a text.
  EXPECT_TRUE(read_json("it", R"([{"a": {"a": "a"}}, {"a": ["a", "a"], "b": "a"}])").ok());
  EXPECT_TRUE(read_json("it", R"({"a": "\"b\": 1", "b": {"c": 1}, "c": "{\"c\":"})").ok());
  EXPECT_FALSE(read_json("it", "{\"a").ok());
}

TEST(ReadJson, RefusesWhatIsTooLong) {
  const std::string longest = "[" + std::string(kMostJsonBytes - 2, ' ') + "]";
  EXPECT_TRUE(read_json("it", longest).ok());
  EXPECT_THAT(read_json("it", longest + " ").status().text(),
              HasSubstr("it has more than 16777216 bytes"));
}

TEST(ReadJson, SaysWhatIsNoJson) {
  for (const char* text : {"", "{\"a\": ", "[1,]", "]", "[1e999]", "\xff", "nonsense"}) {
    const Status status = read_json("the request", text).status();
    EXPECT_EQ(status.code(), Code::invalid_argument);
    EXPECT_THAT(status.text(), HasSubstr("the request is not JSON: ")) << text;
  }
}

// A privileged program may be made to open a file that its user may not read.
TEST(ReadJson, QuotesNothingOfATextThatIsNoJson) {
  for (const std::string text :
       {"secret", "secret:$6$x:1", "{\n  \"secret\": secret}", "{\"a\": 'secret'}", "[1, secret",
        "{\"secret\": 1, \"secret\": 2", "\"secret\" \"secret\"", "{\"secret\" \"secret\"}",
        "[1e999999, \"secret\"]", "\"secret\x01\""}) {
    const Status status = read_json("the network", text).status();
    EXPECT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.text().find("secret"), std::string::npos) << status.text();
    EXPECT_EQ(status.text().find("999"), std::string::npos) << status.text();
  }
  EXPECT_EQ(
      read_json("the network", "{\n  \"alpha\": us}").status().text(),
      "the network is not JSON: line 2, column 12: syntax error while parsing value - invalid "
      "literal");
  EXPECT_THAT(read_json("it", "[1, 2").status().text(),
              HasSubstr("it is not JSON: line 1, column 6: syntax error while parsing array - "
                        "unexpected end of input"));
}

}  // namespace
}  // namespace rankine
