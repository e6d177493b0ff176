// Plays the faults that leave their process unchanged, in this process: no promise is broken, and
// each fault causes its error. Lateness is not judged here because it could come from the machine's
// load; `rankine faults` judges it.
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"

namespace rankine::faults {
namespace {

class InProcess : public testing::TestWithParam<int> {};

TEST_P(InProcess, KeepsThePromise) {
  const Fault& fault = rankine::faults::faults()[static_cast<std::size_t>(GetParam() - 1)];
  Selection selection;
  selection.faults = {&fault};
  selection.ranks = {2, 3, 5};
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr std::size_t kCases = 12;
#else
  constexpr std::size_t kCases = 60;
#endif
  const std::vector<FaultCase> all = cases_of(selection);
  selection.sample = static_cast<int>(all.size() / kCases) + 1;
  Tally tally;
  clock_of_promises = [] { return std::int64_t{0}; };
  for (const FaultCase& test : cases_of(selection)) tally += play(test);
  for (const std::string& remark : tally.remarks) ADD_FAILURE() << remark;
  EXPECT_EQ(tally.broken(), 0);
  if (tally.impossible == tally.cases) GTEST_SKIP() << tally.why_impossible;
  // Each fault has an effect: the fresh start succeeds, and the fault's errors occur.
  EXPECT_GT(tally.returned[0], 0);
  bool is_expected = true;
  std::int64_t expected = 0;
  for (int code = 1; code < kCodes; ++code) {
    if (!fault.documented.has(static_cast<Code>(code))) continue;
    is_expected = false;
    expected += tally.returned[static_cast<std::size_t>(code)];
  }
  EXPECT_TRUE(is_expected || expected > 0) << "none of the errors documented for " << fault.name;
}

std::string name_of_fault(const testing::TestParamInfo<int>& info) {
  return std::string(rankine::faults::faults()[static_cast<std::size_t>(info.param - 1)].name);
}

// Faults 13, 17, 19 and 22 change the process; tests/engine/faults/processes_test.cc plays them.
INSTANTIATE_TEST_SUITE_P(Faults, InProcess,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 18, 20,
                                         21, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36,
                                         37, 38, 39, 48, 49, 50),
                         name_of_fault);

constexpr int kFaults = 50;
constexpr int kOfProcesses = 8;  // faults for processes only

TEST(Table, HasAllFaultsInOrder) {
  int number = 0;
  for (const Fault& fault : rankine::faults::faults()) {
    EXPECT_EQ(fault.number, ++number);
    EXPECT_FALSE(fault.name.empty() || fault.what.empty() || fault.how.empty());
    EXPECT_NE(fault.play, nullptr);
    for (const Fault& other : rankine::faults::faults()) {
      EXPECT_TRUE(&other == &fault || other.name != fault.name);
    }
  }
  EXPECT_EQ(number, kFaults);
}

TEST(Table, SelectionsArePartsOfTheWhole) {
  const std::vector<FaultCase> all = cases_of({});
  // Each fault, with each algorithm that matters, and each number of ranks.
  EXPECT_GT(all.size(), 9'000u);
  Selection one;
  one.ranks = {7};
  one.collectives = {Collective::broadcast};
  one.algorithms = {find_algorithm(Collective::broadcast, "chain")};
  const std::vector<FaultCase> few = cases_of(one);
  // Faults 6, 22, 25, 32, 36, 37, 38 and 39 have no meaning for a broadcast.
  EXPECT_EQ(few.size(), 34u);
  for (const FaultCase& test : few) {
    bool is_there = test.fault->grain == Grain::ranks;
    for (const FaultCase& other : all) {
      is_there = is_there || to_string(other) == to_string(test);
    }
    EXPECT_TRUE(is_there) << to_string(test);
  }
  Selection sampled;
  sampled.sample = 40;
  int faults_left = 0;
  const Fault* last = nullptr;
  for (const FaultCase& test : cases_of(sampled)) {
    faults_left += test.fault != last ? 1 : 0;
    last = test.fault;
  }
  EXPECT_EQ(faults_left, kFaults - kOfProcesses);
}

TEST(Table, SaysWhatIsPlayedAmongProcesses) {
  Selection selection;
  selection.processes = true;
  selection.ranks = {3};
  std::set<std::string_view> played;
  for (const FaultCase& test : cases_of(selection)) {
    EXPECT_TRUE(test.processes);
    EXPECT_NE(to_string(test).find("among 3 processes"), std::string::npos);
    played.insert(test.fault->name);
  }
  int only = 0;
  for (const Fault& fault : rankine::faults::faults()) {
    EXPECT_EQ(played.contains(fault.name), fault.threads_only.empty()) << fault.name;
    EXPECT_FALSE(fault.processes_only && !fault.threads_only.empty()) << fault.name;
    only += fault.processes_only ? 1 : 0;
  }
  EXPECT_EQ(only, kOfProcesses);
  // With threads the cases do not depend on the faults of processes.
  selection.processes = false;
  for (const FaultCase& test : cases_of(selection)) EXPECT_FALSE(test.fault->processes_only);
}

}  // namespace
}  // namespace rankine::faults
