#include "engine/tools/workbench.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

#include "engine/api/check.h"
#include "engine/network/perturb.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/latency_probe.h"
#include "engine/tools/meeting.h"
#include "engine/tools/read_result.h"
#include "engine/tools/test_data.h"
#include "numa/arena.h"
#include "numa/topology.h"

namespace rankine::tools {
namespace {

constexpr double kShortestBatch = 20e-6;  // seconds
constexpr int kMostCalls = 1 << 20;       // per batch
constexpr std::size_t kLine = 64;

std::size_t round_up(std::size_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Twice all last-level caches; where the machine does not tell, a large guess.
std::size_t beyond_cache(const Topology& topology) {
  constexpr std::size_t kUnknown = std::size_t{64} << 20;
  const std::size_t one = topology.caches().l3 != 0 ? topology.caches().l3 : kUnknown;
  return 2 * one * static_cast<std::size_t>(std::max(1, topology.l3_groups()));
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

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Buffers {
  explicit Buffers(const ArenaOptions& options) : arena(options) {}
  Arena arena;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
};

// One measurement: what the ranks share while they are in it.
class Trial {
 public:
  Trial(const Call& call, const MeasureOptions& options, Team& team, std::vector<Buffers>& buffers,
        BufferBytes region)
      : call_(call),
        options_(options),
        buffers_(buffers),
        ranks_(team.ranks()),
        goal_{call.collective, ranks_, natural_blocks(call.collective, ranks_), call.root,
              call.peer},
        layout_(
            make_layout(goal_, natural_counts(call, ranks_), size_of(call.type), Borders::plain)),
        meeting_(ranks_,
                 team.communicator().wait_policy().mode == WaitPolicy::Mode::spin ? 5000 : 4),
        slots_(static_cast<std::size_t>(ranks_)) {
    for (Rank r = 0; r < ranks_; ++r) {
      if (options.perturb) {
        slots_[static_cast<std::size_t>(r)].perturbation.emplace(*options.perturb, r);
      }
      rules_.push_back(buffer_rule(layout_, goal_, r));
      stride_.input = std::max(stride_.input, round_up(rules_.back().input_bytes));
      stride_.output = std::max(stride_.output, round_up(rules_.back().output_bytes));
    }
    if (options.off_cache) {
      copies_ = std::min(stride_.input > 0 ? region.input / stride_.input : region.input,
                         stride_.output > 0 ? region.output / stride_.output : region.output);
      copies_ = std::max<std::size_t>(1, copies_);
    }
    step_ = static_cast<std::size_t>(static_cast<double>(copies_) * 0.618) | 1;
    while (std::gcd(step_, copies_) != 1) step_ += 2;
    data_.emplace_back(call.collective, ranks_, call.type, call.op, 0);
    for (int i = 1; i < options.checks; ++i) {
      data_.emplace_back(call.collective, ranks_, call.type, call.op,
                         static_cast<std::uint64_t>(i));
    }
  }

  // On every rank's thread.
  void play(Member& me) {
    Slot& slot = slots_[static_cast<std::size_t>(me.rank())];
    for (const bool in_place : {false, true}) {
      slot.status = play_one(me, slot, in_place);
      if (!slot.status.ok()) return meeting_.stop();
    }
  }

  Status status() const {
    for (const Slot& slot : slots_) {
      if (!slot.status.ok() && slot.status.code() != Code::aborted) return slot.status;
    }
    return interrupted_ ? Status(Code::aborted, "a signal interrupted the measurement") : Status();
  }

  Measured result() {
    for (Series* series : {&measured_.out_of_place, &measured_.in_place}) {
      series->seconds = summarise(series->samples);
    }
    return std::move(measured_);
  }

 private:
  // A rank's own, on lines of its own.
  struct alignas(64) Slot {
    double seconds = 0;
    std::int64_t wrong = 0;
    std::uint64_t sink = 0;  // keeps reads of results
    Status status;
    std::optional<Perturbation> perturbation{};
  };
  // Where the others stopped, a rank stops without a reason of its own.
  static Status stopped() { return {Code::aborted, "another rank stopped"}; }

  struct Ends {
    std::byte* in;
    std::byte* out;
  };
  Ends ends(Rank r, std::size_t turn, bool in_place) const {
    const auto i = static_cast<std::size_t>(r);
    const std::size_t copy = turn * step_ % copies_;
    Ends e{buffers_[i].input + copy * stride_.input, buffers_[i].output + copy * stride_.output};
    const BufferRule& rule = rules_[i];
    if (!in_place || !rule.may_be_in_place) return e;
    if (rule.output_bytes >= rule.input_bytes) {
      e.in = e.out + rule.in_place_offset;
    } else {
      e.out = e.in - rule.in_place_offset;
    }
    return e;
  }

  Status make_call(Member& me, const Ends& e) {
    Call call = call_;
    call.in = e.in;
    call.out = e.out;
    Slot& slot = slots_[static_cast<std::size_t>(me.rank())];
    return slot.perturbation ? me.call(call, *slot.perturbation) : me.call(call);
  }

  Status play_one(Member& me, Slot& slot, bool in_place);
  Status check(Member& me, Slot& slot, bool in_place, std::size_t turn);
  void after_batch(Series& series);
  double slowest() const {
    double most = 0;
    for (const Slot& slot : slots_) most = std::max(most, slot.seconds);
    return most;
  }

  const Call call_;
  const MeasureOptions options_;
  std::vector<Buffers>& buffers_;
  const int ranks_;
  const Goal goal_;
  const Layout layout_;
  std::vector<BufferRule> rules_;
  std::vector<TestData> data_;  // one per check, at least one
  BufferBytes stride_;          // of a copy
  std::size_t copies_ = 1, step_ = 1;
  Meeting meeting_;
  std::vector<Slot> slots_;

  // Written by the last rank at a meeting, read by all.
  int calls_ = 1;
  bool done_ = false;
  bool calibrated_ = false;
  bool interrupted_ = false;
  int calibrations_ = 0;
  double begun_ = 0;
  Measured measured_;
};

// The slowest rank's time of the batch that is over decides what comes next.
void Trial::after_batch(Series& series) {
  if (interruption() != 0) {
    interrupted_ = true;
    return meeting_.stop();
  }
  const double seconds = slowest();
  if (!calibrated_) {
    constexpr int kMostCalibrations = 8;
    const bool fixed = options_.calls > 0 || options_.fresh;
    calibrated_ = fixed || seconds >= kShortestBatch || calls_ >= kMostCalls ||
                  ++calibrations_ >= kMostCalibrations;
    if (!calibrated_) {
      // A tenth more than needed, and no leap on the word of a single short batch.
      const double factor = std::clamp(1.1 * kShortestBatch / std::max(seconds, 1e-9), 2.0, 16.0);
      calls_ = std::min(kMostCalls, static_cast<int>(std::ceil(calls_ * factor)));
    }
    begun_ = seconds_now();
    return;
  }
  series.samples.push_back(seconds / calls_);
  const int batches = static_cast<int>(series.samples.size());
  done_ = options_.batches > 0 ? batches >= options_.batches
                               : batches >= MeasureOptions::kMostBatches ||
                                     (batches >= MeasureOptions::kFewestBatches &&
                                      seconds_now() - begun_ > options_.seconds);
}

Status Trial::play_one(Member& me, Slot& slot, bool in_place) {
  const Rank r = me.rank();
  const BufferRule& rule = rules_[static_cast<std::size_t>(r)];
  Series& series = in_place ? measured_.in_place : measured_.out_of_place;
  std::size_t turn = 0;

  // The ranks meet before calls: filling takes long, and must not count as waiting.
  data_[0].fill(goal_, layout_, r, ends(r, turn, in_place).in);
  if (!meeting_.arrive()) return stopped();
  for (int i = 0; i < options_.warmups; ++i) {
    Status status = make_call(me, ends(r, turn++, in_place));
    if (!status.ok()) return status;
  }
  const bool together = meeting_.arrive([&] {
    calls_ = options_.fresh ? 1 : std::max(1, options_.calls);
    done_ = calibrated_ = false;
    calibrations_ = 0;
  });
  if (!together) return stopped();

  while (!done_) {
    const int calls = calls_;
    if (options_.fresh) {
      const Ends e = ends(r, turn, in_place);
      data_[0].fill(goal_, layout_, r, e.in);
      if (!meeting_.arrive()) return stopped();
      const double begin = seconds_now();
      Status status = make_call(me, e);
      if (!status.ok()) return status;
      slot.sink += read_result(e.out, rule.output_bytes);
      slot.seconds = seconds_now() - begin;
      ++turn;
    } else {
      const double begin = seconds_now();
      for (int i = 0; i < calls; ++i) {
        Status status = make_call(me, ends(r, turn++, in_place));
        if (!status.ok()) return status;
      }
      slot.seconds = seconds_now() - begin;
    }
    if (!meeting_.arrive([&] { after_batch(series); })) return stopped();
  }

  if (r == 0) {
    Call call = call_;
    const Ends e = ends(r, 0, in_place);
    call.in = e.in;
    call.out = e.out;
    auto plan = me.plan_of(call);
    if (!plan.ok()) return plan.status();
    const std::size_t comma = plan->find(", ");
    series.algorithm = plan->substr(0, comma);
    series.transport = plan->substr(comma + 2, plan->find(' ', comma + 2) - comma - 2);
  }
  slot.wrong = 0;
  Status status = check(me, slot, in_place, turn);
  if (!status.ok()) return status;
  const bool checked = meeting_.arrive([&] {
    series.calls = calls_;
    if (options_.checks == 0) return;
    series.wrong = 0;
    for (const Slot& one : slots_) series.wrong += one.wrong;
  });
  return checked ? Status() : stopped();
}

Status Trial::check(Member& me, Slot& slot, bool in_place, std::size_t turn) {
  const Rank r = me.rank();
  const BufferRule& rule = rules_[static_cast<std::size_t>(r)];
  const Ends e = ends(r, turn, in_place);
  constexpr int kSpoilt = 0xa5;
  for (int i = 0; i < options_.checks; ++i) {
    const TestData& data = data_[static_cast<std::size_t>(i)];
    if (rule.output_bytes > 0) std::memset(e.out, kSpoilt, rule.output_bytes);
    if (rule.input_bytes > 0) data.fill(goal_, layout_, r, e.in);
    if (!meeting_.arrive()) return stopped();
    Status status = make_call(me, e);
    if (!status.ok()) return status;
    if (rule.output_bytes > 0) slot.wrong += data.count_wrong(goal_, layout_, r, e.out);
  }
  return {};
}

}  // namespace

BufferBytes buffer_bytes(const Call& call, int ranks) {
  const Goal goal{call.collective, ranks, natural_blocks(call.collective, ranks), call.root,
                  call.peer};
  const Layout layout =
      make_layout(goal, natural_counts(call, ranks), size_of(call.type), Borders::plain);
  BufferBytes most;
  for (Rank r = 0; r < ranks; ++r) {
    most.input = std::max(most.input, input_bytes(layout, goal, r));
    most.output = std::max(most.output, output_bytes(layout, goal, r));
  }
  return most;
}

struct Workbench::State {
  std::unique_ptr<Team> team;
  std::vector<Buffers> buffers;
  BufferBytes region;
  LatencyProbe probe{};
};

Workbench::Workbench(std::unique_ptr<State> state) : state_(std::move(state)) {}
Workbench::~Workbench() = default;
Team& Workbench::team() { return *state_->team; }

std::size_t Workbench::memory_needed(const Options& options) {
  const BufferBytes region = region_bytes(options, Topology::detect());
  const auto total =
      (static_cast<unsigned __int128>(region.input) + region.output + options.buffers.output) *
      static_cast<unsigned>(options.team.ranks);
  constexpr auto kMost = static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::size_t>(std::min(total, kMost));
}

Result<std::unique_ptr<Workbench>> Workbench::create(const Options& options) {
  auto team = Team::create(options.team);
  if (!team.ok()) return team.status();
  const Topology topology = Topology::detect();
  auto state = std::make_unique<State>();
  state->team = std::move(*team);
  state->region = region_bytes(options, topology);
  for (const RankReport& report : state->team->report()) {
    ArenaOptions arena = arena_options(topology, report.place);
    arena.chunk_bytes = 4096;  // each buffer gets a chunk of its own size
    state->buffers.emplace_back(arena);
  }
  // Each rank touches its memory first: no page is the kernel's common page of zeroes.
  std::mutex mutex;
  Status failure;
  Status run = state->team->run([&](Member& me) {
    Buffers& mine = state->buffers[static_cast<std::size_t>(me.rank())];
    const BufferBytes& region = state->region;
    mine.input = static_cast<std::byte*>(mine.arena.allocate(region.input));
    mine.output = static_cast<std::byte*>(mine.arena.allocate(region.output));
    if (mine.input == nullptr || mine.output == nullptr) {
      const std::lock_guard lock(mutex);
      failure = {Code::out_of_memory, fmt::format("buffers of rank {}: {} bytes", me.rank(),
                                                  region.input + region.output)};
      return;
    }
    if (region.input > 0) std::memset(mine.input, 0, region.input);
    if (region.output > 0) std::memset(mine.output, 0, region.output);
  });
  if (!failure.ok()) return failure;
  if (!run.ok()) return run;
  return std::unique_ptr<Workbench>(new Workbench(std::move(state)));
}

Result<Measured> Workbench::measure(const Call& call, const MeasureOptions& options) {
  Status valid = check_call(call, team().ranks());
  if (!valid.ok()) return valid;
  Trial trial(call, options, team(), state_->buffers, state_->region);
  Status run = team().run([&trial](Member& me) { trial.play(me); });
  Status own = trial.status();
  if (!own.ok()) return own;
  if (!run.ok()) return run;
  return trial.result();
}

Result<double> Workbench::probe_latency() {
  const std::vector<RankReport> places = team().report();
  if (places.size() < 2) return 0.0;
  const RankReport &a = places[0], &b = places[1];
  // On one CPU the two would hand over time slices.
  const bool apart = a.place.cpu >= 0 && b.place.cpu >= 0 && a.place.cpu != b.place.cpu &&
                     !a.pin.refused() && !b.pin.refused();
  if (!apart) return 0.0;
  double ns = 0;
  Status run = team().run([&](Member& me) {
    if (me.rank() > 1) return;
    const double mine = state_->probe.play(me.rank());
    if (me.rank() == 0) ns = mine;
  });
  if (!run.ok()) return run;
  return ns;
}

}  // namespace rankine::tools
