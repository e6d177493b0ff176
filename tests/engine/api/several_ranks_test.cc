// Processes that play several ranks each: one communicator with threads and processes.

#include "engine/api/communicator.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using testing_processes::exists;
using testing_processes::fresh_name;
using testing_processes::process;
using testing_processes::Spawned;

struct Household {
  int ranks;
  std::vector<std::string> processes;
};
class Mixed : public testing::TestWithParam<std::tuple<Household, const char*>> {};

TEST_P(Mixed, DoWhatRanksOfTheirOwnDo) {
  const auto& [household, play] = GetParam();
  const std::string name = fresh_name();
  std::vector<Spawned> all;
  for (const std::string& plays : household.processes) {
    all.push_back(process(name, plays, household.ranks, play));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& plays = household.processes[i];
    std::string wanted = "ok\n";
    for (const char c : plays) wanted += c == ',' ? "ok\n" : "";
    EXPECT_EQ(all[i].finish(), wanted) << plays;
  }
  EXPECT_FALSE(exists(name));
}

// ThreadSanitizer does not see synchronisation with ranks of other processes, for example that all
// of them have read before the next call writes. So under it one process plays all ranks.
#if defined(__SANITIZE_THREAD__)
const auto kHouseholds = testing::Values(Household{2, {"0,1"}}, Household{4, {"0,2,3,1"}});
#else
const auto kHouseholds =
    testing::Values(Household{2, {"0,1"}}, Household{4, {"0,2,3,1"}}, Household{3, {"0,2", "1"}},
                    Household{4, {"1,0", "3,2"}}, Household{5, {"4", "0,3,1", "2"}});
#endif
INSTANTIATE_TEST_SUITE_P(Ranks, Mixed,
                         testing::Combine(kHouseholds,
                                          testing::Values("sweep", "sizes", "messages", "groups",
                                                          "sweep_payloads")));

TEST(Mixed, AreToldWhenAProcessOfSeveralIsKilled) {
  for (int at = 1000; at < 200'000; at = 3 * at) {
    const std::string name = fresh_name();
    std::vector<Spawned> all;
    for (const char* plays : {"0,2", "1,3"}) {
      all.push_back(process(name, plays, 4, "killed_at", at));
    }
    const std::string said = all[0].finish();
    EXPECT_EQ(all[1].finish(), "(signal 9 (Killed))") << at;
    EXPECT_TRUE(said.starts_with("rank lost: ") || said.starts_with("timeout: ranks ")) << said;
    EXPECT_FALSE(exists(name)) << at;
  }
}

TEST(Mixed, ChecksWhoPlaysWhat) {
  const auto made_by = [](std::vector<Rank> more) {
    return Communicator::create({.ranks = 3, .rank = 1, .name = fresh_name(), .more_ranks = more})
        .status()
        .text();
  };
  EXPECT_TRUE(made_by({1}).starts_with("more_ranks has 1 a second time"));
  EXPECT_TRUE(made_by({0, 0}).starts_with("more_ranks has 0 a second time"));
  EXPECT_EQ(made_by({3}), "more_ranks is 3; allowed are 0 to 2");
  const std::vector<Rank> more = {0};
  EXPECT_EQ(Communicator::create({.ranks = 3, .more_ranks = more}).status().text(),
            Communicator::create({.ranks = 3, .rank = 0}).status().text());
  const auto both =
      Communicator::create({.ranks = 2, .rank = 1, .name = fresh_name(), .more_ranks = more})
          .value();
  EXPECT_TRUE(both->join(0).ok());
  EXPECT_TRUE(both->join(1).ok());
}

}  // namespace
}  // namespace rankine
