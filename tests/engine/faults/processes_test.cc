// The faults that change their process for good, each case in a process of its own.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/faults/runner.h"

namespace rankine::faults {
namespace {

class InProcesses : public testing::TestWithParam<int> {};

TEST_P(InProcesses, KeepThePromise) {
  const Fault& fault = rankine::faults::faults()[static_cast<std::size_t>(GetParam() - 1)];
  EXPECT_TRUE(fault.poisons);
  Selection selection;
  selection.faults = {&fault};
  selection.ranks = {2, 3, 5};
  const auto results = run_cases(cases_of(selection));
  ASSERT_TRUE(results.ok()) << results.status().text();
  Tally tally;
  for (const CaseResult& result : *results) tally += result.tally;
  for (const std::string& remark : tally.remarks) ADD_FAILURE() << remark;
  EXPECT_EQ(tally.broken(), 0);
  if (tally.impossible > 0) GTEST_SKIP() << tally.why_impossible;
  EXPECT_GT(tally.returned[0], 0);
  for (int code = 1; code < kCodes; ++code) {
    EXPECT_EQ(fault.documented.has(static_cast<Code>(code)),
              tally.returned[static_cast<std::size_t>(code)] > 0)
        << rankine::name_of(static_cast<Code>(code));
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, InProcesses, testing::Values(13, 17, 19, 22));

}  // namespace
}  // namespace rankine::faults
