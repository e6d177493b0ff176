// Tables 1 and 2: schedules come to what the appendix derives, or it is said why not.
#include "engine/papers/tables.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rankine::reproduce {
namespace {

TEST(Tables, SchedulesAreWhatTheTextDerives) {
  Profiles profiles;
  profiles.work_out(table_keys());
  std::set<std::string> different;
  for (const TableRow& row : table_rows(profiles)) {
    const std::string what = std::string(row.line->name);
    EXPECT_TRUE(row.lambda.exact()) << what << ": rounds";
    EXPECT_TRUE(row.delta.exact()) << what << ": bytes";
    EXPECT_EQ(row.table, row.dims.size() == 1 ? 1 : 2);
    EXPECT_TRUE(row.theta.printed && row.lambda.printed && row.delta.printed) << what;
    EXPECT_EQ(row.theta.exact(), row.why.empty()) << what;
    if (!row.theta.exact()) different.insert(what);
  }
  // Whose delay is known to differ, and nobody else's: those explained.
  EXPECT_EQ(different, (std::set<std::string>{"Rec.Doub. (B)", "Rec.Doub. (L)", "Swing (L)",
                                              "Bruck (B), shortest", "Bruck (L), shortest"}));
}

TEST(Tables, ThePapersRoundedEntriesComeOut) {
  // Found within 2 % of the printed limit where the torus is large: Swing 1.2, Trivance 1.04 ...
  Profiles profiles;
  for (const TableRow& row : table_rows(profiles)) {
    if (row.table != 2 || row.line->name != "Swing (B)") continue;
    EXPECT_NEAR(static_cast<double>(row.theta.found.approximate()),
                static_cast<double>(row.theta.printed->approximate()), 0.04);
  }
}

}  // namespace
}  // namespace rankine::reproduce
