// Threads that the system refuses, and processes that fork.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "engine/api/team.h"
#include "engine/exec/machine.h"
#include "engine/faults/plays.h"
#include "engine/faults/scene.h"

namespace rankine::faults {
namespace {

int threads_of_this_process() {
  int threads = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads += entry.exists() ? 1 : 0;
  }
  return threads;
}

}  // namespace

void play_thread_creation(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  Judge judge(test, {.documented = {Code::system}}, tally);
  // The limit counts a user's threads, and not the superuser's: be somebody with no others.
  const auto nobody = static_cast<uid_t>(200'000 + getpid());
  if (geteuid() == 0 && setresuid(nobody, nobody, nobody) != 0) {
    judge.excuse(std::string("setresuid: ") + std::strerror(errno));
    return;
  }
  const bool is_alone = geteuid() == nobody;
  rlimit limit{};
  getrlimit(RLIMIT_NPROC, &limit);
  const rlim_t before = limit.rlim_cur;
  const int threads = threads_of_this_process();
  // How many of the team's threads there is room for. Beside other processes of the user: none.
  std::set<int> rooms = {0};
  if (is_alone) rooms.insert({1, test.ranks / 2, test.ranks - 1});
  for (const int room : rooms) {
    if (room >= test.ranks) continue;
    limit.rlim_cur = is_alone ? static_cast<rlim_t>(threads + room) : 0;
    setrlimit(RLIMIT_NPROC, &limit);
    auto team = Team::create(team_options(test));
    limit.rlim_cur = before;
    setrlimit(RLIMIT_NPROC, &limit);
    if (judge.answer(team.status())) {
      judge.blame("a team of " + std::to_string(test.ranks) + " threads where there is room for " +
                  std::to_string(room));
    }
    const int left = threads_of_this_process();
    if (left != threads) judge.blame(std::to_string(left - threads) + " threads stay behind");
  }
  fresh_start(test, call, tally);
}

namespace {

// What a child of a process with ranks may do: be told so at once, and start anew. 0 where all is
// as promised; else one bit each.
int live_as_a_child(const FaultCase& test, const CollectiveCase& call, Scene& scene) {
  int failed = 0;
  const std::int64_t begin_ns = now_ns();
  for (Seat& seat : scene.seats()) {
    CaseBuffers buffers;
    buffers.fill(call, seat.rank());
    if (seat.member->call(call_of(call, buffers)).code() != Code::forked) failed |= 1;
    if (!buffers.check_untouched().empty()) failed |= 2;
    seat.member.reset();
  }
  if (scene.communicator().health().code() != Code::forked) failed |= 4;
  if (now_ns() - begin_ns > kGraceNs) failed |= 8;
  Tally mine;
  fresh_start(test, call, mine);
  if (mine.broken() != 0) failed |= 16;
  return failed;
}

}  // namespace

void play_fork(const FaultCase& test, Tally& tally) {
  if (kThreadSanitizer) {
    Judge(test, {}, tally).excuse("the thread sanitizer allows no threads in a forked child");
    return;
  }
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const bool between_calls = dice.one_in(2);
  {
    Scene scene(test, {}, tally);
    if (!scene.works()) return;
    scene.run([&](Seat& seat) { seat.call(call); });
    pid_t child = -1;
    const auto start_child = [&] {
      child = fork();
      if (child != 0) return;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(live_as_a_child(test, call, scene));
    };
    if (between_calls) start_child();
    // Else in the midst of them, from a thread that is no rank.
    scene.run(
        [&](Seat& seat) {
          for (int i = 0; i < 20; ++i) {
            if (!seat.call(call)) return;
          }
        },
        [&] {
          if (!between_calls) start_child();
        });
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
      scene.judge().excuse(std::string("fork: ") + std::strerror(errno));
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      scene.judge().blame("the child ended with status " + std::to_string(status));
    } else {
      scene.judge().answer(Status(Code::forked, ""), {{Code::forked}});  // of each rank there
    }
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
