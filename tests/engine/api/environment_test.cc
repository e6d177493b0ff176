// Environment variables force, or fail.
#include "engine/api/environment.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"

namespace rankine {
namespace {

// A variable with a value until the end of a scope.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

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

TEST(Environment, AnUnknownVariableOfOursIsAnError) {
  const Variable variable("RANKINE_ALGOS", "ring");
  const auto communicator = Communicator::create({.ranks = 2});
  ASSERT_FALSE(communicator.ok());
  EXPECT_EQ(communicator.status().code(), Code::invalid_argument);
  EXPECT_EQ(communicator.status().text(),
            "environment variable RANKINE_ALGOS is unknown; known are RANKINE_ALGO, "
            "RANKINE_FLIGHT_RECORD, RANKINE_FLIGHT_TIMES, RANKINE_ISA, RANKINE_NETWORK, "
            "RANKINE_TRANSPORT, RANKINE_TUNING, RANKINE_WAIT");
}

TEST(Environment, VariablesOfTheBuildAndOfTestsAreNoErrors) {
  const Variable build("RANKINE_WITH_RIVALS", "1");
  const Variable test("RANKINE_TEST_SEED", "7");
  EXPECT_TRUE(Communicator::create({.ranks = 2}).ok());
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
  EXPECT_EQ(parse_wait_mode("sleep").status().text(),
            "wait is 'sleep'; allowed are auto, spin, yield, park");
  EXPECT_EQ(parse_forced_transport("tcp").status().text(),
            "transport is 'tcp'; allowed are auto, direct, mailbox, board");
}

TEST(Environment, ACommunicatorIsNotMadeWithAWrongVariable) {
  const Variable variable("RANKINE_ALGO", "all_reduce:rnig");
  const auto communicator = Communicator::create({.ranks = 2});
  ASSERT_FALSE(communicator.ok());
  EXPECT_EQ(communicator.status().code(), Code::invalid_argument);
  EXPECT_NE(communicator.status().text().find("RANKINE_ALGO"), std::string::npos);
}

TEST(Environment, KernelsAreCappedByNamesThatThereAre) {
  {
    const Variable variable("RANKINE_ISA", "avx512bf16");
    EXPECT_EQ(Communicator::create({.ranks = 2}).status().text(),
              "environment variable RANKINE_ISA is 'avx512bf16'; allowed are portable, avx2, "
              "avx512, avx512_bf16");
  }
  const Variable variable("RANKINE_ISA", "avx512_bf16");
  EXPECT_TRUE(Communicator::create({.ranks = 2}).ok());
}

TEST(Environment, TheForcedAlgorithmRunsWhereTheCallNamesNone) {
  const Variable algorithm("RANKINE_ALGO", "all_reduce:ring");
  const Variable transport("RANKINE_TRANSPORT", "mailbox");
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
  const Variable algorithm("RANKINE_ALGO", "all_reduce:ring_2d");
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
