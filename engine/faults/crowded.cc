// Ranks that are interrupted all the time, or have little processor to run on.
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "engine/faults/plays.h"
#include "engine/faults/scene.h"
#include "engine/run/machine.h"
#include "numa/affinity.h"
#include "numa/cpu_budget.h"

namespace rankine::faults {
namespace {

thread_local volatile std::sig_atomic_t interruptions = 0;

void interrupt(int) { interruptions = interruptions + 1; }

// Sends the calling thread a signal every millisecond.
class Interruptions {
 public:
  Interruptions() : timer_(timer_of_this_thread(SIGUSR2)) {
    const itimerspec every{{0, 1'000'000}, {0, 1'000'000}};
    if (timer_) timer_settime(*timer_, 0, &every, nullptr);
  }
  ~Interruptions() {
    if (timer_) timer_delete(*timer_);
  }
  Interruptions(const Interruptions&) = delete;
  Interruptions& operator=(const Interruptions&) = delete;
  bool works() const { return timer_.has_value(); }

 private:
  const std::optional<timer_t> timer_;
};

bool spins(Scene& scene) {
  return scene.communicator().wait_policy().mode == WaitPolicy::Mode::spin;
}

}  // namespace

void play_signals(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  struct sigaction action {
  }, before{};
  action.sa_handler = interrupt;  // without SA_RESTART: system calls end with EINTR
  sigaction(SIGUSR2, &action, &before);
  {
    Scene scene(test, {}, tally);
    scene.run([&](Seat& seat) {
      const Interruptions all_the_time;
      if (!all_the_time.works()) {
        scene.judge().excuse("no timer can be made");
        return;
      }
      constexpr int kCalls = 3;
      for (int i = 0; i < kCalls; ++i) {
        // One comes late, so that the others' signals meet them where they wait.
        if (seat.rank() == (static_cast<int>(test.seed % 64) + i) % test.ranks) {
          const int seen = interruptions;
          while (interruptions < seen + 2) sleep_ns(200'000);
        }
        if (!seat.call(call)) return;
      }
    });
  }
  fresh_start(test, call, tally);
  sigaction(SIGUSR2, &before, nullptr);
}

void play_few_cores(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const std::vector<int> all = allowed_cpus();
  for (const int cores : {1, 2}) {
    if (cores >= test.ranks || (cores == 2 && all.size() < 2)) continue;
    if (const int error = set_allowed_cpus(all.data(), cores); error != 0) {
      Judge(test, {}, tally).excuse(std::string("sched_setaffinity: ") + std::strerror(error));
      return;
    }
    {
      Scene scene(test, {}, tally);
      scene.run([&](Seat& seat) {
        if (seat.rank() == 0 && spins(scene)) {
          scene.judge().blame(std::to_string(test.ranks) + " ranks spin on " +
                              std::to_string(cores) + " cores");
        }
        for (int i = 0; i < 3; ++i) {
          if (!seat.call(call)) return;
        }
      });
    }
    set_allowed_cpus(all.data(), static_cast<int>(all.size()));
  }
  fresh_start(test, call, tally);
}

namespace {

// A control group of our own, with 0.2 of a processor, and this process in it. Leaves it in the
// end.
class Quota {
 public:
  Quota() {
    for (const CpuGroup& group : cpu_groups()) {
      if (why_.empty() || !works_) enter(group);
      if (works_) return;
    }
    if (why_.empty()) why_ = "no control group of processors is mounted";
  }
  ~Quota() {
    if (!works_) return;
    write(home_ + "/cgroup.procs", std::to_string(getpid()));
    std::error_code ignored;
    std::filesystem::remove(folder_, ignored);
  }
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;

  bool works() const { return works_; }
  const std::string& why() const { return why_; }

 private:
  bool write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    if (file) return true;
    why_ = path + ": " + std::strerror(errno);
    return false;
  }
  void enter(const CpuGroup& group) {
    home_ = group.folder;
    folder_ = home_ + "/rankine_faults_" + std::to_string(getpid());
    std::error_code error;
    if (!std::filesystem::create_directory(folder_, error)) {
      why_ = folder_ + ": " + error.message();
      return;
    }
    const bool limited = group.v2 ? write(folder_ + "/cpu.max", "20000 100000")
                                  : write(folder_ + "/cpu.cfs_period_us", "100000") &&
                                        write(folder_ + "/cpu.cfs_quota_us", "20000");
    works_ = limited && write(folder_ + "/cgroup.procs", std::to_string(getpid()));
    if (!works_) std::filesystem::remove(folder_, error);
  }

  std::string home_, folder_, why_;
  bool works_ = false;
};

}  // namespace

void play_quota(const FaultCase& test, Tally& tally) {
  Dice dice(test.seed);
  const CollectiveCase call = good_call(test, dice);
  const Quota quota;
  if (!quota.works()) {
    Judge(test, {}, tally).excuse(quota.why());
    return;
  }
  {
    Scene scene(test, {}, tally);
    scene.run([&](Seat& seat) {
      if (seat.rank() == 0 && spins(scene)) scene.judge().blame("ranks spin under a quota of 0.2");
      for (int i = 0; i < 3; ++i) {
        if (!seat.call(call)) return;
      }
    });
  }
  fresh_start(test, call, tally);
}

}  // namespace rankine::faults
