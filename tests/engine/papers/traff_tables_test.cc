// Traff's statements: all hold, but that Algorithm 1 stands as it is for any skips.
#include "engine/papers/traff_tables.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rankine::reproduce {
namespace {

TEST(Traff, StatementsHoldButForTheLetterOfCorollary2) {
  std::set<std::string_view> ids, different;
  std::size_t last = 0, all_pieces = 0;
  const auto outcomes = traff_outcomes([&](std::size_t done, std::size_t all) {
    EXPECT_EQ(done, last + 1);
    last = done;
    all_pieces = all;
  });
  EXPECT_EQ(last, all_pieces);
  EXPECT_EQ(outcomes.size(), traff_statements().size());
  for (const TraffOutcome& outcome : outcomes) {
    const TraffStatement& statement = *outcome.statement;
    EXPECT_TRUE(ids.insert(statement.id).second) << statement.id;
    EXPECT_GT(outcome.cases, 0u) << statement.id;
    EXPECT_FALSE(outcome.processors.empty() || outcome.shown.stated.empty()) << statement.id;
    EXPECT_EQ(outcome.shown.agrees, outcome.agrees()) << statement.id;
    if (outcome.agrees()) {
      EXPECT_EQ(verdict_text(outcome), "agrees");
      continue;
    }
    different.insert(statement.id);
    EXPECT_FALSE(statement.why.empty()) << statement.id;
    EXPECT_TRUE(verdict_text(outcome).starts_with("differs in ")) << verdict_text(outcome);
  }
  EXPECT_EQ(different, std::set<std::string_view>{"traff-reproduce-corollary2-letter"});
}

}  // namespace
}  // namespace rankine::reproduce
