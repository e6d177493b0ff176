// The process fixture of a fault case: signals, timers, the judge of the calls, the sink of
// warnings, the processes that play ranks, and the fixture in which a fault family plays its case.
#pragma once

#include <pthread.h>
#include <sys/resource.h>

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
#include "engine/base/child_process.h"
#include "engine/base/parallel.h"
#include "engine/faults/collective_case.h"
#include "engine/faults/fault.h"
#include "engine/run/interpret.h"
#include "numa/refusals.h"

namespace rankine::faults {
// All signals with a default action that ends a process. The real-time signals are alike: only the
// first and the last are listed.
std::span<const int> fatal_signals();

// Sets a timer: the calling process gets the signal after `delay_us` with the default action.
// Returns false if the system grants no timer.
bool send_signal_later(int signal, int delay_us);

// Judge: makes calls and compares their results with the documented outcomes of a fault.

// Timeout for calls that must return without a deadline: the default of a communicator.
inline constexpr std::chrono::milliseconds kLong{30'000};
// Timeout for calls that only notice the fault at their deadline.
inline constexpr std::chrono::milliseconds kShort{40};
// Allowed lateness of a call after its deadline, or after the event that ended it.
inline constexpr std::int64_t kGraceNs = 1'000'000'000;

struct Promise {
  std::chrono::milliseconds timeout = kLong;  // of the communicator
  // If true, errors must come within a second of mark_fault() (or of the call's begin, if that is
  // later). If false, they must come within a second of the deadline.
  bool at_once = false;
  Codes documented{};     // beside success
  bool same_text = true;  // all ranks get the same error text
};

// How a call is made.
struct How {
  RoundObserver* observer = nullptr;
  // Replaces Member::call(), without an observer: by requests, as a message, in a group.
  std::function<Status(Member&, const Call&)> make{};
  // The fault is on this rank: the call may be late, but its data must be right.
  bool excused = false;
  std::function<void(Call&)> spoil{};  // changes the arguments
  std::function<void()> returned{};    // called right after the call has returned
  std::optional<Codes> documented{};   // beside success; replaces the promise's codes
  bool allocations_count = false;      // see failing_new.h
};

// Thread-safe.
class Judge {
 public:
  Judge(const FaultCase& test, const Promise& promise, Tally& tally);
  Judge(const Judge&) = delete;
  Judge& operator=(const Judge&) = delete;

  const Promise& promise() const { return promise_; }

  // Fills the buffers, makes the call, and judges the result. Returns true if the call succeeded.
  bool call(Member& me, CaseBuffers& buffers, const CollectiveCase& test, const How& how = {});
  // Judges the status of a call or constructor of the engine. Returns false if it failed.
  bool answer(const Status& status, const std::optional<Codes>& documented = {});

  // answer(), and judges the time: the status of a request made at `begin_ns` must come within the
  // promised time, with the same text on all ranks if promised. `excused`: the time is not judged.
  bool answer_in_time(const Status& status, std::int64_t begin_ns, const std::string& who,
                      bool excused = false);

  void mark_fault();                    // the fault happens now
  void blame(const std::string& what);  // counts an undocumented outcome
  void blame_wrong(const std::string& what);
  // The case is impossible on this machine.
  void excuse(const std::string& why);

  // If ranks are processes, each process has its own judge. The judges share the time of the fault;
  // the parent process compares the texts. Call this before any call of a rank.
  void share_fault_time(std::atomic<std::int64_t>& fault_ns) { fault_ns_ = &fault_ns; }
  // Text of the first error of a call or a meeting, if all ranks must get the same text.
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

// Clock by which lateness is judged. Default: now_ns. A test sets its own clock if the load of the
// test machine would be judged as the engine's lateness. Set it before ranks are at work.
extern std::int64_t (*clock_of_promises)();

// The number of calls that have returned, for the watcher of this process. nullptr: no watcher.
extern std::atomic<std::int64_t>* finished_calls;

// Collects the warnings of this process, starting as if none had been given before.
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

  // Blames the judge unless each of `keys` was heard exactly once and no other key was heard.
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

// Ranks as processes, for a RankFixture: the process that plays the case forks them and watches
// them until all have ended, as documented or not.
//
// Each rank plays. When all ranks have played or gone, the remaining ranks begin afresh among
// themselves, in their processes. Each process sends its counts through a shared page. Files left
// in /dev/shm are an undocumented outcome. If there are several acts, the remaining ranks play the
// next act, too, and new processes take the places of the ended ones.

class ProcessFixture {
 public:
  // Report of one rank's process.
  struct Report {
    Tally tally{};
    std::optional<std::string> text{};  // of the error that ended the rank's communicator
  };
  struct Play {
    std::function<void(Rank)> first;
    // `rank`: this process's rank among the `ranks` remaining ones.
    std::function<void(Rank rank, int ranks)> afresh;
    std::function<Report()> report;  // of this act
    int acts = 1;
  };

  explicit ProcessFixture(int ranks);
  ~ProcessFixture();
  ProcessFixture(const ProcessFixture&) = delete;
  ProcessFixture& operator=(const ProcessFixture&) = delete;

  // Plays all acts. Call once, in a process without other threads. Returns the ranks' reports, act
  // by act. Adds unannounced deaths and left files to `tally`, each as a remark about the
  // case that the second argument names. Throws Error if fork() fails.
  std::vector<Report> run(const Play& play, const std::string& who, Tally& tally);

  // Name for communicators of these ranks, unique to this fixture.
  const std::string& name() const { return name_; }

  // Also for the ranks' processes: each sees the other ranks' state in this act.
  int act() const { return page_->act.load(); }  // from 0
  std::atomic<std::int64_t>& fault_ns() { return page_->fault_ns; }
  std::atomic<int>& started() { return page_->started; }
  std::atomic<int>& done() { return page_->done; }
  std::atomic<int>& arrived() { return page_->arrived; }
  // The calling rank's process is going to end, stop or become another program. The other ranks are
  // told only after all of them have ended.
  void goes(Rank r) { place(r).state.store(State::going); }

 private:
  enum class State : int { playing, going, played, told };
  struct Place {
    std::atomic<State> state{State::playing};
    Rank rank_afresh = 0;     // published by Page::afresh
    std::uint32_t bytes = 0;  // size of the report
    char report[32'000];
  };
  struct Page {
    std::atomic<std::int64_t> fault_ns;
    std::atomic<int> started, done, arrived;
    std::atomic<int> afresh;  // number of ranks that begin afresh; 0: not yet
    std::atomic<int> act;     // publishes the fields above and the places
  };

  Place& place(Rank r) { return places_[r]; }
  ChildProcess& process(Rank r) { return processes_[static_cast<std::size_t>(r)]; }
  int live(Rank r, const Play& play);
  void tell(Rank r, const Report& report);
  void run_act(Rank r, const Play& play);
  void start_missing(const Play& play);
  // Resets the page and the places.
  void begin_act(int act);
  std::optional<Report> hear(Rank r);
  // Returns true if that rank's process has ended. Blames an end that was not announced.
  bool has_ended(Rank r, const std::string& who, Tally& tally);

  const int ranks_;
  const std::string name_;
  std::size_t bytes_ = 0;
  Page* page_ = nullptr;
  Place* places_ = nullptr;
  std::vector<ChildProcess> processes_;
};

// RankFixture: the process fixture of the fault families. N ranks on N threads in one communicator,
// or N processes that have met by a name.
//
// If ranks are processes, the function that run() gets is called in forked copies of this process,
// one per rank. Each copy has all data from before the fork and its own communicator, and sees the
// other ranks only through RankFixture and Judge. run() adds up their counts.

// Under the thread sanitizer a forked child may have no threads.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
// A thread may end by a raw system call, unless a sanitizer must see it end.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadsMayVanish = false;
#else
inline constexpr bool kThreadsMayVanish = true;
#endif

// Resources of this process that a communicator may leave behind.
struct Holdings {
  std::size_t descriptors = 0, threads = 0, shared_mappings = 0;
  std::size_t address_space = 0;  // in units of 16 GiB

  static Holdings now();
  bool operator==(const Holdings&) const = default;
};

// Random choices of a case, drawn from its seed.
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
// A small all-reduce, in which each rank waits for all other ranks.
CollectiveCase meeting(const FaultCase& test, int ranks);
// The number of rounds of the call's schedule, at least 1. An estimate if the engine chooses the
// algorithm.
int rounds_of(const CollectiveCase& call);

// Calls act() before round `round`. The call goes on if act() returns true.
class AtRound final : public RoundObserver {
 public:
  AtRound(int round, std::function<bool()> act) : round_(round), act_(std::move(act)) {}
  bool before_round(int k) noexcept override { return k != round_ || act_(); }

 private:
  const int round_;
  const std::function<bool()> act_;
};

// A timer that sends `signal` to the calling thread until timer_delete(). nullopt if the system
// grants no timer.
std::optional<timer_t> timer_of_this_thread(int signal);

// While an object lives, the soft limit of this process is `most`.
class Limit {
 public:
  Limit(__rlimit_resource_t what, rlim_t most);
  ~Limit() { setrlimit(what_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  const __rlimit_resource_t what_;
  rlimit before_{};
};

// Waits on a thread that is no rank: polls the condition, yields, then sleeps.
void wait_for(const std::function<bool()>& condition);

// One rank's place in a fixture; used by its thread.
struct Seat {
  Judge* judge = nullptr;
  std::unique_ptr<Member> member;  // reset(): the rank leaves
  CaseBuffers buffers;

  Rank rank() const { return member->rank(); }
  bool call(const CollectiveCase& test, const How& how = {}) {
    return judge->call(*member, buffers, test, how);
  }
  // Calls up to `times` times; false: a call failed.
  bool call_often(int times, const CollectiveCase& test) {
    while (times > 0 && call(test)) --times;
    return times == 0;
  }
};

// Options for the communicators and teams of a case. They use no tuning table: the table is the
// user's, and neither its content nor its absence is part of a fault.
CommunicatorOptions communicator_options(const FaultCase& test);
// The port budget of the case; 0: none.
int ports_of(const FaultCase& test);
TeamOptions team_options(const FaultCase& test);

struct RankFixtureOptions {
  std::span<const ArenaOptions> arenas{};
  std::uint32_t first_count = 0;
  std::optional<WaitPolicy> wait{};
  std::shared_ptr<const CallNetwork> network{};
  // If ranks are processes: the director runs in this rank's process, on a second thread.
  Rank director_at = 0;
  // If ranks are processes: called in each process before the ranks meet, and after they have met
  // or failed to meet. `allocations_count`: allocations count in between (failing_new.h).
  std::function<void(Rank)> before_meeting{};
  std::function<void(Rank)> after_meeting{};
  bool allocations_count = false;
  // If ranks are processes: changes that rank's options before the ranks meet.
  std::function<void(Rank, CommunicatorOptions&)> asks_for{};
  // If ranks are processes: the process fixture on which one of them plays, instead of the
  // fixture's own stage. The fixture is made in each process, once per act, and played by
  // run_rank().
  ProcessFixture* processes = nullptr;
  // Replaces the making of a communicator if it returns a status: the rank takes no further part.
  std::function<std::optional<Status>(Rank, const CommunicatorOptions&)> instead_of_meeting{};
  // Called in each process that plays ranks, after all ranks have returned from run().
  std::function<void()> in_the_end{};
};

class RankFixture {
 public:
  // If the communicator cannot be made, the error is judged and works() is false: then there are no
  // seats, and run() does nothing. Processes meet in run().
  RankFixture(const FaultCase& test, const Promise& promise, Tally& tally,
              const RankFixtureOptions& wishes = {});

  bool works() const { return communicator_ != nullptr || test_.processes; }
  // If ranks are processes: in run(), the communicator of the calling process.
  Communicator& communicator() { return *communicator_; }
  // If ranks are processes: the name by which they meet.
  const std::string& name() const { return processes_->name(); }
  Judge& judge() { return judge_; }
  std::vector<Seat>& seats() { return seats_; }

  // Runs f on one thread per rank, and meanwhile `director` (if given) on the calling thread.
  // Returns when all have returned. Processes then begin afresh, as fresh_start() does for threads:
  // the remaining ranks meet under another name and make a good call.
  void run(const std::function<void(Seat&)>& f, const std::function<void()>& director = {});

  // For a forked copy of a process that plays ranks: the copy takes the inherited communicator and
  // destroys it.
  std::unique_ptr<Communicator> take_communicator() { return std::move(communicator_); }

  // The part of run() in the process of rank r, on a process fixture that is not the fixture's own.
  void run_rank(Rank r, const std::function<void(Seat&)>& f,
                const std::function<void()>& director = {});
  // The part after run(): as rank r of the remaining `ranks`, under another name.
  void begin_afresh(Rank r, int ranks);

  // While ranks are at work: the communicator has ended, or at most `but` ranks are still at work.
  bool over(int but = 0) const { return all_done_but(but) || !communicator_->health().ok(); }
  bool any_done() const { return done_->load() > 0; }
  bool all_done_but(int n) const { return done_->load() >= test_.ranks - n; }
  int started() const { return started_->load(); }
  // arrive(): a rank has reached the place that the play asks for. arrived(): the number of them.
  void arrive() { arrived_->fetch_add(1); }
  int arrived() const { return arrived_->load(); }
  // If ranks are processes: the rank's process is going to end, stop or become another program.
  void goes(Rank r) {
    if (processes_ != nullptr) processes_->goes(r);
  }
  // Only for a rank that has started.
  pthread_t thread_of(Rank r) const { return threads_[static_cast<std::size_t>(r)].load(); }

 private:
  void run_processes(const std::function<void(Seat&)>& f, const std::function<void()>& director);
  void run_on(ProcessFixture& processes);
  Result<std::unique_ptr<Member>> join_as_a_process(Rank r, const CommunicatorOptions& options);

  const FaultCase test_;
  const RankFixtureOptions wishes_;
  Tally& tally_;
  Judge judge_;
  std::unique_ptr<Communicator> communicator_;  // outlives the seats' members
  std::vector<Seat> seats_;
  std::vector<std::atomic<pthread_t>> threads_;
  // Counts for threads; the counts for processes lie in the process fixture.
  std::atomic<int> own_done_{0}, own_started_{0}, own_arrived_{0};
  std::atomic<int>*done_ = &own_done_, *started_ = &own_started_, *arrived_ = &own_arrived_;
  std::unique_ptr<ProcessFixture> own_processes_;
  ProcessFixture* processes_ = nullptr;
};

// The end of a case: a new communicator in this process makes the call, which must succeed. Does
// nothing if ranks are processes: they have done so in run().
void fresh_start(const FaultCase& test, const CollectiveCase& call, Tally& tally);

}  // namespace rankine::faults
