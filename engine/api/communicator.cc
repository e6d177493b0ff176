#include "engine/api/communicator.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <new>

#include "engine/api/communicator_state.h"
#include "engine/api/environment.h"
#include "engine/api/member_state.h"
#include "engine/api/threads.h"
#include "engine/api/tuning/choose.h"
#include "engine/base/status.h"
#include "engine/run/wait.h"
#include "numa/cpus.h"
#include "numa/memory.h"
#include "numa/placement.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

// The costs in the options, otherwise the machine's, otherwise the defaults.
Costs costs_for(const CommunicatorOptions& options) {
  if (options.costs) return *options.costs;
  return options.tuned ? machine_costs() : Costs();
}

// Ranks with a hardware thread each spin; ranks that share hardware threads yield.
WaitPolicy wait_policy_for(bool crowded, const Costs& costs) {
  WaitPolicy policy;
  policy.mode = crowded ? WaitPolicy::Mode::yield : WaitPolicy::Mode::spin;
  policy.probes =
      static_cast<std::uint32_t>(crowded ? costs.crowded_wait_probes : costs.wait_probes);
  policy.yield_ns = static_cast<std::int64_t>(costs.crowded_yield_ns);
  policy.spin_ns = static_cast<std::int64_t>(costs.spin_ns);
  return policy;
}

}  // namespace

WaitPolicy choose_wait_policy(int ranks, const Costs& costs, const std::vector<int>& processes) {
  return wait_policy_for(ranks > cpus_among(processes), costs);
}

Costs costs_among(int ranks, const Costs& costs) {
  return ranks > cpus_among({}) ? shared_core_costs(costs) : costs;
}

std::string to_string(const WaitPolicy& policy) {
  const std::string probes = std::to_string(policy.probes) + " probes";
  switch (policy.mode) {
    case WaitPolicy::Mode::spin:
      return probes + ", spin " + std::to_string(policy.spin_ns / 1000) + " us, park";
    case WaitPolicy::Mode::yield:
      return probes + ", yield " + std::to_string(policy.yield_ns / 1000) + " us, park";
    case WaitPolicy::Mode::park:
      return probes + ", park";
  }
  return probes;
}

Status CommunicatorShared::lock_for_call(std::unique_lock<std::mutex>& lock, Waiter& waiter) {
  lock = std::unique_lock(mutex, std::try_to_lock);
  Idling idling(rank_control.policy());
  while (!lock.owns_lock()) {
    const std::int64_t now = now_ns();
    if (now >= waiter.deadline(now)) {
      rank_control.abort(make_error(Code::timeout, [&] {
        return no_answer_within(waiter.call_timeout_ns(),
                                "another rank is still planning its call");
      }));
    }
    if (is_interrupted()) {
      rank_control.abort(make_error(
          Code::aborted, [] { return interrupted("another rank is still planning its call"); }));
    }
    if (rank_control.aborted()) return rank_control.reason();
    idling.once();
    static_cast<void>(lock.try_lock());
  }
  return {};
}

CommunicatorShared::~CommunicatorShared() {
  if (processes != nullptr) {
    for (const Rank r : processes->here()) {
      // This process stands for far ranks, which may go on.
      if (wire == nullptr || !wire->are_far(r, wire->here.front())) rank_control.leave(r);
    }
  }
  rank_control.depend_no_more();
  // The process may end next. The limit on a call's time does not apply here, but the disk may
  // hang.
  constexpr std::chrono::seconds kPatience{2};
  record_file.wait(kPatience);
  // A program that does not know of its network cannot ask for the lateness of its clock.
  if (!network_is_environments || clock == nullptr) return;
  try {
    if (const std::string kept = clock->timing_report(); !kept.empty()) {
      const std::string who =
          processes != nullptr ? ranks_in_words(processes->here()) + ": " : std::string();
      std::fprintf(stderr, "rankine: %s%s\n", who.c_str(), kept.c_str());
    }
  } catch (const std::bad_alloc&) {  // the report is optional
  }
}

namespace {

// Waits until all ranks that are processes have come.
Result<std::shared_ptr<ProcessRanks>> meet(const CommunicatorOptions& options,
                                           const Environment& environment, const Costs& costs,
                                           const std::function<Status()>& may_wait) {
  auto settings = process_settings(options, environment, costs);
  if (!settings.ok()) return settings.status();
  std::vector<Rank> here(options.more_ranks.begin(), options.more_ranks.end());
  here.push_back(*options.rank);
  std::sort(here.begin(), here.end());
  auto met =
      ProcessRanks::meet({.name = std::string(options.name),
                          .ranks = std::move(here),
                          .settings = *settings,
                          .deadline_ns = deadline_after(now_ns(), saturated_ns(options.timeout)),
                          .may_wait = may_wait,
                          .admits = may_wait != nullptr,
                          .far = options.wire != nullptr ? options.wire->far_from(*options.rank)
                                                         : std::vector<bool>()},
                         posts_of_processes(options.ranks, costs));
  return met;
}

// If the options leave the dilation of a wall clock open, the process of rank 0 measures it for
// all.
Result<std::unique_ptr<CallClock>> make_clock(const CallNetwork& network, int ranks,
                                              const WaitPolicy& policy, ProcessRanks* processes) {
  const auto shared = shared_clock(processes);
  if (!shared.ok()) return shared.status();
  const bool is_measured = network.clock == ClockMode::wall && network.dilate <= 0;
  if (processes == nullptr || !is_measured) {
    return CallClock::make(network, ranks, policy, *shared);
  }
  if (!processes->is_here(0)) {
    const auto said = processes->first_says(0);
    if (!said.ok()) return said.status();
    CallNetwork as_said = network;
    as_said.dilate = std::bit_cast<double>(*said);
    return CallClock::make(as_said, ranks, policy, *shared);
  }
  auto made = CallClock::make(network, ranks, policy, *shared);
  if (!made.ok()) return made;
  const double dilate = (*made)->clock().options().dilate;
  const auto said = processes->first_says(std::bit_cast<std::uint64_t>(dilate));
  if (!said.ok()) return said.status();
  return made;
}

}  // namespace

Result<SharedClock> shared_clock(ProcessRanks* processes) {
  if (processes == nullptr) return SharedClock{};
  const auto memory = processes->clock();
  if (!memory.ok()) return memory.status();
  return SharedClock{.channels = *memory + kCacheLine,
                     .origin_ns = reinterpret_cast<std::atomic<std::int64_t>*>(*memory)};
}

namespace {

// Processes all find the same placement, even if they have placed other ranks before.
Result<std::unique_ptr<RankPlaces>> find_places(const CommunicatorOptions& options) {
  std::vector<int> taken;
  if (options.share_out_cores && !options.rank) taken = TakenCores::all();
  if (options.progress_core) taken.push_back(*options.progress_core);
  Topology topology = Topology::detect();
  Placement placement = place_ranks(topology, options.ranks, *options.placement, taken);
  if (!placement.ok()) return invalid_argument(placement.error);
  std::vector<int> cpus;
  for (Rank r = 0; r < options.ranks; ++r) {
    const bool is_here = !options.rank || r == *options.rank ||
                         std::count(options.more_ranks.begin(), options.more_ranks.end(), r) > 0;
    const int cpu = placement.ranks[static_cast<std::size_t>(r)].cpu;
    if (is_here && cpu != kNotPlaced) cpus.push_back(cpu);
  }
  return std::unique_ptr<RankPlaces>(
      new RankPlaces{std::move(topology), std::move(placement), TakenCores(std::move(cpus))});
}

}  // namespace

Result<std::unique_ptr<Communicator>> Communicator::create(const CommunicatorOptions& asked) try {
  auto shared = create_shared(asked);
  if (!shared.ok()) return shared.status();
  return std::unique_ptr<Communicator>(new Communicator(std::move(*shared)));
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory, [&] {
    return "no memory for a communicator of " + std::to_string(asked.ranks) + " ranks";
  });
}

Result<std::shared_ptr<CommunicatorShared>> create_shared(const CommunicatorOptions& asked,
                                                          const std::function<Status()>& may_wait) {
  const ScopedCancelState off(PTHREAD_CANCEL_DISABLE);  // the code below opens files and sleeps
  if (Status status = check_communicator(asked); !status.ok()) return status;
  auto environment = read_environment();
  if (!environment.ok()) return environment.status();
  if (asked.wire != nullptr) {
    environment->transport = Transport::mailbox;
    environment->network = nullptr;  // it is the wire's
  }
  if (asked.ports > 0 && environment->network != nullptr) {
    return invalid_argument("ports is " + std::to_string(asked.ports) +
                            ", and RANKINE_NETWORK puts calls on a modelled network, which has its "
                            "own ports; leave out one of the two");
  }
  CommunicatorOptions options = asked;  // completed from the placement
  std::unique_ptr<RankPlaces> places;
  std::vector<ArenaOptions> arenas;
  std::vector<int> levels;
  if (options.placement) {
    auto found = find_places(options);
    if (!found.ok()) return found.status();
    places = std::move(*found);
    if (options.arenas.empty()) {
      for (const RankPlace& place : places->placement.ranks) {
        arenas.push_back(rankine::arena_options(places->topology, place));
        arenas.back().lock = options.lock_memory;
      }
      options.arenas = arenas;
    }
    // Processes must agree on their levels but may see different parts of the machine.
    if (options.levels.empty() && !options.rank) {
      levels = level_groups(places->topology, places->placement);
      options.levels = levels;
    }
    // Shared pages lie on the node of the thread that first touches them.
    if (options.rank && options.more_ranks.empty()) {
      static_cast<void>(pin_calling_thread(
          places->topology, places->placement.ranks[static_cast<std::size_t>(*options.rank)]));
    }
  }
  Costs costs = costs_for(options);
  if (!environment->trials) costs.trial_max_bytes = 0;
  std::shared_ptr<ProcessRanks> processes;
  std::vector<int> ids;
  if (options.rank) {
    auto met = meet(options, *environment, costs, may_wait);
    if (!met.ok()) return met.status();
    processes = std::move(*met);
    for (Rank r = 0; r < options.ranks; ++r) ids.push_back(processes->process_of(r));
  }
  const int cpus_here = cpus_among({});
  const bool shares_cores = options.ranks > (ids.empty() ? cpus_here : cpus_among(ids));
  if (processes != nullptr && shares_cores) processes->share_cores();
  WaitPolicy policy = wait_policy_for(shares_cores, costs);
  Crowd crowd;
  if (environment->wait) policy.mode = *environment->wait;
  if (options.wait) policy = *options.wait;
  const bool records = options.record_times || environment->flight_times;
  if (records)
    policy.probes = 0;  // LongWait measures a wait, and the probes before it are not in it
  if (!environment->wait && !options.wait) {
    crowd = {&RankThreads::count(), cpus_here, wait_policy_for(true, costs)};
    if (records) crowd.policy.probes = 0;
  }
  const auto& network = options.network != nullptr ? options.network : environment->network;
  std::unique_ptr<CallClock> clock;
  if (network != nullptr) {
    auto made = make_clock(*network, options.ranks, policy, processes.get());
    if (!made.ok()) return processes != nullptr ? processes->fail(made.status()) : made.status();
    clock = std::move(*made);
  }
  auto shared = make_shared_at_home<CommunicatorShared>(options, costs, policy, crowd, *environment,
                                                        std::move(clock), processes);
  shared->places = std::move(places);
  if (Status status = shared->record_calls(options.name); !status.ok()) {
    return processes != nullptr ? processes->fail(status) : status;
  }
  if (options.progress_core && shared->clock == nullptr) {
    auto progress = ProgressThread::start(*options.progress_core, shared->rank_control);
    if (!progress.ok()) {
      return processes != nullptr ? processes->fail(progress.status()) : progress.status();
    }
    shared->progress = std::move(*progress);
  }
  if (processes != nullptr) {
    if (Status status = processes->begin(); !status.ok()) return status;
  }
  // All processes must plan alike, even if they see different cores.
  const bool share = processes != nullptr ? processes->cores_are_shared() : shares_cores;
  if (share && options.wire == nullptr) {  // all nodes must plan alike
    shared->costs = shared_core_costs(costs);
  }
  return shared;
}

Communicator::Communicator(std::shared_ptr<CommunicatorShared> shared)
    : shared_(std::move(shared)) {}
Communicator::~Communicator() = default;

int Communicator::ranks() const { return shared_->ranks; }

Result<std::unique_ptr<Member>> Communicator::join(Rank rank) {
  auto member = join_for_another_thread(rank);
  if (member.ok()) static_cast<void>((*member)->pin_thread());
  return member;
}

Result<std::unique_ptr<Member>> Communicator::join_for_another_thread(Rank rank) try {
  if (shared_->forked()) return forked_status();
  if (rank < 0 || rank >= shared_->ranks) {
    return invalid_argument("rank is " + std::to_string(rank) + "; allowed are 0 to " +
                            std::to_string(shared_->ranks - 1));
  }
  if (shared_->is_elsewhere(rank)) {
    return invalid_argument(
        "rank is " + std::to_string(rank) +
        " of another process; allowed here: " + ranks_in_words(shared_->processes->here()));
  }
  const std::lock_guard lock(shared_->mutex);
  if (shared_->joined[static_cast<std::size_t>(rank)]) {
    return invalid_argument("rank is " + std::to_string(rank) +
                            ", which has joined before; allowed is once");
  }
  std::unique_ptr<Member> member(new Member(shared_, rank, shared_->new_progress_engine()));
  shared_->joined[static_cast<std::size_t>(rank)] = true;
  return member;
} catch (const std::bad_alloc&) {
  return make_error(Code::out_of_memory,
                    [&] { return "no memory for the member of rank " + std::to_string(rank); });
}

std::shared_ptr<ProgressEngine> CommunicatorShared::new_progress_engine() const {
  auto progress_engine = std::make_shared<ProgressEngine>(progress.get());
  if (progress != nullptr) progress->serve(progress_engine);
  return progress_engine;
}

template <class Act>
void CommunicatorShared::at_all_ends_of(Rank rank, const Act& act) {
  act(rank_control, rank);
  const std::lock_guard lock(mutex);
  for (const auto& [ends, pair] : pairs) {
    if (pair == nullptr) continue;  // the pair was refused
    if (ends.first == rank) act(pair->rank_control, 0);
    if (ends.second == rank) act(pair->rank_control, 1);
  }
}

void CommunicatorShared::leave(Rank rank) {
  at_all_ends_of(rank, [](RankControl& where, Rank r) { where.leave(r); });
}

void CommunicatorShared::come_back(Rank rank) {
  at_all_ends_of(rank, [](RankControl& where, Rank r) { where.come_back(r); });
}

void CommunicatorShared::end_with(Status reason) {
  // After an abort the communicator does not continue, so no call may return a code that says so.
  const bool is_end = !goes_on(reason.code()) && static_cast<int>(reason.code()) < kCodes;
  if (!is_end) reason = Status(Code::aborted, reason.text());
  if (!forked()) rank_control.abort(std::move(reason));
}

void Communicator::abort(std::string_view why) { abort(Status(Code::aborted, std::string(why))); }
void Communicator::abort(Status reason) { shared_->end_with(std::move(reason)); }
void Communicator::abort() noexcept {
  // a forked child must not end its parent's communicator
  if (!shared_->forked()) shared_->rank_control.abort_now();
}

Status CommunicatorShared::health() const {
  if (forked()) return forked_status();
  return rank_control.aborted() ? rank_control.reason() : Status();
}

Status Communicator::health() const { return shared_->health(); }

FlightRecord CommunicatorShared::flight_record() {
  FlightRecord out;
  for (Rank r = 0; r < ranks; ++r) {
    const std::uint64_t number =
        rank_control.record(r).number.load(std::memory_order_acquire);  // pairs with announce()
    FlightRecord::RankRecord rank{
        rank_control.state_of(r).text,
        recorder.last_calls(r, number == 0 ? 0 : number - first_count, first_count),
        rank_control.slow_waits(r).last(),
        {}};
    for (std::size_t i = 0; i < kTrialClasses; ++i) {
      rank.trials[i] = rank_control.slow_waits(r).trials[i].load();
    }
    for (SlowWait& wait : rank.waits) wait.call -= first_count;
    out.ranks.push_back(std::move(rank));
  }
  out.health = health();
  return out;
}

std::string Communicator::flight_record() const {
  std::string text;
  write_json(shared_->flight_record(), [&](std::string_view piece) { text += piece; });
  return text;
}

void CommunicatorShared::leave_flight_record() noexcept {
  // Stopped peers may have taken 0.7 of the second (RankControl::kQuietNs).
  constexpr std::chrono::milliseconds kPatience{150};
  record_file.leave([this] { return flight_record(); });
  record_file.wait(kPatience);
}

RankMemory Communicator::memory_of(Rank rank) const {
  // In a forked child the lock may be held forever.
  if (rank < 0 || rank >= shared_->ranks || shared_->forked()) return {};
  const auto i = static_cast<std::size_t>(rank);
  const std::lock_guard lock(shared_->mutex);
  const Arena& arena = shared_->arenas[i];
  const ScratchNote& scratch = shared_->scratch[i];
  RankMemory out;
  out.lines = {sizeof(RankLines), {shared_->lines.range(rank)}};
  out.mailboxes = {whole_pages(arena.bytes_used()), arena.chunks()};
  if (shared_->processes != nullptr) {
    out.private_access = shared_->processes->private_access();
    const MemoryRange range = shared_->processes->range(rank);
    out.mailboxes = {range.bytes, {range}};
  }
  for (Rank from = 0; from < shared_->ranks; ++from) {
    const auto pair = static_cast<std::size_t>(from * shared_->ranks) + i;
    if (shared_->mailboxes[pair].slots != nullptr) ++out.senders;
  }
  out.scratch.bytes = scratch.range.bytes;
  if (scratch.range.bytes > 0) out.scratch.ranges = {scratch.range};
  for (const Enforcement& one : {shared_->lines.binding(rank), arena.binding(), scratch.binding}) {
    out.binding.add(one);
  }
  out.huge_pages = scratch.huge_pages;
  for (const Enforcement& one : {shared_->lines.locking(), arena.locking(), scratch.locking}) {
    out.locking.add(one);
  }
  if (const auto payloads = shared_->payloads[i].lock()) payloads->add_to(out);
  return out;
}

SharedMemory Communicator::shared_memory() const {
  if (shared_->forked()) return {};
  const std::lock_guard lock(shared_->mutex);
  return {.plans = shared_->plan_bytes.load(std::memory_order_relaxed),
          .flight_record = shared_->recorder.bytes() + shared_->call_site_bytes() +
                           static_cast<std::size_t>(shared_->ranks) * sizeof(SlowWaits),
          .tables = shared_->member_bytes.load(std::memory_order_relaxed) +
                    taken_bytes(shared_->mailboxes) + taken_bytes(shared_->boards) +
                    shared_->plans.table_bytes() +
                    (shared_->clock != nullptr ? shared_->clock->clock().bytes() : 0)};
}

std::size_t Communicator::memory_bytes() const {
  const SharedMemory all = shared_memory();
  std::size_t bytes = all.plans + all.flight_record + all.tables;
  for (Rank r = 0; r < shared_->ranks; ++r) {
    const RankMemory mine = memory_of(r);
    bytes += mine.lines.bytes + mine.mailboxes.bytes + mine.scratch.bytes + mine.payloads.bytes;
  }
  return bytes;
}

std::size_t Communicator::cached_plans() const {
  if (shared_->forked()) return 0;
  const std::lock_guard lock(shared_->mutex);
  return shared_->plans.plans();
}

const WaitPolicy& Communicator::wait_policy() const { return shared_->rank_control.policy(); }
std::optional<Order> Communicator::order() const { return shared_->order; }

NetworkReport Communicator::network_report() const {
  return shared_->clock != nullptr && !shared_->forked() ? shared_->clock->report()
                                                         : NetworkReport();
}

PortsInUse Communicator::ports_in_use(Rank rank) const {
  if (rank < 0 || rank >= shared_->ranks || shared_->forked()) return {};
  if (shared_->clock != nullptr) {
    const NetworkClock& clock = shared_->clock->clock();
    return {clock.sending(rank).most(), clock.receiving(rank).most()};
  }
  const WakeFutex& wake_futex = shared_->rank_control.wake_futex(rank);
  return {wake_futex.most_sent.load(std::memory_order_relaxed),
          wake_futex.most_received.load(std::memory_order_relaxed)};
}

void Communicator::restart_model_time() {
  if (shared_->clock != nullptr && !shared_->forked()) shared_->clock->clock().restart();
}

}  // namespace rankine
