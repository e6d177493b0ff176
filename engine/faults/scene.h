// N ranks on threads of their own in one communicator, or N processes that have met by a name: the
// stage on which the files of the fault families play their cases.
//
// Where ranks are processes, what a play does in run() happens in copies of this process, one for
// each rank: each has what was there before, sees of the others what Scene and Judge say, and its
// own communicator. What they count is added up in the end.
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
#include "engine/faults/process_stage.h"

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
// What every rank of a communicator can make with all others, and waits for all of them in.
CollectiveCase meeting(const FaultCase& test, int ranks);
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
  // Where ranks are processes: that of the rank in which the director is, on a thread of its own.
  Rank director_at = 0;
  // Where ranks are processes, in each of them before they meet, and when they have met or cannot;
  // and whether allocations count meanwhile (failing_new.h).
  std::function<void(Rank)> before_they_meet{};
  std::function<void(Rank)> after_they_meet{};
  bool allocations_count = false;
  // Where ranks are processes: what that one asks for otherwise than all, before they meet; and
  // whether whoever does not get to meet the others is told so at once.
  std::function<void(Rank, CommunicatorOptions&)> asks_for{};
  // Where ranks are processes: the stage on which one of them plays, and which is not the scene's
  // own; such a scene is made, act by act, in each of them, and played by play_rank().
  ProcessStage* stage = nullptr;
  // Instead of making a communicator: what that rank is told, and it takes no further part.
  std::function<std::optional<Status>(Rank, const CommunicatorOptions&)> instead_of_meeting{};
  // In each process that plays ranks, when all ranks have come to their ends in run().
  std::function<void()> in_the_end{};
};

class Scene {
 public:
  // Where the communicator cannot be made, that is judged, and works() is false: then there are no
  // seats and nothing happens in run(). Processes meet in run().
  Scene(const FaultCase& test, const Promise& promise, Tally& tally,
        const SceneOptions& wishes = {});

  bool works() const { return communicator_ != nullptr || test_.processes; }
  // Where ranks are processes: in run(), that of the calling one's.
  Communicator& communicator() { return *communicator_; }
  // Where ranks are processes: by which they meet.
  const std::string& name() const { return stage_->name(); }
  Judge& judge() { return judge_; }
  std::vector<Seat>& seats() { return seats_; }

  // f on a thread per rank, and `director`, where there is one, on the caller's meanwhile. Returns
  // when all have come to their ends. Processes then begin afresh, as fresh_start() does for
  // threads: those that are left meet under another name and make a good call.
  void run(const std::function<void(Seat&)>& f, const std::function<void()>& director = {});

  // In a process that is a copy of one that plays ranks: what it has of them is its own to destroy.
  std::unique_ptr<Communicator> take_communicator() { return std::move(communicator_); }

  // In the process of that rank: its part of run(), where the stage is not the scene's own.
  void play_rank(Rank r, const std::function<void(Seat&)>& f,
                 const std::function<void()>& director = {});
  // The same of what comes then: as this one of so many that are left, under another name.
  void begin_afresh(Rank r, int ranks);

  // While ranks are at work: the communicator has ended, or all ranks but so many have come to
  // their ends.
  bool over(int but = 0) const { return all_done_but(but) || !communicator_->health().ok(); }
  bool any_done() const { return done_->load() > 0; }
  bool all_done_but(int n) const { return done_->load() >= test_.ranks - n; }
  int started() const { return started_->load(); }
  // A rank has come where the play wants it; how many have.
  void arrive() { arrived_->fetch_add(1); }
  int arrived() const { return arrived_->load(); }
  // The rank's process, where it has one of its own, is going to end, stop or become another one.
  void goes(Rank r) {
    if (stage_ != nullptr) stage_->goes(r);
  }
  // Of a rank that has started.
  pthread_t thread_of(Rank r) const { return threads_[static_cast<std::size_t>(r)].load(); }

 private:
  void run_processes(const std::function<void(Seat&)>& f, const std::function<void()>& director);
  void play_on(ProcessStage& stage);
  Result<std::unique_ptr<Member>> join_as_a_process(Rank r, const CommunicatorOptions& options);

  const FaultCase test_;
  const SceneOptions wishes_;
  Tally& tally_;
  Judge judge_;
  std::unique_ptr<Communicator> communicator_;  // outlives the seats' members
  std::vector<Seat> seats_;
  std::vector<std::atomic<pthread_t>> threads_;
  // Of threads; those of processes are the stage's.
  std::atomic<int> own_done_{0}, own_started_{0}, own_arrived_{0};
  std::atomic<int>*done_ = &own_done_, *started_ = &own_started_, *arrived_ = &own_arrived_;
  std::unique_ptr<ProcessStage> own_stage_;
  ProcessStage* stage_ = nullptr;
};

// The end of a case: a new communicator in the same process makes the call as if nothing had
// happened. Nothing where ranks are processes, which have done so in run().
void fresh_start(const FaultCase& test, const CollectiveCase& call, Tally& tally);

}  // namespace rankine::faults
