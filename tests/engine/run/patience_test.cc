// What who waits does at each turn, on a clock of the test's.
#include "engine/run/policy.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace rankine {
namespace {

using Mode = WaitPolicy::Mode;

constexpr std::int64_t kBegin = 1'000'000'000;

// "probe 4, yield 16, look 1, sleep": turns of one kind in a row with their number, until it
// sleeps or so many of them have been taken; each look is `look_ns` after the one before.
std::string turns(const WaitPolicy& policy, std::int64_t look_ns, int most = 1'000'000,
                  std::uint32_t probed = 0) {
  Patience patience(policy, probed);
  std::int64_t now = kBegin;
  std::string text, last;
  int in_a_row = 0;
  const auto end_row = [&] {
    if (in_a_row > 0) text += last + " " + std::to_string(in_a_row) + ", ";
    in_a_row = 0;
  };
  for (int i = 0; i < most; ++i) {
    std::string name;
    switch (patience.next()) {
      case Patience::Turn::probe:
        name = "probe";
        break;
      case Patience::Turn::yield:
        name = "yield";
        break;
      case Patience::Turn::look:
        name = "look";
        patience.looked(now);
        now += look_ns;
        break;
      case Patience::Turn::sleep:
        end_row();
        EXPECT_EQ(patience.next(), Patience::Turn::sleep);  // from then on
        return text + "sleep";
    }
    if (name != last) end_row();
    last = name;
    ++in_a_row;
  }
  end_row();
  return text + "...";
}

TEST(Patience, ParksAfterItsProbes) {
  EXPECT_EQ(turns({.mode = Mode::park, .probes = 3}, 1), "probe 3, sleep");
  EXPECT_EQ(turns({.mode = Mode::park, .probes = 3}, 1, 9, 2), "probe 1, sleep");
  EXPECT_EQ(turns({.mode = Mode::park, .probes = 3}, 1, 9, 64), "sleep");
}

// Each yield may take as long as others like, so the first of them are not timed.
TEST(Patience, YieldsForAWhileAndSomeTimesAtLeast) {
  EXPECT_EQ(turns({.mode = Mode::yield, .probes = 4, .yield_ns = 0}, 1),
            "probe 4, yield 16, look 1, sleep");
  EXPECT_EQ(turns({.mode = Mode::yield, .probes = 0, .yield_ns = 100}, 50),
            "yield 16, look 1, yield 16, look 1, yield 16, look 1, sleep");
}

TEST(Patience, SpinsAloneAndThenGivesTurnsAway) {
  static_assert(WaitPolicy::kAloneNs == 50'000);
  EXPECT_EQ(turns({.mode = Mode::spin, .probes = 64, .spin_ns = 100'000}, 25'000),
            "probe 164, look 1, probe 100, look 1, probe 100, look 1, yield 1, probe 99, look 1, "
            "yield 1, probe 99, look 1, sleep");
  // Who spins for less than that gives none away.
  EXPECT_EQ(turns({.mode = Mode::spin, .probes = 0, .spin_ns = 2'000}, 1'000),
            "probe 100, look 1, probe 100, look 1, probe 100, look 1, sleep");
}

// Looks are what ends a wait otherwise; probes are not timed.
TEST(Patience, LooksNowAndThenWhateverAPolicyAsksFor) {
  EXPECT_EQ(turns({.mode = Mode::park, .probes = std::numeric_limits<std::uint32_t>::max()},
                  kForEverNs / 100, 250),
            "probe 100, look 1, probe 100, look 1, probe 48, ...");
  EXPECT_EQ(turns({.mode = Mode::yield, .probes = 0, .yield_ns = kForEverNs}, 1'000'000'000, 40),
            "yield 16, look 1, yield 16, look 1, yield 6, ...");
  EXPECT_EQ(turns({.mode = Mode::spin, .probes = 150, .spin_ns = 10}, 1'000'000'000),
            "probe 100, look 1, probe 150, look 1, probe 100, look 1, sleep");
}

}  // namespace
}  // namespace rankine
