// Signals that end a process which does nothing about them, and one that comes at any time.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/api/team.h"
#include "engine/faults/collective_case.h"
#include "engine/faults/fault.h"
#include "engine/run/interpret.h"
#include "numa/refusals.h"

namespace rankine::faults {

// All of them: of the real-time ones, which are alike, the first and the last.
std::span<const int> fatal_signals();

// The calling process gets that signal after that time, wherever it is then, and does nothing about
// it. False: no timer.
bool send_me_soon(int signal, int delay_us);

// Makes calls and judges what comes back of them, against what a fault may lead to.

// For calls that must come to their end without a deadline: as long as a communicator gives them.
inline constexpr std::chrono::milliseconds kLong{30'000};
// For calls that find out by their deadline.
inline constexpr std::chrono::milliseconds kShort{40};
// How late a call may be: after its deadline, or after what ended it.
inline constexpr std::int64_t kGraceNs = 1'000'000'000;

struct Promise {
  std::chrono::milliseconds timeout = kLong;  // of the communicator
  // Whether errors must come within a second of mark_fault() (or of the call's begin, if that is
  // later), and not only of the deadline.
  bool at_once = false;
  Codes documented{};     // beside success
  bool same_text = true;  // all ranks are told the same reason
};

// How a call is made.
struct How {
  RoundObserver* observer = nullptr;
  // Instead of Member::call(), and without an observer: by requests, as a message, in a group.
  std::function<Status(Member&, const Call&)> make{};
  // The rank's own fault, which excuses it from being on time, but not from being right.
  bool excused = false;
  std::function<void(Call&)> spoil{};  // changes the arguments
  std::function<void()> returned{};    // called as soon as the call has come back
  std::optional<Codes> documented{};   // beside success, in place of the promise's
  bool allocations_count = false;      // see failing_new.h
};

// Thread-safe.
class Judge {
 public:
  Judge(const FaultCase& test, const Promise& promise, Tally& tally);
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  const Promise& promise() const { return promise_; }

  // Fills the buffers, calls, and judges. Whether the call succeeded.
  bool call(Member& me, CaseBuffers& buffers, const CollectiveCase& test, const How& how = {});
  // What a call or a constructor of the engine said, apart from its data. False: it failed.
  bool answer(const Status& status, const std::optional<Codes>& documented = {});

  // The same, of what was asked for at that time: it must come when promised, and be the same for
  // all ranks where that is promised. `excused`: but for the time.
  bool answer_in_time(const Status& status, std::int64_t begin_ns, const std::string& who,
                      bool excused = false);

  void mark_fault();                    // it happens now
  void blame(const std::string& what);  // an outcome that is not documented
  void blame_wrong(const std::string& what);
  // The case cannot be made here.
  void excuse(const std::string& why);

  // Where ranks are processes, each has a judge of its own: they share when the fault happened, and
  // whoever gathers what they say compares the texts. Before any call.
  void share_fault_time(std::atomic<std::int64_t>& fault_ns) { fault_ns_ = &fault_ns; }
  // Of the first error that a call or a meeting returned, where all ranks must be told the same.
  const std::optional<std::string>& text() const { return text_; }

 private:
  void judge_time_and_text(const Status& status, std::int64_t begin_ns, std::int64_t end_ns,
                           const std::string& who, bool excused);

  const FaultCase& test_;
  const Promise promise_;
  Tally& tally_;
  std::mutex mutex_;  // guards the tally and the text
  std::optional<std::string> text_;
  std::atomic<std::int64_t> own_fault_ns_{0};
  std::atomic<std::int64_t>* fault_ns_ = &own_fault_ns_;
};

// What lateness is told by: now_ns, but where a test has a clock of its own, because the load of
// its machine is not the engine's doing. Set before ranks are at work.
extern std::int64_t (*clock_of_promises)();

// Counts calls that have come to their ends, for whoever watches this process; nullptr: nobody.
extern std::atomic<std::int64_t>* finished_calls;

// What the engine warns of while a case is played.

// Hears the warnings of this process, as if none had been given before.
class Warnings {
 public:
  Warnings() {
    forget_warnings();
    before_ = set_warning_sink(
        [this](std::string_view key, std::string_view) { ++heard_[std::string(key)]; });
  }
  ~Warnings() { set_warning_sink(std::move(before_)); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;

  // Each of these once, and nothing else.
  void expect(const std::vector<std::string>& keys, Judge& judge) const {
    std::map<std::string, int> wanted;
    for (const std::string& key : keys) wanted[key] = 1;
    if (heard_ == wanted) return;
    std::string text = "warnings:";
    for (const auto& [key, times] : heard_) text += " " + key + " " + std::to_string(times) + "x";
    judge.blame(text);
  }
  bool heard(const std::string& key) const { return heard_.contains(key); }

 private:
  std::map<std::string, int> heard_;
  WarningSink before_;
};

// Ranks that are processes, for a scene (scene.h): forked by the process that plays the case, and
// watched by it until all have come to their ends, as they may or as they may not.
//
// A rank plays; when all ranks have played, or have gone, those that are left begin afresh among
// themselves, in the same processes; what each has counted comes back through a page that they
// share. What they leave in /dev/shm is an outcome that is not documented. Where there are several
// acts, those that are left play the next one, too, with new processes in the others' places.

class ProcessStage {
 public:
  // What one rank's process has to tell.
  struct Report {
    Tally tally{};
    std::optional<std::string> text{};  // of the error that its communicator ended with
  };
  struct Play {
    std::function<void(Rank)> first;
    // As this rank of so many.
    std::function<void(Rank rank, int ranks)> afresh;
    std::function<Report()> report;  // of this act
    int acts = 1;
  };

  explicit ProcessStage(int ranks);
  ~ProcessStage();
  ProcessStage(const ProcessStage&) = delete;
  ProcessStage& operator=(const ProcessStage&) = delete;

  // In a process without other threads, once: all of it. What the ranks report, act by act; deaths
  // that nobody has announced and files that are left are added to `tally`, with `who` before each
  // remark. Errors: no process.
  std::vector<Report> run(const Play& play, const std::string& who, Tally& tally);

  // A name for communicators of these ranks, which no other stage has.
  const std::string& name() const { return name_; }

  // In the ranks' processes, too; each sees what the others have done in this act.
  int act() const { return page_->act.load(); }  // from 0
  std::atomic<std::int64_t>& fault_ns() { return page_->fault_ns; }
  std::atomic<int>& started() { return page_->started; }
  std::atomic<int>& done() { return page_->done; }
  std::atomic<int>& arrived() { return page_->arrived; }
  // The calling rank's process is going to end, stop or become another program, of which nobody
  // hears before all others have come to their ends.
  void goes(Rank r) { place(r).state.store(State::going); }

 private:
  enum class State : int { playing, going, played, told };
  struct Place {
    std::atomic<State> state{State::playing};
    Rank rank_afresh = 0;     // published by Page::afresh
    std::uint32_t bytes = 0;  // of the report
    char report[32'000];
  };
  struct Page {
    std::atomic<std::int64_t> fault_ns;
    std::atomic<int> started, done, arrived;
    std::atomic<int> afresh;  // how many ranks begin afresh; 0: not yet
    std::atomic<int> act;     // publishes all of that, and the places
  };

  Place& place(Rank r) { return places_[r]; }
  [[noreturn]] void live(Rank r, const Play& play);
  void tell(Rank r, const Report& report);
  void play_act(Rank r, const Play& play);
  void start_missing(const Play& play);
  // As it was before the first one.
  void begin_act(int act);
  std::optional<Report> hear(Rank r);
  // Whether that rank's process has ended, and how, if nobody has been told of it.
  bool has_ended(Rank r, const std::string& who, Tally& tally);
  void end(Rank r);

  const int ranks_;
  const std::string name_;
  std::size_t bytes_ = 0;
  Page* page_ = nullptr;
  Place* places_ = nullptr;
  std::vector<pid_t> processes_;  // 0: has ended
};

// N ranks on threads of their own in one communicator, or N processes that have met by a name: the
// stage on which the files of the fault families play their cases.
//
// Where ranks are processes, what a play does in run() happens in copies of this process, one for
// each rank: each has what was there before, sees of the others what Scene and Judge say, and its
// own communicator. What they count is added up in the end.

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
