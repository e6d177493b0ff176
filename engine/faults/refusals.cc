// Fault families of refusals: pinning, binding memory, huge pages, the machine's topology, system
// calls, flight records, and long planning. These help but are not needed: calls must succeed
// without them, with one warning each, and the report must name the refusal.

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/api/team.h"
#include "engine/base/files.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/faults/refuse_calls.h"
#include "engine/run/machine.h"
#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/system_calls.h"
#include "numa/topology.h"

namespace rankine::faults {
namespace {

// Makes a call on a team of threads, and returns the team's report.
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

// Ranks are processes: one may run on only one processor, and its calls must succeed. Then it asks
// for a helper thread on a processor that does not exist, and all ranks must get the error.
void narrow_a_process(const FaultCase& test, const CollectiveCase& call, Rank victim,
                      Tally& tally) {
  const std::vector<int> all = allowed_cpus();
  {
    RankFixture fixture(
        test, {}, tally,
        {.before_meeting =
             [&](Rank rank) {
               if (rank == victim) set_allowed_cpus(&all.back(), 1);
             },
         .in_the_end = [&] { set_allowed_cpus(all.data(), static_cast<int>(all.size())); }});
    fixture.run([&](Seat& seat) { seat.call_often(3, call); });
  }
  RankFixture fixture(test, {.at_once = true, .documented = {Code::invalid_argument}}, tally,
                      {.before_meeting =
                           [&](Rank rank) {
                             if (rank == victim) fixture.judge().mark_fault();
                           },
                       .asks_for =
                           [&](Rank rank, CommunicatorOptions& options) {
                             if (rank == victim) options.progress_core = kMaxCpus - 1;
                           }});
  fixture.run([&](Seat&) { fixture.judge().blame("a helper runs on a missing CPU"); });
}

}  // namespace

void inject_cpuset(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  if (test.processes) return narrow_a_process(test, call, dice.below(test.ranks), tally);
  Judge judge(test, {}, tally);
  const TeamOptions options = team_options(test);
  const std::vector<int> all = allowed_cpus();
  {
    // Fewer processors than ranks: one for all.
    const Warnings warnings;
    if (const int error = set_allowed_cpus(&all.back(), 1); error != 0) {
      judge.excuse(std::string("sched_setaffinity: ") + std::strerror(error));
      return;
    }
    expect_pins_refused(run_team(options, call, judge), false, judge);
    // A processor outside the affinity mask must be refused.
    const int outside = all.size() > 1 ? all.front() : kMaxCpus - 1;
    TeamOptions elsewhere = options;
    elsewhere.placement = {.kind = PlacementPolicy::Kind::listed, .cpus = {outside}};
    judge.answer(Team::create(elsewhere).status(), {{Code::invalid_argument}});
    set_allowed_cpus(all.data(), static_cast<int>(all.size()));
    warnings.expect({}, judge);
  }
  {
    // A processor that the kernel refuses: EINVAL.
    const Warnings warnings;
    const Enforcement pin = pin_calling_thread(kMaxCpus - 1, all);
    if (!pin.refused() || pin.error != EINVAL) judge.blame("a thread on a CPU that does not exist");
    if (allowed_cpus() != all) judge.blame("a refused pin changes where the thread may run");
    // A processor that is lost between the look at the mask and the pin.
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
}

namespace {

// Processes must work as usual, and the exit of one must be noticed.
void end_with_refused_calls(const FaultCase& test, const CollectiveCase& call, Rank victim,
                            Tally& tally) {
  {
    RankFixture fixture(test, {}, tally);
    fixture.run([&](Seat& seat) { seat.call(call); });
  }
  RankFixture fixture(test, {.at_once = true, .documented = {Code::rank_lost}}, tally);
  fixture.run([&](Seat& seat) {
    if (!seat.call(call)) return;
    if (seat.rank() == victim) {
      fixture.judge().mark_fault();
      fixture.goes(victim);
      _exit(0);
    }
    if (seat.call(meeting(test, test.ranks))) fixture.judge().blame("no rank noticed the exit");
  });
}

}  // namespace

void inject_refused_calls(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                          Tally& tally) {
  Judge judge(test, {}, tally);
  std::vector<int> refused = {SYS_mbind, SYS_set_mempolicy, SYS_get_mempolicy,
                              SYS_sched_setaffinity};
  const bool membarrier = dice.one_in(2);
  if (membarrier) refused.push_back(SYS_membarrier);
  if (dice.one_in(2)) refused.push_back(SYS_sched_getaffinity);
  // Processes notice an ended process by its pidfd, or else by its locks.
  if (test.processes) refused.push_back(SYS_pidfd_open);
  if (const int error = refuse_calls(refused); error != 0) {
    judge.excuse(std::string("seccomp: ") + std::strerror(error));
    return;
  }
  if (test.processes) return end_with_refused_calls(test, call, dice.below(test.ranks), tally);
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
    if (bound) judge.blame("the report says that memory is bound");
    // The engine binds memory only for mailboxes.
    if (warnings.heard("numa.mbind")) {
      warnings.expect({"numa.mbind", "numa.pin"}, judge);
    } else {
      warnings.expect({"numa.pin"}, judge);
    }
  }
  if (membarrier && membarrier_available()) judge.blame("membarrier works, which was refused");
}

void inject_bad_memory_wishes(const FaultCase& test, Dice&, const CollectiveCase& good,
                              Tally& tally) {
  CollectiveCase call = good;
  call.options.transport = Transport::mailbox;  // so that there is memory to bind
  constexpr int kNoSuchNode = 999;
  const Warnings warnings;
  // The engine locks no memory, so a limit of 0 changes nothing.
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
    RankFixture* fixture_of_all = nullptr;
    RankFixture fixture(test, {}, tally,
                        {.arenas = arenas, .in_the_end = [&] {
                           Judge& judge = fixture_of_all->judge();
                           Arena large({.node = kNoSuchNode});
                           if (large.allocate(std::size_t{4} << 20) == nullptr) {
                             judge.blame("no memory without huge pages");
                           }
                           if (!large.binding().refused())
                             judge.blame("the report names no refusal");
                           if (!large.huge_pages().refused()) {
                             judge.blame("the report says that huge pages are in use");
                           }
                           warnings.expect({"numa.huge_pages", "numa.mbind"}, judge);
                         }});
    fixture_of_all = &fixture;
    fixture.run([&](Seat& seat) {
      seat.call(call);
      const Enforcement binding = fixture.communicator().memory_of(seat.rank()).binding;
      if (binding.enforced()) fixture.judge().blame("memory on a node that does not exist");
    });
  }
  setrlimit(RLIMIT_MEMLOCK, &locked);
}

void inject_topology(const FaultCase& test, Dice&, const CollectiveCase& call, Tally& tally) {
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
  // The topology of another machine must pin no thread.
  with_description("pack:2 [numa] l3:4 core:8 pu:2", true, "numa.foreign_topology");
  with_description("no such thing", false, "numa.HWLOC_SYNTHETIC");
}

// Flight records that cannot be written to their place: no call waits for the record, no exception
// is thrown, and no partial record is left.

namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() : path_((fs::temp_directory_path() / "rankine_record_XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  bool works() const { return !path_.empty(); }
  std::string at(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// While an object lives, files of this process grow to at most `bytes`, as on a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : limit_(RLIMIT_FSIZE, bytes) {}
  ~FileLimit() { std::signal(SIGXFSZ, handler_); }

 private:
  void (*const handler_)(int) = std::signal(SIGXFSZ, SIG_IGN);
  const Limit limit_;
};

// While an object lives, new communicators write their flight records to that path.
class RecordFile {
 public:
  explicit RecordFile(const std::string& path) { setenv("RANKINE_FLIGHT_RECORD", path.c_str(), 1); }
  ~RecordFile() { unsetenv("RANKINE_FLIGHT_RECORD"); }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
};

// Ends a communicator by its deadline; its record goes to `path`.
void fail_and_leave(const FaultCase& test, const CollectiveCase& call, const std::string& path,
                    Tally& tally) {
  const RecordFile record_file(path);
  RankFixture fixture(test, {.timeout = kShort, .documented = {Code::timeout}}, tally);
  const Rank victim = static_cast<Rank>(test.seed % static_cast<std::uint64_t>(test.ranks));
  fixture.run([&](Seat& seat) {
    if (seat.rank() != victim) seat.call(call);
  });
}

// Ends a communicator by abort() with a text that is no UTF-8; its record goes to `path`.
void abort_and_leave(const FaultCase& test, const CollectiveCase& call, const std::string& path,
                     Tally& tally) {
  const RecordFile record_file(path);
  RankFixture fixture(test, {.at_once = true, .documented = {Code::aborted}}, tally);
  fixture.run(
      [&](Seat& seat) {
        while (seat.call(call)) {
        }
      },
      [&] {
        wait_for([&] { return fixture.any_done() || fixture.started() == test.ranks; });
        fixture.judge().mark_fault();
        fixture.communicator().abort("\xff\xfe is no text");
      });
}

// Checks the warnings if ranks are threads. Ranks that are processes warn in those processes, and
// this process hears nothing.
void expect_warnings(const FaultCase& test, const Warnings& warnings,
                     const std::vector<std::string>& keys, Judge& judge) {
  if (!test.processes) warnings.expect(keys, judge);
}

// Processes share a file, which the limit refuses: they must get the error and not meet.
void refuse_to_meet(const FaultCase& test, Tally& tally) {
  std::optional<FileLimit> limit;
  const auto begin = [&](Rank) { limit.emplace(100); };
  const auto end = [&](Rank) { limit.reset(); };
  RankFixture fixture(test, {.timeout = kShort, .documented = {Code::system}}, tally,
                      {.before_meeting = begin, .after_meeting = end});
  fixture.run([&](Seat&) { fixture.judge().blame("ranks have met in a file of 100 bytes"); });
}

bool is_record(const std::string& path, int ranks) {
  const auto json = nlohmann::json::parse(read_small_file(path, 1 << 26).text, nullptr, false);
  return json.is_object() && json.contains("ranks") &&
         json["ranks"].size() == static_cast<std::size_t>(ranks);
}

}  // namespace

void inject_unwritable_record(const FaultCase& test, Dice&, const CollectiveCase& call,
                              Tally& tally) {
  Judge judge(test, {}, tally);
  const Folder folder;
  const std::string pipe = folder.at("pipe"), link = folder.at("link"), good = folder.at("good");
  if (!folder.works() || mkfifo(pipe.c_str(), 0600) != 0 || symlink("good", link.c_str()) != 0) {
    judge.excuse("no folder for files of a case");
    return;
  }
  const std::vector<std::string> refused = {
      pipe, link, folder.at(""), "/dev/full", folder.at("none/record"), "/sys/rankine_record"};
  for (const std::string& path : refused) {
    const Warnings warnings;
    fail_and_leave(test, call, path, tally);
    expect_warnings(test, warnings, {"api.flight_record"}, judge);
  }
  // Writes a record, and keeps it when there is no room for another one.
  const std::string odd_name = folder.at("\xff\xfe");
  for (const std::string& path : {good, odd_name}) {
    const Warnings warnings;
    abort_and_leave(test, call, path, tally);
    expect_warnings(test, warnings, {}, judge);
    if (!is_record(path, test.ranks)) judge.blame_wrong("no flight record is left");
  }
  if (test.processes) {
    refuse_to_meet(test, tally);
  } else {
    const Warnings warnings;
    {
      const FileLimit limit(100);
      fail_and_leave(test, call, good, tally);
    }
    warnings.expect({"api.flight_record"}, judge);
    if (!is_record(good, test.ranks)) judge.blame_wrong("the flight record that was there is lost");
  }
}

// Calls that take longer to plan than their deadline.

void inject_long_planning(const FaultCase& test, Dice& dice, const CollectiveCase& good,
                          Tally& tally) {
  // The maximum of segments, each of at least a cache line: empty segments are not planned.
  CollectiveCase call = good;
  call.type = DataType::f32;
  call.op = ReduceOp::sum;
  call.count = std::size_t{1} << 18;
  call.options = {.algorithm = "double_tree", .segments = 1 << 14};
  enum { deadline, abort, asked_for };
  const int kind = dice.below(3);
  Promise promise{.timeout = std::chrono::milliseconds(1 + dice.below(5)),
                  .documented = {Code::timeout}};
  if (kind == abort) promise = {.at_once = true, .documented = {Code::aborted}};
  RankFixture fixture(test, promise, tally);
  if (!fixture.works()) return;
  fixture.run(
      [&](Seat& seat) {
        if (kind != asked_for) {
          seat.call(call);
        } else if (seat.rank() == 0) {
          CaseBuffers buffers;
          buffers.fill(call, seat.rank());
          fixture.judge().answer(seat.member->plan_of(call_of(call, buffers)).status());
        }
      },
      [&] {
        if (kind != abort) return;
        wait_for([&] { return fixture.started() == test.ranks; });
        sleep_ns(dice.below(20) * 1'000'000);
        fixture.judge().mark_fault();
        fixture.communicator().abort("a stranger pressed a key");
      });
}

}  // namespace rankine::faults
