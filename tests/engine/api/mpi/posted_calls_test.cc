#include "engine/api/mpi/post_log.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace rankine::mpi {
namespace {

// Posts of three ranks that go together: rank r sends rank p 10 * r + p bytes.
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
  // The block's length, on both sides.
  void set(std::size_t from, std::size_t to, std::uint64_t bytes) {
    sends[from][to] = receives[to][from] = bytes;
  }
  std::string error() const {
    const auto concluded = conclude(calls);
    EXPECT_EQ(concluded.status().code(),
              concluded.ok() ? Code::ok : Code::invalid_argument);  // after which calls go on
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
  posts.calls[1].is_mpis = true;  // that MPI would name arguments makes it no other mismatch
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
    posts.sends[2][2] = 7;  // a later one
    EXPECT_EQ(posts.error(), "rank 1 sends rank 2 12 bytes, which receives " +
                                 std::to_string(posts.receives[2][1]));
  }
}

TEST(PostedCalls, AreMpisWhereOneHasArgumentsThatMpiHasErrorsFor) {
  for (std::size_t r = 0; r < 3; ++r) {
    Posts posts(Function::alltoallv);
    posts.calls[r].is_mpis = true;
    posts.sends[r][1] = 12345;  // means nothing
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
    posts.set(r, 1, std::uint64_t{1} << 63);  // twice that is 0
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
