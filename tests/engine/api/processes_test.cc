// Ranks that are processes: calls of every kind, ends and kills, and failures to meet.
#include <fcntl.h>
#include <unistd.h>

#include "algorithms/catalogue.h"
#include "engine/api/communicator.h"
#include "engine/api/processes/identity.h"
#include "numa/cpus.h"
#include "tests/budget.h"
#include "tests/engine/api/child_process.h"
#include "tests/testing.h"

namespace rankine {
namespace {

using testing_processes::exists;
using testing_processes::fresh_name;
using testing_processes::path_of;
using testing_processes::process;
using testing_processes::Spawned;

// Returns the number of files in which communicators met and no process is any more.
int unowned_names() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSharedFolder)) {
    if (!entry.path().filename().string().starts_with("rankine.")) continue;
    const int file = open(entry.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0) continue;
    if (!anybody_in(file)) ++count;
    close(file);
  }
  return count;
}

// Returns the number of occupied seats in the file of this name.
int seats_taken(const std::string& name) {
  const int file = open(path_of(name).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return 0;
  int count = 0;
  for (off_t r = 0; r < kSeats; ++r) count += is_locked(file, r, 1) ? 1 : 0;
  close(file);
  return count;
}

Spawned rank(const std::string& name, int rank, int ranks, const std::string& play, int at = 0,
             const std::vector<std::string>& variables = {}, int signal = SIGKILL) {
  return process(name, std::to_string(rank), ranks, play, at, variables, signal);
}

// Returns the last output of each rank.
std::vector<std::string> told(std::vector<Spawned>& ranks) {
  std::vector<std::string> all;
  for (Spawned& one : ranks) all.push_back(one.finish());
  return all;
}
std::vector<std::string> all_play(const std::string& name, int ranks, const std::string& play) {
  std::vector<Spawned> all;
  for (int r = 0; r < ranks; ++r) all.push_back(rank(name, r, ranks, play));
  return told(all);
}
// Returns the outputs of two ranks with different plays or names.
std::vector<std::string> two(Spawned first, Spawned second) {
  std::vector<Spawned> both;
  both.push_back(std::move(first));
  both.push_back(std::move(second));
  return told(both);
}

// What the ranks do, which process_rank judges itself.
class ManyProcesses : public testing::TestWithParam<std::tuple<int, const char*>> {};

TEST_P(ManyProcesses, DoWhatThreadsDo) {
  const auto& [ranks, play] = GetParam();
  const std::string name = fresh_name();
  for (const std::string& said : all_play(name, ranks, play)) EXPECT_EQ(said, "ok\n");
  EXPECT_FALSE(exists(name));
}

INSTANTIATE_TEST_SUITE_P(Ranks, ManyProcesses,
                         testing::Combine(testing::Values(1, 2, 3, 5, 8, 9),
                                          testing::Values("sweep", "sizes", "messages", "groups",
                                                          "sweep_payloads", "sweep_reads")));

// The processes reach each other's private memory if the kernel lets each of them, and all alike.
class PrivateMemory : public testing::TestWithParam<std::tuple<int, std::string>> {};

TEST_P(PrivateMemory, IsReadByAllOrByNone) {
  const auto& [ranks, play] = GetParam();
  const std::vector<std::string> said = all_play(fresh_name(), ranks, play);
  EXPECT_EQ(said, std::vector<std::string>(said.size(), said[0]));
  const std::string last = std::to_string(ranks - 1), refused = "staged: rank ";
  if (said[0] == "read\n") {
    EXPECT_NE(play, "reads_filtered");
  } else if (play == "reads_filtered") {
    EXPECT_EQ(said[0], refused + last +
                           " cannot reach the private memory of rank 0: Operation not permitted\n");
  } else {
    EXPECT_TRUE(said[0].starts_with(refused)) << said[0];
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, PrivateMemory,
                         testing::Combine(testing::Values(2, 3, 5),
                                          testing::Values("reads", "reads_filtered",
                                                          "reads_untraceable")));

TEST(Processes, GiveTheSameResultsInAllForms) {
  for (const int ranks : {2, 3}) {
    for (const std::string& said : all_play(fresh_name(), ranks, "forms")) EXPECT_EQ(said, "ok\n");
  }
}

// (Among four ranks the root stores nothing itself.)
TEST(Processes, NamePrivateMemoryThatCannotBeRead) {
  const std::vector<std::string> said = all_play(fresh_name(), 4, "reads_no_memory");
  EXPECT_EQ(said, std::vector<std::string>(4, said[0]));
  if (said[0] == "staged\n") return;
  EXPECT_TRUE(said[0].starts_with("system: rank ")) << said[0];
  EXPECT_NE(said[0].find(" cannot read in of rank 0, (0x"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find(": Bad address; "), std::string::npos) << said[0];
}

TEST(Processes, TakeOperationsOfTheUsers) {
  for (const std::string& said : all_play(fresh_name(), 3, "user_op")) EXPECT_EQ(said, "ok\n");
}

TEST(Processes, TakePayloadsFromWhatTheyShareAndGiveThemBack) {
  for (const std::string& said : all_play(fresh_name(), 3, "allocate")) {
    EXPECT_TRUE(said.starts_with("in is (, 4000 bytes); allowed with shared_payloads is ")) << said;
  }
}

TEST(Processes, HaveLargePayloadsInHugePagesOrSayWhyNot) {
  for (const std::string& said : all_play(fresh_name(), 2, "allocate_much")) {
    EXPECT_EQ(said, "ok\n");
  }
}

TEST(Processes, RunTheGuidesProgram) {
  const std::string name = fresh_name();
  std::vector<Spawned> ranks;
  for (const char* r : {"0", "1", "2"}) {
    ranks.push_back(Spawned({"engine/api/examples/processes", name, r, "3"}, {}));
  }
  EXPECT_EQ(told(ranks), (std::vector<std::string>{"rank 0: 6\n", "rank 1: 6\n", "rank 2: 6\n"}));
}

// --- Ends ---

// (Ranks that are killed or leave, and the new meeting of the others: faults 2 and 40 of
// engine/faults.) Values in overwritten shared memory are neither trusted nor printed.
TEST(Processes, AreToldThatAProgramHasWrittenOverWhatTheyShare) {
  const std::map<std::string, std::string> told_of = {
      {"scribbles_on_seats", "rank lost: rank 2 is still needed: "},
      {"scribbles_on_record", "rank lost: rank 2 is still needed: "},
      {"scribbles_on_page", "system: a program has written over "},
  };
  for (const auto& [play, begins] : told_of) {
    const std::string name = fresh_name();
    std::vector<Spawned> ranks;
    for (int r = 0; r < 3; ++r) ranks.push_back(rank(name, r, 3, play));
    for (const std::size_t r : {0u, 1u}) {
      const std::string said = ranks[r].finish();
      EXPECT_TRUE(said.starts_with(begins)) << play << ": " << said;
      EXPECT_EQ(said.find("16843009"), std::string::npos) << said;
      if (play == "scribbles_on_record") {
        EXPECT_NE(said.find("has been overwritten by a program"), std::string::npos) << said;
      }
    }
    ranks[2].send(SIGKILL);
  }
}

// Kills at any time: while the ranks meet, in messages, splits and calls with payloads. No rank
// hangs or gets wrong data, and no file stays. (Other calls: fault 40 of engine/faults.)
class KilledAtAnyTime : public testing::TestWithParam<const char*> {};

TEST_P(KilledAtAnyTime, IsToldToTheOthers) {
  constexpr int kSignals[] = {SIGKILL, SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1, SIGALRM};
  std::size_t turn = 0;
  const Sample sample("kills", 2);
  for (int at = 1000; at < 200'000; at = 2 * at) {
    if (!sample.has(turn++)) continue;
    const std::string name = fresh_name();
    std::vector<Spawned> ranks;
    const int signal = kSignals[turn % std::size(kSignals)];
    for (int r = 0; r < 3; ++r) ranks.push_back(rank(name, r, 3, GetParam(), at, {}, signal));
    const std::vector<std::string> said = told(ranks);
    EXPECT_EQ(said[2], "(" + describe_end(signal) + ")") << at;
    for (const int r : {0, 1}) {
      const bool had_come = said[r].starts_with("rank lost: ");
      const bool had_not = said[r].starts_with("timeout: ranks ") &&
                           said[r].ends_with("2 of '" + name + "' have not joined\n");
      EXPECT_TRUE(had_come || had_not) << at << " us: " << said[r];
    }
    EXPECT_FALSE(exists(name)) << at;
  }
}

INSTANTIATE_TEST_SUITE_P(Doing, KilledAtAnyTime,
                         testing::Values("messages_killed_at", "groups_killed_at",
                                         "payloads_killed_at", "reads_killed_at"));

TEST(Processes, ShareNothingWithStreamsThatAreClosed) {
  for (const std::string& one : all_play(fresh_name(), 2, "writes_to_closed_streams")) {
    EXPECT_EQ(one, "ok\n");
  }
}

// The ranks' CPUs together decide: separate CPUs permit spinning, one common CPU does not.
TEST(Processes, SpinWhereEachIsBoundToACpuOfItsOwn) {
  if (allowed_cpus().size() < 2) GTEST_SKIP() << "there is one CPU";
  for (const std::string& one : all_play(fresh_name(), 2, "bound_apart")) EXPECT_EQ(one, "spins\n");
  for (const std::string& one : all_play(fresh_name(), 2, "bound_together")) {
    EXPECT_EQ(one, "yields\n");
  }
}

// --- Modelled networks ---

TEST(Networks, HaveTheSimulatorsTimeAmongProcesses) {
  for (const int ranks : {2, 3, 5}) {
    for (const char* network : {"scale_up", "scale_out,sync=rounds"}) {
      const std::string name = fresh_name();
      std::vector<Spawned> all;
      for (int r = 0; r < ranks; ++r) {
        all.push_back(rank(name, r, ranks, "keeps_simulated_time", 0,
                           {std::string("RANKINE_NETWORK=") + network}));
      }
      for (const std::string& said : told(all)) EXPECT_EQ(said, "ok\n") << network;
    }
  }
}

TEST(Networks, KeepOneWallClockAmongProcesses) {
  const std::string name = fresh_name();
  std::vector<Spawned> all;
  for (int r = 0; r < 3; ++r) {
    all.push_back(rank(name, r, 3, "keeps_wall_time", 0,
                       {"RANKINE_NETWORK=scale_out,clock=wall,dilate=auto"}));
  }
  const std::vector<std::string> said = told(all);
  EXPECT_TRUE(said[0].starts_with("dilated ")) << said[0];
  EXPECT_EQ(said, std::vector<std::string>(3, said[0]));
}

// --- Messages ---

TEST(Messages, OutliveTheirSender) {
  const std::vector<std::string> said = all_play(fresh_name(), 2, "message_outlives");
  EXPECT_EQ(said[0], "ok\n");
  EXPECT_TRUE(said[1].starts_with("rank lost: rank 0 has left and is still needed")) << said[1];
}

// --- Groups ---

TEST(Groups, OutliveWhatTheyCameFrom) {
  for (const std::string& one : all_play(fresh_name(), 2, "group_outlives")) EXPECT_EQ(one, "ok\n");
}

TEST(Groups, EndAloneOrWithAll) {
  const std::vector<std::string> alone = all_play(fresh_name(), 4, "dies_in_a_group");
  for (const int r : {0, 1}) EXPECT_EQ(alone[r], "aborted: lived; then rank lost\n");
  EXPECT_TRUE(alone[2].starts_with("rank lost: ")) << alone[2];
  const std::vector<std::string> all = all_play(fresh_name(), 4, "dies_in_a_group_of_all");
  for (const int r : {0, 1}) {
    EXPECT_TRUE(
        all[r].starts_with("rank lost: the communicator that this one was split from has "
                           "ended: among ranks 2, 3: rank 1 is still needed: "))
        << all[r];
  }
  EXPECT_TRUE(all[2].ends_with("; then rank lost\n")) << all[2];
}

TEST(Groups, AreNotWaitedForWhereOneHasEnded) {
  const std::vector<std::string> said = all_play(fresh_name(), 3, "dies_before_a_group");
  for (const int r : {0, 1}) {
    EXPECT_TRUE(said[r].starts_with(
        "rank lost: rank 2 is still needed in the group that it was split into: rank 2's process "))
        << said[r];
  }
}

// Files that other tests leave at this moment are theirs to remove.
void expect_no_unowned_names() {
  int left = 0;
  for (int looks = 0; looks < 100; ++looks) {
    left = unowned_names();
    if (left == 0) break;
    usleep(50'000);
  }
  EXPECT_EQ(left, 0);
}

// 4 kills a turn.
void expect_one_survives(const std::string& play, int turns) {
  constexpr int kRanks = 5;
  for (int turn = 1; turn <= turns; ++turn) {
    const std::string name = fresh_name();
    std::vector<Spawned> ranks;
    for (int r = 0; r < kRanks; ++r) ranks.push_back(rank(name, r, kRanks, play, turn));
    const std::vector<std::string> said = told(ranks);
    for (int r = 0; r < kRanks; ++r) {
      if (r == turn % kRanks) {
        EXPECT_TRUE(said[r].starts_with("alone after ")) << turn << ": " << said[r];
        std::printf("%d kills: %s", kRanks - 1, said[r].c_str());
      } else {
        EXPECT_EQ(said[r], "(signal 9 (Killed))") << turn;
      }
    }
    EXPECT_FALSE(exists(name)) << turn;
  }
  expect_no_unowned_names();
}

TEST(Shrink, LeavesTheSurvivorsOfEachKill) {
  expect_one_survives("survives_kills", static_cast<int>(budgeted(5, 250)));
}

TEST(Active, GoesOnAfterEachKill) {
  expect_one_survives("active_kills", static_cast<int>(budgeted(10, 250)));
}

// If all ranks of a file were killed, the next communicator removes the file.
TEST(Groups, LeaveNothingWhereAllAreKilled) {
  const Sample sample("all killed", 3);
  std::uint64_t turn = 0;
  for (int at = 20'000; at < 200'000; at = at * 5 / 4) {
    if (!sample.has(turn++)) continue;
    std::vector<Spawned> ranks;
    const std::string name = fresh_name();
    for (int r = 0; r < 4; ++r) ranks.push_back(rank(name, r, 4, "groups_all_killed_at", at));
    told(ranks);
  }
  const std::string name = fresh_name();
  { const auto made = Communicator::create({.ranks = 1, .rank = 0, .name = name}).value(); }
  expect_no_unowned_names();
}

// --- Meetings ---

// Both outputs must be equal and begin with `begins`.
void expect_refused(const std::vector<std::string>& said, const std::string& begins) {
  ASSERT_EQ(said.size(), 2U);
  EXPECT_TRUE(said[0].starts_with(begins)) << said[0];
  EXPECT_EQ(said[0], said[1]);
}

// (Other differences between ranks, and files of others under the name: fault 47 of engine/faults.)
TEST(Meeting, RefusesRanksOnDifferentNetworks) {
  const std::string network = "RANKINE_NETWORK=scale_up";
  for (const char* other :
       {"SOME=1", "RANKINE_NETWORK=scale_out", "RANKINE_NETWORK=scale_up,sync=rounds",
        "RANKINE_NETWORK=scale_up,clock=wall"}) {
    const std::string name = fresh_name();
    expect_refused(
        two(rank(name, 0, 2, "create", 0, {network}), rank(name, 1, 2, "create", 0, {other})),
        "mismatch: variables of rank ");
  }
}

TEST(Meeting, RefusesARankThatIsThereTwice) {
  const std::string name = fresh_name();
  expect_refused(two(rank(name, 0, 2, "create"), rank(name, 0, 2, "create")),
                 "invalid argument: rank 0 of '" + name + "' has two processes: process ");
  EXPECT_FALSE(exists(name));
}

// True if the file of a failed meeting contains these words.
bool says(const std::string& name, const std::string& words) {
  std::ifstream file(path_of(name), std::ios::binary);
  std::string head(1 << 16, ' ');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  return head.find(words) != std::string::npos;
}

// Two ranks disagree and end before rank 2 comes. Rank 2 gets the reason and waits for no rank. The
// reason stays for half a second; a loaded machine may need longer to start rank 2.
TEST(Meeting, IsToldToWhoComesLate) {
  constexpr int kTries = 20;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fresh_name();
    std::vector<Spawned> ranks;
    ranks.push_back(rank(name, 0, 3, "create"));
    ranks.push_back(rank(name, 1, 3, "other_costs"));
    for (int looks = 0; !says(name, "costs of rank "); ++looks) {
      ASSERT_LT(looks, 100'000) << "the name goes before anybody could come late";
      usleep(500);
    }
    ranks.push_back(rank(name, 2, 3, "hurried"));
    const std::vector<std::string> said = told(ranks);
    EXPECT_FALSE(exists(name));
    EXPECT_TRUE(said[1].starts_with("mismatch: costs of rank ")) << said[1];
    EXPECT_EQ(said[0], said[1]);
    if (said[2] == said[1]) return;
    EXPECT_TRUE(said[2].starts_with("timeout: ")) << said[2];
  }
  FAIL() << "nobody was ever told";
}

// Many processes start one after the other; a loaded machine may delay one beyond the half second.
TEST(Meeting, IsToldForAsLongAsRanksKeepComing) {
  constexpr int kTries = 3, kRanks = 8;
  constexpr useconds_t kBetween = 150'000;
  for (int i = 0; i < kTries; ++i) {
    const std::string name = fresh_name();
    std::vector<Spawned> ranks;
    ranks.push_back(rank(name, 0, kRanks, "create"));
    ranks.push_back(rank(name, 1, kRanks, "other_costs"));
    for (int r = 2; r < kRanks; ++r) {
      usleep(kBetween);
      ranks.push_back(rank(name, r, kRanks, "create"));
    }
    const std::vector<std::string> said = told(ranks);
    EXPECT_FALSE(exists(name));
    EXPECT_TRUE(said[0].starts_with("mismatch: costs of rank ")) << said[0];
    if (said == std::vector<std::string>(kRanks, said[0])) return;
  }
  FAIL() << "they were never all told";
}

// A refused rank may meet again at once, under the same name.
TEST(Meeting, ThatHasFailedHoldsUpNoOtherAttempt) {
  const std::string name = fresh_name();
  Spawned first = rank(name, 0, 2, "again_if_refused"),
          second = rank(name, 1, 2, "again_if_refused");
  EXPECT_EQ(two(std::move(first), std::move(second)),
            std::vector<std::string>(2, "mismatch, then ok\n"));
  EXPECT_FALSE(exists(name));
}

TEST(Meeting, SaysWhoHasNotCome) {
  const std::string name = fresh_name();
  const auto said = two(rank(name, 0, 4, "hurried"), rank(name, 2, 4, "hurried"));
  expect_refused(said, "timeout: ranks 1, 3 of '" + name + "' have not joined");
  EXPECT_FALSE(exists(name));
}

void leave_behind(const std::string& name) {
  Spawned alone = rank(name, 0, 2, "create");
  while (!exists(name)) usleep(1000);
  alone.send(SIGKILL);
  EXPECT_EQ(alone.finish(), "(signal 9 (Killed))");
}

TEST(Meeting, RemovesWhatKilledProcessesHaveLeft) {
  const std::string name = fresh_name(), another = fresh_name();
  leave_behind(name);
  EXPECT_TRUE(Communicator::create({.ranks = 1, .rank = 0, .name = another}).ok());
  EXPECT_FALSE(exists(name));
}

TEST(Meeting, TakesOverANameThatKilledProcessesHaveLeft) {
  const std::string name = fresh_name();
  leave_behind(name);
  EXPECT_EQ(two(rank(name, 0, 2, "create"), rank(name, 1, 2, "create")),
            std::vector<std::string>(2, "ok\n"));
  EXPECT_FALSE(exists(name));
}

// The child inherits the lock of its parent's seat.
TEST(Meeting, TakesOverANameWhoseProcessHasEndedAndHasAChild) {
  const std::string name = fresh_name();
  Spawned alone = rank(name, 0, 2, "waits_with_a_child");
  const pid_t child = std::atoi(alone.line().c_str());
  ASSERT_GT(child, 0);
  alone.send(SIGKILL);
  EXPECT_EQ(alone.finish(), "(signal 9 (Killed))");
  EXPECT_EQ(two(rank(name, 0, 2, "create"), rank(name, 1, 2, "create")),
            std::vector<std::string>(2, "ok\n"));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  EXPECT_FALSE(exists(name));
}

// The other ranks have come but have not yet noticed.
TEST(Meeting, EndsAsLostWhereAProcessHasEndedAndHasAChild) {
  const std::string name = fresh_name();
  std::vector<Spawned> ranks;
  ranks.push_back(rank(name, 0, 3, "waits_with_a_child"));
  const pid_t child = std::atoi(ranks[0].line().c_str());
  ASSERT_GT(child, 0);
  ranks.push_back(rank(name, 1, 3, "waits_with_a_child"));
  const pid_t other = std::atoi(ranks[1].line().c_str());
  ASSERT_GT(other, 0);
  for (int looks = 0; seats_taken(name) < 2; ++looks) {
    ASSERT_LT(looks, 100'000) << "they do not meet";
    usleep(500);
  }
  ranks[1].send(SIGSTOP);
  ranks[0].send(SIGKILL);
  EXPECT_EQ(ranks[0].finish(), "(signal 9 (Killed))");
  const std::string lost = "rank lost: rank 0 (process ";
  Spawned next = rank(name, 0, 3, "create");
  const std::string said = next.finish();
  EXPECT_TRUE(said.starts_with(lost)) << said;
  EXPECT_NE(said.find("let all ranks join again"), std::string::npos) << said;
  ranks[1].send(SIGCONT);
  EXPECT_EQ(ranks[1].finish(), said);
  for (const pid_t one : {child, other}) EXPECT_EQ(kill(one, SIGKILL), 0);
  EXPECT_FALSE(exists(name));
}

TEST(Meeting, ChecksItsArguments) {
  struct Refused {
    CommunicatorOptions options;
    std::string begins;
  };
  const std::string too_long(101, 'a');
  for (const auto& [options, begins] : std::vector<Refused>{
           {{.rank = 0}, "name is ''; "},
           {{.rank = 0, .name = "a/b"}, "name is 'a/b'; "},
           {{.rank = 0, .name = too_long}, "name is 'aaa"},
           {{.name = "job"}, "name is 'job', rank "},
           {{.algorithms = {given_algorithm("mine", {}, {})}, .rank = 0, .name = "job"},
            "algorithms has 1 entries; allowed among processes are none"},
           {{.ranks = 2, .rank = 2, .name = "job"}, "rank is 2; allowed are 0 to 1"},
           {{.ranks = 2, .rank = -1, .name = "job"}, "rank is -1; allowed are 0 to 1"},
           {{.ranks = 257, .rank = 0, .name = "job"}, "ranks is 257; allowed are 1 to 256"}}) {
    const auto made = Communicator::create(options);
    EXPECT_EQ(made.status().code(), Code::invalid_argument);
    EXPECT_TRUE(made.status().text().starts_with(begins)) << made.status().text();
  }
}

TEST(Meeting, OfOneProcessIsACommunicatorToo) {
  const std::string name = fresh_name();
  const auto made = Communicator::create({.ranks = 1, .rank = 0, .name = name}).value();
  EXPECT_FALSE(exists(name));
  const auto member = made->join(0).value();
  const std::vector<float> in(1000, 3);
  std::vector<float> out(1000);
  EXPECT_TRUE(member->all_reduce(std::span<const float>(in), std::span<float>(out)).ok());
  EXPECT_EQ(out, in);
  const auto group = member->split(0, 0).value();
  EXPECT_TRUE(group->barrier().ok());
}

}  // namespace
}  // namespace rankine
