// NodeMail, the messages between processes of a node, and conclude(), which compares posted calls.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/mpi/homes.h"
#include "engine/api/mpi/node_mail.h"
#include "engine/api/mpi/post_log.h"

namespace rankine {
namespace {

Homes on_nodes(const std::vector<int>& nodes, int threads = 1) {
  std::vector<ProcessHome> processes;
  for (const int node : nodes) processes.push_back({node, threads});
  return Homes(processes);
}

const Algorithm& all_reduce(std::string_view name) {
  return *find_algorithm(Collective::all_reduce, name);
}

TEST(Homes, GroupsAreNodesOfNeighbours) {
  EXPECT_EQ(on_nodes({7, 7, 7}).group(), 0) << "one node is nothing to be told apart";
  EXPECT_EQ(on_nodes({7, 7, 3, 3}).group(), 2);
  EXPECT_EQ(on_nodes({0, 0, 0, 1, 1}).group(), 3) << "the last one may have fewer";
  EXPECT_EQ(on_nodes({0, 0, 1, 1, 1}).group(), 0);
  EXPECT_EQ(on_nodes({0, 1, 0, 1}).group(), 0);
  EXPECT_EQ(on_nodes({0, 1, 2}).group(), 1);
  EXPECT_EQ(on_nodes({0, 1}, 3).group(), 3) << "threads count";
}

TEST(Homes, RanksOfAProcessFollowOneAnother) {
  const Homes homes({{5, 2}, {9, 1}, {5, 3}});
  ASSERT_EQ(homes.ranks(), 6);
  EXPECT_EQ(homes.nodes(), 2);
  EXPECT_EQ(homes.most_threads(), 3);
  EXPECT_EQ(homes.first_of(2), 3);
  EXPECT_EQ(homes[4].process, 2);
  EXPECT_EQ(homes[4].thread, 1);
  EXPECT_EQ(homes.on_node(0), (std::vector<Rank>{0, 1, 3, 4, 5}));
  EXPECT_EQ(homes.in_process(2), (std::vector<Rank>{3, 4, 5}));
  using enum Way;
  EXPECT_EQ(homes.ways_of(0, true),
            (std::vector<Way>{here, here, wire, scratch, scratch, scratch}));
  EXPECT_EQ(homes.ways_of(3, false), (std::vector<Way>{wire, wire, wire, here, here, here}));
}

TEST(Homes, AlgorithmsTakeNodesWhereCallsSayNothing) {
  const Homes homes = on_nodes({0, 0, 1, 1});
  CallOptions options;
  ASSERT_TRUE(homes.take_nodes(all_reduce("two_level"), options).ok());
  EXPECT_EQ(options.group, 2);
  options = {};
  ASSERT_TRUE(homes.take_nodes(all_reduce("level_tree"), options).ok());
  EXPECT_EQ(std::vector<int>(options.levels.begin(), options.levels.end()), std::vector<int>{2});
  options = {.group = 4};
  ASSERT_TRUE(homes.take_nodes(all_reduce("two_level"), options).ok());
  EXPECT_EQ(options.group, 4);
  options = {};
  ASSERT_TRUE(homes.take_nodes(all_reduce("ring"), options).ok());
  EXPECT_EQ(options.group, 0);
}

TEST(Homes, NodesThatAreNoGroupsAreRefusedByName) {
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

TEST(Homes, NodesAreMadeUpInTurns) {
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

}  // namespace

namespace {

// The memory that ranks of a node share.
class Shared {
 public:
  explicit Shared(int ranks) : lines_(NodeMail::bytes(ranks) / kCacheLine) {}
  std::byte* begin() { return lines_.front().bytes; }

 private:
  struct alignas(kCacheLine) Line {
    std::byte bytes[kCacheLine] = {};
  };
  std::vector<Line> lines_;
};

TEST(NodeMail, AMessageIsThereUntilItHasBeenUsed) {
  Shared shared(3);
  NodeMail one(shared.begin(), 3, 1), two(shared.begin(), 3, 2);
  EXPECT_EQ(two.next(1).data, nullptr);
  std::uint32_t number = 0;
  for (std::uint32_t i = 0; i < NodeMail::kSlots; ++i) {
    std::byte* const room = one.room(2);
    ASSERT_NE(room, nullptr) << i;
    room[0] = static_cast<std::byte>(i);
    number = one.post(2, 100 + i);
  }
  EXPECT_EQ(one.room(2), nullptr) << "all slots are full";
  EXPECT_NE(one.room(0), nullptr) << "of another pair they are not";
  for (std::uint32_t i = 0; i < NodeMail::kSlots; ++i) {
    EXPECT_FALSE(one.is_used(2, number));
    const NodeMail::Message message = two.next(1);
    ASSERT_NE(message.data, nullptr);
    EXPECT_EQ(message.tag, 100 + i);
    EXPECT_EQ(message.data[0], static_cast<std::byte>(i));
    two.used(1);
  }
  EXPECT_TRUE(one.is_used(2, number));
  EXPECT_EQ(two.next(1).data, nullptr);
}

// The receiver reads the sender's memory, and the sender changes it after is_used(). A thread
// sanitizer would detect a missing order.
TEST(NodeMail, ThreadsHandMemoryToOneAnother) {
  constexpr std::uint64_t kMessages = 300;
  Shared shared(2);
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    NodeMail mail(shared.begin(), 2, 1);
    for (std::uint64_t i = 0; i < kMessages; ++i) {
      NodeMail::Message message = mail.next(0);
      for (; message.data == nullptr; message = mail.next(0)) yield_cpu();
      std::uint64_t with_the_word = 0;
      const std::uint64_t* where = nullptr;
      std::memcpy(&with_the_word, message.data, 8);
      std::memcpy(&where, message.data + 8, 8);
      if (message.tag != static_cast<std::uint32_t>(i) || with_the_word != i || *where != 3 * i) {
        ++wrong;
      }
      mail.used(0);
    }
  });
  NodeMail mail(shared.begin(), 2, 0);
  std::uint64_t data = 0;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    std::byte* room = nullptr;
    while ((room = mail.room(1)) == nullptr) yield_cpu();
    data = 3 * i;
    const std::uint64_t* const where = &data;
    std::memcpy(room, &i, 8);
    std::memcpy(room + 8, &where, 8);
    const std::uint32_t number = mail.post(1, static_cast<std::uint32_t>(i));
    while (!mail.is_used(1, number)) yield_cpu();
  }
  reader.join();
  EXPECT_EQ(wrong, 0U);
}

// Counts up to `what`, one step per call.
struct Work {
  int asked = 0, sum = 0;
};
bool go_on(void* of, int what) noexcept {
  Work& work = *static_cast<Work*>(of);
  if (++work.asked < what) return false;
  work.asked = 0;
  work.sum += what;
  return true;
}

TEST(Errands, AreDoneInTurnAndAskedUntilTheyAreOver) {
  const auto errands = std::make_unique<Errands>();
  Work first, second;
  ASSERT_TRUE(errands->post({go_on, &first, 3}));
  const std::uint32_t number = errands->number();
  ASSERT_TRUE(errands->post({go_on, &second, 1}));
  errands->serve();
  errands->serve();
  EXPECT_FALSE(errands->is_done(number));
  EXPECT_EQ(second.sum, 0) << "it waits for the first";
  errands->serve();
  EXPECT_TRUE(errands->is_done(number));
  EXPECT_TRUE(errands->is_done(errands->number()));
  EXPECT_EQ(first.sum, 3);
  EXPECT_EQ(second.sum, 1);
  for (std::uint32_t i = 0; i < Errands::kMost; ++i) ASSERT_TRUE(errands->post({go_on, &first, 1}));
  EXPECT_FALSE(errands->post({go_on, &first, 1})) << "there are enough of them";
}

TEST(Errands, OneThreadDoesAnothers) {
  const auto errands = std::make_unique<Errands>();
  constexpr int kRounds = 100;
  std::atomic<bool> over{false};
  std::thread carrier([&] {
    while (!over.load(std::memory_order_acquire)) {
      errands->serve();
      yield_cpu();
    }
  });
  Work work;
  for (int i = 0; i < kRounds; ++i) {
    while (!errands->post({go_on, &work, 2})) yield_cpu();
    while (!errands->post({go_on, &work, 1})) yield_cpu();
    while (!errands->is_done(errands->number())) yield_cpu();
    ASSERT_EQ(work.sum, 3 * (i + 1));
  }
  over.store(true, std::memory_order_release);
  carrier.join();
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
