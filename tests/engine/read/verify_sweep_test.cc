// The whole catalogue, every N up to 64: proved, and stated truthfully. `rankine verify` goes
// further.
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "engine/read/sweep.h"

namespace rankine {
namespace {

TEST(VerifySweep, TheWholeCatalogue) {
  SweepOptions options;
  const std::vector<SweepResult> results = sweep(options);
  std::map<const Algorithm*, int> failures;
  for (const SweepResult& result : results) {
    int& failed = failures[result.algorithm];
    if (result.ok()) continue;
    if (++failed <= 3) ADD_FAILURE() << result.name() << ": " << result.failure;
  }
  for (const auto& [line, failed] : failures) {
    EXPECT_EQ(failed, 0) << name_of(line->collective) << " " << line->name;
  }
  EXPECT_EQ(failures.size(), catalogue().size());
  std::cout << results.size() << " schedules of " << failures.size() << " algorithms\n";
}

TEST(VerifySweep, DoesNotDependOnTheNumberOfThreads) {
  SweepOptions options;
  options.ranks_to = 12;
  options.threads = 1;
  const std::vector<SweepResult> one = sweep(options);
  options.threads = 2;
  std::size_t calls = 0, last = 0;
  const std::vector<SweepResult> two = sweep(options, [&](std::size_t done, std::size_t all) {
    ++calls;
    EXPECT_GT(done, last);
    EXPECT_EQ(all, one.size());
    last = done;
  });
  EXPECT_EQ(calls, one.size());
  ASSERT_EQ(one.size(), two.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(one[i].name(), two[i].name());
    EXPECT_EQ(one[i].failure, two[i].failure);
    EXPECT_EQ(one[i].rounds, two[i].rounds);
  }
}

TEST(VerifySweep, Cases) {
  SweepOptions options;
  options.collective = Collective::broadcast;
  options.algorithm = "chain";
  options.ranks_from = 2;
  options.ranks_to = 3;
  options.all_roots_up_to = 2;
  options.values["segments"] = {"1", "4"};
  std::vector<std::string> names;
  for (const SweepResult& result : sweep_cases(options)) names.push_back(result.name());
  EXPECT_EQ(names, (std::vector<std::string>{
                       "broadcast chain N=2 root=0 P=1", "broadcast chain N=2 root=0 P=4",
                       "broadcast chain N=2 root=1 P=1", "broadcast chain N=2 root=1 P=4",
                       "broadcast chain N=3 root=0 P=1", "broadcast chain N=3 root=0 P=4",
                       "broadcast chain N=3 root=1 P=1", "broadcast chain N=3 root=1 P=4",
                       "broadcast chain N=3 root=2 P=1", "broadcast chain N=3 root=2 P=4"}));
}

TEST(VerifySweep, WhatIsWrongIsTheCasesFailure) {
  SweepOptions options;
  options.collective = Collective::all_gather;
  options.algorithm = "ring";
  options.ranks_from = options.ranks_to = 3;
  options.verify.max_states = 2;
  const std::vector<SweepResult> results = sweep(options);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].failure,
            "too_large: 3 ranks x 3 blocks x 1 plane take more states; allowed are 2");
}

}  // namespace
}  // namespace rankine
