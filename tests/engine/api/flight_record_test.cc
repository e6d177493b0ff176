// What ranks did last, told afterwards.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "tests/engine/api/ranks.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using std::chrono_literals::operator""ms;

Status all_reduce(Member& me, std::string_view algorithm = "ring") {
  std::vector<float> data(100, 1);
  return me.all_reduce(std::span(data), ReduceOp::max, {.algorithm = algorithm});
}

TEST(FlightRecord, TellsTheLastCallsOfEveryRank) {
  Ranks all({.ranks = 3});
  const auto results = all.run([&](Member& me) {
    for (int i = 0; i < 5; ++i) {
      if (Status status = all_reduce(me); !status.ok()) return status;
    }
    std::vector<int> x(7);
    return me.broadcast(std::span(x), 2, {.algorithm = "chain"});
  });
  for (const Status& status : results) EXPECT_EQ(status.text(), "");
  const Json record = Json::parse(all.communicator().flight_record());
  EXPECT_EQ(record["health"], "ok");
  ASSERT_EQ(record["ranks"].size(), 3u);
  for (const Json& rank : record["ranks"]) {
    EXPECT_EQ(rank["calls"], 6);
    ASSERT_EQ(rank["last"].size(), 6u);
    const Json &first = rank["last"][0], &last = rank["last"][5];
    EXPECT_EQ(first["call"], 1);
    EXPECT_EQ(first["what"], "all_reduce f32 max");
    EXPECT_EQ(first["algorithm"], "ring");
    EXPECT_EQ(last["call"], 6);
    EXPECT_EQ(last["what"], "broadcast i32");
    EXPECT_EQ(last["algorithm"], "chain");
    EXPECT_EQ(last["root"], 2);
    EXPECT_FALSE(last.contains("took_us"));
  }
}

TEST(FlightRecord, KeepsTheLastThousandAlsoWhereCountersWrap) {
  Ranks all({.ranks = 2, .first_count = 0xfffffff0u});
  all.run([&](Member& me) {
    for (int i = 0; i < 1500; ++i) {
      if (Status status = all_reduce(me); !status.ok()) return status;
    }
    return me.barrier();
  });
  const Json record = Json::parse(all.communicator().flight_record());
  for (const Json& rank : record["ranks"]) {
    EXPECT_EQ(rank["calls"], 1501);
    ASSERT_EQ(rank["last"].size(), 1024u);
    EXPECT_EQ(rank["last"][0]["call"], 1501 - 1023);
    EXPECT_EQ(rank["last"][1022]["what"], "all_reduce f32 max");
    EXPECT_EQ(rank["last"][1023]["what"], "barrier u32");
  }
}

TEST(FlightRecord, HasTimesWhereAskedFor) {
  Ranks all({.ranks = 2, .record_times = true});
  all.run([&](Member& me) {
    if (Status status = all_reduce(me); !status.ok()) return status;
    return all_reduce(me);
  });
  const Json record = Json::parse(all.communicator().flight_record());
  for (const Json& rank : record["ranks"]) {
    ASSERT_EQ(rank["last"].size(), 2u);
    const double first = rank["last"][0]["began_us"], took = rank["last"][0]["took_us"];
    EXPECT_GE(first, 0);
    EXPECT_GT(took, 0);
    EXPECT_GE(rank["last"][1]["began_us"], first + took);
  }
}

TEST(FlightRecord, OfNobodyIsEmpty) {
  Ranks all({.ranks = 2});
  const Json record = Json::parse(all.communicator().flight_record());
  EXPECT_EQ(record["ranks"][1]["calls"], 0);
  EXPECT_EQ(record["ranks"][1]["last"].size(), 0u);
}

// Where the environment names a file, the first call that fails leaves the record there.
TEST(FlightRecord, IsLeftInAFileWhenACallFails) {
  const std::string folder = testing::TempDir();
  setenv("RANKINE_FLIGHT_RECORD", (folder + "/flight_%p.json").c_str(), 1);
  const std::string path = folder + "/flight_" + std::to_string(getpid()) + ".json";
  {
    Ranks all({.ranks = 2, .timeout = 200ms});
    const auto results = all.run([&](Member& me) {
      if (Status status = all_reduce(me); !status.ok()) return status;
      EXPECT_FALSE(std::ifstream(path).good());
      return me.rank() == 0 ? all_reduce(me) : Status();
    });
    EXPECT_EQ(results[0].code(), Code::timeout);
  }
  unsetenv("RANKINE_FLIGHT_RECORD");
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  const Json record = Json::parse(file);
  EXPECT_NE(record["health"].get<std::string>().find("timeout: no answer within 200 ms"),
            std::string::npos);
  EXPECT_EQ(record["ranks"][0]["calls"], 2);
  EXPECT_EQ(record["ranks"][1]["calls"], 1);
  EXPECT_NE(record["ranks"][1]["state"].get<std::string>().find("in no collective"),
            std::string::npos);
  // What rank 0 waited for in the end.
  const Json wait = record["ranks"][0]["slow_waits"].back();
  EXPECT_EQ(wait["call"], 2);
  EXPECT_EQ(wait["for"], 1);
  EXPECT_EQ(wait["end"], "deadline");
  EXPECT_GE(wait["took_us"], 1000.0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace rankine
