#include <gmock/gmock.h>
#include <rapidcheck.h>
#include <nlohmann/json.hpp>

#include "engine/base/json_text.h"
#include "engine/base/statistics.h"
#include "engine/base/status.h"
#include "engine/base/units.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Rational decimal(std::string_view text) {
  const auto value = parse_decimal("value", text);
  EXPECT_TRUE(value.ok()) << text << ": " << value.status().text();
  return value.ok() ? *value : Rational(-1);
}

TEST(Numbers, AreReadExactly) {
  const auto seconds = [](std::string_view text) { return *parse_seconds("--alpha", text); };
  const auto beta = [](std::string_view text) { return *parse_bandwidth("--bandwidth", text); };
  const std::pair<Rational, Rational> cases[] = {
      {decimal("1.5"), {3, 2}},
      {decimal("-2e-9"), {-1, 500'000'000}},
      {decimal("+.25"), {1, 4}},
      {decimal("10."), 10},
      {decimal("1.50e-6"), decimal("15e-7")},
      {decimal("0.000e99"), 0},
      {decimal("1000000000000000000000"), decimal("1e21")},
      {seconds("1us"), {1, 1'000'000}},
      {seconds("1.5 us"), {3, 2'000'000}},
      {seconds("500ns"), {1, 2'000'000}},
      {seconds("20ps"), {1, 50'000'000'000}},
      {seconds("3ms"), {3, 1000}},
      {seconds("2s"), 2},
      {seconds("1.5min"), 90},
      {seconds("0.5h"), 1800},
      {seconds("1e-6"), {1, 1'000'000}},
      {seconds("0"), 0},
      {beta("100GB/s"), {1, 100'000'000'000}},
      {beta("800Gb/s"), beta("100GB/s")},
      {beta("1.5TiB/s"), Rational(2, Int128{3} << 40)},
      {beta("10 MB/s"), {1, 10'000'000}},
      {beta("8b/s"), 1},
      {beta("800Gbps"), beta("800Gb/s")},
      {beta("100 Gbit/s"), beta("100Gb/s")},
      {beta("400Gbits/s"), beta("400Gb/s")},
      {beta("100GBps"), beta("100GB/s")},
      // 1/(900 GB/s) as other programs write it has 17 digits at 1e-12.
      {*shortest_decimal("beta", 1 / 900e9),
       Rational(1388888888888889, Int128{1'250'000'000} * 1'000'000'000'000'000'000)},
  };
  for (const auto& [found, expected] : cases) EXPECT_EQ(found.to_string(), expected.to_string());
}

TEST(Decimals, OfDoublesReadBack) {
  const bool holds = rc::check("the shortest text of a double is that double", [] {
    const auto bits = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 53);
    const int exponent = *rc::gen::inRange(-90, 0);
    const double value = std::ldexp(static_cast<double>(bits), exponent);
    const auto exact = shortest_decimal("value", value);
    // Very small numbers with many digits need more than 128 bits and are refused.
    RC_PRE(value > 1e-18);
    RC_ASSERT(exact.ok());
    RC_ASSERT(exact->to_double() == value);
  });
  EXPECT_TRUE(holds);
}

TEST(Durations, OfEveryUnitAgree) {
  const bool holds = rc::check("n of a unit are 1000 n of the next", [] {
    const auto n = *rc::gen::inRange<std::int64_t>(0, 1'000'000'000);
    constexpr std::array<const char*, 5> kUnits = {"s", "ms", "us", "ns", "ps"};
    const auto i = *rc::gen::inRange<std::size_t>(0, kUnits.size() - 1);
    const auto large = parse_seconds("a", std::to_string(n) + kUnits[i]);
    const auto small = parse_seconds("b", std::to_string(1000 * n) + kUnits[i + 1]);
    RC_ASSERT(large.ok() && small.ok());
    RC_ASSERT(*large == *small);
  });
  EXPECT_TRUE(holds);
}

TEST(Bandwidths, RoundTrip) {
  const bool holds = rc::check("n units per second and a beta of one over that", [] {
    const auto n = *rc::gen::inRange<std::int64_t>(1, 100'000'000);
    const std::array<std::pair<const char*, Int128>, 7> units = {{{"B/s", 1},
                                                                  {"kB/s", 1000},
                                                                  {"MB/s", 1'000'000},
                                                                  {"GB/s", 1'000'000'000},
                                                                  {"KiB/s", 1024},
                                                                  {"MiB/s", 1 << 20},
                                                                  {"GiB/s", 1 << 30}}};
    const auto& unit = units[*rc::gen::inRange<std::size_t>(0, units.size())];
    const auto beta = parse_bandwidth("bandwidth", std::to_string(n) + unit.first);
    RC_ASSERT(beta.ok());
    RC_ASSERT(*beta == Rational(1, n * unit.second));
    const auto bits = parse_bandwidth("bandwidth", std::to_string(n) + "Gb/s");
    RC_ASSERT(bits.ok());
    RC_ASSERT(*bits == Rational(8, Int128{n} * 1'000'000'000));
  });
  EXPECT_TRUE(holds);
}

// Each error names the argument, the text and the allowed values.
TEST(Errors, NameArgumentValueAndWhatIsAllowed) {
  const auto expect_error = [](const Status& status, std::string_view argument,
                               std::string_view text, std::string_view allowed) {
    EXPECT_EQ(status.code(), Code::invalid_argument) << text;
    for (const std::string_view part : {argument, text, allowed}) {
      EXPECT_NE(status.text().find(part), std::string::npos)
          << status.text() << " does not name " << part;
    }
  };
  for (const char* text : {"1m", "us", "", "-1us", "1.5.2us", "1 us s", "1e", "nan", "inf", "0x1",
                           " 1us", "1us ", "1e10", "1e30s", "300000h"}) {
    expect_error(parse_seconds("--alpha", text).status(), "--alpha", text, "1.5us");
  }
  for (const char* text : {"100", "100GB", "0GB/s", "-1GB/s", "GB/s", "100 gb/s", "100XB/s",
                           "1e400GB/s", "100GiBs", " 1GB/s", "1GB/s ", "1e10GB/s", "1e-10B/s"}) {
    expect_error(parse_bandwidth("--bandwidth", text).status(), "--bandwidth", text, "100GB/s");
  }
  for (const char* text : {"1,5", "one", "", "1e", "--1"}) {
    expect_error(parse_decimal("beta", text).status(), "beta", text, "2e-9");
  }
  expect_error(parse_decimal("beta", "1e-60").status(), "beta", "1e-60", "1e-36");
  expect_error(parse_decimal("beta", "1e999999999").status(), "beta", "1e999999999", "1e36");
  expect_error(parse_seconds("--alpha", "1e-30ps").status(), "--alpha", "1e-30ps", "1e-36");
  expect_error(shortest_decimal("beta", std::numeric_limits<double>::infinity()).status(), "beta",
               "inf", "decimal");
  expect_error(shortest_decimal("beta", 5e-324).status(), "beta", "5e-324", "1e-36");
}

TEST(ParseSize, ReadsWhatPeopleWrite) {
  constexpr std::size_t kMi = std::size_t{1} << 20;
  const std::pair<const char*, std::size_t> cases[] = {
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
      {"2G", 2048 * kMi},
      {"1T", kMi * kMi},
      {"007", 7},
      {".5K", 512},
      {"9223372036854775807", 9223372036854775807U},
      {"8388607T", 8388607U * kMi * kMi},
      {"0.0009765625K", 1},
      {"1e6", 1'000'000},
      {"2.5E3", 2500},
      {"1e3K", 1'024'000},
      {"1500e-2", 15},
  };
  for (const auto& [text, bytes] : cases) {
    const auto size = parse_size("--minbytes", text);
    ASSERT_TRUE(size.ok()) << text << ": " << size.status().text();
    EXPECT_EQ(*size, bytes) << text;
  }
}

TEST(ParseSize, NamesArgumentValueAndWhatIsAllowed) {
  for (const char* text :
       {"",     "x",     "-8", "+8", "8X",  "8KK",   "K",   "8 4", "0x10", "1e",  "e3", "8KiBs",
        "-1e3", "1.2.3", ".",  "4P", "MiB", "1,000", "nan", "inf", " 16",  "16 ", "4K "}) {
    const auto size = parse_size("--minbytes", text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_EQ(size.status().code(), Code::invalid_argument);
    EXPECT_THAT(size.status().text(), HasSubstr("--minbytes is '" + std::string(text) + "'"));
    EXPECT_THAT(size.status().text(), HasSubstr("64MiB"));
  }
}

TEST(ParseSize, RefusesWhatOverflows) {
  for (const char* text :
       {"9223372036854775808", "8388608T", "1e19", "1e400", "99999999999999999999999999T",
        "123456789012345678901234567890123456789012345678901234567890", "8796093022208M"}) {
    const auto size = parse_size("-e", text);
    ASSERT_FALSE(size.ok()) << text;
    EXPECT_THAT(size.status().text(), HasSubstr("does not fit into 63 bits")) << text;
  }
}

TEST(ParseSize, RefusesPartsOfBytes) {
  for (const char* text :
       {"1.5", "0.3K", "1e-1", "15e-1", "1e-400", "0.0001K", "0.000000000000000000000000000001",
        "0.00000000000000000000000000000000000000001T"}) {
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
  EXPECT_EQ(format_bytes(12), "12 B");
  EXPECT_EQ(format_bytes(1.5 * (1 << 30)), "1.5 GiB");
  EXPECT_EQ(format_duration(1.5e-6), "1.5 us");
  EXPECT_EQ(format_duration(0), "0 s");
  EXPECT_EQ(format_bandwidth(Rational(1, 100'000'000'000)), "100 GB/s");
  EXPECT_EQ(format_bandwidth(Rational(0)), "no limit");
}

TEST(Counted, IsOneOrMany) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(std::size_t{8}, "rank"), "8 ranks");
  EXPECT_EQ(counted(1, "process", "processes"), "1 process");
  EXPECT_EQ(counted(2, "process", "processes"), "2 processes");
}

TEST(ParseDuration, KnowsUnits) {
  EXPECT_EQ(*parse_duration("-T", "30"), milliseconds(30'000));
  EXPECT_EQ(*parse_duration("-T", "0.5"), milliseconds(500));
  EXPECT_EQ(*parse_duration("-T", "250ms"), milliseconds(250));
  EXPECT_EQ(*parse_duration("-T", "3min"), milliseconds(180'000));
  EXPECT_EQ(*parse_duration("-T", "2000us"), milliseconds(2));
  EXPECT_EQ(*parse_duration("-T", "1H"), milliseconds(3'600'000));
  EXPECT_EQ(*parse_duration("-T", "0.35 S"), milliseconds(350));
  EXPECT_EQ(*parse_duration("-T", "86400"), milliseconds(86'400'000));
  for (const char* text :
       {"", "0", "-1", "25h", "x", "1d", "86401", "86400.0001", "1e9", "1e30", "ms", "-1e-9"}) {
    EXPECT_THAT(parse_duration("-T", text).status().text(), HasSubstr("-T is '")) << text;
    EXPECT_THAT(parse_span("-T", text).status().text(), HasSubstr("-T is '")) << text;
  }
}

// Durations that a clock in milliseconds cannot hold are refused, not rounded.
TEST(ParseDuration, RefusesPartsOfMilliseconds) {
  for (const char* text :
       {"10us", "1.0005", "0.1ms", "1ps", "1e-36", "0.123456789012345678901234567890123456"}) {
    const std::string error = parse_duration("-T", text).status().text();
    EXPECT_THAT(error, HasSubstr("-T is '" + std::string(text) + "'"));
    EXPECT_THAT(error, HasSubstr("whole milliseconds"));
    EXPECT_TRUE(*parse_span("--time", text) == *parse_seconds("--time", text)) << text;
  }
}

TEST(Statistics, AreWhatTheirNamesSay) {
  const std::vector<double> values = {5, 1, 4, 2, 3, 100, 6, 7, 8};
  EXPECT_DOUBLE_EQ(median(values), 5);
  EXPECT_DOUBLE_EQ(percentile_99(values), 100);
  EXPECT_DOUBLE_EQ(quantile(values, 0.25), 3);
  EXPECT_DOUBLE_EQ(relative_spread(values), 0.4);
  EXPECT_DOUBLE_EQ(interquartile_mean(values), 5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Statistics, OfFewAndMany) {
  EXPECT_EQ(summarise({}).samples, 0U);
  const Statistics three = summarise({3, 1, 2});
  EXPECT_EQ(three.min, 1);
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.p99, 3);
  EXPECT_EQ(three.max, 3);
  EXPECT_DOUBLE_EQ(three.mean, 2);
  EXPECT_DOUBLE_EQ(three.deviation, 1);
  EXPECT_DOUBLE_EQ(summarise({1, 2, 3, 4}).median, 2.5);
  std::vector<double> many;
  for (int i = 1; i <= 1000; ++i) many.push_back(i);
  EXPECT_EQ(summarise(many).p90, 900);
  EXPECT_EQ(summarise(many).p99, 990);
  EXPECT_EQ(summarise(many).p999, 999);
}

// Limits for JSON from outside.

using testing::HasSubstr;

std::string repeated(const char* text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

std::string nested(std::size_t levels) { return repeated("[", levels) + repeated("]", levels); }

TEST(ReadJson, ReadsWhatIsInBounds) {
  const auto read = read_json("the text", R"({"a": [1, "x"]})").value();
  EXPECT_EQ(read["a"][1], "x");
  const auto ordered = read_json<nlohmann::ordered_json>("the text", R"({"b": 1, "a": 2})").value();
  EXPECT_EQ(ordered.dump(), R"({"b":1,"a":2})");
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
  // A text that ends within an escape is refused, and the parser does not read past its end.
  EXPECT_FALSE(read_json("it", "\"\\").ok());
}

// Without this check the last member would win silently.
TEST(ReadJson, RefusesAMemberThatIsThereTwice) {
  EXPECT_EQ(
      read_json("the network", R"({"alpha": "1us", "ports": 2, "alpha" : "2us"})").status().text(),
      "the network has the member \"alpha\" twice in one object; allowed is once");
  EXPECT_FALSE(read_json("it", R"([{"a": {"b": 1, "c": [{"b": 2}], "b": 3}}])").ok());
  EXPECT_FALSE(read_json("it", R"({"\"a": {}, "\"a": {}})").ok());
  // Accepted: a name again in another object, as a value, and as part of a text.
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

// Errors quote no text of a file, because a user may make a privileged program open a file that the
// user may not read.
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
  EXPECT_EQ(did_you_mean("all_reduec", kNames), "; did you mean 'all_reduce'?");
  EXPECT_EQ(did_you_mean("xyz", kNames), "");
}

}  // namespace
}  // namespace rankine
