// What ranks did last, told afterwards.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <latch>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/environment.h"
#include "engine/base/files.h"
#include "tests/engine/api/ranks.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/scoped_env.h"
#include "tests/numa/temp_tree.h"

namespace rankine {
namespace {

using Json = nlohmann::json;
using std::chrono_literals::operator""ms;

Status all_reduce(Member& me, std::chrono::milliseconds timeout = 0ms) {
  std::vector<float> data(100, 1);
  return me.all_reduce(std::span(data), ReduceOp::max, {.algorithm = "ring", .timeout = timeout});
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
  const FirstCount near_the_wrap(0xfffffff0u);
  Ranks all({.ranks = 2});
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
    Ranks all({.ranks = 2});
    std::latch failed(1);  // rank 1's thread lives until then: the end of a thread would be another failure
    const auto results = all.run([&](Member& me) {
      if (Status status = all_reduce(me); !status.ok()) return status;
      EXPECT_FALSE(std::ifstream(path).good());
      if (Status status = me.barrier(); !status.ok()) return status;
      if (me.rank() == 1) {
        failed.wait();
        return Status();
      }
      const Status status = all_reduce(me, 200ms);
      failed.count_down();
      return status;
    });
    EXPECT_EQ(results[0].code(), Code::timeout);
  }
  unsetenv("RANKINE_FLIGHT_RECORD");
  std::ifstream file(path);
  ASSERT_TRUE(file.good()) << path;
  const Json record = Json::parse(file);
  EXPECT_NE(record["health"].get<std::string>().find("timeout: no answer within 200 ms"),
            std::string::npos);
  EXPECT_EQ(record["ranks"][0]["calls"], 3);
  EXPECT_EQ(record["ranks"][1]["calls"], 2);
  EXPECT_NE(record["ranks"][1]["state"].get<std::string>().find("in no collective"),
            std::string::npos);
  // What rank 0 waited for in the end.
  const Json wait = record["ranks"][0]["slow_waits"].back();
  EXPECT_EQ(wait["call"], 3);
  EXPECT_EQ(wait["for"], 1);
  EXPECT_EQ(wait["end"], "deadline");
  EXPECT_GE(wait["took_us"], 1000.0);
  std::remove(path.c_str());
}

// Rank 0 waits for rank 1, which does not call, with the record to be left there. Its status.
Status fail_and_leave(const std::string& path, int ranks = 2) {
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", path.c_str());
  Ranks all({.ranks = ranks, .timeout = 100ms});
  const auto results =
      all.run([&](Member& me) { return me.rank() == 1 ? Status() : all_reduce(me); });
  return results[0];
}

Json json_in(const std::string& path) { return Json::parse(read_small_file(path, 1 << 24).text); }

// Where the record cannot be left, nobody waits for that, and nothing else is touched.
TEST(FlightRecord, ThatCannotBeLeftDelaysNoCall) {
  const TempTree tree;
  const std::string pipe = tree.root() + "/pipe", link = tree.root() + "/link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  tree.write("/file", "the link's");
  ASSERT_EQ(symlink((tree.root() + "/file").c_str(), link.c_str()), 0);
  for (const std::string& path : {pipe, link, tree.root(), std::string("/dev/full"),
                                  tree.root() + "/none/file", tree.root() + "/file/below"}) {
    CapturedWarnings captured;
    EXPECT_EQ(fail_and_leave(path).code(), Code::timeout) << path;
    ASSERT_EQ(captured.lines.size(), 1u) << path;
    EXPECT_EQ(captured.lines[0].first, "api.flight_record");
    EXPECT_NE(captured.lines[0].second.find("'" + path + "', which cannot be written: "),
              std::string::npos)
        << captured.lines[0].second;
  }
  EXPECT_EQ(read_small_file(tree.root() + "/file", 100).text, "the link's");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

// Also where no call was begun: it was still being planned.
TEST(FlightRecord, IsLeftWherePlanningFails) {
  const std::string path = testing::TempDir() + "/planning.json";
  std::remove(path.c_str());
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", path.c_str());
  Ranks all({.ranks = 24, .timeout = 20ms, .plan_bytes = std::size_t{64} << 30});
  std::vector<float> data(1 << 20);
  const Status status =
      all.members()[0]->call({.in = data.data(),
                              .out = data.data(),
                              .count = data.size(),
                              .options = {.algorithm = "double_tree", .segments = 16384}});
  EXPECT_EQ(status.code(), Code::timeout) << status.text();
  const Json record = json_in(path);
  EXPECT_NE(record["health"].get<std::string>().find("rank 0 was still planning its call"),
            std::string::npos);
  EXPECT_EQ(record["ranks"][0]["calls"], 0);
}

TEST(FlightRecord, ReplacesAnEarlierOneWhole) {
  const TempTree tree;
  tree.write("/file", "what was there before, and was longer: " + std::string(1 << 20, 'x'));
  const std::string path = tree.root() + "/file";
  EXPECT_EQ(fail_and_leave(path).code(), Code::timeout);
  EXPECT_EQ(json_in(path)["ranks"].size(), 2u);
}

TEST(FlightRecord, IsWrittenWhateverTheTextsAre) {
  const TempTree tree;
  const std::string path = tree.root() + "/\xff\xfe";
  {
    const ScopedEnv variable("RANKINE_FLIGHT_RECORD", path.c_str());
    Ranks all({.ranks = 2});
    const auto results = all.run([&](Member& me) {
      if (me.rank() == 0) return all_reduce(me);
      all.communicator().abort("no \xc3\x28 UTF-8 \xff");
      return Status();
    });
    EXPECT_EQ(results[0].text(), "no \xc3\x28 UTF-8 \xff");
    EXPECT_EQ(Json::parse(all.communicator().flight_record())["health"],
              "aborted: no \xef\xbf\xbd( UTF-8 \xef\xbf\xbd");
  }
  EXPECT_EQ(json_in(path)["health"], "aborted: no \xef\xbf\xbd( UTF-8 \xef\xbf\xbd");
}

// Each rank says what it does itself: a record grows with the ranks, not with their square.
TEST(FlightRecord, SaysOfEachRankWhatItDoesItself) {
  const TempTree tree;
  const std::string path = tree.root() + "/file";
  constexpr int kMany = 48;
  EXPECT_EQ(fail_and_leave(path, kMany).code(), Code::timeout);
  const Json record = json_in(path);
  ASSERT_EQ(record["ranks"].size(), static_cast<std::size_t>(kMany));
  for (const Json& rank : record["ranks"]) {
    const std::string state = rank["state"];
    EXPECT_EQ(state.find("; rank"), std::string::npos) << state;
  }
}

}  // namespace
}  // namespace rankine
