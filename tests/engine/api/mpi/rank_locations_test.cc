// RankLocations, the placement of ranks; line_through(), the line through measured times of
// messages; and conclude(), which compares posted calls.

#include "engine/api/mpi/rank_locations.h"
#include "engine/api/mpi/post_log.h"
#include "tests/testing.h"

namespace rankine {
namespace {

RankLocations on_nodes(const std::vector<int>& nodes, int threads = 1) {
  std::vector<ProcessLocation> processes;
  for (const int node : nodes) processes.push_back({node, threads});
  return RankLocations(processes);
}

const Algorithm& all_reduce(std::string_view name) {
  return *find_algorithm(Collective::all_reduce, name);
}

TEST(RankLocations, GroupsAreNodesOfNeighbours) {
  EXPECT_EQ(on_nodes({7, 7, 7}).group(), 0) << "one node is nothing to be told apart";
  EXPECT_EQ(on_nodes({7, 7, 3, 3}).group(), 2);
  EXPECT_EQ(on_nodes({0, 0, 0, 1, 1}).group(), 3) << "the last one may have fewer";
  EXPECT_EQ(on_nodes({0, 0, 1, 1, 1}).group(), 0);
  EXPECT_EQ(on_nodes({0, 1, 0, 1}).group(), 0);
  EXPECT_EQ(on_nodes({0, 1, 2}).group(), 1);
  EXPECT_EQ(on_nodes({0, 1}, 3).group(), 3) << "threads count";
}

TEST(RankLocations, RanksOfAProcessFollowOneAnother) {
  const RankLocations locations({{5, 2}, {9, 1}, {5, 3}});
  ASSERT_EQ(locations.ranks(), 6);
  EXPECT_EQ(locations.nodes(), 2);
  EXPECT_EQ(locations.most_threads(), 3);
  EXPECT_EQ(locations.first_of(2), 3);
  EXPECT_EQ(locations[4].process, 2);
  EXPECT_EQ(locations[4].thread, 1);
  EXPECT_EQ(locations.on_node(0), (std::vector<Rank>{0, 1, 3, 4, 5}));
  EXPECT_EQ(locations.in_process(2), (std::vector<Rank>{3, 4, 5}));
}

TEST(RankLocations, AlgorithmsTakeNodesWhereCallsSayNothing) {
  const RankLocations locations = on_nodes({0, 0, 1, 1});
  CallOptions options;
  ASSERT_TRUE(locations.take_nodes(all_reduce("two_level"), options).ok());
  EXPECT_EQ(options.group, 2);
  options = {};
  ASSERT_TRUE(locations.take_nodes(all_reduce("level_tree"), options).ok());
  EXPECT_EQ(std::vector<int>(options.levels.begin(), options.levels.end()), std::vector<int>{2});
  options = {.group = 4};
  ASSERT_TRUE(locations.take_nodes(all_reduce("two_level"), options).ok());
  EXPECT_EQ(options.group, 4);
  options = {};
  ASSERT_TRUE(locations.take_nodes(all_reduce("ring"), options).ok());
  EXPECT_EQ(options.group, 0);
}

TEST(RankLocations, NodesThatAreNoGroupsAreRefusedByName) {
  CallOptions options;
  const Status uneven = on_nodes({0, 0, 1, 1, 1}).take_nodes(all_reduce("two_level"), options);
  EXPECT_EQ(uneven.code(), Code::invalid_argument);
  EXPECT_NE(uneven.text().find("two_level takes its groups from the nodes"), std::string::npos);
  EXPECT_NE(uneven.text().find("2 nodes with 2 and 3 ranks"), std::string::npos) << uneven.text();
  const Status apart = on_nodes({0, 1, 0}).take_nodes(all_reduce("two_level"), options);
  EXPECT_NE(apart.text().find("2 nodes, ranks on 0, 1 and 0"), std::string::npos) << apart.text();
  options.group = 2;
  EXPECT_TRUE(on_nodes({0, 1, 0}).take_nodes(all_reduce("two_level"), options).ok());
}

TEST(RankLocations, NodesAreMadeUpInTurns) {
  std::vector<int> nodes;
  for (int p = 0; p < 9; ++p) nodes.push_back(made_up_node({3, 1}, p));
  EXPECT_EQ(nodes, (std::vector<int>{0, 0, 0, 1, 2, 2, 2, 3, 4}));
  setenv("RANKINE_MPI_NODES", "3,1", 1);
  EXPECT_EQ(read_made_up_nodes().value(), (std::vector<int>{3, 1}));
  for (const char* wrong : {"", "0", "2,", "2;3", "-1", "2x"}) {
    setenv("RANKINE_MPI_NODES", wrong, 1);
    EXPECT_NE(read_made_up_nodes().status().text().find("RANKINE_MPI_NODES is '"),
              std::string::npos)
        << wrong;
  }
  unsetenv("RANKINE_MPI_NODES");
  EXPECT_TRUE(read_made_up_nodes().value().empty());
}

// Alpha and beta from message times: exact times, and times as of a busy machine.
constexpr double kAlpha = 25e-6, kBeta = 8e-9;

std::vector<TimedMessage> times_of(std::vector<std::size_t> lengths) {
  std::vector<TimedMessage> messages;
  for (const std::size_t bytes : lengths) {
    messages.push_back({bytes, kAlpha + kBeta * static_cast<double>(bytes - 8)});
  }
  return messages;
}

TEST(MessageLine, IsTheOneThatTimesLieOn) {
  const auto link = line_through(times_of({8, 1000, 64'000, 1'000'000})).value();
  EXPECT_NEAR(link.alpha.to_double(), kAlpha, 1e-15);
  EXPECT_NEAR(link.beta.to_double(), kBeta, 1e-15);
}

TEST(MessageLine, LooksAwayFromALengthThatWasHeldUp) {
  for (std::size_t held_up = 1; held_up < 4; ++held_up) {
    auto messages = times_of({8, 1000, 64'000, 1'000'000});
    messages[held_up].seconds *= 5;
    const auto link = line_through(messages).value();
    EXPECT_NEAR(link.beta.to_double(), kBeta, 1e-15) << held_up;
  }
}

TEST(MessageLine, RefusesTimesThatDoNotGrow) {
  auto messages = times_of({8, 1000, 64'000, 1'000'000});
  messages[0].seconds = 1;  // the short message was delayed
  const auto link = line_through(messages);
  ASSERT_FALSE(link.ok());
  EXPECT_EQ(link.status().code(), Code::invalid_argument);
  EXPECT_NE(link.status().text().find("8 B in 1.00 s, 1000 B in"), std::string::npos)
      << link.status().text();
  EXPECT_NE(link.status().text().find("model.beta is -"), std::string::npos)
      << link.status().text();
  messages[0].seconds = 0;
  EXPECT_FALSE(line_through(messages).ok());
}

}  // namespace
}  // namespace rankine

namespace rankine::mpi {
namespace {

// Matching posts of three ranks: rank r sends 10 * r + p bytes to rank p.
class Posts {
 public:
  explicit Posts(Function function, Rank root = 0) {
    for (std::uint64_t r = 0; r < 3; ++r) {
      for (std::uint64_t p = 0; p < 3; ++p) {
        sends[r].push_back(10 * r + p);
        receives[r].push_back(10 * p + r);
      }
      calls.push_back({function, root, false, sends[r], receives[r]});
    }
  }
  // Sets the block's length on both sides.
  void set(std::size_t from, std::size_t to, std::uint64_t bytes) {
    sends[from][to] = receives[to][from] = bytes;
  }
  std::string error() const {
    const auto concluded = conclude(calls);
    EXPECT_EQ(concluded.status().code(),
              concluded.ok() ? Code::ok : Code::invalid_argument);  // the communicator still works
    return concluded.status().text();
  }
  std::optional<Passed> passed() const {
    const auto concluded = conclude(calls);
    EXPECT_TRUE(concluded.ok()) << concluded.status().text();
    return concluded.ok() ? *concluded : std::nullopt;
  }

  std::vector<std::uint64_t> sends[3], receives[3];
  std::vector<PostedCall> calls;
};

TEST(PostedCalls, AreTakenWhereAllLengthsMeet) {
  EXPECT_EQ(Posts(Function::alltoallv).passed(), std::nullopt);
  EXPECT_EQ(Posts(Function::gatherv, 2).passed(), std::nullopt);
}

TEST(PostedCalls, OfDifferentFunctionsAreNamed) {
  Posts posts(Function::alltoallv);
  posts.calls[2].function = Function::gatherv;
  EXPECT_EQ(posts.error(), "rank 2 calls MPI_Gatherv with root 0, and rank 0 calls MPI_Alltoallv");
  posts.calls[1].is_mpis = true;  // MPI's own argument errors do not hide the mismatch
  EXPECT_EQ(posts.error(), "rank 2 calls MPI_Gatherv with root 0, and rank 0 calls MPI_Alltoallv");
}

TEST(PostedCalls, OfDifferentRootsAreNamed) {
  Posts posts(Function::scatterv, 1);
  posts.calls[1].root = 2;
  EXPECT_EQ(posts.error(),
            "rank 1 calls MPI_Scatterv with root 2, and rank 0 calls MPI_Scatterv with root 1");
}

TEST(PostedCalls, WhoseLengthsDoNotMeetAreNamed) {
  for (const bool longer : {true, false}) {
    Posts posts(Function::alltoallw);
    posts.receives[2][1] = longer ? 13 : 11;
    posts.sends[2][2] = 7;  // a later mismatch
    EXPECT_EQ(posts.error(), "rank 1 sends 12 bytes to rank 2; rank 2 receives " +
                                 std::to_string(posts.receives[2][1]));
  }
}

TEST(PostedCalls, AreMpisWhereOneHasArgumentsThatMpiHasErrorsFor) {
  for (std::size_t r = 0; r < 3; ++r) {
    Posts posts(Function::alltoallv);
    posts.calls[r].is_mpis = true;
    posts.sends[r][1] = 12345;  // has no meaning
    EXPECT_EQ(posts.passed(), Passed::arguments) << r;
  }
}

TEST(PostedCalls, AreMpisWhereOneSendsMoreThanAPostHolds) {
  for (std::size_t r = 0; r < 3; ++r) {
    Posts posts(Function::alltoallv);
    posts.set(r, 0, 0);
    posts.set(r, 1, 1000);
    posts.set(r, 2, kMostPosted - 1000);
    EXPECT_EQ(posts.passed(), std::nullopt) << r;
    posts.set(r, 0, 1);
    EXPECT_EQ(posts.passed(), Passed::large) << r;
    posts.set(r, 0, 0);
    posts.set(r, 1, std::uint64_t{1} << 63);  // twice this length is 0
    posts.set(r, 2, std::uint64_t{1} << 63);
    EXPECT_EQ(posts.passed(), Passed::large) << r;
  }
}

TEST(PostedCalls, MayReceiveMoreThanAPostHolds) {
  Posts posts(Function::gatherv);
  for (std::size_t r = 0; r < 3; ++r) {
    posts.set(r, 0, kMostPosted);
    posts.set(r, 1, 0);
    posts.set(r, 2, 0);
  }
  EXPECT_EQ(posts.passed(), std::nullopt);
}

}  // namespace
}  // namespace rankine::mpi
