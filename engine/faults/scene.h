// N ranks on threads of their own in one communicator: the stage on which the files of the fault
// families play their cases.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "engine/faults/fault.h"
#include "engine/faults/judge.h"

namespace rankine::faults {

// Under it a forked child may have no threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
// A thread may end by a system call of its own: these sanitizers must see it end.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadsMayVanish = false;
#else
inline constexpr bool kThreadsMayVanish = true;
#endif

// What a case leaves open, drawn from its seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  std::uint64_t next();
  int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
  bool one_in(int n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// The good call of a case: small, of any kind that its collective allows.
CollectiveCase good_call(const FaultCase& test, Dice& dice);
// The number of rounds of its schedule, at least 1. An estimate where the engine chooses.
int rounds_of(const CollectiveCase& call);

// Does something when a rank comes to a round: what act() says decides whether the call goes on.
class AtRound final : public RoundObserver {
 public:
  AtRound(int round, std::function<bool()> act) : round_(round), act_(std::move(act)) {}
  bool before_round(int k) noexcept override { return k != round_ || act_(); }

 private:
  const int round_;
  const std::function<bool()> act_;
};

// A timer that sends the calling thread that signal, until timer_delete(). nullopt: the system
// grants none.
std::optional<timer_t> timer_of_this_thread(int signal);

// Waits as a thread does that is no rank: looks, and gives way.
void wait_for(const std::function<bool()>& condition);
// Runs f(r) on a thread for each rank, and `director` on this one meanwhile.
void on_threads(int ranks, const std::function<void(Rank)>& f,
                const std::function<void()>& director = {});

// One rank's place in a scene; used by its thread.
struct Seat {
  Judge* judge = nullptr;
  std::unique_ptr<Member> member;  // reset(): the rank leaves
  CaseBuffers buffers;

  Rank rank() const { return member->rank(); }
  bool call(const CollectiveCase& test, const How& how = {}) {
    return judge->call(*member, buffers, test, how);
  }
};

// What the communicators and teams of a case are made with. No tuning table: it is the user's, and
// what it says, or that it is missing, is no part of any fault.
CommunicatorOptions communicator_options(const FaultCase& test);
TeamOptions team_options(const FaultCase& test);

struct SceneOptions {
  std::span<const ArenaOptions> arenas{};
  std::uint32_t first_count = 0;
  std::optional<WaitPolicy> wait{};
  std::shared_ptr<const CallNetwork> network{};
};

class Scene {
 public:
  // Where the communicator cannot be made, that is judged, and works() is false: then there are no
  // seats and nothing happens in run().
  Scene(const FaultCase& test, const Promise& promise, Tally& tally,
        const SceneOptions& wishes = {});

  bool works() const { return communicator_ != nullptr; }
  Communicator& communicator() { return *communicator_; }
  Judge& judge() { return judge_; }
  std::vector<Seat>& seats() { return seats_; }

  // f on a thread per rank, and `director`, where there is one, on the caller's meanwhile. Returns
  // when all have come to their ends.
  void run(const std::function<void(Seat&)>& f, const std::function<void()>& director = {});

  // While ranks are at work: the communicator has ended, or all ranks but so many have come to
  // their ends.
  bool over(int but = 0) const {
    return done_.load() >= static_cast<int>(seats_.size()) - but || !communicator_->health().ok();
  }
  bool any_done() const { return done_.load() > 0; }
  bool all_done_but(int n) const { return done_.load() >= static_cast<int>(seats_.size()) - n; }
  int started() const { return started_.load(); }
  // Of a rank that has started.
  pthread_t thread_of(Rank r) const { return threads_[static_cast<std::size_t>(r)].load(); }

 private:
  Judge judge_;
  std::unique_ptr<Communicator> communicator_;  // outlives the seats' members
  std::vector<Seat> seats_;
  std::vector<std::atomic<pthread_t>> threads_;
  std::atomic<int> done_{0}, started_{0};
};

// The end of a case: a new communicator in the same process makes the call as if nothing had
// happened.
void fresh_start(const FaultCase& test, const CollectiveCase& call, Tally& tally);

}  // namespace rankine::faults
