// Plays faults in separate processes: faults that permanently change their process, and faults of
// ranks that are processes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"

namespace rankine::faults {
namespace {

// Plays all cases of the selection; none may break a promise.
void play(const Selection& selection, Tally& tally) {
  clock_of_promises = [] { return std::int64_t{0}; };  // lateness is not judged here
  const auto results = run_cases(cases_of(selection));
  ASSERT_TRUE(results.ok()) << results.status().text();
  for (const CaseResult& result : *results) tally += result.tally;
  for (const std::string& remark : tally.remarks) ADD_FAILURE() << remark;
  EXPECT_EQ(tally.broken(), 0);
}

class InProcesses : public testing::TestWithParam<int> {};

TEST_P(InProcesses, KeepThePromise) {
  const Fault& fault = rankine::faults::faults()[static_cast<std::size_t>(GetParam() - 1)];
  EXPECT_TRUE(fault.poisons);
  Selection selection;
  selection.faults = {&fault};
  selection.ranks = {2, 3, 5};
  Tally tally;
  ASSERT_NO_FATAL_FAILURE(play(selection, tally));
  if (tally.impossible > 0) GTEST_SKIP() << tally.why_impossible;
  EXPECT_GT(tally.returned[0], 0);
  for (int code = 1; code < kCodes; ++code) {
    EXPECT_EQ(fault.documented.has(static_cast<Code>(code)),
              tally.returned[static_cast<std::size_t>(code)] > 0)
        << rankine::name_of(static_cast<Code>(code));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, InProcesses, testing::Values(13, 17, 19, 22));

class AmongProcesses : public testing::TestWithParam<int> {};

TEST_P(AmongProcesses, KeepThePromise) {
  const Fault& fault = rankine::faults::faults()[static_cast<std::size_t>(GetParam() - 1)];
  Selection selection;
  selection.faults = {&fault};
  selection.ranks = {2, 3};
  selection.processes = true;
  selection.cycles = 10;
  const auto all = cases_of(selection);
  if (all.empty()) GTEST_SKIP() << fault.threads_only;
  selection.sample = static_cast<int>(all.size() / 24) + 1;
  Tally tally;
  ASSERT_NO_FATAL_FAILURE(play(selection, tally));
  if (tally.impossible > 0) GTEST_SKIP() << tally.why_impossible;
  EXPECT_GT(tally.returned[0], 0);
  std::int64_t expected = 0;
  bool is_expected = true;
  for (int code = 1; code < kCodes; ++code) {
    if (!fault.documented.has(static_cast<Code>(code)) &&
        !fault.more_of_processes.has(static_cast<Code>(code))) {
      continue;
    }
    is_expected = false;
    expected += tally.returned[static_cast<std::size_t>(code)];
  }
  // Among processes long_planning may meet its deadline, so no error is required.
  if (fault.name == std::string_view("long_planning")) is_expected = true;
  EXPECT_TRUE(is_expected || expected > 0) << "none of the errors documented for " << fault.name;
}

std::string name_of_fault(const testing::TestParamInfo<int>& info) {
  return std::string(rankine::faults::faults()[static_cast<std::size_t>(info.param - 1)].name);
}

INSTANTIATE_TEST_SUITE_P(Faults, AmongProcesses,
                         testing::Range(1, static_cast<int>(rankine::faults::faults().size()) + 1),
                         name_of_fault);

// The list contains exactly the signals that end a process, according to the kernel, in one child
// per signal.
TEST(FatalSignals, AreAllThatEndAProcess) {
  const auto ends_a_process = [](int signal) {
    const pid_t child = fork();
    if (child == 0) {
      const rlimit no_core{};
      setrlimit(RLIMIT_CORE, &no_core);
      sigset_t all;
      sigemptyset(&all);
      sigprocmask(SIG_SETMASK, &all, nullptr);
      std::signal(signal, SIG_DFL);
      kill(getpid(), signal);  // the signal arrives before kill() returns
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, WUNTRACED);
    if (WIFSTOPPED(status)) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return false;
    }
    return WIFSIGNALED(status) && WTERMSIG(status) == signal;
  };
  const auto listed = fatal_signals();
  for (int signal = 1; signal <= SIGRTMAX; ++signal) {
    const bool is_ours = signal < 32 || signal >= SIGRTMIN;  // glibc uses the others itself
    const bool is_in = std::find(listed.begin(), listed.end(), signal) != listed.end();
    const bool is_alike = signal > SIGRTMIN && signal < SIGRTMAX;
    if (!is_ours || is_alike) continue;
    EXPECT_EQ(ends_a_process(signal), is_in) << strsignal(signal);
  }
}

// A case has at most a hundred cycles, and the cases together have all of them.
TEST(Cycles, AreAsManyAsAreAskedFor) {
  for (const int wanted : {1, 100, 101, 1000}) {
    Selection selection;
    selection.faults = {&rankine::faults::faults()[43]};
    selection.ranks = {4};
    selection.processes = true;
    selection.cycles = wanted;
    int all = 0;
    std::set<std::uint64_t> seeds;
    for (const FaultCase& test : cases_of(selection)) {
      EXPECT_LE(test.cycles, kMostCycles);
      all += test.cycles;
      EXPECT_TRUE(seeds.insert(test.seed).second);
    }
    EXPECT_EQ(all, wanted);
  }
}

// The faults inspect every warning. The table is read once per process, so the process must be
// new.
TEST(UsersTuningTable, IsNoPartOfAnyFault) {
  const char* const given = std::getenv("RANKINE_TUNING");
  const std::string before = given != nullptr ? given : "";
  setenv("RANKINE_TUNING", "/no/such/table.json", 1);
  Selection selection;
  for (const int number : {18, 19, 20, 21}) {
    selection.faults.push_back(&rankine::faults::faults()[static_cast<std::size_t>(number - 1)]);
  }
  selection.ranks = {2};
  clock_of_promises = [] { return std::int64_t{0}; };
  const auto results = run_cases(cases_of(selection));
  given != nullptr ? setenv("RANKINE_TUNING", before.c_str(), 1) : unsetenv("RANKINE_TUNING");
  ASSERT_TRUE(results.ok()) << results.status().text();
  for (const CaseResult& result : *results) {
    EXPECT_EQ(result.tally.broken(), 0) << to_string(result.test);
    for (const std::string& remark : result.tally.remarks) ADD_FAILURE() << remark;
  }
}

}  // namespace
}  // namespace rankine::faults
