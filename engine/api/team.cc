#include "engine/api/team.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "engine/api/check.h"
#include "numa/levels.h"
#include "numa/pin.h"
#include "numa/topology.h"

namespace rankine {

struct Team::State {
  std::unique_ptr<Communicator> communicator;
  std::vector<std::unique_ptr<Member>> members;
  Arena staging;
  std::vector<RankReport> report;  // as of the start; memory comes later
  std::vector<std::thread> threads;

  std::mutex mutex;  // guards what follows
  std::condition_variable start, finished;
  const std::function<void(Member&)>* job = nullptr;
  std::uint64_t run = 0;  // number of the run that threads should be in
  int busy = 0;
  bool stop = false;
  std::exception_ptr thrown;

  void work(Rank r);
  void play(Rank r, const std::function<void(Member&)>& f);
};

void Team::State::play(Rank r, const std::function<void(Member&)>& f) {
  const auto end_with = [&](const char* what) {
    {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
    communicator->abort(make_error(
        Code::remote_error, [&] { return "rank " + std::to_string(r) + " threw: " + what; }));
  };
  try {
    f(*members[static_cast<std::size_t>(r)]);
  } catch (const std::exception& error) {
    end_with(error.what() != nullptr ? error.what() : "an exception without a text");
  } catch (...) {
    end_with("something that is no std::exception");
  }
  communicator->leave(r);
}

void Team::State::work(Rank r) {
  std::uint64_t seen = 0;
  for (;;) {
    const std::function<void(Member&)>* f = nullptr;
    {
      std::unique_lock lock(mutex);
      start.wait(lock, [&] { return stop || run != seen; });
      if (stop) return;
      seen = run;
      f = job;
    }
    play(r, *f);
    const std::lock_guard lock(mutex);
    if (--busy == 0) finished.notify_all();
  }
}

Team::Team(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Team>> Team::create(const TeamOptions& options) try {
  if (Status status = check_team(options); !status.ok()) return status;
  const Topology topology = Topology::detect();
  const Placement placement = place_ranks(topology, options.ranks, options.placement);
  if (!placement.ok()) return invalid_argument(placement.error);

  std::vector<ArenaOptions> arenas;
  for (const RankPlace& place : placement.ranks) {
    arenas.push_back(arena_options(topology, place));
    arenas.back().lock = options.lock_memory;
  }
  const std::vector<int> levels = level_groups(topology, placement);
  auto communicator = Communicator::create({.ranks = options.ranks,
                                            .timeout = options.timeout,
                                            .wait = options.wait,
                                            .arenas = arenas,
                                            .levels = levels,
                                            .tuned = options.tuned});
  if (!communicator.ok()) return communicator.status();

  auto state = std::make_unique<State>();
  state->communicator = std::move(*communicator);
  ArenaOptions staging = interleaved_options(topology, placement.ranks);
  staging.lock = options.lock_memory;
  state->staging = Arena(staging);
  for (Rank r = 0; r < options.ranks; ++r) {
    auto member = state->communicator->join(r);
    if (!member.ok()) return member.status();
    state->members.push_back(std::move(*member));
  }
  std::vector<Enforcement> pins(static_cast<std::size_t>(options.ranks));
  std::mutex pinned_mutex;
  std::condition_variable pinned;
  int waiting = options.ranks;
  std::unique_ptr<Team> team(new Team(std::move(state)));
  State& s = *team->state_;
  for (Rank r = 0; r < options.ranks; ++r) {
    try {
      s.threads.emplace_back([&, r, state_ptr = &s] {
        const auto i = static_cast<std::size_t>(r);
        const Enforcement pin = pin_calling_thread(topology, placement.ranks[i]);
        {
          const std::lock_guard lock(pinned_mutex);
          pins[i] = pin;
          --waiting;
          pinned.notify_all();
        }
        state_ptr->work(r);
      });
    } catch (const std::system_error& error) {
      // Those that started still use our locals until they have pinned themselves.
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
    s.report.push_back(make_rank_report(r, topology, placement.ranks[i], pins[i]));
  }
  return team;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory,
                    [&] { return "a team of " + std::to_string(options.ranks) + " ranks"; });
}

Team::~Team() {
  if (state_->communicator->health().code() == Code::forked) {
    // In a forked child: threads that are not here cannot be joined, and what they waited on cannot
    // be destroyed. The child keeps the memory.
    static_cast<void>(state_.release());
    return;
  }
  {
    std::unique_lock lock(state_->mutex);
    state_->finished.wait(lock, [&] { return state_->busy == 0; });
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
  const std::lock_guard lock(state_->mutex);
  return state_->thrown;
}

Status Team::run(const std::function<void(Member&)>& f) {
  if (!f) return invalid_argument("run: f is empty; it must be something to call");
  Status health = state_->communicator->health();
  if (!health.ok()) return health;
  std::unique_lock lock(state_->mutex);
  if (state_->busy != 0) return invalid_argument("run: the team is in another run; one at a time");
  state_->communicator->come_back();
  state_->job = &f;
  state_->busy = ranks();
  ++state_->run;
  state_->start.notify_all();
  state_->finished.wait(lock, [&] { return state_->busy == 0; });
  state_->job = nullptr;
  return state_->communicator->health();
}

}  // namespace rankine
