// Faults whose cases have processes of their own: those that change their process for good, and all
// that are played where ranks are processes.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/faults/judge.h"
#include "engine/faults/runner.h"

namespace rankine::faults {
namespace {

// All of these cases, none of which breaks the promise.
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
  // Planning has time enough there.
  if (fault.name == std::string_view("long_planning")) is_expected = true;
  EXPECT_TRUE(is_expected || expected > 0) << "none of the errors documented for " << fault.name;
}

std::string name_of_fault(const testing::TestParamInfo<int>& info) {
  return std::string(rankine::faults::faults()[static_cast<std::size_t>(info.param - 1)].name);
}

INSTANTIATE_TEST_SUITE_P(Faults, AmongProcesses, testing::Range(1, 44), name_of_fault);

// Faults that look at every warning; the table is read once per process, which must be a new one.
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
