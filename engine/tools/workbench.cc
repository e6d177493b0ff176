#include "engine/tools/workbench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>

#include "engine/api/check.h"
#include "engine/tools/machine_team.h"
#include "engine/tools/test_data.h"
#include "engine/tools/trial.h"
#include "numa/memory.h"
#include "numa/topology.h"

namespace rankine::tools {
namespace {

// Twice all last-level caches; where the machine does not tell, a large guess.
std::size_t beyond_cache(const Topology& topology) {
  constexpr std::size_t kUnknown = std::size_t{64} << 20;
  const std::size_t all = topology.l3_bytes();
  return 2 * (all != 0 ? all : kUnknown * static_cast<std::size_t>(topology.l3_groups()));
}

// What one rank allocates for its inputs, and the same again for its outputs.
BufferBytes region_bytes(const Workbench::Options& options, const Topology& topology) {
  BufferBytes region{round_up(options.buffers.input), round_up(options.buffers.output)};
  if (options.off_cache) {
    const std::size_t share =
        round_up(beyond_cache(topology) / static_cast<std::size_t>(options.team.ranks) / 2);
    region.input = std::max(region.input, share);
    region.output = std::max(region.output, share);
  }
  return region;
}

}  // namespace

BufferBytes buffer_bytes(const Call& call, int ranks) {
  const Goal goal = natural_goal(call, ranks);
  const Layout layout = natural_layout(call, ranks);
  BufferBytes most;
  for (Rank r = 0; r < ranks; ++r) {
    most.input = std::max(most.input, input_bytes(layout, goal, r));
    most.output = std::max(most.output, output_bytes(layout, goal, r));
  }
  return most;
}

struct Workbench::State {
  TeamOptions options;
  std::unique_ptr<Team> team;  // or:
  std::optional<ProcessSeat> seat;
  const Communicator& ranks() const { return team ? team->communicator() : *seat->communicator; }
  std::vector<PortsInUse> ports;  // by rank, so far
  std::vector<Arena> arenas;
  std::vector<Payload<std::byte>> payloads;  // where a process has its buffers in what all share
  bool shared_payloads = false;
  std::vector<BufferPair> buffers;
  BufferBytes region;
  LatencyProbe probe{};
};

Workbench::Workbench(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workbench::~Workbench() = default;

std::vector<RankReport> Workbench::places() const {
  if (state_->team) return state_->team->report();
  std::vector<RankReport> all;
  for (const ProcessSeat::Place& one : state_->seat->places) all.push_back(one.report);
  return all;
}

int Workbench::process_of(Rank r) const {
  return state_->team ? getpid() : state_->seat->places[static_cast<std::size_t>(r)].process;
}

const WaitPolicy& Workbench::wait_policy() const { return state_->ranks().wait_policy(); }

Status Workbench::play(const std::function<void(Member&)>& f) {
  if (state_->team) return state_->team->run(f);
  f(*state_->seat->member);
  return state_->seat->communicator->health();
}

std::size_t Workbench::memory_needed(const Options& options) {
  const BufferBytes region = region_bytes(options, Topology::detect());
  const auto total =
      (static_cast<unsigned __int128>(region.input) + region.output + options.buffers.output) *
      static_cast<unsigned>(options.team.ranks);
  constexpr auto kMost = static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::size_t>(std::min(total, kMost));
}

Result<std::unique_ptr<Workbench>> Workbench::create(const Options& options) {
  auto state = std::make_unique<State>();
  state->options = options.team;
  state->shared_payloads = options.shared_payloads;
  if (options.process) {
    auto seat = sit_down(options.team, *options.process);
    if (!seat.ok()) return seat.status();
    state->seat = std::move(*seat);
  } else {
    auto team = machine_team(options.team);
    if (!team.ok()) return team.status();
    state->team = std::move(*team);
  }
  const Topology topology = Topology::detect();
  state->region = region_bytes(options, topology);
  std::unique_ptr<Workbench> bench(new Workbench(std::move(state)));
  if (Status status = bench->allocate(topology); !status.ok()) return status;
  return bench;
}

Status Workbench::allocate(const Topology& topology) {
  State* const state = state_.get();
  for (const RankReport& report : places()) {
    ArenaOptions arena = arena_options(topology, report.place);
    arena.chunk_bytes = 4096;  // each buffer gets a chunk of its own size
    state->arenas.emplace_back(arena);
  }
  state->buffers.resize(state->arenas.size());
  // Each rank touches its memory first: no page is the kernel's common page of zeroes.
  std::mutex mutex;
  Status failure;
  Status run = play([&](Member& me) {
    BufferPair& mine = state->buffers[static_cast<std::size_t>(me.rank())];
    Arena& arena = state->arenas[static_cast<std::size_t>(me.rank())];
    const BufferBytes& region = state->region;
    std::string why;
    const auto allocate = [&](std::size_t bytes) -> std::byte* {
      if (!state->shared_payloads) return static_cast<std::byte*>(arena.allocate(bytes));
      auto payload = me.allocate<std::byte>(bytes);  // this process plays one rank
      if (!payload.ok()) {
        why = ": " + payload.status().text();
        return nullptr;
      }
      return state->payloads.emplace_back(std::move(*payload)).span().data();
    };
    mine.input = allocate(region.input);
    mine.output = allocate(region.output);
    if (mine.input == nullptr || mine.output == nullptr) {
      const std::lock_guard lock(mutex);
      failure = {Code::out_of_memory, fmt::format("buffers of rank {}: {} bytes{}", me.rank(),
                                                  region.input + region.output, why)};
      return;
    }
    if (region.input > 0) std::memset(mine.input, 0, region.input);
    if (region.output > 0) std::memset(mine.output, 0, region.output);
  });
  return failure.ok() ? run : failure;
}

Result<Measured> Workbench::measure(const Call& call, const MeasureOptions& options) {
  Status valid = check_call(call, state_->ranks().ranks());
  if (!valid.ok()) return valid;
  const bool on_network = state_->options.network != nullptr;
  Trial trial(call, options, state_->ranks(), state_->seat.has_value(), on_network, state_->buffers,
              state_->region);
  for (const bool in_place : {false, true}) {
    if (options.in_place.value_or(in_place) != in_place) continue;
    if (on_network) {
      auto anew = machine_team(state_->options);
      if (!anew.ok()) return anew.status();
      state_->team = std::move(*anew);
    }
    Status run = play([&](Member& me) { trial.play(me, in_place); });
    Status own = trial.status();
    if (!own.ok()) return own;
    if (!run.ok()) return run;
    add_ports_in_use(state_->ranks(), state_->ports);
  }
  Result<Measured> measured = trial.result();
  if (measured.ok() && (on_network || state_->options.ports > 0)) measured->ports = state_->ports;
  return measured;
}

Result<double> Workbench::probe_latency() {
  const std::vector<RankReport> all = places();
  if (all.size() < 2 || !state_->team) return 0.0;
  const RankReport &a = all[0], &b = all[1];
  // On one CPU the two would hand over time slices.
  const bool apart = a.place.cpu >= 0 && b.place.cpu >= 0 && a.place.cpu != b.place.cpu &&
                     !a.pin.refused() && !b.pin.refused();
  if (!apart) return 0.0;
  double ns = 0;
  Status run = play([&](Member& me) {
    if (me.rank() > 1) return;
    const double mine = state_->probe.play(me.rank());
    if (me.rank() == 0) ns = mine;
  });
  if (!run.ok()) return run;
  return ns;
}

Result<Measured> Workbench::measure_steady(const Call& call, const MeasureOptions& options,
                                           LatencyBracket& bracket) {
  struct Bracketed {
    Result<Measured> measured;
    LatencyBracket bracket{};
  };
  const auto once = [&]() -> Bracketed {
    const auto before = probe_latency();
    if (!before.ok()) return {before.status()};
    auto measured = measure(call, options);
    if (!measured.ok()) return {measured.status()};
    const auto after = probe_latency();
    if (!after.ok()) return {after.status()};
    return {std::move(measured), {.before_ns = *before, .after_ns = *after}};
  };
  int repeats = 0;
  Bracketed best = calmest(
      once, [](const Bracketed& b) { return b.measured.ok() ? b.bracket.drift() : 1; }, repeats);
  bracket = best.bracket;
  bracket.repeats = repeats;
  return std::move(best.measured);
}

}  // namespace rankine::tools
