#include <sched.h>

#include "engine/base/parallel.h"
#include "numa/cpus.h"
#include "numa/placement.h"
#include "numa/refusals.h"
#include "numa/system_calls.h"
#include "tests/numa/fixtures.h"
#include "tests/testing.h"

namespace rankine {
namespace {

// Runs every trial in a new thread, because a pin stays with its thread.
void in_a_thread(const std::function<void()>& trial) { std::thread(trial).join(); }

int refuse_setaffinity(pid_t, std::size_t, const cpu_set_t*) {
  errno = EPERM;
  return -1;
}

TEST(Pin, EveryCpuOfThisMachine) {
  CapturedWarnings captured;
  const std::vector<int> before = allowed_cpus();
  for (int cpu : before) {
    in_a_thread([&] {
      const Enforcement pin = pin_calling_thread(cpu);
      EXPECT_TRUE(pin.enforced()) << pin.why();
      EXPECT_EQ(allowed_cpus(), std::vector<int>{cpu});
      EXPECT_EQ(sched_getcpu(), cpu);
    });
  }
  EXPECT_EQ(allowed_cpus(), before) << "the caller's own mask is left alone";
  EXPECT_TRUE(captured.lines.empty());
}

TEST(Pin, AbsentCpuFallsBackToWhatIsAllowed) {
  for (int absent : {kMaxCpus - 1, kMaxCpus, 1 << 30}) {
    CapturedWarnings captured;
    const std::vector<int> before = allowed_cpus();
    in_a_thread([&] {
      for (int trial = 0; trial < 3; ++trial) {
        const Enforcement pin = pin_calling_thread(absent);
        EXPECT_TRUE(pin.refused());
        EXPECT_EQ(pin.error, EINVAL);
        EXPECT_NE(pin.why().find("runs on CPUs " + format_cpu_list(before)),
                  std::string_view::npos);
      }
      EXPECT_EQ(allowed_cpus(), before);
    });
    ASSERT_EQ(captured.lines.size(), 1u) << "three refusals, one warning";
    EXPECT_EQ(captured.lines[0].first, "numa.pin");
  }
}

TEST(Pin, FallbackWidensAnInheritedMask) {
  CapturedWarnings captured;
  const std::vector<int> all = allowed_cpus();
  in_a_thread([&] {
    ASSERT_TRUE(pin_calling_thread(all[0]).enforced());
    EXPECT_TRUE(pin_calling_thread(kMaxCpus - 1, all).refused());
    EXPECT_EQ(allowed_cpus(), all);
  });
}

TEST(Pin, EpermIsReportedAndWarnedAboutOnce) {
  SystemCalls calls = real_system_calls();
  calls.sched_setaffinity = refuse_setaffinity;
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  const std::vector<int> all = allowed_cpus();
  on_threads(8, [&](int) {
    const Enforcement pin = pin_calling_thread(all[0], all);
    EXPECT_TRUE(pin.refused());
    EXPECT_EQ(pin.error, EPERM);
    EXPECT_EQ(allowed_cpus(), all);
  });
  EXPECT_EQ(captured.lines.size(), 1u);
}

TEST(Pin, AcceptedWithoutEffectIsNotBelieved) {
  SystemCalls calls = real_system_calls();
  calls.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) { return 0; };
  calls.sched_getaffinity = [](pid_t, std::size_t bytes, cpu_set_t* mask) {
    CPU_ZERO_S(bytes, mask);
    CPU_SET_S(0, bytes, mask);
    CPU_SET_S(1, bytes, mask);
    return 0;
  };
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  const Enforcement pin = pin_calling_thread(0);
  EXPECT_TRUE(pin.refused());
  EXPECT_EQ(pin.error, 0);
  EXPECT_NE(pin.why().find("without effect"), std::string_view::npos) << pin.why();
  EXPECT_EQ(captured.lines.size(), 1u);
}

// The mask may be narrower than the machine, and no code could check whether a pin holds.
TEST(Pin, WhereTheMaskIsHiddenNothingIsPinned) {
  static int moved;
  moved = 0;
  SystemCalls calls = real_system_calls();
  calls.sched_getaffinity = [](pid_t, std::size_t, cpu_set_t*) {
    errno = EPERM;
    return -1;
  };
  calls.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
    ++moved;
    return 0;
  };
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  const Enforcement pin = pin_calling_thread(0, {0, 1});
  EXPECT_TRUE(pin.refused());
  EXPECT_EQ(pin.error, EPERM);
  EXPECT_NE(pin.why().find("sched_getaffinity"), std::string_view::npos) << pin.why();
  EXPECT_EQ(moved, 0);
  EXPECT_EQ(captured.lines.size(), 1u);
}

// Runs the start of a rank in a thread.
RankReport start_rank(const Topology& topology, int rank, const RankPlace& place) {
  RankReport report;
  std::thread([&] {
    const Enforcement pin = pin_calling_thread(topology, place);
    Arena arena(arena_options(topology, place));
    EXPECT_NE(arena.allocate(100), nullptr);
    report = make_rank_report(rank, topology, place, pin);
    report.binding.add(arena.binding());
  }).join();
  return report;
}

TEST(RankReport, RefusalsShow) {
  SystemCalls calls = real_system_calls();
  calls.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
    errno = EPERM;
    return -1;
  };
  calls.mbind = [](void*, unsigned long, int, const unsigned long*, unsigned long,
                   unsigned) -> long {
    errno = EPERM;
    return -1;
  };
  ScopedEnv no_synthetic("HWLOC_SYNTHETIC", nullptr);
  ScopedSystemCalls scope(calls);
  CapturedWarnings captured;
  const Topology topology = Topology::detect();
  const Placement placement = place_ranks(topology, 6);
  for (int rank = 0; rank < 6; ++rank) {
    const RankPlace& place = placement.ranks[static_cast<std::size_t>(rank)];
    const RankReport report = start_rank(topology, rank, place);
    EXPECT_FALSE(report.all_enforced());
    EXPECT_EQ(report.pin.error, EPERM);
    EXPECT_EQ(report.binding.error, EPERM);
    EXPECT_EQ(report.place, place);
    const std::string line = to_string(report);
    EXPECT_NE(line.find("not pinned"), std::string::npos) << line;
    EXPECT_NE(line.find("not bound"), std::string::npos) << line;
  }
  EXPECT_EQ(captured.lines.size(), 2u) << "one for pinning, one for binding";
}

TEST(RankReport, ForeignTopologyIsNotEnforced) {
  CapturedWarnings captured;
  const TopologyResult foreign = Topology::synthetic("pack:2 [numa] core:2 pu:1");
  ASSERT_TRUE(foreign.ok());
  const Placement placement = place_ranks(*foreign.topology, 4);
  const RankReport report = start_rank(*foreign.topology, 3, placement.ranks[3]);
  EXPECT_EQ(report.place.node, 1);
  EXPECT_TRUE(report.pin.refused());
  EXPECT_TRUE(report.binding.refused());
  EXPECT_EQ(arena_options(*foreign.topology, placement.ranks[3]).node, kAnyNode);
}

TEST(RankReport, FlatTopologyPinsButDoesNotBind) {
  const Topology flat = Topology::flat({0}, true);
  const RankPlace place{0, 0, false};
  EXPECT_EQ(arena_options(flat, place).node, kAnyNode) << "node 0 is only an assumption";
  const RankReport report = make_rank_report(0, flat, place, Enforcement::done());
  EXPECT_TRUE(report.binding.refused());
  EXPECT_EQ(to_string(report),
            "rank 0: cpu 0, node 0; memory not bound: the machine's memory nodes are not known");
}

TEST(Warnings, AKeyIsHeardOnce) {
  CapturedWarnings captured;
  warn_once("a", "first");
  warn_once("a", "second");
  warn_once("b", "third");
  ASSERT_EQ(captured.lines.size(), 2u);
  EXPECT_EQ(captured.lines[0], std::pair(std::string("a"), std::string("first")));
  EXPECT_EQ(captured.lines[1], std::pair(std::string("b"), std::string("third")));
}

TEST(Warnings, TextStaysOneLine) {
  CapturedWarnings captured;
  warn_once("a", "one\ntwo\r\nthree");
  ASSERT_EQ(captured.lines.size(), 1u);
  EXPECT_EQ(captured.lines[0].second, "one two  three");
}

TEST(Warnings, DefaultSinkWritesOneLineToStderr) {
  forget_warnings();
  set_warning_sink({});
  testing::internal::CaptureStderr();
  warn_once("a", "something is off");
  warn_once("a", "something is off");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "rankine: warning: something is off\n");
}

TEST(Warnings, AThrowingSinkDoesNoHarm) {
  forget_warnings();
  const WarningSink before = set_warning_sink([](auto, auto) { throw std::runtime_error("no"); });
  warn_once("a", "text");
  set_warning_sink(before);
}

TEST(Warnings, ManyThreadsOneLinePerKey) {
  CapturedWarnings captured;
  on_threads(8, [](int) {
    for (int i = 0; i < 200; ++i) warn_once("key" + std::to_string(i % 5), "text");
  });
  EXPECT_EQ(captured.lines.size(), 5u);
}

}  // namespace
}  // namespace rankine
