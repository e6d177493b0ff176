// Environment variables force, or fail.
#include "engine/api/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/run/kernels/reduce.h"
#include "tests/numa/captured_warnings.h"
#include "tests/numa/scoped_env.h"

namespace rankine {
namespace {

TEST(Environment, ForcedAlgorithmsAreRead) {
  const auto forced = parse_forced_algorithms("all_reduce:ring;broadcast:chain");
  ASSERT_TRUE(forced.ok()) << forced.status().text();
  const auto of = [&](Collective c) { return (*forced)[static_cast<std::size_t>(c)]; };
  EXPECT_EQ(of(Collective::all_reduce), find_algorithm(Collective::all_reduce, "ring"));
  EXPECT_EQ(of(Collective::broadcast), find_algorithm(Collective::broadcast, "chain"));
  EXPECT_EQ(of(Collective::reduce), nullptr);
}

TEST(Environment, NamesMayBeTypedAsPeopleTypeThem) {
  const auto algorithm = [](std::string_view text, Collective collective) {
    const auto forced = parse_forced_algorithms(text);
    EXPECT_TRUE(forced.ok()) << forced.status().text();
    if (!forced.ok()) return std::string_view();
    const Algorithm* line = (*forced)[static_cast<std::size_t>(collective)];
    return line == nullptr ? std::string_view("none") : line->name;
  };
  for (const std::string_view text : {"AllReduce:Ring", "allreduce:RING", "all-reduce:ring"}) {
    EXPECT_EQ(algorithm(text, Collective::all_reduce), "ring") << text;
    EXPECT_EQ(algorithm(text, Collective::all_gather), "none") << text;
  }
  EXPECT_EQ(algorithm("ALLREDUCE:Recursive-Doubling", Collective::all_reduce),
            "recursive_doubling");
  EXPECT_EQ(algorithm("Tree", Collective::all_reduce), "double_tree");
  EXPECT_EQ(algorithm("nvls", Collective::all_gather), "switch");
  // Of all that have it, and nothing of the others; what names its collective comes first.
  EXPECT_EQ(algorithm("Ring", Collective::reduce_scatter), "ring");
  EXPECT_EQ(algorithm("Ring", Collective::broadcast), "none");
  EXPECT_EQ(algorithm("all_reduce:chain;Ring", Collective::all_reduce), "chain");
  EXPECT_EQ(algorithm("Ring;all_reduce:chain", Collective::all_reduce), "chain");
}

TEST(Environment, AMisspeltNameIsAnError) {
  for (const char* name : {"RANKINE_ALGOS", "RANKINE_ALG", "RANKINE_AGLO", "RANKINE_NETWROK",
                           "RANKINE_ISE", "RANKINE_TRANSPRT", "RANKINE_FLIGHTRECORDS",
                           "RANKINE_TUNINGS_", "RANKINE_WAITER", "RANKINE_MPI_NODE"}) {
    const ScopedEnv variable(name, "/");
    const auto communicator = Communicator::create({.ranks = 2});
    ASSERT_FALSE(communicator.ok()) << name;
    EXPECT_EQ(communicator.status().code(), Code::invalid_argument);
  }
  const ScopedEnv variable("RANKINE_ALGOS", "ring");
  EXPECT_EQ(Communicator::create({.ranks = 2}).status().text(),
            "environment variable RANKINE_ALGOS is unknown; did you mean RANKINE_ALGO? known are "
            "RANKINE_ALGO, RANKINE_FLIGHT_RECORD, RANKINE_FLIGHT_TIMES, RANKINE_ISA, RANKINE_MPI, "
            "RANKINE_MPI_NODES, RANKINE_NETWORK, RANKINE_TRANSPORT, RANKINE_TUNING, RANKINE_WAIT");
}

TEST(Environment, OtherNamesAreOneWarningForTheProcess) {
  const CapturedWarnings warnings;
  const ScopedEnv port("RANKINE_PORT", "tcp://10.0.0.1:80");
  const std::string long_name = "RANKINE_" + std::string(10000, 'X');
  const ScopedEnv long_one(long_name.c_str(), "1");
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(Communicator::create({.ranks = 2}).ok());
  const ScopedEnv later("RANKINE_LATER", "1");
  EXPECT_TRUE(Communicator::create({.ranks = 2}).ok());
  ASSERT_EQ(warnings.lines.size(), 1U);
  EXPECT_NE(warnings.lines[0].second.find("RANKINE_PORT"), std::string::npos);
}

TEST(Environment, VariablesOfInstallationsOfTheBuildAndOfTestsAreNoWarnings) {
  const CapturedWarnings warnings;
  for (const char* name :
       {"RANKINE_ROOT", "RANKINE_DIR", "RANKINE_HOME", "RANKINE_PREFIX", "RANKINE_VERSION",
        "RANKINE_LIBRARY_PATH", "RANKINE_INC", "RANKINE_INCLUDE_DIR", "RANKINE_LIB", "RANKINE_BIN",
        "RANKINE_MAN", "RANKINE_BASE", "RANKINE_PKG_CONFIG_PATH", "RANKINE_WITH_RIVALS",
        "RANKINE_TEST_SEED", "RANKINE_MPI_RANKS"}) {
    const ScopedEnv variable(name, "7");
    EXPECT_TRUE(Communicator::create({.ranks = 2}).ok()) << name;
  }
  EXPECT_TRUE(warnings.lines.empty());
}

TEST(Environment, ErrorsNameTheValueAndWhatIsAllowed) {
  const auto text = [](std::string_view value) {
    const auto forced = parse_forced_algorithms(value);
    EXPECT_FALSE(forced.ok()) << value;
    return forced.status().text();
  };
  EXPECT_NE(text("all_reduce").find("no collective has an algorithm 'all_reduce'"),
            std::string::npos);
  EXPECT_NE(text("all_redcue:ring").find("'all_redcue'; allowed are broadcast"), std::string::npos);
  EXPECT_NE(text("all_reduce:rnig").find("'rnig'; all_reduce has ring"), std::string::npos);
  EXPECT_EQ(text("all_reduce:ring;allreduce:chain"),
            "all_reduce is to be ring and chain; allowed is one algorithm of a collective");
  EXPECT_EQ(parse_wait_mode("sleep").status().text(),
            "wait is 'sleep'; allowed are auto, spin, yield, park");
  EXPECT_EQ(parse_forced_transport("tcp").status().text(),
            "transport is 'tcp'; allowed are auto, direct, mailbox, board");
}

TEST(Environment, ACommunicatorIsNotMadeWithAWrongVariable) {
  const ScopedEnv variable("RANKINE_ALGO", "all_reduce:rnig");
  const auto communicator = Communicator::create({.ranks = 2});
  ASSERT_FALSE(communicator.ok());
  EXPECT_EQ(communicator.status().code(), Code::invalid_argument);
  EXPECT_NE(communicator.status().text().find("RANKINE_ALGO"), std::string::npos);
}

TEST(Environment, ACapOnTheKernelsThatCannotBeHadIsAnError) {
  std::string allowed;
  for (int i = 0; i < kIsas; ++i) {
    const std::string name(name_of(static_cast<Isa>(i)));
    const ScopedEnv variable("RANKINE_ISA", name.c_str());
    const auto communicator = Communicator::create({.ranks = 2});
    if (static_cast<Isa>(i) <= hardware_isa()) {
      EXPECT_TRUE(communicator.ok()) << communicator.status().text();
      allowed += (i == 0 ? "" : ", ") + name;
    } else {
      EXPECT_EQ(communicator.status().text(),
                "environment variable RANKINE_ISA is '" + name +
                    "', which this machine does not have; allowed here are " + allowed);
    }
  }
  for (const char* value : {"", "AVX2", "avx"}) {
    const ScopedEnv variable("RANKINE_ISA", value);
    EXPECT_EQ(Communicator::create({.ranks = 2}).status().text(),
              "environment variable RANKINE_ISA is '" + std::string(value) +
                  "'; allowed here are " + allowed);
  }
}

TEST(Environment, TheProcesssIdStandsWhereverAskedForInTheRecordsName) {
  const ScopedEnv variable("RANKINE_FLIGHT_RECORD", "%p/record.%p.json%");
  const std::string id = std::to_string(getpid());
  EXPECT_EQ(read_environment()->flight_record, id + "/record." + id + ".json%");
}

TEST(Environment, TheForcedAlgorithmRunsWhereTheCallNamesNone) {
  const ScopedEnv algorithm("RANKINE_ALGO", "all_reduce:ring");
  const ScopedEnv transport("RANKINE_TRANSPORT", "mailbox");
  auto team = Team::create({.ranks = 3});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> x(10, 1.0F);
    const Call call{.in = x.data(), .out = x.data(), .count = 10};
    EXPECT_EQ(*me.plan_of(call), "ring, mailbox transport");
    Call named = call;
    named.options.algorithm = "direct_two_shot";
    named.options.transport = Transport::direct;
    EXPECT_EQ(*me.plan_of(named), "direct_two_shot, direct transport");
    me.call(call).throw_if_error();
    EXPECT_EQ(x, std::vector<float>(10, 3.0F));
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

TEST(Environment, AForcedAlgorithmThatCannotRunFailsTheCall) {
  const ScopedEnv algorithm("RANKINE_ALGO", "all_reduce:ring_2d");
  auto team = Team::create({.ranks = 3});
  ASSERT_TRUE(team.ok()) << team.status().text();
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> x(10, 1.0F);
    const Status refused =
        me.call({.in = x.data(), .out = x.data(), .count = 10, .options = {.group = 2}});
    EXPECT_EQ(refused.code(), Code::invalid_argument);
    EXPECT_EQ(x, std::vector<float>(10, 1.0F));
  });
  EXPECT_TRUE(status.ok()) << status.text();
}

}  // namespace
}  // namespace rankine
