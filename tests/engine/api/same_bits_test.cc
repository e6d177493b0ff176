// Every all-reduce of the catalogue leaves the same bits on every rank, with data whose sum depends
// on the order in which it is added, but for the lines that say otherwise.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/team.h"

namespace rankine {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kMostRanks = 5;
#else
constexpr int kMostRanks = 33;
#endif

constexpr DataType kFloats[] = {DataType::f32, DataType::f64, DataType::f16, DataType::bf16};
// Odd, and of several lines; the second one is long enough for what is done to long vectors only.
constexpr std::size_t kCounts[] = {67, 5003};

// Element i of a rank's vector. Neighbouring ranks differ by orders of magnitude and in sign, so
// that nearly every other order gives another sum; none overflows in 16 bits.
double element(Rank rank, std::size_t i) {
  const std::uint64_t hash =
      (static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15u + i) * 0xbf58476d1ce4e5b9u;
  const std::uint64_t other = (hash ^ hash >> 31) * 0x94d049bb133111ebu;
  const double mantissa = 1.0 + static_cast<double>(hash >> 12) * 0x1p-52;         // all its bits
  const double scale = std::bit_cast<double>(((other >> 60) + (1023 - 8)) << 52);  // 2^-8 to 2^7
  return ((other >> 59 & 1) != 0 ? mantissa : -mantissa) * scale;
}

std::vector<std::byte> input_of(Rank rank, DataType type, std::size_t count) {
  std::vector<std::byte> bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const double value = element(rank, i);
    const auto put = [&](auto as_type) {
      std::memcpy(bytes.data() + i * sizeof(as_type), &as_type, sizeof(as_type));
    };
    switch (type) {
      case DataType::f64:
        put(value);
        break;
      case DataType::f16:
        put(static_cast<_Float16>(value));
        break;
      case DataType::bf16:
        put(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >>
                                       16));
        break;
      default:
        put(static_cast<float>(value));
    }
  }
  return bytes;
}

struct Case {
  const Algorithm* algorithm;
  std::optional<Transport> transport;
  DataType type;
  std::size_t count;
  bool in_place;

  std::string name(int ranks) const {
    return std::string(algorithm->name) + " N=" + std::to_string(ranks) + " " +
           std::string(name_of(type)) + " x " + std::to_string(count) +
           (in_place ? " in place, " : " apart, ") +
           (transport ? std::string(name_of(*transport)) : "any transport");
  }
};

std::vector<Case> cases_among(int ranks) {
  std::vector<Case> cases;
  for (const Algorithm& line : catalogue()) {
    Params params;
    params.ranks = ranks;
    if (line.collective != Collective::all_reduce || line.refusal(params)) continue;
    std::size_t number = 0;
    for (const std::optional<Transport> transport :
         {std::optional<Transport>(), std::optional(Transport::direct),
          std::optional(Transport::mailbox)}) {
      for (const bool in_place : {false, true}) {
        for (const std::size_t count : kCounts) {
          // All types of few ranks; of many, one after the other.
          for (std::size_t t = 0; t < std::size(kFloats); ++t) {
            if (ranks > 9 && t != number % std::size(kFloats)) continue;
            cases.push_back({&line, transport, kFloats[t], count, in_place});
          }
          ++number;
        }
      }
    }
  }
  return cases;
}

class SameBits : public testing::TestWithParam<int> {};

TEST_P(SameBits, EveryAllReduceOnEveryRank) {
  const int ranks = GetParam();
  const std::vector<Case> cases = cases_among(ranks);
  auto team = Team::create({.ranks = ranks, .timeout = std::chrono::minutes(4)});
  ASSERT_TRUE(team.ok()) << team.status().text();
  // Per case and rank: what came out.
  std::vector<std::vector<std::vector<std::byte>>> results(
      cases.size(), std::vector<std::vector<std::byte>>(static_cast<std::size_t>(ranks)));
  const Status status = (*team)->run([&](Member& me) {
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const Case& test = cases[c];
      std::vector<std::byte> in = input_of(me.rank(), test.type, test.count);
      std::vector<std::byte> out(test.in_place ? 0 : in.size());
      std::byte* result = test.in_place ? in.data() : out.data();
      CallOptions options;
      options.algorithm = test.algorithm->name;
      options.transport = test.transport;
      options.segments = test.algorithm->takes("segments") ? 3 : 0;
      me.call({.collective = Collective::all_reduce,
               .in = in.data(),
               .out = result,
               .count = test.count,
               .type = test.type,
               .op = c % 5 == 4 ? ReduceOp::avg : ReduceOp::sum,
               .options = options})
          .throw_if_error();
      results[c][static_cast<std::size_t>(me.rank())].assign(result, result + in.size());
    }
  });
  ASSERT_TRUE(status.ok()) << status.text();
  for (std::size_t c = 0; c < cases.size(); ++c) {
    if (!cases[c].algorithm->other_bits.empty()) continue;
    for (std::size_t r = 1; r < results[c].size(); ++r) {
      EXPECT_EQ(results[c][r] == results[c][0], true)
          << cases[c].name(ranks) << ": rank " << r << " has other bits than rank 0";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, SameBits, testing::Range(1, kMostRanks + 1));

// The data can tell: the lines that say so do differ among 9 ranks, in the types that sums move in.
TEST(SameBits, LinesThatSayOtherwiseDiffer) {
  constexpr int kRanks = 9;
  auto team = Team::create({.ranks = kRanks});
  ASSERT_TRUE(team.ok()) << team.status().text();
  for (const Algorithm& line : catalogue()) {
    Params params;
    params.ranks = kRanks;
    if (line.other_bits.empty() || line.refusal(params)) continue;
    for (const DataType type : {DataType::f32, DataType::f64}) {
      std::vector<std::vector<std::byte>> results(kRanks);
      const Status status = (*team)->run([&](Member& me) {
        std::vector<std::byte> data = input_of(me.rank(), type, kCounts[0]);
        me.call({.collective = Collective::all_reduce,
                 .in = data.data(),
                 .out = data.data(),
                 .count = kCounts[0],
                 .type = type,
                 .options = {.algorithm = line.name}})
            .throw_if_error();
        results[static_cast<std::size_t>(me.rank())] = data;
      });
      ASSERT_TRUE(status.ok()) << status.text();
      EXPECT_TRUE(std::any_of(results.begin(), results.end(),
                              [&](const auto& one) { return one != results[0]; }))
          << line.name << ", " << name_of(type) << ": says '" << line.other_bits
          << "', and all ranks have the same bits";
    }
  }
}

// What a call gets that names no algorithm, at every size, with the data that showed the fault:
// one large, one small, one that takes the large one away.
TEST(SameBits, DefaultsOfEverySize) {
  for (const int ranks : {2, 3, 4, 5, 8}) {
    auto team = Team::create({.ranks = ranks});
    ASSERT_TRUE(team.ok()) << team.status().text();
    for (std::size_t count = 1; count <= std::size_t{1} << 18; count *= 4) {
      for (const bool in_place : {false, true}) {
        std::vector<std::vector<float>> results(static_cast<std::size_t>(ranks));
        const Status status = (*team)->run([&](Member& me) {
          constexpr float kValues[] = {1e8F, 1.0F, -1e8F};
          std::vector<float> in(count, kValues[me.rank() % 3]);
          std::vector<float> out(count);
          const std::span<float> result(in_place ? in : out);
          me.all_reduce(std::span<const float>(in), result).throw_if_error();
          results[static_cast<std::size_t>(me.rank())].assign(result.begin(), result.end());
        });
        ASSERT_TRUE(status.ok()) << status.text();
        for (const auto& one : results) {
          EXPECT_TRUE(std::equal(one.begin(), one.end(), results[0].begin()))
              << ranks << " ranks, " << count << " elements";
        }
      }
    }
  }
}

}  // namespace
}  // namespace rankine
