#include "engine/tools/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <ostream>
#include <span>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/network.h"
#include "engine/base/numbers.h"
#include "engine/base/units.h"
#include "engine/network/network_clock.h"
#include "engine/network/wall.h"
#include "engine/tools/machine_team.h"
#include "engine/tools/metrics.h"
#include "engine/tools/run_report.h"
#include "engine/tools/stage.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr int kRepeats = 10;
constexpr DataType kType = DataType::f32;

Result<ClockMode> read_clock(std::string_view argument, std::string_view text) {
  if (const auto mode = parse_clock_mode(text)) return *mode;
  constexpr std::array<std::string_view, 3> kNames = {"virtual", "wall", "none"};
  return unknown_name(argument, text, kNames);
}

// The elements of each block of a question that says its blocks' sizes, whose bytes become theirs.
std::vector<std::size_t> take_whole_elements(Question& question, DataType type) {
  std::vector<std::size_t> elements;
  for (std::uint64_t& bytes : question.options.counts) {
    elements.push_back(bytes / size_of(type));
    bytes = elements.back() * size_of(type);
  }
  return elements;
}

// Of a collective on elements of kType, with blocks of so many each, or none.
Result<Call> call_of(const Question& question, std::span<const std::size_t> counts) {
  const Params& params = question.params;
  Call call{.collective = question.algorithm->collective,
            .type = kType,
            .op = ReduceOp::sum,
            .root = params.root,
            .peer = params.peer};
  if (counts.empty()) {
    call.count = count_for(call.collective, params.ranks, question.bytes, size_of(call.type));
  }
  call.counts = counts;
  call.options.algorithm = question.algorithm->name;
  Status status = check_call(call, params.ranks);
  if (!status.ok()) return status;
  return call;
}

TeamOptions team_options(const RunArguments& a, int ranks) {
  const bool at_full_speed = a.clock == ClockMode::none;
  return {.ranks = ranks,
          .placement = a.placement,
          .timeout = a.timeout,
          .wait = a.wait,
          .ports = at_full_speed ? a.question.network.ports.value_or(0) : 0};
}

// Fills in what the machine can do, and settles the dilation.
Status calibrate(const RunArguments& a, const Call& call, const Pricing& pricing,
                 RunOutcome& outcome) {
  const auto timed = TimedSchedule::make(outcome.prepared.schedule, outcome.prepared.goal,
                                         outcome.question.fabric, pricing);
  if (!timed.ok()) return timed.status();
  auto stage = Stage::create(team_options(a, outcome.prepared.params.ranks), call);
  if (!stage.ok()) return stage.status();
  auto demands =
      (*stage)->demands(outcome.predicted.seconds, outcome.seconds_of((*timed)->least_cost()));
  if (!demands.ok()) return demands.status();
  outcome.demands = *demands;
  outcome.dilate = a.dilate > 0 ? a.dilate : fitting_dilation(*demands);
  const std::string refusal = dilation_refusal(*demands, outcome.dilate);
  if (!refusal.empty()) return {Code::system, "--" + refusal};
  const double whole = outcome.asked(), allowed = std::chrono::duration<double>(a.timeout).count();
  if (whole > allowed) {
    return invalid_argument(fmt::format("--dilate is {:g}: the run takes {}; --timeout is {}",
                                        outcome.dilate, format_seconds(whole),
                                        format_seconds(allowed)));
  }
  return {};
}

std::shared_ptr<const CallNetwork> network_of(const RunArguments& a, const RunOutcome& outcome) {
  if (a.clock == ClockMode::none) return nullptr;
  // A rank that is late by half of the cheapest message is back in time before the next one ends.
  const double tolerance = outcome.demands.least * outcome.dilate / 2;
  return std::make_shared<const CallNetwork>(
      CallNetwork{.fabric = outcome.question.fabric,
                  .sync = outcome.question.options.sync,
                  .lower = outcome.question.lower,
                  .clock = a.clock,
                  .dilate = outcome.dilate,
                  .tolerance_ns = std::max<std::int64_t>(1, saturated_ns(tolerance * 1e9))});
}

// Whether the network's times are the simulator's, in every round. A wall clock's are, too.
bool same_times(const NetworkReport& report, const RunOutcome& outcome) {
  const std::vector<Ticks>& rounds = outcome.predicted.round_end;
  bool same = report.seconds == outcome.predicted.seconds && report.rounds.size() == rounds.size();
  for (std::size_t k = 0; same && k < rounds.size(); ++k) {
    same = report.rounds[k] == outcome.seconds_of(rounds[k]);
  }
  return same;
}

// All runs; false data and wrong times are in the outcome, and only what stops a run is an error.
Status perform(const RunArguments& a, const Call& call, RunOutcome& outcome) {
  TeamOptions options = team_options(a, outcome.prepared.params.ranks);
  options.network = network_of(a, outcome);
  auto made = Stage::create(options, call);
  if (!made.ok()) return made.status();
  Stage& stage = **made;
  const Communicator& communicator = stage.team().communicator();
  outcome.waiting = to_string(communicator.wait_policy());
  if (a.clock == ClockMode::none) {
    const auto first = stage.play();  // compiles
    if (!first.ok()) return first.status();
  }
  if (a.perturb) stage.perturb(*a.perturb);
  const int runs = a.repeat > 0 ? a.repeat : a.clock == ClockMode::virtual_time ? 1 : kRepeats;
  for (int i = 0; i < runs; ++i) {
    const auto played = stage.play();
    if (!played.ok()) return played.status();
    outcome.wrong += played->wrong;
    if (a.clock != ClockMode::wall) outcome.seconds.push_back(played->seconds);
    if (a.clock == ClockMode::none) continue;
    add_ports_in_use(communicator, outcome.ports_in_use);
    const NetworkReport report = communicator.network_report();
    outcome.equal = outcome.equal && same_times(report, outcome);
    if (a.clock != ClockMode::wall) continue;
    outcome.seconds.push_back(report.elapsed);
    outcome.lateness.push_back(report.lateness);
    outcome.rounds.push_back(report.rounds_elapsed);
  }
  if (options.ports > 0) add_ports_in_use(communicator, outcome.ports_in_use);
  outcome.delays = stage.delays();
  return {};
}

Result<Exit> run_run(const RunArguments& a, Console& console) {
  if (a.dilate > 0 && a.clock != ClockMode::wall) {
    return invalid_argument(
        fmt::format("--dilate is {:g}; only a wall clock is dilated: add --clock wall", a.dilate));
  }
  auto question = question_of(a.question);
  if (!question.ok()) return question.status();
  // Whole elements are moved, and so many bytes are charged.
  const std::vector<std::size_t> counts = take_whole_elements(*question, kType);
  auto call = call_of(*question, counts);
  if (!call.ok()) return call.status();
  const int ranks = question->params.ranks;
  question->bytes =
      counts.empty() ? call->count * counts_per_size(call->collective, ranks) * size_of(call->type)
                     : size_of_counts(call->collective, ranks, question->options.counts);

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
  const auto pricing = pricing_of(outcome.question.fabric, outcome.prepared.goal,
                                  outcome.question.bytes, outcome.question.options);
  if (!pricing.ok()) return pricing.status();

  Status status = Stage::check_memory(*call, ranks);
  if (!status.ok()) return status;
  if (a.clock == ClockMode::wall) status = calibrate(a, *call, *pricing, outcome);
  if (status.ok()) status = perform(a, *call, outcome);
  if (!status.ok()) return status;

  if (a.json || a.csv) {
    console.out << (a.json ? to_json(a, outcome).dump() + "\n" : to_csv(rounds_of(a, outcome)));
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
      "full speed, where --ports limits the messages that a rank has in flight (virtual)");
  add_argument(app, "--dilate", a.dilate, parse_dilation, "F",
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
  add_formats(app, a.json, a.csv, "one line of JSON in place of the report");
  app.footer(
      "Examples:\n"
      "  rankine run all_reduce --algo ring --ranks 8 --bytes 64K --network scale_out\n"
      "  rankine run all_reduce --algo double_tree --ranks 8 --bytes 4M --network scale_up --clock "
      "wall --rounds\n"
      "  rankine run all_reduce --algo ring --ranks 8 --clock none --ports 1 --json\n"
      "  rankine run broadcast --algo chain --ranks 6 --segments auto --clock virtual --json\n"
      "Data are f32, reduced by sum. Exit codes: 0 good, 1 wrong data or times, 2 usage, 3 a "
      "dilation "
      "that this machine cannot honour, 124 timeout.");
  return {app, [owned](Console& console) { return run_run(*owned, console); }};
}

}  // namespace rankine::tools
