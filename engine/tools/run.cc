#include "engine/tools/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "engine/api/check.h"
#include "engine/api/team.h"
#include "engine/fabric/units.h"
#include "engine/tools/meeting.h"
#include "engine/tools/memory.h"
#include "engine/tools/metrics.h"
#include "engine/tools/question.h"
#include "engine/tools/statistics.h"
#include "engine/tools/table.h"
#include "engine/tools/test_data.h"
#include "engine/tools/text.h"
#include "numa/arena.h"
#include "numa/topology.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

struct RunArguments {
  QuestionArguments question;
  ClockMode clock = ClockMode::virtual_time;
  double dilate = 0;  // 0: fitting_dilation()
  int repeat = 0;     // 0: kRepeats, or 1 of a virtual clock
  bool rounds = false, json = false;
  PlacementPolicy placement{};
  std::optional<WaitPolicy> wait;
  std::chrono::milliseconds timeout{30'000};
};
constexpr int kRepeats = 10;

// The threads, their buffers and the data that go round.
class Stage {
 public:
  static Result<std::unique_ptr<Stage>> create(const TeamOptions& options, const Call& call) {
    auto team = Team::create(options);
    if (!team.ok()) return team.status();
    std::unique_ptr<Stage> stage(new Stage(std::move(*team), call));
    Status status = stage->allocate();
    if (!status.ok()) return status;
    return stage;
  }

  // One call on all ranks, under a clock or none. Seconds until the last rank is done, from the
  // moment at which all are ready. Every element of every output is checked.
  struct Played {
    double seconds = 0;
    std::int64_t wrong = 0;
  };
  Result<Played> play(Throttle* clock) {
    const TestData data(call_.collective, team_->ranks(), call_.type, call_.op, seed_++);
    Meeting meeting(team_->ranks(), 4);
    for (Seat& seat : seats_) seat.status = {};
    Status run = team_->run([&](Member& me) {
      Seat& mine = seats_[static_cast<std::size_t>(me.rank())];
      constexpr int kSpoilt = 0xa5;
      if (mine.output_bytes > 0) std::memset(mine.output, kSpoilt, mine.output_bytes);
      if (mine.input_bytes > 0) data.fill(goal_, layout_, me.rank(), mine.input);
      Call call = call_;
      call.in = mine.input;
      call.out = mine.output;
      if (!meeting.arrive()) return;
      mine.begin_ns = now_ns();
      mine.status = clock != nullptr ? me.call(call, clock->observer(me.rank())) : me.call(call);
      if (clock != nullptr) clock->finished(me.rank());
      mine.end_ns = now_ns();
      mine.wrong = mine.output_bytes == 0
                       ? 0
                       : data.count_wrong(goal_, layout_, me.rank(), mine.output);
    });
    Played played;
    std::int64_t begin = seats_.front().begin_ns, end = seats_.front().end_ns;
    for (const Seat& seat : seats_) {
      if (!seat.status.ok()) return seat.status;
      begin = std::min(begin, seat.begin_ns);
      end = std::max(end, seat.end_ns);
      played.wrong += seat.wrong;
    }
    if (!run.ok()) return run;
    if (clock != nullptr && !clock->health().ok()) return clock->health();
    played.seconds = static_cast<double>(end - begin) * 1e-9;
    return played;
  }

  // How late all ranks' threads are woken when all sleep at once.
  Result<std::vector<double>> wake_ups() {
    constexpr int kSleeps = 12;
    constexpr std::int64_t kSleepNs = 1'500'000;
    const WaitPolicy policy = team_->communicator().wait_policy();
    std::vector<std::vector<std::int64_t>> late(seats_.size());
    Status status = team_->run([&](Member& me) {
      late[static_cast<std::size_t>(me.rank())] = measure_wake_ups(kSleeps, kSleepNs, policy);
    });
    if (!status.ok()) return status;
    std::vector<double> seconds;
    for (const auto& rank : late) {
      for (const std::int64_t ns : rank) seconds.push_back(static_cast<double>(ns) * 1e-9);
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds;
  }

  Team& team() { return *team_; }

 private:
  struct alignas(64) Seat {
    std::byte* input = nullptr;
    std::byte* output = nullptr;
    std::size_t input_bytes = 0, output_bytes = 0;
    std::int64_t begin_ns = 0, end_ns = 0, wrong = 0;
    Status status;
  };

  Stage(std::unique_ptr<Team> team, const Call& call)
      : team_(std::move(team)),
        call_(call),
        goal_{call.collective, team_->ranks(), natural_blocks(call.collective, team_->ranks()),
              call.root, call.peer},
        layout_(make_layout(goal_, natural_counts(call, team_->ranks()), size_of(call.type),
                            Borders::plain)),
        seats_(static_cast<std::size_t>(team_->ranks())) {}

  Status allocate() {
    const Topology topology = Topology::detect();
    for (const RankReport& report : team_->report()) {
      ArenaOptions options = arena_options(topology, report.place);
      options.chunk_bytes = 4096;  // each buffer gets a chunk of its own size
      arenas_.emplace_back(options);
      const auto i = arenas_.size() - 1;
      Seat& seat = seats_[i];
      seat.input_bytes = input_bytes(layout_, goal_, static_cast<int>(i));
      seat.output_bytes = output_bytes(layout_, goal_, static_cast<int>(i));
      // An address even where there is nothing to point to: a call wants buffers that are not null.
      constexpr std::size_t kLine = 64;
      seat.input = static_cast<std::byte*>(arenas_[i].allocate(seat.input_bytes + kLine));
      seat.output = static_cast<std::byte*>(arenas_[i].allocate(seat.output_bytes + kLine));
      if (seat.input == nullptr || seat.output == nullptr) {
        return {Code::out_of_memory, fmt::format("buffers of rank {}: {} bytes", i,
                                                 seat.input_bytes + seat.output_bytes)};
      }
    }
    return {};
  }

  std::unique_ptr<Team> team_;
  const Call call_;
  const Goal goal_;
  const Layout layout_;
  std::vector<Arena> arenas_;
  std::vector<Seat> seats_;
  std::uint64_t seed_ = 1;
};

// What came of it, for both reports.
struct Outcome {
  Question question;
  Prepared prepared;
  Simulation predicted;
  std::vector<double> seconds;              // measured, real, one per run
  std::vector<std::vector<double>> rounds;  // wall: likewise per run and round
  std::vector<Lateness> lateness;           // wall: per run
  std::int64_t wrong = 0;
  bool equal = true;  // virtual: the same as predicted, to the last tick, in every round
  double dilate = 1;
  WallDemands demands;
  std::string waiting, placement;

  double asked() const { return predicted.seconds * dilate; }
  double seconds_of(Ticks ticks) const { return nearest_double(ticks, predicted.ticks_per_second); }
};

Result<double> read_dilation(std::string_view argument, std::string_view text) {
  if (text == "auto") return 0.0;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value > 0 && value <= 1e12) {
    return value;
  }
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are positive numbers up to 1e12, and auto", argument, text));
}

Result<ClockMode> read_clock(std::string_view argument, std::string_view text) {
  if (const auto mode = parse_clock_mode(text)) return *mode;
  constexpr std::array<std::string_view, 3> kNames = {"virtual", "wall", "none"};
  return unknown_name(argument, text, kNames);
}

Result<Call> call_of(const Question& question) {
  const Params& params = question.params;
  Call call{.collective = question.algorithm->collective,
            .type = DataType::f32,
            .op = ReduceOp::sum,
            .root = params.root,
            .peer = params.peer};
  call.count = count_for(call.collective, params.ranks, question.bytes, size_of(call.type));
  call.options.algorithm = question.algorithm->name;
  call.options.group = params.group;
  Status status = check_call(call, params.ranks);
  if (!status.ok()) return status;
  return call;
}

Status check_memory(const Call& call, int ranks) {
  const Goal goal{call.collective, ranks, natural_blocks(call.collective, ranks), call.root,
                  call.peer};
  const Layout layout =
      make_layout(goal, natural_counts(call, ranks), size_of(call.type), Borders::plain);
  std::size_t needed = 0;
  for (Rank r = 0; r < ranks; ++r) {
    needed += input_bytes(layout, goal, r) + output_bytes(layout, goal, r);
  }
  const AvailableMemory available = available_memory();
  if (needed <= available.bytes) return {};
  return {Code::out_of_memory,
          fmt::format("--bytes: {} ranks need {} of buffers; available are {} ({})", ranks,
                      format_bytes(static_cast<double>(needed)),
                      format_bytes(static_cast<double>(available.bytes)), available.why)};
}

double percentile(const std::vector<double>& sorted, double share) {
  const auto i = static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1));
  return sorted[i];
}

// Fills in what the machine can do, and settles the dilation.
Status calibrate(Stage& stage, const RunArguments& a, Throttle& probe, Outcome& outcome) {
  const auto wake_ups = stage.wake_ups();
  if (!wake_ups.ok()) return wake_ups.status();
  WallDemands& demands = outcome.demands;
  demands.total = outcome.predicted.seconds;
  demands.least = outcome.seconds_of(probe.least_cost());
  demands.resolution = percentile(*wake_ups, 0.9);
  std::vector<double> unclocked;
  for (int i = 0; i < 4; ++i) {
    const auto played = stage.play(nullptr);
    if (!played.ok()) return played.status();
    if (i > 0) unclocked.push_back(played->seconds);  // the first one compiles
  }
  demands.data = summarise(unclocked).median;
  outcome.dilate = a.dilate > 0 ? a.dilate : fitting_dilation(demands);
  const std::string refusal = dilation_refusal(demands, outcome.dilate);
  if (!refusal.empty()) return {Code::system, refusal};
  return {};
}

// All runs; false data and wrong times are in the outcome, and only what stops a run is an error.
Status perform(Stage& stage, const RunArguments& a, const Pricing& pricing, Outcome& outcome) {
  ThrottleOptions options;
  options.mode = a.clock;
  options.by_rounds = outcome.question.options.sync == Sync::rounds;
  options.wait = stage.team().communicator().wait_policy();
  options.timeout_ns = std::chrono::nanoseconds(a.timeout).count();
  const auto new_clock = [&] {
    return Throttle::create(outcome.prepared.schedule, outcome.question.fabric, pricing, options);
  };
  if (a.clock == ClockMode::wall) {
    auto probe = new_clock();
    if (!probe.ok()) return probe.status();
    Status status = calibrate(stage, a, **probe, outcome);
    if (!status.ok()) return status;
    options.dilate = outcome.dilate;
    // A rank that is late by half of the cheapest message is back in time before the next one ends.
    options.tolerance_ns =
        static_cast<std::int64_t>(outcome.demands.least * outcome.dilate / 2 * 1e9);
    const double whole = outcome.asked();
    if (whole > std::chrono::duration<double>(a.timeout).count()) {
      return invalid_argument(fmt::format("--dilate is {:g}: the run takes {}; --timeout is {}",
                                          outcome.dilate, format_seconds(whole),
                                          format_seconds(std::chrono::duration<double>(a.timeout).count())));
    }
  } else if (a.clock == ClockMode::none) {
    const auto first = stage.play(nullptr);  // compiles
    if (!first.ok()) return first.status();
  }
  const int runs = a.repeat > 0 ? a.repeat : a.clock == ClockMode::virtual_time ? 1 : kRepeats;
  for (int i = 0; i < runs; ++i) {
    std::unique_ptr<Throttle> clock;
    if (a.clock != ClockMode::none) {
      auto created = new_clock();
      if (!created.ok()) return created.status();
      clock = std::move(*created);
    }
    const auto played = stage.play(clock.get());
    if (!played.ok()) return played.status();
    outcome.wrong += played->wrong;
    if (clock == nullptr) {
      outcome.seconds.push_back(played->seconds);
      continue;
    }
    // A wall clock's plan must be the simulator's too.
    outcome.equal = outcome.equal && clock->end() == outcome.predicted.end &&
                    clock->round_end() == outcome.predicted.round_end;
    if (a.clock == ClockMode::virtual_time) {
      outcome.seconds.push_back(played->seconds);
      continue;
    }
    outcome.seconds.push_back(static_cast<double>(clock->elapsed_ns()) * 1e-9);
    outcome.lateness.push_back(clock->lateness());
    std::vector<double> rounds;
    for (const std::int64_t ns : clock->round_elapsed_ns()) {
      rounds.push_back(static_cast<double>(ns) * 1e-9);
    }
    outcome.rounds.push_back(std::move(rounds));
  }
  return {};
}

// --- Reports --------------------------------------------------------------------------------------

double median_of(const Outcome& outcome) { return summarise(outcome.seconds).median; }

double ratio_of(const Outcome& outcome) {
  return outcome.asked() > 0 ? median_of(outcome) / outcome.asked() : 1;
}

// Seconds after the start at which round k was over, the median over the runs; 0: nobody waited.
double measured_round(const Outcome& outcome, std::size_t k) {
  std::vector<double> values;
  for (const auto& rounds : outcome.rounds) values.push_back(rounds[k]);
  return summarise(std::move(values)).median;
}

struct LatenessOverRuns {
  std::int64_t deadlines = 0, missed = 0;
  double median = 0, worst = 0, passed_on = 0;  // seconds; passed_on: of the worst run
};
LatenessOverRuns over_runs(const std::vector<Lateness>& runs) {
  LatenessOverRuns all;
  std::vector<double> medians;
  for (const Lateness& run : runs) {
    all.deadlines += run.deadlines;
    all.missed += run.missed;
    medians.push_back(static_cast<double>(run.median_ns) * 1e-9);
    all.worst = std::max(all.worst, static_cast<double>(run.worst_ns) * 1e-9);
    all.passed_on = std::max(all.passed_on, static_cast<double>(run.passed_on_ns) * 1e-9);
  }
  all.median = summarise(std::move(medians)).median;
  return all;
}

Json to_json(const RunArguments& a, const Outcome& o) {
  const Statistics seconds = summarise(o.seconds);
  Json out = {{"collective", name_of(o.question.algorithm->collective)},
              {"algorithm", o.question.algorithm->name},
              {"ranks", o.prepared.params.ranks},
              {"bytes", o.question.bytes},
              {"network", o.question.fabric.name},
              {"ports", o.question.fabric.ports},
              {"segments", o.prepared.params.segments},
              {"sync", name_of(o.question.options.sync)},
              {"clock", name_of(a.clock)},
              {"predicted", o.predicted.seconds},
              {"runs", o.seconds.size()},
              {"wrong", o.wrong}};
  if (a.clock == ClockMode::virtual_time) {
    out["equal"] = o.equal;
    out["real"] = seconds.median;
  } else {
    if (a.clock == ClockMode::wall) {
      out["dilate"] = o.dilate;
      out["asked"] = o.asked();
    }
    out["measured"] = seconds.median;
    out["measured_min"] = seconds.min;
    out["measured_max"] = seconds.max;
  }
  if (a.clock == ClockMode::wall) {
    const LatenessOverRuns late = over_runs(o.lateness);
    out["ratio"] = ratio_of(o);
    out["deadlines"] = {{"all", late.deadlines},
                        {"missed", late.missed},
                        {"late_median", late.median},
                        {"late_worst", late.worst},
                        {"behind_worst", late.passed_on}};
    out["machine"] = {{"wake_up", o.demands.resolution}, {"data", o.demands.data}};
  }
  if (a.rounds) {
    Json& rounds = out["rounds"] = Json::array();
    for (std::size_t k = 0; k < o.predicted.round_end.size(); ++k) {
      Json row = {{"round", k}, {"predicted", o.seconds_of(o.predicted.round_end[k])}};
      if (a.clock == ClockMode::wall) {
        row["asked"] = o.seconds_of(o.predicted.round_end[k]) * o.dilate;
        row["measured"] = measured_round(o, k);
      }
      rounds.push_back(std::move(row));
    }
  }
  return out;
}

void print_rounds(const RunArguments& a, const Outcome& o, Console& console) {
  const bool wall = a.clock == ClockMode::wall;
  std::vector<std::vector<std::string>> rows = {{"round", "predicted"}};
  if (wall) rows.front().insert(rows.front().end(), {"asked", "measured", "ratio"});
  if (a.clock == ClockMode::virtual_time) rows.front().push_back("on threads");
  for (std::size_t k = 0; k < o.predicted.round_end.size(); ++k) {
    const double predicted = o.seconds_of(o.predicted.round_end[k]);
    std::vector<std::string> row = {std::to_string(k), format_duration(predicted)};
    if (a.clock == ClockMode::virtual_time) row.push_back(o.equal ? "the same" : "see below");
    if (wall) {
      const double asked = predicted * o.dilate, measured = measured_round(o, k);
      row.push_back(format_duration(asked));
      row.push_back(measured > 0 ? format_duration(measured) : "-");
      row.push_back(measured > 0 && asked > 0 ? fmt::format("{:.3f}", measured / asked) : "-");
    }
    rows.push_back(std::move(row));
  }
  console.out << columns(rows, "rrrrr") << "\n";
}

void print(const RunArguments& a, const Outcome& o, Console& console) {
  console.out << describe(o.question) << "\n"
              << fmt::format("{} '{}'", name_of(o.question.algorithm->collective),
                             o.question.algorithm->name);
  if (o.question.algorithm->takes("segments")) {
    console.out << fmt::format(", P = {}", o.prepared.params.segments);
  }
  console.out << fmt::format(", on {} threads ({})\n\n", o.prepared.params.ranks, o.waiting);
  if (a.rounds) print_rounds(a, o, console);
  const Statistics seconds = summarise(o.seconds);
  const std::string spread =
      o.seconds.size() == 1
          ? ""
          : fmt::format(" (median of {}; {} to {})", o.seconds.size(),
                        format_duration(seconds.min), format_duration(seconds.max));
  console.out << fmt::format("predicted   {}\n", format_duration(o.predicted.seconds));
  switch (a.clock) {
    case ClockMode::none:
      console.out << fmt::format("at full speed, without the network: {}{}\n",
                                 format_duration(seconds.median), spread);
      break;
    case ClockMode::virtual_time:
      console.out << (o.equal ? "on threads  the same, to the last tick, in every round\n"
                              : "on threads  NOT the same\n");
      break;
    case ClockMode::wall: {
      const LatenessOverRuns late = over_runs(o.lateness);
      console.out << fmt::format(
          "asked       {}  (dilated {:g} times)\n"
          "measured    {}{}\n"
          "ratio       {:.4f}\n"
          "deadlines   {} of {} missed by more than half of the cheapest message; median {} late, "
          "worst {}\n"
          "machine     wakes a thread {} late (9 of 10 times); moves the data in {}\n",
          format_duration(o.asked()), o.dilate, format_duration(seconds.median), spread,
          ratio_of(o), late.missed, late.deadlines, format_duration(late.median),
          format_duration(late.worst), format_duration(o.demands.resolution),
          format_duration(o.demands.data));
      break;
    }
  }
  console.out << fmt::format("data        {}\n",
                             o.wrong == 0 ? "every element right on every rank"
                                          : fmt::format("{} elements WRONG", o.wrong));
}

Result<Exit> run_run(const RunArguments& a, Console& console) {
  auto question = question_of(a.question);
  if (!question.ok()) return question.status();
  if (question->params.aggregation != 0 && question->algorithm->takes("aggregation") &&
      question->params.aggregation != resolved({.ranks = question->params.ranks}).aggregation) {
    return invalid_argument(fmt::format("--aggregation is {}; run allows the default only, which is 0",
                                        question->params.aggregation));
  }
  if (question->params.ranks > Communicator::kMaxRanks) {
    return invalid_argument(fmt::format("--ranks is {}; allowed are 1 to {} threads",
                                        question->params.ranks, Communicator::kMaxRanks));
  }
  auto call = call_of(*question);
  if (!call.ok()) return call.status();
  const int ranks = question->params.ranks;
  // Whole elements are moved, and so many bytes are charged.
  question->bytes = call->count * counts_per_size(call->collective, ranks) * size_of(call->type);

  Outcome outcome;
  auto prepared = prepare(*question);
  if (!prepared.ok()) return prepared.status();
  outcome.question = std::move(*question);
  outcome.prepared = std::move(*prepared);
  call->options.segments = outcome.prepared.params.segments;
  auto predicted = simulate(outcome.prepared.schedule, outcome.prepared.goal,
                            outcome.question.fabric, outcome.question.bytes,
                            outcome.question.options);
  if (!predicted.ok()) return predicted.status();
  outcome.predicted = std::move(*predicted);
  const auto pricing = Pricing::make(outcome.question.fabric, outcome.prepared.goal,
                                     outcome.question.bytes, false);
  if (!pricing.ok()) return pricing.status();

  Status status = check_memory(*call, ranks);
  if (!status.ok()) return status;
  auto stage = Stage::create({.ranks = ranks,
                              .placement = a.placement,
                              .timeout = a.timeout,
                              .wait = a.wait},
                             *call);
  if (!stage.ok()) return stage.status();
  outcome.waiting = to_string((*stage)->team().communicator().wait_policy());
  status = perform(**stage, a, *pricing, outcome);
  if (!status.ok()) return status;

  if (a.json) {
    console.out << to_json(a, outcome).dump() << "\n";
  } else {
    print(a, outcome, console);
  }
  return outcome.wrong == 0 && outcome.equal ? Exit::ok : Exit::wrong;
}

}  // namespace

double fitting_dilation(const WallDemands& demands) {
  if (demands.total <= 0 || demands.least <= 0) return 1;
  constexpr double kShareAtEnd = 0.02, kWakeUpsPerMessage = 4, kTimesData = 10;
  const double needed = std::max({1.0, demands.resolution / (kShareAtEnd * demands.total),
                                  kWakeUpsPerMessage * demands.resolution / demands.least,
                                  kTimesData * demands.data / demands.total});
  const double unit = std::pow(10, std::floor(std::log10(needed)) - 1);
  return needed <= 1 ? 1 : std::ceil(needed / unit) * unit;
}

std::string dilation_refusal(const WallDemands& demands, double dilate) {
  if (demands.total <= 0 || demands.least <= 0) return {};
  const double least = demands.least * dilate, total = demands.total * dilate;
  const auto refusal = [&](const std::string& why) {
    return fmt::format("--dilate is {:g}: {}; this machine can do --dilate {:g}", dilate, why,
                       fitting_dilation(demands));
  };
  if (least < demands.resolution) {
    return refusal(fmt::format("the cheapest message would take {}, and threads are woken {} late",
                               format_duration(least), format_duration(demands.resolution)));
  }
  if (total < demands.data) {
    return refusal(fmt::format("the whole would take {}, and moving the data takes {}",
                               format_duration(total), format_duration(demands.data)));
  }
  return {};
}

Subcommand add_run(CLI::App& tool) {
  auto owned = std::make_shared<RunArguments>();
  RunArguments& a = *owned;
  CLI::App* app = tool.add_subcommand(
      "run", "a collective with real data on threads under a modelled network's clock");
  add_algorithm_arguments(*app, a.question)->required();
  add_model_arguments(*app, a.question);
  add_network_arguments(*app, a.question.network);
  add_argument(*app, "--clock", a.clock, read_clock, "NAME",
               "virtual: messages carry their times; wall: ranks keep deadlines in real time; none: "
               "full speed (virtual)");
  add_argument(*app, "--dilate", a.dilate, read_dilation, "F",
               "wall: real seconds per modelled second; auto: what this machine can keep (auto)");
  add_argument(*app, "--repeat", a.repeat, Whole{1, 1'000'000}, "R",
               "runs; 10, or one of a virtual clock");
  app->add_flag("--rounds", a.rounds, "predicted and measured for every round");
  add_argument(*app, "--placement", a.placement, read_placement, "POLICY",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(*app, "--wait", a.wait, read_wait, "POLICY", "auto, spin, yield or park (auto)");
  add_argument(*app, "-T,--timeout", a.timeout, parse_duration, "TIME",
               "of one call: 30 (seconds), 500ms; then exit code 124 (30)");
  app->add_flag("--json", a.json, "one line of JSON in place of the report");
  app->footer(
      "Examples:\n"
      "  rankine run all_reduce --algo ring --ranks 8 --bytes 64K --network scale_out\n"
      "  rankine run all_reduce --algo double_tree --ranks 8 --bytes 4M --network scale_up --clock "
      "wall --rounds\n"
      "  rankine run broadcast --algo chain --ranks 6 --segments auto --clock virtual --json\n"
      "Data are f32, reduced by sum. Exit codes: 0 good, 1 wrong data or times, 2 usage, 3 a dilation\n"
      "that this machine cannot honour, 124 timeout.");
  return {app, [owned](Console& console) { return run_run(*owned, console); }};
}

}  // namespace rankine::tools
