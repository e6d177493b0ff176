// Fault families of processes: killed, exited, stopped, replaced by another program, and strangers
// that ask for a rank's place.

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/api/communicator.h"
#include "engine/api/processes/identity.h"
#include "engine/api/tuning/tuning.h"
#include "engine/api/version.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/kernels/reduce.h"
#include "engine/run/machine.h"

namespace rankine::faults {
namespace {

// Makes calls until one fails. In every eighth call each rank waits for each other rank, so that
// the missing rank is noticed.
void call_on(const FaultCase& test, Seat& seat, const CollectiveCase& call) {
  constexpr int kEvery = 8;
  for (int i = 1; seat.call(i % kEvery == 0 ? meeting(test, test.ranks) : call); ++i) {
  }
}

// A signal comes at any time: mostly while the ranks make calls, sometimes while they meet. If the
// victim dies before it has met the others, only the timeout ends their wait.
void inject_signal(const FaultCase& test, Dice& dice, const CollectiveCase& call, int signal,
                   Promise promise, Tally& tally) {
  const Rank victim = dice.below(test.ranks);
  const bool while_meeting = dice.one_in(16);
  const int delay_us = dice.below(while_meeting ? 3'000 : 500);
  if (while_meeting) {
    promise.timeout = kShort;
    promise.documented = {Code::rank_lost, Code::timeout};
    promise.at_once = false;
  }
  RankFixture* fixture_of_all = nullptr;
  const auto begin_to_end = [&] {
    fixture_of_all->judge().mark_fault();
    fixture_of_all->goes(victim);
    if (!send_signal_later(signal, delay_us)) raise(SIGKILL);  // no timer: end at once
  };
  RankFixture fixture(test, promise, tally, {.before_meeting = [&](Rank rank) {
                        if (while_meeting && rank == victim) begin_to_end();
                      }});
  fixture_of_all = &fixture;
  fixture.run([&](Seat& seat) {
    if (!while_meeting && seat.rank() == victim) begin_to_end();
    call_on(test, seat, call);
  });
}

// The victim calls end() between two calls, or in a round of one.
void inject_end(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                const Promise& promise, Tally& tally, const std::function<void()>& end) {
  const Rank victim = dice.below(test.ranks);
  const int round = dice.below(rounds_of(call));
  const int calls = dice.below(3);  // good calls before the end
  const bool inside = !dice.one_in(3);
  RankFixture fixture(test, promise, tally);
  const auto come_to_the_end = [&] {
    fixture.judge().mark_fault();
    fixture.goes(victim);
    end();
  };
  AtRound at(round, [&] {
    come_to_the_end();
    return true;
  });
  fixture.run([&](Seat& seat) {
    if (seat.rank() != victim) return call_on(test, seat, call);
    if (!seat.call_often(calls, call)) return;
    if (inside) seat.call(call, {.observer = &at});
    come_to_the_end();  // also if the schedule has no such round on this rank
  });
}

}  // namespace

void inject_killed(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  const auto signals = fatal_signals();
  const int signal =
      signals[static_cast<std::size_t>(dice.below(static_cast<int>(signals.size())))];
  inject_signal(test, dice, call, signal, {.at_once = true, .documented = {Code::rank_lost}},
                tally);
}

void inject_gone(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  const bool has_a_child = dice.one_in(4);
  inject_end(test, dice, call, {.at_once = true, .documented = {Code::rank_lost}}, tally,
             [has_a_child] {
               if (has_a_child && fork() == 0) {
                 // The child keeps the shared memory mapped, and with it the lock of its parent's
                 // seat.
                 for (int one = 0; one < 4096; ++one) close(one);
                 sleep(1);
               }
               _exit(0);
             });
}

void inject_stopped(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  const Promise promise{.timeout = kShort, .documented = {Code::timeout}};
  if (dice.one_in(2)) return inject_signal(test, dice, call, SIGSTOP, promise, tally);
  inject_end(test, dice, call, promise, tally, [] { raise(SIGSTOP); });
}

void inject_exec(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  if (access("/bin/sleep", X_OK) != 0) {
    Judge(test, {}, tally).excuse("there is no /bin/sleep to execute");
    return;
  }
  inject_end(test, dice, call, {.at_once = true, .documented = {Code::rank_lost}}, tally, [] {
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);  // exec failed: exit is an end as well
  });
}

// Strangers: processes that cannot be a rank of the communicator. Their version, instruction set,
// choices, options, machine or user differs.

namespace {

// A kind of stranger: a child of the rank's process changes itself by become(), and then asks for a
// communicator in the place of the rank.
struct IncompatiblePeer {
  std::string_view differs;  // word for it in the error text
  // Returns an empty text, or the reason if this process cannot become such a stranger.
  std::string (*become)(CommunicatorOptions&);
  // If true, the child makes the file, and the rank's process changes the version in it.
  bool by_the_file = false;
};

std::string why(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

std::string set(const char* variable, const std::string& value) {
  setenv(variable, value.c_str(), 1);
  return {};
}

// Makes a file of this process with that text. The caller removes it.
std::string own_file(const std::string& text) {
  std::string path =
      (std::filesystem::temp_directory_path() / ("rankine_stranger_" + std::to_string(getpid())))
          .string();
  std::ofstream(path) << text;
  return path;
}

constexpr IncompatiblePeer kIncompatiblePeers[] = {
    {"ranks",
     [](CommunicatorOptions& options) {
       ++options.ranks;
       return std::string();
     }},
    {"costs",
     [](CommunicatorOptions& options) {
       options.costs = costs_with({{&Costs::claim_copy_min_bytes, 8192}});
       return std::string();
     }},
    {"options",
     [](CommunicatorOptions& options) {
       options.plan_bytes /= 2;
       return std::string();
     }},
    {"variables", [](CommunicatorOptions&) { return set("RANKINE_ALGO", "ring"); }},
    {"choices",
     [](CommunicatorOptions& options) {
       options.tuned = true;
       const std::string path = own_file(to_json(TuningTable(read_hardware(), "now", {}, {})));
       setenv("RANKINE_TUNING", path.c_str(), 1);
       const bool is_read = machine_tuning() != nullptr;  // reads the table, once per process
       unlink(path.c_str());
       return std::string(is_read ? "" : "the tuning table was not read");
     }},
    {"instruction set",
     [](CommunicatorOptions&) {
       if (hardware_isa() == Isa::portable) {
         return std::string("this machine has the portable instructions only");
       }
       return set("RANKINE_ISA", "portable");
     }},
    {"host",
     [](CommunicatorOptions&) {
       constexpr std::string_view kName = "elsewhere";
       return unshare(CLONE_NEWUTS) == 0 && sethostname(kName.data(), kName.size()) == 0
                  ? std::string()
                  : why("another host name");
     }},
    {"boot id",
     [](CommunicatorOptions&) {
       const std::string file = own_file("11111111-2222-3333-4444-555555555555\n");
       const bool done =
           unshare(CLONE_NEWNS) == 0 &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
           mount(file.c_str(), "/proc/sys/kernel/random/boot_id", nullptr, MS_BIND, nullptr) == 0;
       const std::string refused = done ? "" : why("a mount namespace");
       unlink(file.c_str());
       return refused;
     }},
    {"pid namespace",
     [](CommunicatorOptions&) {
       if (unshare(CLONE_NEWPID) != 0) return why("a pid namespace");
       const pid_t child = fork();  // the child is in the new namespace
       if (child < 0) return why("fork");
       if (child == 0) {
         prctl(PR_SET_PDEATHSIG, SIGKILL);
         return std::string();
       }
       while (waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
       }
       _exit(0);
     }},
    {"version", [](CommunicatorOptions&) { return std::string(); }, true},
};

// Waits for the file and changes its maker's version in it. If this fails, the other ranks see no
// difference, and the judge notices.
void change_version(const std::string& path) {
  int file = -1;
  wait_for([&] { return (file = open(path.c_str(), O_RDWR | O_CLOEXEC)) >= 0; });
  std::string head(1 << 16, ' ');
  const ssize_t bytes = pread(file, head.data(), head.size(), 0);
  const std::size_t at = head.substr(0, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)))
                             .find(std::string(kVersion) + '\0');
  if (at == std::string::npos || pwrite(file, "x", 1, static_cast<off_t>(at)) != 1) {
    std::fprintf(stderr, "faults: no version to change in %s\n", path.c_str());
  }
  close(file);
}

// Result of the child, in memory that it shares with the rank's process.
struct Told {
  bool is_stranger;
  int code;
  char text[1024];  // text of the status, or the reason if it is no stranger
};

void tell(Told& told, const std::string& text) {
  const std::size_t length = std::min(text.size(), sizeof(told.text) - 1);
  std::memcpy(told.text, text.data(), length);
}

int become_incompatible_peer(const IncompatiblePeer& stranger, CommunicatorOptions options,
                             Told& told) {
  const std::string refused = stranger.become(options);
  told.is_stranger = refused.empty();
  tell(told, refused);
  if (told.is_stranger) {
    const Status status = Communicator::create(options).status();
    told.code = static_cast<int>(status.code());
    tell(told, status.text());
  }
  return 0;
}

constexpr uid_t kNobody = 200'001;

// Returns true if this process may give files away: only the superuser may, and only to users of
// the user namespace.
bool gives_files_away() {
  const int file = memfd_create("gift", MFD_CLOEXEC);
  const bool done = file >= 0 && fchown(file, kNobody, kNobody) == 0;
  close(file);
  return done;
}

// Puts something under the name that is no file of a communicator, or a file of another owner or
// with other permissions. Returns an empty text, or the reason if that failed.
std::string put_file(const std::string& path, int kind) {
  enum { of_another_user, for_all_users, a_folder, a_pipe, a_link, something_else };
  const bool done = [&] {
    if (kind == a_folder) return mkdir(path.c_str(), 0700) == 0;
    if (kind == a_pipe) return mkfifo(path.c_str(), 0600) == 0;
    if (kind == a_link) return symlink("/etc/hostname", path.c_str()) == 0;
    std::ofstream(path) << std::string(kind == something_else ? 100'000 : 0, 'x');
    if (kind == of_another_user && chown(path.c_str(), kNobody, kNobody) != 0) return false;
    return chmod(path.c_str(), kind == for_all_users ? 0666 : 0600) == 0;
  }();
  return done ? std::string() : why(path.c_str());
}
constexpr int kThingsThere = 6;

void inject_taken_name(const FaultCase& test, const CollectiveCase& call, Dice& dice,
                       Tally& tally) {
  const Rank first = dice.below(test.ranks);
  const int kind = dice.below(kThingsThere);
  if (kind == 0 && !gives_files_away()) {
    return Judge(test, {}, tally).excuse("no file of another user can be made here");
  }
  RankFixture* fixture_of_all = nullptr;
  const auto path = [&] { return shared_path(fixture_of_all->name()); };
  RankFixture fixture(test, {.at_once = true, .documented = {Code::system}}, tally,
                      {.before_meeting =
                           [&](Rank rank) {
                             if (rank == first) {
                               const std::string refused = put_file(path(), kind);
                               if (!refused.empty()) fixture_of_all->judge().blame(refused);
                               fixture_of_all->judge().mark_fault();
                               fixture_of_all->arrive();
                             }
                             wait_for([&] { return fixture_of_all->arrived() > 0; });
                           },
                       .in_the_end = [&] { static_cast<void>(remove(path().c_str())); }});
  fixture_of_all = &fixture;
  fixture.run([&](Seat& seat) {
    fixture.judge().blame("a name that belongs to another file was taken over");
    seat.call(call);
  });
}

}  // namespace

void inject_incompatible_peers(const FaultCase& test, Dice& dice, const CollectiveCase& call,
                               Tally& tally) {
  if (dice.one_in(3)) return inject_taken_name(test, call, dice, tally);
  const IncompatiblePeer& stranger =
      kIncompatiblePeers[dice.below(static_cast<int>(std::size(kIncompatiblePeers)))];
  const Rank victim = dice.below(test.ranks);
  const int delay_us = dice.below(3'000);  // any rank may be the first to come
  RankFixture* fixture_of_all = nullptr;
  // Shared by all ranks and the stranger. Its is_stranger is false if this machine allows no such
  // stranger: the case is excused, and all ranks meet.
  void* const memory =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
  Told& told = *new (memory) Told{.is_stranger = true, .code = 0, .text = {}};
  const auto send_stranger = [&](Rank rank,
                                 const CommunicatorOptions& options) -> std::optional<Status> {
    if (rank != victim) {
      if (stranger.by_the_file) wait_for([&] { return fixture_of_all->arrived() > 0; });
      return std::nullopt;
    }
    sleep_ns(delay_us * 1'000);
    fixture_of_all->judge().mark_fault();
    ChildProcess child([&] { return become_incompatible_peer(stranger, options, told); });
    if (!child.runs()) return Status(Code::system, why("fork"));
    if (stranger.by_the_file) {
      change_version(shared_path(fixture_of_all->name()));
      fixture_of_all->arrive();
    }
    child.wait();
    const Status status(static_cast<Code>(told.code), told.text);
    if (told.is_stranger) return status;
    fixture_of_all->judge().excuse(std::string(stranger.differs) + ": " + status.text());
    return std::nullopt;  // the rank comes without a stranger
  };
  RankFixture fixture(test, {.at_once = true, .documented = {Code::mismatch}}, tally,
                      {.instead_of_meeting = send_stranger});
  fixture_of_all = &fixture;
  fixture.run([&](Seat& seat) {
    if (told.is_stranger && seat.rank() != victim) {
      fixture.judge().blame("another " + std::string(stranger.differs) + " was accepted");
    }
    seat.call(call);
  });
  munmap(memory, sizeof(Told));
}

// Growth: the process of the last rank is new, and the other ranks grow by it, at the second
// attempt if the first one fails.

namespace {

struct Growth {
  std::string_view what;
  Codes documented{};                // of the first attempt, beside success
  std::int64_t timeout_ms = 30'000;  // of the first attempt
  bool comes_late = false;           // the new rank comes for the second attempt only
  bool someone_dies = false;         // there is no second attempt
};
enum : std::size_t {
  kNewDies = 1,
  kMemberDies,
  kOptions,
  kWrongRank,
  kLate,
  kHurried,
  kDiffer,
  kTaken
};
constexpr Growth kGrowths[] = {
    {"nothing fails"},
    {"the new rank dies", {Code::rank_lost, Code::timeout}, 300, false, true},
    {"a member dies", {Code::rank_lost, Code::timeout}, 1'000, false, true},
    {"the new rank has other options", {Code::mismatch}},
    {"the new rank has a member's number", {Code::invalid_argument}},
    {"the new rank does not come", {Code::timeout}, 200, true},
    {"the members hurry", {Code::timeout, Code::rank_lost}, 1},
    {"members differ", {Code::mismatch}},
    {"the name is taken", {Code::system}, 30'000, true},
};

}  // namespace

void inject_grow(const FaultCase& test, Dice& dice, const CollectiveCase&, Tally& tally) {
  static constexpr Codes kNoCodes;
  const auto kind = static_cast<std::size_t>(dice.below(static_cast<int>(std::size(kGrowths))));
  const Growth& growth = kGrowths[kind];
  const int members = test.ranks - 1, delay_us = dice.below(3'000), end_us = dice.below(3'000);
  const Rank victim = kind == kNewDies ? members : dice.below(members), first = dice.below(members);
  const int thing = 1 + dice.below(kThingsThere - 1);  // not of another user
  RankFixture* fixture_of_all = nullptr;
  CaseBuffers buffers;
  std::string name;
  const auto options_of_attempt = [&](bool is_first) {
    CommunicatorOptions options = communicator_options(test);
    if (is_first) options.timeout = std::chrono::milliseconds(growth.timeout_ms);
    name = fixture_of_all->name() + "_larger";
    options.name = name;
    return options;
  };
  // Judges an attempt, and makes a call in the larger communicator.
  const auto judge_attempt = [&](Result<std::unique_ptr<Member>> made, bool is_first, Rank rank,
                                 std::int64_t begin_ns) {
    Judge& judge = fixture_of_all->judge();
    // The new rank may come to members that have just given up, several times.
    const Codes& documented = rank == members ? judge.promise().documented
                              : is_first      ? growth.documented
                                              : kNoCodes;
    const std::string who = "rank " + std::to_string(rank) + ", " + std::string(growth.what) +
                            (is_first ? "" : ", second attempt");
    if (!made.ok() && !documented.has(made.status().code())) {
      judge.blame(who + ": " + std::string(name_of(made.status().code())) + ": " +
                  made.status().text());
    }
    if (!judge.answer_in_time(made.status(), begin_ns, who)) return false;
    judge.call(**made, buffers, meeting(test, test.ranks), {.documented = documented});
    return true;
  };
  const auto die_soon = [&](Rank rank) {
    if (!growth.someone_dies || rank != victim) return;
    fixture_of_all->goes(rank);
    if (!send_signal_later(SIGKILL, end_us)) raise(SIGKILL);
  };
  const auto come_in = [&](Rank rank, const CommunicatorOptions&) -> std::optional<Status> {
    if (rank != members) return std::nullopt;
    sleep_ns(delay_us * 1'000);
    die_soon(rank);
    if (growth.comes_late) wait_for([&] { return fixture_of_all->arrived() == members; });
    for (int attempt = 1; attempt <= 50; ++attempt) {
      const bool is_first = attempt == 1;
      CommunicatorOptions options = options_of_attempt(is_first);
      if (!growth.someone_dies) options.timeout = kLong;
      options.rank = is_first && kind == kWrongRank ? 0 : rank;
      if (is_first && kind == kOptions) options.plan_bytes /= 2;
      const std::int64_t begin_ns = clock_of_promises();
      auto made = Communicator::create(options);
      auto member =
          made.ok() ? (*made)->join(rank) : Result<std::unique_ptr<Member>>(made.status());
      if (judge_attempt(std::move(member), is_first, rank, begin_ns)) break;
      if (growth.someone_dies) break;
    }
    return Status();
  };
  RankFixture fixture(test,
                      {.documented = {Code::rank_lost, Code::timeout, Code::mismatch,
                                      Code::invalid_argument, Code::system},
                       .same_text = false},
                      tally,
                      {.asks_for = [](Rank, CommunicatorOptions& options) { --options.ranks; },
                       .instead_of_meeting = come_in});
  fixture_of_all = &fixture;
  fixture.run([&](Seat& seat) {
    const Rank rank = seat.rank();
    seat.call(meeting(test, members));
    die_soon(rank);
    for (const bool is_first : {true, false}) {
      CommunicatorOptions options = options_of_attempt(is_first);
      if (is_first && kind == kDiffer && rank == first) ++options.ranks;
      const std::string path = shared_path(name);
      const bool puts = is_first && kind == kTaken && rank == first;
      if (puts) {
        const std::string refused = put_file(path, thing);
        if (!refused.empty()) fixture.judge().blame(refused);
      }
      const std::int64_t begin_ns = clock_of_promises();
      auto larger = seat.member->grow(options);
      if (puts) static_cast<void>(remove(path.c_str()));
      if (judge_attempt(std::move(larger), is_first, rank, begin_ns)) break;
      fixture.arrive();
      const bool works = fixture.communicator().health().ok();
      if (!works && kind == kMemberDies) {
        auto smaller = seat.member->shrink();
        if (fixture.judge().answer(smaller.status(), Codes())) {
          fixture.judge().call(**smaller, buffers, meeting(test, members - 1),
                               {.documented = Codes()});
        }
        break;
      }
      // The smaller communicator works, or a member dies only now.
      seat.call(meeting(test, members),
                {.documented = kind == kMemberDies ? growth.documented : Codes()});
      if (growth.someone_dies) break;
    }
  });
}

}  // namespace rankine::faults
