// Fault families of crowded processes: signals, few processors, a quota, abort(), and cycles of
// killed and replaced processes.

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/api/processes/identity.h"
#include "engine/faults/fault.h"
#include "engine/faults/fixture.h"
#include "engine/run/machine.h"
#include "numa/cpus.h"

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

bool spins(RankFixture& fixture) {
  return fixture.communicator().wait_policy().mode == WaitPolicy::Mode::spin;
}

}  // namespace

void inject_signals(const FaultCase& test, Dice&, const CollectiveCase& call, Tally& tally) {
  struct sigaction action {
  }, before{};
  action.sa_handler = interrupt;  // without SA_RESTART: system calls end with EINTR
  sigaction(SIGUSR2, &action, &before);
  {
    RankFixture fixture(test, {}, tally);
    fixture.run([&](Seat& seat) {
      const Interruptions all_the_time;
      if (!all_the_time.works()) {
        fixture.judge().excuse("no timer can be made");
        return;
      }
      constexpr int kCalls = 3;
      for (int i = 0; i < kCalls; ++i) {
        // One rank comes late, so that signals reach the other ranks while they wait.
        if (seat.rank() == (static_cast<int>(test.seed % 64) + i) % test.ranks) {
          const int seen = interruptions;
          while (interruptions < seen + 2) sleep_ns(200'000);
        }
        if (!seat.call(call)) return;
      }
    });
  }
  sigaction(SIGUSR2, &before, nullptr);
}

void inject_few_cores(const FaultCase& test, Dice&, const CollectiveCase& call, Tally& tally) {
  const std::vector<int> all = allowed_cpus();
  for (const int cores : {1, 2}) {
    if (cores >= test.ranks || (cores == 2 && all.size() < 2)) continue;
    if (const int error = set_allowed_cpus(all.data(), cores); error != 0) {
      Judge(test, {}, tally).excuse(std::string("sched_setaffinity: ") + std::strerror(error));
      return;
    }
    {
      RankFixture fixture(test, {}, tally);
      fixture.run([&](Seat& seat) {
        if (seat.rank() == 0 && spins(fixture)) {
          fixture.judge().blame(std::to_string(test.ranks) + " ranks spin on " +
                                std::to_string(cores) + " cores");
        }
        seat.call_often(3, call);
      });
    }
    set_allowed_cpus(all.data(), static_cast<int>(all.size()));
  }
}

namespace {

// A new control group with 0.2 of a processor, which this process enters. The destructor leaves and
// removes it.
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

void inject_quota(const FaultCase& test, Dice&, const CollectiveCase& call, Tally& tally) {
  const Quota quota;
  if (!quota.works()) {
    Judge(test, {}, tally).excuse(quota.why());
    return;
  }
  RankFixture fixture(test, {}, tally);
  fixture.run([&](Seat& seat) {
    if (seat.rank() == 0 && spins(fixture))
      fixture.judge().blame("ranks spin under a quota of 0.2");
    seat.call_often(3, call);
  });
}

// abort(): from other threads, from signal handlers, twice, in the last round.

namespace {

std::atomic<Communicator*> ended_by_signal{nullptr};
std::atomic<int> signals_handled{0};

void end_by_signal(int) {
  if (Communicator* const its = ended_by_signal.load()) its->abort();
  signals_handled.fetch_add(1);
}

}  // namespace

void inject_abort(const FaultCase& test, Dice& dice, const CollectiveCase& call, Tally& tally) {
  const int rounds = rounds_of(call);
  const Rank victim = dice.below(test.ranks);
  enum { stranger, two_strangers, signal_inside, signal_anywhere, signal_allocating, last_step };
  const int kind = dice.below(6);
  // A process can signal only its own threads.
  const Rank neighbour = test.processes ? victim : (victim + 1) % test.ranks;
  const int delay_us = dice.below(400);
  struct sigaction before {};
  RankFixture fixture(test, {.at_once = true, .documented = {Code::aborted}}, tally,
                      {.director_at = victim});
  if (!fixture.works()) return;
  signals_handled.store(0);
  struct sigaction action {};
  action.sa_handler = end_by_signal;
  sigaction(SIGUSR1, &action, &before);
  const auto abort_as = [&](const char* who) {
    fixture.judge().mark_fault();
    fixture.communicator().abort(std::string(who) + " pressed a key");
  };
  AtRound signals(dice.below(rounds), [&] {
    fixture.judge().mark_fault();
    raise(SIGUSR1);
    raise(SIGUSR1);
    return true;
  });
  AtRound last(rounds - 1, [&] {
    abort_as("the last step");
    return true;
  });
  RoundObserver* observer = kind == signal_inside ? &signals : kind == last_step ? &last : nullptr;
  fixture.run(
      [&](Seat& seat) {
        ended_by_signal.store(&fixture.communicator());
        fixture.arrive();
        if (kind == signal_allocating && seat.rank() == victim) {
          // The handler mostly interrupts malloc() or free().
          std::vector<std::unique_ptr<char[]>> held(64);
          for (std::size_t i = 0; signals_handled.load() == 0 && !fixture.over(); i = i * 29 + 1) {
            held[i % held.size()] = std::make_unique<char[]>(i % 5'000 + 1);
          }
        }
        // Without an observer, the rank makes calls until the communicator ends.
        bool ok = true;
        do {
          ok = seat.call(call, {.observer = seat.rank() == victim ? observer : nullptr});
        } while (ok && observer == nullptr);
      },
      [&] {
        if (observer != nullptr) return;
        wait_for([&] { return fixture.arrived() == test.ranks || fixture.any_done(); });
        sleep_ns(delay_us * 1'000);
        if (kind == stranger) abort_as("a stranger");
        if (kind == two_strangers) {
          std::thread other([&] { abort_as("another"); });
          abort_as("a stranger");
          other.join();
        }
        if (kind == signal_anywhere || kind == signal_allocating) {
          // The fixture joins the rank threads only after this function has returned.
          fixture.judge().mark_fault();
          pthread_kill(fixture.thread_of(victim), SIGUSR1);
          if (kind == signal_anywhere) pthread_kill(fixture.thread_of(neighbour), SIGUSR1);
          wait_for([&] { return signals_handled.load() > 0; });
        }
      });
  sigaction(SIGUSR1, &before, nullptr);
}

// Cycles: a rank's process is killed, the remaining ranks go on without it, and another process
// takes its place; many times, in the same processes and under the same name.

Holdings Holdings::now() {
  const auto entries = [](const char* folder) {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      count += entry.path().empty() ? 0 : 1;
    }
    return count;
  };
  Holdings out{.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
  std::ifstream mappings("/proc/self/maps");
  for (std::string line; std::getline(mappings, line);) {
    if (line.find(kSharedFolder) != std::string::npos) ++out.shared_mappings;
  }
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  constexpr std::size_t kSpan = std::size_t{1} << 34;  // half of a communicator's reservation
  out.address_space = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) / kSpan;
  return out;
}

namespace {

std::string to_string(const Holdings& held) {
  return std::to_string(held.descriptors) + " descriptors, " + std::to_string(held.threads) +
         " threads, " + std::to_string(held.shared_mappings) + " shared mappings, " +
         std::to_string(held.address_space) + " spans of address space";
}

// One cycle as a case: with a new collective and algorithm each time if the case names no
// algorithm.
FaultCase cycle_of(const FaultCase& test, int number) {
  FaultCase one = test;
  Dice dice(test.seed + static_cast<std::uint64_t>(number));
  one.seed = dice.next() % 1'000'000'000;
  if (one.algorithm != nullptr) return one;
  std::vector<const Algorithm*> entries;
  for (const Algorithm& entry : catalogue()) {
    if (!entry.refusal({.ranks = test.ranks})) entries.push_back(&entry);
  }
  one.algorithm = entries[static_cast<std::size_t>(dice.below(static_cast<int>(entries.size())))];
  one.collective = one.algorithm->collective;
  return one;
}

}  // namespace

void inject_cycles(const FaultCase& test, Dice&, const CollectiveCase&, Tally& tally) {
  ProcessFixture processes(test.ranks);
  // This rank lives through all cycles.
  const Rank witness = test.ranks - 1;
  // State of one rank's process in this act.
  Tally mine;
  FaultCase one;
  std::unique_ptr<RankFixture> fixture;
  std::optional<Holdings> at_first;
  const auto first = [&](Rank r) {
    one = cycle_of(test, processes.act());
    Dice dice(one.seed);
    const CollectiveCase call = good_call(one, dice);
    const Rank victim = dice.below(test.ranks - 1);
    const auto signals = fatal_signals();
    const int signal = signals[static_cast<std::size_t>(processes.act()) % signals.size()];
    const int delay_us = dice.below(2'000);  // counted from before the ranks meet
    const auto begin_to_end = [&](Rank rank) {
      if (rank != victim || rank == witness) return;
      fixture->judge().mark_fault();
      fixture->goes(rank);
      if (!send_signal_later(signal, delay_us)) raise(SIGKILL);  // no timer: end at once
    };
    // If the victim is killed before it has met the others, they wait for it until their deadline.
    const Promise promise{.timeout = kShort, .documented = {Code::rank_lost, Code::timeout}};
    mine = {};
    fixture = std::make_unique<RankFixture>(
        one, promise, mine,
        RankFixtureOptions{.before_meeting = begin_to_end, .processes = &processes});
    fixture->run_rank(r, [&](Seat& seat) {
      while (seat.call(call) && seat.call(meeting(one, one.ranks))) {
      }
    });
  };
  const auto report = [&] {
    ProcessFixture::Report out{mine, fixture->judge().text()};
    fixture.reset();
    const Holdings held = Holdings::now();
    if (!at_first) at_first = held;
    if (held != *at_first) {
      ++out.tally.undocumented;
      out.tally.remark(to_string(one) + ": a process has " + to_string(held) +
                       "; after its first cycle it had " + to_string(*at_first));
    }
    return out;
  };
  const auto reports =
      processes.run({.first = first,
                     .afresh = [&](Rank r, int ranks) { fixture->begin_afresh(r, ranks); },
                     .report = report,
                     .acts = test.cycles},
                    to_string(test), tally);
  for (const ProcessFixture::Report& one_report : reports) tally += one_report.tally;
}

}  // namespace rankine::faults
