#include "engine/tools/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>

#include "engine/api/call_parameters.h"
#include "engine/api/check.h"
#include "engine/base/deadline.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/network/throttle.h"
#include "engine/tools/dilation.h"
#include "engine/tools/metrics.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/question.h"
#include "engine/tools/stage.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

struct RunArguments {
  QuestionArguments question;
  ClockMode clock = ClockMode::virtual_time;
  double dilate = 0;  // 0: fitting_dilation()
  int repeat = 0;     // 0: kRepeats, or 1 of a virtual clock
  std::optional<std::uint64_t> perturb;
  bool rounds = false, json = false;
  PlacementPolicy placement{};
  std::optional<WaitPolicy> wait;
  std::chrono::milliseconds timeout{30'000};
};
constexpr int kRepeats = 10;

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
  std::int64_t delays = 0;  // by --perturb, over all runs
  std::string waiting;

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
  Status status = check_call(call, params.ranks);
  if (!status.ok()) return status;
  return call;
}

// Fills in what the machine can do, and settles the dilation.
Status calibrate(Stage& stage, const RunArguments& a, Throttle& probe, Outcome& outcome) {
  auto demands = stage.demands(outcome.predicted.seconds, outcome.seconds_of(probe.least_cost()));
  if (!demands.ok()) return demands.status();
  outcome.demands = *demands;
  outcome.dilate = a.dilate > 0 ? a.dilate : fitting_dilation(*demands);
  const std::string refusal = dilation_refusal(*demands, outcome.dilate);
  if (!refusal.empty()) return {Code::system, refusal};
  return {};
}

// All runs; false data and wrong times are in the outcome, and only what stops a run is an error.
Status perform(Stage& stage, const RunArguments& a, const Pricing& pricing, Outcome& outcome) {
  ThrottleOptions options;
  options.mode = a.clock;
  options.by_rounds = outcome.question.options.sync == Sync::rounds;
  options.wait = stage.team().communicator().wait_policy();
  options.timeout_ns = saturated_ns(a.timeout);
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
      return invalid_argument(fmt::format(
          "--dilate is {:g}: the run takes {}; --timeout is {}", outcome.dilate,
          format_seconds(whole), format_seconds(std::chrono::duration<double>(a.timeout).count())));
    }
  } else if (a.clock == ClockMode::none) {
    const auto first = stage.play(nullptr);  // compiles
    if (!first.ok()) return first.status();
  }
  if (a.perturb) stage.perturb(*a.perturb);
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
  outcome.delays = stage.delays();
  return {};
}

// --- Reports
// --------------------------------------------------------------------------------------

double median_of(const Outcome& outcome) { return median(outcome.seconds); }

double ratio_of(const Outcome& outcome) {
  return outcome.asked() > 0 ? median_of(outcome) / outcome.asked() : 1;
}

// Seconds after the start at which round k was over, the median over the runs; 0: nobody waited.
double measured_round(const Outcome& outcome, std::size_t k) {
  std::vector<double> values;
  for (const auto& rounds : outcome.rounds) values.push_back(rounds[k]);
  return median(std::move(values));
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
  all.median = median(std::move(medians));
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
  write_parameters(*o.question.algorithm, o.prepared.params, out, out);
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
  if (a.perturb) out["perturbed"] = {{"seed", *a.perturb}, {"delays", o.delays}};
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
  const std::string with = o.question.algorithm->text_of(o.prepared.params);
  console.out << fmt::format("{}{}, on {} threads ({})\n\n", with.empty() ? "" : ", ", with,
                             o.prepared.params.ranks, o.waiting);
  if (a.rounds) print_rounds(a, o, console);
  const Statistics seconds = summarise(o.seconds);
  const std::string spread =
      o.seconds.size() == 1
          ? ""
          : fmt::format(" (median of {}; {} to {})", o.seconds.size(), format_duration(seconds.min),
                        format_duration(seconds.max));
  if (a.perturb) {
    console.out << fmt::format("perturbed   {} delays (seed {})\n", o.delays, *a.perturb);
  }
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
  console.out << fmt::format("data        {}\n", o.wrong == 0
                                                     ? "every element right on every rank"
                                                     : fmt::format("{} elements WRONG", o.wrong));
}

Result<Exit> run_run(const RunArguments& a, Console& console) {
  auto question = question_of(a.question);
  if (!question.ok()) return question.status();
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
  const Params params = outcome.question.algorithm->only_taken(outcome.prepared.params);
  set_parameters(params, call->options);
  auto predicted =
      simulate(outcome.prepared.schedule, outcome.prepared.goal, outcome.question.fabric,
               outcome.question.bytes, outcome.question.options);
  if (!predicted.ok()) return predicted.status();
  outcome.predicted = std::move(*predicted);
  const auto pricing =
      Pricing::make(outcome.question.fabric, outcome.prepared.goal, outcome.question.bytes, false);
  if (!pricing.ok()) return pricing.status();

  Status status = Stage::check_memory(*call, ranks);
  if (!status.ok()) return status;
  auto stage = Stage::create(
      {.ranks = ranks, .placement = a.placement, .timeout = a.timeout, .wait = a.wait}, *call);
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

Subcommand add_run(CLI::App& tool) {
  auto owned = std::make_shared<RunArguments>();
  RunArguments& a = *owned;
  CLI::App* app = tool.add_subcommand(
      "run", "a collective with real data on threads under a modelled network's clock");
  a.question.algorithm.most_ranks = Communicator::kMaxRanks;
  add_algorithm_arguments(*app, a.question.algorithm)->required();
  add_model_arguments(*app, a.question);
  add_network_arguments(*app, a.question.network);
  add_argument(
      *app, "--clock", a.clock, read_clock, "NAME",
      "virtual: messages carry their times; wall: ranks keep deadlines in real time; none: "
      "full speed (virtual)");
  add_argument(*app, "--dilate", a.dilate, read_dilation, "F",
               "wall: real seconds per modelled second; auto: what this machine can keep (auto)");
  add_argument(*app, "--repeat", a.repeat, Whole{1, 1'000'000}, "R",
               "runs; 10, or one of a virtual clock");
  add_argument(*app, "--perturb", a.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; data and virtual times stay exact");
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
      "Data are f32, reduced by sum. Exit codes: 0 good, 1 wrong data or times, 2 usage, 3 a "
      "dilation\n"
      "that this machine cannot honour, 124 timeout.");
  return {app, [owned](Console& console) { return run_run(*owned, console); }};
}

}  // namespace rankine::tools
