#include "engine/api/team.h"

#include <cxxabi.h>
#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "engine/api/check.h"
#include "engine/api/member_state.h"
#include "engine/run/machine.h"
#include "engine/run/process.h"
#include "numa/placement.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// The time for the other ranks to finish if one rank ends the process: longer than any call needs
// to return after an abort (RankControl::kQuietNs).
constexpr std::int64_t kFarewellNs = 1'000'000'000;

}  // namespace

struct Team::State {
  const HomeProcess home;
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<Member>> members;
  Arena staging;
  std::vector<RankReport> report;  // as of the start; memory is added later
  std::vector<std::thread> threads;
  // By rank: the CPU on which a run begins; used if ranks are not pinned and each may have a core.
  // The kernel wakes a thread on the waking thread's CPU and may leave ranks that wait for each
  // other on one CPU: then a call takes 190 us instead of 0.3.
  std::vector<int> first_cpus;

  std::mutex mutex;  // guards the members below
  std::condition_variable start, finished;
  const std::function<void(Member&)>* job = nullptr;
  std::uint64_t run = 0;  // number of the current run
  int busy = 0;
  bool in_run = false;  // run() has not returned and uses all of this
  bool stop = false;
  std::exception_ptr thrown;

  void work(Rank r);
  void play(Rank r, const std::function<void(Member&)>& f);
  void leave(Rank r);  // the rank leaves until the next run
  void end_turn();     // the calling rank has finished the run
  bool is_mine(std::thread::id thread) const;
  void abandon();
};

void Team::State::leave(Rank r) {
  if (home.is_this()) members[static_cast<std::size_t>(r)]->state_->progress_engine->leave();
}

void Team::State::end_turn() {
  const std::lock_guard lock(mutex);
  if (--busy == 0) finished.notify_all();
}

bool Team::State::is_mine(std::thread::id thread) const {
  return std::any_of(threads.begin(), threads.end(),
                     [&](const std::thread& one) { return one.get_id() == thread; });
}

// For a rank's own thread: its run cannot end before this returns.
void Team::State::abandon() {
  communicator->abort("a rank of the team destroyed the team, or the process exits");
  const std::int64_t until = now_ns() + kFarewellNs;
  for (;;) {
    {
      const std::lock_guard lock(mutex);
      stop = true;
      start.notify_all();
      if (busy <= 1) return;
    }
    if (now_ns() >= until) return;
    sleep_ns(1'000'000);
  }
}

// Disables UndefinedBehaviorSanitizer's check of references: abi::__forced_unwind has no object,
// and GCC binds its reference to null.
[[gnu::no_sanitize("null")]] void Team::State::play(Rank r, const std::function<void(Member&)>& f) {
  const auto end_with = [&](const char* what) {
    if (!home.is_this()) return;  // f has forked, and this is the child
    {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
    communicator->abort(make_error(
        Code::remote_error, [&] { return "rank " + std::to_string(r) + " threw: " + what; }));
  };
  const auto end_thread = [&] {
    if (!home.is_this()) return;
    communicator->abort(make_error(Code::rank_lost, [&] {
      return "the thread of rank " + std::to_string(r) +
             " has ended in the function that it ran: pthread_exit() or pthread_cancel()";
    }));
    leave(r);
    end_turn();
  };
  // pthread_exit() and pthread_cancel() call the handler: glibc's by an exception, musl's without.
  pthread_cleanup_push([](void* it) { (*static_cast<decltype(end_thread)*>(it))(); },
                       const_cast<void*>(static_cast<const void*>(&end_thread)));
  try {
    const ScopedCancelState on(PTHREAD_CANCEL_ENABLE);
    f(*members[static_cast<std::size_t>(r)]);
#ifdef __GLIBCXX__
  } catch (abi::__forced_unwind&) {
    throw;  // the thread is ending
#endif
  } catch (const std::exception& error) {
    end_with(error.what() != nullptr ? error.what() : "an exception without a text");
  } catch (...) {
    end_with("something that is no std::exception");
  }
  pthread_cleanup_pop(0);
  leave(r);
}

void Team::State::work(Rank r) {
  shorten_time_slice_once();  // the thread sleeps between runs
  std::uint64_t seen = 0;
  for (;;) {
    const std::function<void(Member&)>* f = nullptr;
    {
      std::unique_lock lock(mutex);
      start.wait(lock, [&] { return stop || run != seen; });
      // join a run that has begun even if stopping: its caller counts this rank
      if (run == seen) return;
      seen = run;
      f = job;
    }
    if (!first_cpus.empty()) move_calling_thread(first_cpus[static_cast<std::size_t>(r)]);
    play(r, *f);
    // In a child that f has forked the lock may be held forever, and no further run starts.
    if (!home.is_this()) return;
    end_turn();
  }
}

Team::Team(ProcessOwned<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Team>> Team::create(const TeamOptions& options) try {
  if (Status status = check_team(options); !status.ok()) return status;
  // New threads use local variables of this function.
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);
  auto communicator = Communicator::create({.ranks = options.ranks,
                                            .timeout = options.timeout,
                                            .wait = options.wait,
                                            .algorithms = options.algorithms,
                                            .tuned = options.tuned,
                                            .costs = options.costs,
                                            .record_times = options.record_times,
                                            .network = options.network,
                                            .order = options.order,
                                            .progress_core = options.progress_core,
                                            .placement = options.placement,
                                            .share_out_cores = options.share_out_cores,
                                            .lock_memory = options.lock_memory,
                                            .ports = options.ports});
  if (!communicator.ok()) return communicator.status();

  auto state = make_process_owned<State>();
  state->communicator = std::move(*communicator);
  for (Rank r = 0; r < options.ranks; ++r) {
    auto member = state->communicator->join_for_another_thread(r);
    if (!member.ok()) return member.status();
    state->members.push_back(std::move(*member));
  }
  const RankPlaces& places = *state->members.front()->state_->shared->places;
  if (options.placement.kind == PlacementPolicy::Kind::none && places.topology.is_this_system()) {
    const Placement apart = place_ranks(places.topology, options.ranks);
    for (const RankPlace& place : apart.ranks) {
      if (!apart.oversubscribed) state->first_cpus.push_back(place.cpu);
    }
  }
  ArenaOptions staging = interleaved_options(places.topology, places.placement.ranks);
  staging.lock = options.lock_memory;
  state->staging = Arena(staging);
  std::vector<Enforcement> pins(static_cast<std::size_t>(options.ranks));
  std::mutex pinned_mutex;
  std::condition_variable pinned;
  int waiting = options.ranks;
  std::unique_ptr<Team> team(new Team(std::move(state)));
  State& s = *team->state_;
  for (Rank r = 0; r < options.ranks; ++r) {
    try {
      s.threads.emplace_back([&, r, state_ptr = &s] {
        // Only the function of a run may be cancelled.
        const ScopedCancelState off_but_in_runs(PTHREAD_CANCEL_DISABLE);
        const auto i = static_cast<std::size_t>(r);
        const Enforcement pin = state_ptr->members[i]->pin_thread();
        {
          const std::lock_guard lock(pinned_mutex);
          pins[i] = pin;
          --waiting;
          pinned.notify_all();
        }
        state_ptr->work(r);
      });
    } catch (const std::system_error& error) {
      // Started threads use local variables of this function until they have pinned themselves.
      std::unique_lock lock(pinned_mutex);
      waiting -= options.ranks - r;
      pinned.wait(lock, [&] { return waiting == 0; });
      return Status(Code::system, "thread of rank " + std::to_string(r) + ": " + error.what());
    }
  }
  {
    std::unique_lock lock(pinned_mutex);
    pinned.wait(lock, [&] { return waiting == 0; });
  }
  for (Rank r = 0; r < options.ranks; ++r) {
    const auto i = static_cast<std::size_t>(r);
    s.report.push_back(make_rank_report(r, places.topology, places.placement.ranks[i], pins[i]));
  }
  return team;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [&] {
    return "no memory for a team of " + std::to_string(options.ranks) + " ranks";
  });
}

Team::~Team() {
  // In a forked child: its threads do not exist and cannot be joined, and the condition variables
  // that they waited on cannot be destroyed.
  if (!state_->home.is_this()) return;
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // a destructor may not be unwound
  if (state_->is_mine(std::this_thread::get_id())) {
    state_->abandon();
    static_cast<void>(state_.release());  // the remaining ranks still use it
    return;
  }
  {
    std::unique_lock lock(state_->mutex);
    state_->finished.wait(lock, [&] { return !state_->in_run; });
    state_->stop = true;
    state_->start.notify_all();
  }
  for (std::thread& thread : state_->threads) thread.join();
}

int Team::ranks() const { return state_->communicator->ranks(); }
Communicator& Team::communicator() { return *state_->communicator; }
Arena& Team::staging() { return state_->staging; }

std::vector<RankReport> Team::report() const {
  std::vector<RankReport> ranks = state_->report;
  for (RankReport& rank : ranks) {
    const RankMemory memory = state_->communicator->memory_of(rank.rank);
    rank.binding.add(memory.binding);
    rank.huge_pages.add(memory.huge_pages);
    rank.locking.add(memory.locking);
  }
  return ranks;
}

std::exception_ptr Team::thrown() const {
  if (!state_->home.is_this()) return nullptr;
  const std::lock_guard lock(state_->mutex);
  return state_->thrown;
}

Status Team::run(const std::function<void(Member&)>& f) {
  if (!f) return invalid_argument("run: f is empty; allowed are functions");
  State& s = *state_;  // outlives this team if a rank destroys it
  Status health = s.communicator->health();
  if (!health.ok()) return health;
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // ranks use `f` until run() returns
  std::unique_lock lock(s.mutex);
  if (s.in_run)
    return invalid_argument("run: the team is in another run; allowed is one at a time");
  for (const auto& member : s.members) member->state_->progress_engine->come_back();
  s.job = &f;
  s.in_run = true;
  s.busy = ranks();
  ++s.run;
  s.start.notify_all();
  shorten_time_slice_once();
  s.finished.wait(lock, [&] { return s.busy == 0; });
  s.job = nullptr;
  health = s.communicator->health();
  s.in_run = false;
  // under the lock: a destructor continues only after this function has released it
  s.finished.notify_all();
  return health;
}

}  // namespace rankine
