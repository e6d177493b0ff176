#include "engine/read/count.h"

#include <gtest/gtest.h>

#include "engine/read/count.h"

namespace rankine {
namespace {

// The ring all-reduce's line with one field replaced, compared at N = 4.
std::string compared(std::string_view Algorithm::*field, std::string_view formula) {
  Algorithm line = *find_algorithm(Collective::all_reduce, "ring");
  if (field != nullptr) line.*field = formula;
  Params params;
  params.ranks = 4;
  const Schedule schedule = line.make(params);
  return compare_statement(line, params, goal_of(line, params, schedule), count(schedule))
      .value_or("");
}

TEST(Statement, AgreesWithATruthfulLine) { EXPECT_EQ(compared(nullptr, ""), ""); }

TEST(Statement, NamesTheFieldThatDiffers) {
  EXPECT_EQ(compared(&Algorithm::rounds, "N-1"),
            "all_reduce 'ring' states rounds = N-1 = 3; the schedule has 6");
  EXPECT_EQ(compared(&Algorithm::sent, "(N-1)/N"),
            "all_reduce 'ring' states sent = (N-1)/N = 3/4 M; the schedule has 3/2 M");
  EXPECT_EQ(compared(&Algorithm::received, "2"),
            "all_reduce 'ring' states received = 2 = 2 M; the schedule has 3/2 M");
  EXPECT_EQ(compared(&Algorithm::send_ports, "2"),
            "all_reduce 'ring' states send_ports = 2 = 2; the schedule has 1");
  EXPECT_EQ(compared(&Algorithm::receive_ports, "0"),
            "all_reduce 'ring' states receive_ports = 0 = 0; the schedule has 1");
}

TEST(Statement, AFormulaThatCannotBeReadThrows) {
  EXPECT_THROW(compared(&Algorithm::sent, "N*"), std::logic_error);
}

}  // namespace
}  // namespace rankine
