// Planning looks at its limits wherever it is, and says what it would have needed.
#include "engine/compile/versions.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/compile/compile.h"

namespace rankine {
namespace {

CompileRequest request_for(Collective collective, const char* algorithm, int ranks, int segments,
                           std::size_t count) {
  CompileRequest request;
  request.algorithm = find_algorithm(collective, algorithm);
  request.params.ranks = ranks;
  request.params.segments = segments;
  request.counts.assign(static_cast<std::size_t>(natural_blocks(collective, ranks)), count);
  request.slot_payload = 48;
  request.board_bytes = 1024;
  return request;
}

// How often planning asks whether to go on; where it is told to end at the `last` time, that it
// does.
int times_asked(CompileRequest request, int last = 0) {
  int asked = 0;
  request.limits.interrupted = [&] {
    ++asked;
    return asked == last ? Status(Code::timeout, "over") : Status();
  };
  const auto compiled = compile(request);
  EXPECT_EQ(compiled.ok(), last == 0) << compiled.status().text();
  if (!compiled.ok()) {
    EXPECT_EQ(compiled.status().code(), Code::timeout);
    EXPECT_EQ(compiled.status().text(), "over");
  }
  return asked;
}

struct Way {
  const char* name;
  CompileRequest request;
};

// All passes and all transports.
std::vector<Way> ways() {
  std::vector<Way> all = {
      {"tree, pipelined", request_for(Collective::all_reduce, "double_tree", 8, 512, 1 << 20)},
      {"pushed", request_for(Collective::all_reduce, "direct_two_shot", 48, 1, 1 << 20)},
      {"copied first", request_for(Collective::all_reduce, "direct_two_shot", 48, 1, 1 << 14)},
      {"shared", request_for(Collective::broadcast, "direct_two_shot", 48, 1, 1 << 20)},
      {"many blocks", request_for(Collective::all_to_all, "bruck", 32, 1, 100)},
      {"mailbox", request_for(Collective::all_to_all, "pairwise", 48, 1, 1)},
      {"board", request_for(Collective::all_gather, "direct", 48, 1, 1)},
  };
  all[5].request.transport = Transport::mailbox;
  all[6].request.transport = Transport::board;
  return all;
}

TEST(PlanLimits, AreLookedAtAllAlong) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    const int asked = times_asked(way.request);
    EXPECT_GE(asked, 5);
    // Wherever it is by then, it ends.
    for (int last = 1; last <= asked; ++last) EXPECT_EQ(times_asked(way.request, last), last);
  }
}

TEST(PlanLimits, ChangeNoPlan) {
  for (const Way& way : ways()) {
    const auto free = compile(way.request);
    CompileRequest limited = way.request;
    limited.limits.bytes = std::size_t{64} << 20;
    limited.limits.interrupted = [] { return Status(); };
    const auto plan = compile(limited);
    ASSERT_TRUE(free.ok() && plan.ok()) << way.name;
    for (std::size_t r = 0; r < plan->plan.rank.size(); ++r) {
      EXPECT_EQ(plan->plan.rank[r].ops.size(), free->plan.rank[r].ops.size()) << way.name;
    }
  }
}

TEST(PlanLimits, APlanTooLargeSaysWhatItNeedsAndWhatNeedsLeast) {
  CompileRequest request = request_for(Collective::all_reduce, "double_tree", 60, 16384, 1 << 22);
  request.limits.bytes = std::size_t{1} << 30;
  const auto refused = compile(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), Code::invalid_argument);
  const std::string& text = refused.status().text();
  EXPECT_NE(text.find("all_reduce among 60 ranks by double_tree with 16384 segments: to plan "
                      "3866624 moves of a block may take "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("allowed are 1024 MiB; least is "), std::string::npos) << text;
  // One block less needs less, and what needs least is planned under the limit that it needs.
  request.limits.bytes = planning_bytes(60, 2 * 16384, 3'866'624);
  request.limits.interrupted = [] { return Status(Code::aborted, "so far, so good"); };
  EXPECT_EQ(compile(request).status().code(), Code::aborted);
  const std::string name = text.substr(text.find("least is ") + 9);
  CompileRequest least = request_for(
      Collective::all_reduce, name.substr(0, name.find_first_of(" ,")).c_str(), 60, 1, 1 << 22);
  ASSERT_NE(least.algorithm, nullptr) << text;
  least.limits.bytes = std::size_t{1} << 20;
  EXPECT_TRUE(compile(least).ok()) << compile(least).status().text();
}

TEST(PlanLimits, WhatPassesAddCountsToo) {
  // Splitting what ranks add up makes more of it than the schedule says.
  CompileRequest request = request_for(Collective::all_reduce, "direct_one_shot", 32, 1, 1 << 16);
  request.transport = Transport::direct;
  request.limits.bytes = planning_bytes(32, 1, 32 * 31);
  const auto refused = compile(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().text().find("allowed are 1 MiB"), std::string::npos)
      << refused.status().text();
  request.limits.bytes = 4 * planning_bytes(32, 1, 32 * 31);
  EXPECT_TRUE(compile(request).ok());
}

TEST(PlanLimits, AScheduleOfOnesOwnHasNoAlgorithmToCompareWith) {
  const Schedule exchange{2, 1, 4000, [](int, Send send) {
                            send(0, 1, block(0), copy);
                            send(1, 0, block(0), copy);
                          }};
  CompileRequest request;
  request.counts = {4};
  request.slot_payload = 48;
  request.limits.bytes = std::size_t{1} << 20;
  const auto refused = compile(request, exchange, {Collective::all_reduce, 2, 1});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().text(),
            "all_reduce among 2 ranks: to plan 8000 moves of a block may take 7 MiB; allowed are 1 "
            "MiB");
}

}  // namespace
}  // namespace rankine
