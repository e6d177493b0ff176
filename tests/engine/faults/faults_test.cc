// Plays the table of faults: on threads, in this process unless the fault changes it for good, and
// among processes. Lateness is not judged here because it could come from the machine's load;
// `rankine faults` judges it and prints the table.

#include "engine/base/child_process.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/faults/soak.h"
#include "tests/testing.h"

namespace rankine::faults {
namespace {

// Plays a sample of a fault's cases: no promise is broken, and each fault causes its error.
void expect_promises_kept(const Fault& fault, Selection selection, std::size_t most_cases) {
  clock_of_promises = [] { return std::int64_t{0}; };
  selection.faults = {&fault};
  const std::vector<FaultCase> all = cases_of(selection);
  if (all.empty()) GTEST_SKIP() << fault.threads_only;
  selection.sample = static_cast<int>(all.size() / most_cases) + 1;
  Tally tally;
  if (fault.poisons || selection.processes) {
    const auto results = run_cases(cases_of(selection)).value();
    for (const CaseResult& result : results) tally += result.tally;
  } else {
    for (const FaultCase& test : cases_of(selection)) tally += play(test);
  }
  for (const std::string& remark : tally.remarks) ADD_FAILURE() << remark;
  EXPECT_EQ(tally.broken(), 0);
  if (tally.impossible == tally.cases) GTEST_SKIP() << tally.why_impossible;
  EXPECT_GT(tally.returned[0], 0) << "the fresh start";
  const auto is_documented = [&](Code code) {
    return fault.documented.has(code) || (selection.processes && fault.more_of_processes.has(code));
  };
  // Among processes long_planning may meet its deadline, so no error is required.
  bool is_expected = selection.processes && (fault.name == "long_planning" || tally.impossible > 0);
  bool is_any = false;
  for (int code = 1; code < kCodes; ++code) {
    if (!is_documented(static_cast<Code>(code))) continue;
    is_any = true;
    is_expected = is_expected || tally.returned[static_cast<std::size_t>(code)] > 0;
  }
  EXPECT_TRUE(is_expected || !is_any) << "none of the errors documented for " << fault.name;
}

class Faults : public testing::TestWithParam<int> {
 protected:
  static const Fault& fault() {
    return rankine::faults::faults()[static_cast<std::size_t>(GetParam() - 1)];
  }
};

TEST_P(Faults, KeepThePromisesOnThreads) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr std::size_t kCases = 12;
#else
  constexpr std::size_t kCases = 60;
#endif
  if (!is_played(fault(), false)) GTEST_SKIP() << "a fault of processes";
  if (fault().poisons) GTEST_SKIP() << "played in new processes";
  expect_promises_kept(fault(), {.ranks = {2, 3, 5}}, kCases);
}

// New processes inherit this one's instruction set and clocks, so the tests below run in a process
// that has made no call (processes_test in BUILD.bazel).
TEST_P(Faults, KeepThePromisesInNewProcesses) {
  if (!fault().poisons || !is_played(fault(), false)) GTEST_SKIP() << "played on threads";
  if (kThreadSanitizer) GTEST_SKIP() << "it needs a forked child with threads";
  expect_promises_kept(fault(), {.ranks = {2, 3, 5}}, 60);
}

TEST_P(Faults, KeepThePromisesAmongProcesses) {
  if (kThreadSanitizer) GTEST_SKIP() << "it sees one process only";
  expect_promises_kept(fault(), {.ranks = {2, 3}, .processes = true, .cycles = 10}, 24);
}

// Processes are killed, shrink and grow; the soak itself judges their results. (How it counts what
// is left behind: third_party/nightly.)
TEST(Soak, KeepsThePromisesAmongProcesses) {
  if (kThreadSanitizer) GTEST_SKIP() << "it sees one process only";
  const auto count = [](const SoakReport& report, std::string_view event) {
    for (const auto& [name, times] : report.events) {
      if (name == event) return times;
    }
    return std::int64_t{-1};
  };
  const auto enough = [&](const SoakReport& report) {
    return count(report, "grows") >= 12 && count(report, "revocations") > 0 &&
           count(report, "messages") > 0 && count(report, "groups") > 0;
  };
  // In a child, because a process that has played ranks knows its instruction set: a later fault
  // sets another one.
  ChildProcess child([&] {
    const auto report = soak({.ranks = 3,
                              .seconds = 3'000,
                              .turns = 40,
                              .other_load = false,
                              .progress = [&](double, const SoakReport& r) { return !enough(r); }})
                            .value();
    for (const std::string& what : report.broken) ADD_FAILURE() << what;
    EXPECT_TRUE(enough(report));
    EXPECT_GE(count(report, "shrinks"), 12);
    return HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(describe_end(child.wait()), "exit 0");
}

std::string name_of_fault(const testing::TestParamInfo<int>& info) {
  return std::string(rankine::faults::faults()[static_cast<std::size_t>(info.param - 1)].name);
}

constexpr int kFaults = 51;

INSTANTIATE_TEST_SUITE_P(Table, Faults, testing::Range(1, kFaults + 1), name_of_fault);

constexpr int kOfProcesses = 9;  // faults for processes only

TEST(Table, HasAllFaultsInOrder) {
  int number = 0, of_processes = 0;
  std::set<std::string_view> names;
  for (const Fault& fault : rankine::faults::faults()) {
    EXPECT_EQ(fault.number, ++number);
    EXPECT_FALSE(fault.name.empty() || fault.what.empty() || fault.how.empty());
    EXPECT_NE(fault.play, nullptr);
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_FALSE(fault.processes_only && !fault.threads_only.empty()) << fault.name;
    of_processes += fault.processes_only ? 1 : 0;
  }
  EXPECT_EQ(number, kFaults);
  EXPECT_EQ(of_processes, kOfProcesses);
}

std::set<std::string> texts_of(const std::vector<FaultCase>& cases) {
  std::set<std::string> texts;
  for (const FaultCase& test : cases) texts.insert(to_string(test));
  return texts;
}

TEST(Table, SelectionsArePartsOfTheWhole) {
  const std::vector<FaultCase> all = cases_of({});
  // Each fault, with each algorithm that matters, and each number of ranks.
  EXPECT_GT(all.size(), 9'000u);
  const std::set<std::string> texts = texts_of(all);
  Selection one;
  one.ranks = {7};
  one.collectives = {Collective::broadcast};
  one.algorithms = {find_algorithm(Collective::broadcast, "chain")};
  const std::vector<FaultCase> few = cases_of(one);
  // Faults 6, 22, 25, 32, 36, 37, 38 and 39 have no meaning for a broadcast.
  EXPECT_EQ(few.size(), 34u);
  for (const FaultCase& test : few) {
    EXPECT_TRUE(test.fault->grain == Grain::ranks || texts.contains(to_string(test)))
        << to_string(test);
  }
  std::set<const Fault*> sampled, among_processes;
  for (const FaultCase& test : cases_of({.sample = 40})) sampled.insert(test.fault);
  EXPECT_EQ(sampled.size(), static_cast<std::size_t>(kFaults - kOfProcesses));
  for (const FaultCase& test : cases_of({.ranks = {3}, .processes = true})) {
    EXPECT_TRUE(test.processes);
    EXPECT_NE(to_string(test).find("among 3 processes"), std::string::npos);
    among_processes.insert(test.fault);
  }
  for (const Fault& fault : rankine::faults::faults()) {
    EXPECT_EQ(sampled.contains(&fault), !fault.processes_only) << fault.name;
    EXPECT_EQ(among_processes.contains(&fault), fault.threads_only.empty()) << fault.name;
  }
}

}  // namespace
}  // namespace rankine::faults
