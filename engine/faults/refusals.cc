// A machine that refuses what helps but is not needed: pinning, binding memory, huge pages, its own
// topology. Everything must work as well without, with one warning each, and the report must say
// so.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "engine/faults/plays.h"
#include "engine/faults/refuse_calls.h"
#include "engine/faults/scene.h"
#include "engine/faults/warnings.h"
#include "engine/run/machine.h"
#include "numa/affinity.h"
#include "numa/arena.h"
#include "numa/cpu_list.h"
#include "numa/pin.h"
#include "numa/system_calls.h"
#include "numa/topology.h"

namespace rankine::faults {
namespace {

// A call on the engine's own threads, and what its report says.
std::vector<RankReport> run_team(const TeamOptions& options, const CollectiveCase& call,
                                 Judge& judge) {
  auto team = Team::create(options);
  if (!judge.answer(team.status())) return {};
  std::vector<CaseBuffers> buffers(static_cast<std::size_t>(options.ranks));
  const Status status = (*team)->run(
      [&](Member& me) { judge.call(me, buffers[static_cast<std::size_t>(me.rank())], call); });
  judge.answer(status);
  return (*team)->report();
}

void expect_pins_refused(const std::vector<RankReport>& report, bool refused, Judge& judge) {
  for (const RankReport& rank : report) {
    if (rank.pin.refused() != refused) judge.blame("the report says " + to_string(rank));
  }
}

}  // namespace

namespace {

// Of ranks that are processes one may run on one processor only, and goes on as the others do; then
// it asks for a helper on one that it has not got, which is the error of all.
void narrow_a_process(const FaultCase& test, const CollectiveCase& call, Rank victim,
                      Tally& tally) {
  const std::vector<int> all = allowed_cpus();
  {
    Scene scene(
        test, {}, tally,
        {.before_they_meet =
             [&](Rank rank) {
               if (rank == victim) set_allowed_cpus(&all.back(), 1);
             },
         .in_the_end = [&] { set_allowed_cpus(all.data(), static_cast<int>(all.size())); }});
    scene.run([&](Seat& seat) {
      for (int i = 0; i < 3; ++i) {
        if (!seat.call(call)) return;
      }
    });
  }
  Scene scene(test, {.at_once = true, .documented = {Code::invalid_argument}}, tally,
              {.before_they_meet =
                   [&](Rank rank) {
                     if (rank == victim) scene.judge().mark_fault();
                   },
               .asks_for =
                   [&](Rank rank, CommunicatorOptions& options) {
                     if (rank == victim) options.progress_core = kMaxCpus - 1;
                   }});
  scene.run([&](Seat&) { scene.judge().blame("a helper on a CPU that does not exist"); });
}

}  // namespace

void play_cpuset(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  if (test.processes) return narrow_a_process(test, call, dice.below(test.ranks), tally);
  Judge judge(test, {}, tally);
  const TeamOptions options = team_options(test);
  const std::vector<int> all = allowed_cpus();
  {
    // Less than asked for: one processor for all.
    const Warnings warnings;
    if (const int error = set_allowed_cpus(&all.back(), 1); error != 0) {
      judge.excuse(std::string("sched_setaffinity: ") + std::strerror(error));
      return;
    }
    expect_pins_refused(run_team(options, call, judge), false, judge);
    // One that is not ours any more is no place to ask for.
    if (all.size() > 1) {
      TeamOptions elsewhere = options;
      elsewhere.placement = {.kind = PlacementPolicy::Kind::listed, .cpus = {all.front()}};
      judge.answer(Team::create(elsewhere).status(), {{Code::invalid_argument}});
    }
    set_allowed_cpus(all.data(), static_cast<int>(all.size()));
    warnings.expect({}, judge);
  }
  {
    // A processor that the kernel does not give: EINVAL.
    const Warnings warnings;
    const Enforcement pin = pin_calling_thread(kMaxCpus - 1, all);
    if (!pin.refused() || pin.error != EINVAL) judge.blame("a thread on a CPU that does not exist");
    if (allowed_cpus() != all) judge.blame("a refused pin changes where the thread may run");
    // One that was ours when we looked, and is not when we go there.
    SystemCalls calls = real_system_calls();
    calls.sched_setaffinity = [](pid_t, std::size_t, const cpu_set_t*) {
      errno = EINVAL;
      return -1;
    };
    {
      const ScopedSystemCalls scope(calls);
      expect_pins_refused(run_team(options, call, judge), true, judge);
    }
    warnings.expect({"numa.pin"}, judge);
  }
  fresh_start(test, call, tally);
}

namespace {

// Processes do all that they do elsewhere; and one that exits is noticed.
void end_where_calls_are_refused(const FaultCase& test, const CollectiveCase& call, Rank victim,
                                 Tally& tally) {
  {
    Scene scene(test, {}, tally);
    scene.run([&](Seat& seat) { seat.call(call); });
  }
  Scene scene(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  scene.run([&](Seat& seat) {
    if (!seat.call(call)) return;
    if (seat.rank() == victim) {
      scene.judge().mark_fault();
      scene.goes(victim);
      _exit(0);
    }
    if (seat.call(meeting(test, test.ranks))) scene.judge().blame("nobody misses who is gone");
  });
}

}  // namespace

void play_refused_calls(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  Judge judge(test, {}, tally);
  std::vector<int> refused = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy,
                              SYS_sched_setaffinity};
  const bool membarrier = dice.one_in(2);
  if (membarrier) refused.push_back(SYS_membarrier);
  if (dice.one_in(2)) refused.push_back(SYS_sched_getaffinity);
  // By which a process that ends is noticed; there are its locks as well.
  if (test.processes) refused.push_back(SYS_pidfd_open);
  if (const int error = refuse_calls(refused); error != 0) {
    judge.excuse(std::string("seccomp: ") + std::strerror(error));
    return;
  }
  if (test.processes) return end_where_calls_are_refused(test, call, dice.below(test.ranks), tally);
  {
    const Warnings warnings;
    const auto report = run_team(team_options(test), call, judge);
    expect_pins_refused(report, true, judge);
    bool bound = false;
    for (const RankReport& rank : report) {
      bound = bound || rank.binding.enforced();
      if (rank.binding.refused() && rank.binding.error != EPERM) {
        judge.blame("the report says " + to_string(rank));
      }
    }
    if (bound) judge.blame("memory is said to be bound");
    // Memory is asked for only where ranks talk through mailboxes.
    if (warnings.heard("numa.mbind")) {
      warnings.expect({"numa.mbind", "numa.pin"}, judge);
    } else {
      warnings.expect({"numa.pin"}, judge);
    }
  }
  if (membarrier && membarrier_available()) judge.blame("membarrier works, which was refused");
  fresh_start(test, call, tally);
}

void play_bad_memory_wishes(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  CollectiveCase call = good_call(test, dice);
  call.options.transport = Transport::mailbox;  // so that there is memory to bind
  constexpr int kNoSuchNode = 999;
  const Warnings warnings;
  // Nothing here is locked into memory; so nothing changes where that is not allowed.
  rlimit locked{}, none{};
  getrlimit(RLIMIT_MEMLOCK, &locked);
  none.rlim_max = locked.rlim_max;
  setrlimit(RLIMIT_MEMLOCK, &none);
  SystemCalls calls = real_system_calls();
  calls.madvise = [](void*, std::size_t, int) {
    errno = EINVAL;  // a kernel without huge pages
    return -1;
  };
  {
    const ScopedSystemCalls scope(calls);
    const std::vector<ArenaOptions> arenas(static_cast<std::size_t>(test.ranks),
                                           ArenaOptions{.node = kNoSuchNode});
    Scene* scene_of_all = nullptr;
    Scene scene(test, {}, tally, {.arenas = arenas, .in_the_end = [&] {
                                    Judge& judge = scene_of_all->judge();
                                    Arena large({.node = kNoSuchNode});
                                    if (large.allocate(std::size_t{4} << 20) == nullptr) {
                                      judge.blame("no memory without huge pages");
                                    }
                                    if (!large.binding().refused())
                                      judge.blame("no refusal is reported");
                                    if (!large.huge_pages().refused()) {
                                      judge.blame("huge pages are said to be in use");
                                    }
                                    warnings.expect({"numa.huge_pages", "numa.mbind"}, judge);
                                  }});
    scene_of_all = &scene;
    scene.run([&](Seat& seat) {
      seat.call(call);
      const Enforcement binding = scene.communicator().memory_of(seat.rank()).binding;
      if (binding.enforced()) scene.judge().blame("memory on a node that does not exist");
    });
  }
  setrlimit(RLIMIT_MEMLOCK, &locked);
  fresh_start(test, call, tally);
}

void play_topology(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  Judge judge(test, {}, tally);
  const TeamOptions options = team_options(test);
  {
    const Warnings warnings;
    SystemCalls calls = real_system_calls();
    calls.hwloc_topology_load = [](hwloc_topology*) {
      errno = EINVAL;
      return -1;
    };
    const ScopedSystemCalls scope(calls);
    expect_pins_refused(run_team(options, call, judge), false, judge);
    warnings.expect({"numa.hwloc"}, judge);
  }
  const auto with_description = [&](const char* text, bool is_understood, const char* warning) {
    const Warnings warnings;
    setenv("HWLOC_SYNTHETIC", text, 1);
    expect_pins_refused(run_team(options, call, judge), is_understood, judge);
    unsetenv("HWLOC_SYNTHETIC");
    warnings.expect({warning}, judge);
  };
  // Another machine's: nobody is pinned by it.
  with_description("pack:2 [numa] l3:4 core:8 pu:2", true, "numa.foreign_topology");
  with_description("no such thing", false, "numa.HWLOC_SYNTHETIC");
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
