#include "engine/tools/run.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <ostream>

#include "engine/api/call_parameters.h"
#include "engine/api/check.h"
#include "engine/base/deadline.h"
#include "engine/base/units.h"
#include "engine/tools/metrics.h"
#include "engine/tools/run_report.h"
#include "engine/tools/stage.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr int kRepeats = 10;

Result<double> read_dilation(std::string_view argument, std::string_view text) {
  if (text == "auto") return 0.0;
  const auto value = parse_real(text);
  if (value && *value > 0 && *value <= 1e12) return *value;
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
Status calibrate(Stage& stage, const RunArguments& a, Throttle& probe, RunOutcome& outcome) {
  auto demands = stage.demands(outcome.predicted.seconds, outcome.seconds_of(probe.least_cost()));
  if (!demands.ok()) return demands.status();
  outcome.demands = *demands;
  outcome.dilate = a.dilate > 0 ? a.dilate : fitting_dilation(*demands);
  const std::string refusal = dilation_refusal(*demands, outcome.dilate);
  if (!refusal.empty()) return {Code::system, refusal};
  return {};
}

// All runs; false data and wrong times are in the outcome, and only what stops a run is an error.
Status perform(Stage& stage, const RunArguments& a, const Pricing& pricing, RunOutcome& outcome) {
  ThrottleOptions options;
  options.mode = a.clock;
  options.sync = outcome.question.options.sync;
  options.wait = stage.team().communicator().wait_policy();
  options.timeout_ns = saturated_ns(a.timeout);
  const auto new_clock = [&] {
    return Throttle::create(outcome.prepared.schedule, outcome.prepared.goal,
                            outcome.question.fabric, pricing, options);
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

Result<Exit> run_run(const RunArguments& a, Console& console) {
  auto question = question_of(a.question);
  if (!question.ok()) return question.status();
  auto call = call_of(*question);
  if (!call.ok()) return call.status();
  const int ranks = question->params.ranks;
  // Whole elements are moved, and so many bytes are charged.
  question->bytes = call->count * counts_per_size(call->collective, ranks) * size_of(call->type);

  RunOutcome outcome;
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

Subcommand add_run(Command tool) {
  auto owned = std::make_shared<RunArguments>();
  RunArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "run", "a collective with real data on threads under a modelled network's clock");
  a.question.algorithm.most_ranks = Communicator::kMaxRanks;
  add_algorithm_arguments(app, a.question.algorithm).required();
  add_model_arguments(app, a.question);
  add_network_arguments(app, a.question.network);
  add_argument(
      app, "--clock", a.clock, read_clock, "NAME",
      "virtual: messages carry their times; wall: ranks keep deadlines in real time; none: "
      "full speed (virtual)");
  add_argument(app, "--dilate", a.dilate, read_dilation, "F",
               "wall: real seconds per modelled second; auto: what this machine can keep (auto)");
  add_argument(app, "--repeat", a.repeat, Whole{1, 1'000'000}, "R",
               "runs; 10, or one of a virtual clock");
  add_argument(app, "--perturb", a.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; data and virtual times stay exact");
  app.add_flag("--rounds", a.rounds, "predicted and measured for every round");
  add_argument(app, "--placement", a.placement, read_placement, "POLICY",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(app, "--wait", a.wait, read_wait, "POLICY", "auto, spin, yield or park (auto)");
  add_argument(app, "-T,--timeout", a.timeout, parse_duration, "TIME",
               "of one call: 30 (seconds), 500ms; then exit code 124 (30)");
  app.add_flag("--json", a.json, "one line of JSON in place of the report");
  app.footer(
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
