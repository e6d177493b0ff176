// The command `rankine run`: plays a schedule with real data on a modelled network or at full
// speed, and reports its times beside the prediction.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "engine/api/check.h"
#include "engine/api/communicator.h"
#include "engine/api/network.h"
#include "engine/base/numbers.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/cli/workbench.h"
#include "engine/network/fabric.h"
#include "engine/network/network_clock.h"
#include "engine/network/wall.h"

namespace rankine::tools {
namespace {

struct RunArguments {
  QuestionArguments question;
  ClockMode clock = ClockMode::virtual_time;
  double dilate = 0;  // 0: fitting_dilation()
  int repeat = 0;     // 0: 10; with a virtual clock 1
  std::optional<std::uint64_t> perturb;
  bool rounds = false, json = false, csv = false;
  PlacementPolicy placement{};
  std::optional<WaitPolicy> wait;
  std::chrono::milliseconds timeout{30'000};
};

struct RunOutcome {
  Question question;
  Prepared prepared;
  Simulation predicted;
  std::vector<double> seconds;              // measured, real, one per run
  std::vector<std::vector<double>> rounds;  // wall: per run and round
  std::vector<Lateness> lateness;           // wall: per run
  std::int64_t wrong = 0;
  bool equal = true;  // virtual: equal to the prediction, to the last tick, in every round
  double dilate = 1;
  WallDemands demands;
  std::int64_t delays = 0;  // by --perturb, over all runs
  std::string waiting;
  std::vector<PortsInUse> ports_in_use;  // by rank; empty: at full speed without --ports

  double asked() const { return predicted.seconds * dilate; }
  double seconds_of(Ticks ticks) const { return nearest_double(ticks, predicted.ticks_per_second); }
};

// How late the ranks' sleeps end, in seconds, if all of them sleep at once.
std::vector<double> wake_ups(Team& team) {
  constexpr int kSleeps = 12;
  constexpr std::int64_t kSleepNs = 1'500'000;
  const WaitPolicy policy = team.communicator().wait_policy();
  std::vector<std::vector<std::int64_t>> late(static_cast<std::size_t>(team.ranks()));
  const auto measure = [&](Member& me) {
    late[static_cast<std::size_t>(me.rank())] = measure_wake_ups(kSleeps, kSleepNs, policy);
  };
  team.run(measure).throw_if_error();
  std::vector<double> seconds;
  for (const auto& rank : late) {
    for (const std::int64_t ns : rank) seconds.push_back(static_cast<double>(ns) * 1e-9);
  }
  return seconds;
}

double ratio_of(const RunOutcome& outcome) {
  return outcome.asked() > 0 ? median(outcome.seconds) / outcome.asked() : 1;
}

// Seconds from the start to the end of round k, the median over the runs; 0: no rank waited.
double measured_round(const RunOutcome& outcome, std::size_t k) {
  std::vector<double> values;
  for (const auto& rounds : outcome.rounds) values.push_back(rounds[k]);
  return median(std::move(values));
}

struct LatenessOverRuns {
  std::int64_t deadlines = 0, missed = 0;
  double median = 0, worst = 0, passed_on = 0;  // seconds; passed_on: in the worst run
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

// "-" for a round that took no time.
std::string waited(double seconds) { return seconds > 0 ? format_duration(seconds) : "-"; }

// When each round ends.
Table rounds_of(const RunArguments& a, const RunOutcome& o) {
  const bool wall = a.clock == ClockMode::wall, exact = a.clock == ClockMode::virtual_time;
  Table table("round", as::model_time("predicted"), as::model_time("asked").when(wall),
              As("{}", waited)("measured").when(wall), As("{:.3f}")("ratio", "-", "-").when(wall),
              as::number("on threads", "-").when(exact));
  for (std::size_t k = 0; k < o.predicted.round_end.size(); ++k) {
    const double predicted = o.seconds_of(o.predicted.round_end[k]), asked = predicted * o.dilate;
    auto& row = table.add(k, predicted);
    if (!wall) row.insert(row.end(), {{}, {}, {}, o.equal ? "the same" : "see below"});
    if (!wall) continue;
    const double measured = measured_round(o, k);
    row.insert(row.end(), {asked, measured});
    if (measured > 0 && asked > 0) row.emplace_back(measured / asked);
  }
  return table;
}

Json to_json(const RunArguments& a, const RunOutcome& o) {
  const Statistics seconds = summarise(o.seconds);
  Json out = {{"collective", name_of(o.question.algorithm->collective)},
              {"algorithm", o.question.algorithm->name},
              {"ranks", o.prepared.params.ranks},
              {"bytes", o.question.bytes},
              {"network", o.question.fabric.name},
              {"alpha", o.question.fabric.link.alpha.to_double()},
              {"beta", o.question.fabric.link.beta.to_double()},
              {"ports", o.question.fabric.ports},
              {"wiring", name_of(o.question.fabric.wiring.kind)},
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
  if (!o.ports_in_use.empty()) write_ports_in_use(o.ports_in_use, out);
  if (a.perturb) out["perturbed"] = {{"seed", *a.perturb}, {"delays", o.delays}};
  if (a.rounds) out["rounds"] = to_json(rounds_of(a, o));
  return out;
}

void print(const RunArguments& a, const RunOutcome& o, Console& console) {
  console.out << describe(o.question) << "\n"
              << fmt::format("{} '{}'", name_of(o.question.algorithm->collective),
                             o.question.algorithm->name);
  const std::string with = o.question.algorithm->text_of(o.prepared.params);
  console.out << fmt::format("{}{}, on {} ({})\n\n", with.empty() ? "" : ", ", with,
                             counted(o.prepared.params.ranks, "thread"), o.waiting);
  if (a.rounds) console.out << to_text(rounds_of(a, o)) << "\n";
  const Statistics seconds = summarise(o.seconds);
  const std::string spread =
      o.seconds.size() == 1
          ? ""
          : fmt::format(" (median of {}; {} to {})", o.seconds.size(), format_duration(seconds.min),
                        format_duration(seconds.max));
  if (a.perturb) {
    console.out << fmt::format("perturbed   {} (seed {})\n", counted(o.delays, "delay"),
                               *a.perturb);
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
  if (!o.ports_in_use.empty()) {
    console.out << fmt::format("ports       {} at once\n", ports_in_words(o.ports_in_use));
  }
  console.out << fmt::format("data        {}\n",
                             o.wrong == 0 ? "every element right on every rank"
                                          : fmt::format("{} WRONG", counted(o.wrong, "element")));
}

constexpr int kUsualRuns = 10;
constexpr DataType kRunType = DataType::f32;

constexpr std::string_view kClocks[] = {"virtual", "wall", "none"};

// Rounds each block of a question with given block sizes to whole elements, sets the question's
// bytes accordingly and returns the elements.
std::vector<std::size_t> take_whole_elements(Question& question, DataType type) {
  std::vector<std::size_t> elements;
  for (std::uint64_t& bytes : question.options.counts) {
    elements.push_back(bytes / size_of(type));
    bytes = elements.back() * size_of(type);
  }
  return elements;
}

// The question's call on elements of kRunType, with blocks of `counts` elements, if given.
Call call_of(const Question& question, std::span<const std::size_t> counts) {
  const Params& params = question.params;
  Call call{.collective = question.algorithm->collective,
            .type = kRunType,
            .op = ReduceOp::sum,
            .root = params.root,
            .peer = params.peer};
  if (counts.empty()) {
    call.count = count_for(call.collective, params.ranks, question.bytes, size_of(call.type));
  }
  call.counts = counts;
  call.options.algorithm = question.algorithm->name;
  check_call(call, params.ranks).throw_if_error();
  return call;
}

TeamOptions team_options(const RunArguments& a, int ranks) {
  const bool at_full_speed = a.clock == ClockMode::none;
  return {.ranks = ranks,
          .placement = a.placement,
          .timeout = a.timeout,
          .wait = a.wait,
          .algorithms = a.question.algorithm.written,
          .ports = at_full_speed ? a.question.network.ports.value_or(0) : 0};
}

Workbench::Options bench_of(const TeamOptions& options, const Call& call) {
  return {.team = options, .buffers = buffer_bytes(call, options.ranks)};
}

// Sets the machine's demands, and settles the dilation.
Status calibrate(const RunArguments& a, const Call& call, const Pricing& pricing,
                 RunOutcome& outcome) {
  const auto timed = TimedSchedule::make(outcome.prepared.schedule, outcome.prepared.goal,
                                         outcome.question.fabric, pricing)
                         .value();
  const TeamOptions options = team_options(a, outcome.prepared.params.ranks);
  WallDemands& demands = outcome.demands;
  demands.total = outcome.predicted.seconds;
  demands.least = outcome.seconds_of(timed->least_cost());
  {
    auto team = machine_team(options).value();
    constexpr double kNineOfTen = 0.9;
    demands.resolution = quantile(wake_ups(*team), kNineOfTen);
  }
  auto workbench = Workbench::create(bench_of(options, call)).value();
  std::vector<double> unclocked;
  constexpr int kPlays = 4;
  for (int i = 0; i < kPlays; ++i) {
    const auto played = workbench->play(call).value();
    if (i > 0) unclocked.push_back(played.seconds);  // the first run compiles
  }
  demands.data = median(std::move(unclocked));
  outcome.dilate = a.dilate > 0 ? a.dilate : fitting_dilation(demands);
  const std::string refusal = dilation_refusal(demands, outcome.dilate);
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
  // A rank that is late by half of the cheapest message is back in time before the next message
  // ends.
  const double tolerance = outcome.demands.least * outcome.dilate / 2;
  return std::make_shared<const CallNetwork>(
      CallNetwork{.fabric = outcome.question.fabric,
                  .sync = outcome.question.options.sync,
                  .lower = outcome.question.lower,
                  .clock = a.clock,
                  .dilate = outcome.dilate,
                  .tolerance_ns = std::max<std::int64_t>(1, saturated_ns(tolerance * 1e9))});
}

// True if the network's times equal the simulator's in every round; applies to a wall clock, too.
bool same_times(const NetworkReport& report, const RunOutcome& outcome) {
  const std::vector<Ticks>& rounds = outcome.predicted.round_end;
  bool same = report.seconds == outcome.predicted.seconds && report.rounds.size() == rounds.size();
  for (std::size_t k = 0; same && k < rounds.size(); ++k) {
    same = report.rounds[k] == outcome.seconds_of(rounds[k]);
  }
  return same;
}

// Makes all runs. Wrong data and wrong times are reported in the outcome; only a failure that stops
// a run is an error.
void perform(const RunArguments& a, const Call& call, RunOutcome& outcome) {
  TeamOptions options = team_options(a, outcome.prepared.params.ranks);
  options.network = network_of(a, outcome);
  auto made = Workbench::create(bench_of(options, call)).value();
  Workbench& workbench = *made;
  const Communicator& communicator = workbench.communicator();
  outcome.waiting = to_string(communicator.wait_policy());
  if (a.clock == ClockMode::none) {
    workbench.play(call).status().throw_if_error();  // compiles
  }
  std::vector<Perturbation> delays = perturbations(a.perturb, options.ranks);
  const int runs = a.repeat > 0 ? a.repeat : a.clock == ClockMode::virtual_time ? 1 : kUsualRuns;
  for (int i = 0; i < runs; ++i) {
    const auto played = workbench.play(call, delays).value();
    outcome.wrong += played.wrong;
    if (a.clock != ClockMode::wall) outcome.seconds.push_back(played.seconds);
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
  for (const Perturbation& rank : delays) outcome.delays += rank.delays();
}

Result<Exit> run_run(const RunArguments& a, Console& console) {
  if (a.dilate > 0 && a.clock != ClockMode::wall) {
    return invalid_argument(
        fmt::format("--dilate is {:g}; only a wall clock is dilated: add --clock wall", a.dilate));
  }
  auto question = question_of(a.question).value();
  // Runs move whole elements, and the network charges exactly their bytes.
  const std::vector<std::size_t> counts = take_whole_elements(question, kRunType);
  Call call = call_of(question, counts);
  const int ranks = question.params.ranks;
  question.bytes = counts.empty()
                       ? call.count * counts_per_size(call.collective, ranks) * size_of(call.type)
                       : size_of_counts(call.collective, ranks, question.options.counts);

  RunOutcome outcome;
  outcome.prepared = prepare(question).value();
  outcome.question = std::move(question);
  const Params params = outcome.question.algorithm->only_taken(outcome.prepared.params);
  set_parameters(params, call.options);
  outcome.predicted =
      simulate(outcome.prepared.schedule, outcome.prepared.goal, outcome.question.fabric,
               outcome.question.bytes, outcome.question.options)
          .value();
  const auto pricing = pricing_of(outcome.question.fabric, outcome.prepared.goal,
                                  outcome.question.bytes, outcome.question.options)
                           .value();

  Workbench::check_memory(bench_of({.ranks = ranks}, call), counted(ranks, "rank"))
      .throw_if_error();
  if (a.clock == ClockMode::wall) calibrate(a, call, pricing, outcome).throw_if_error();
  perform(a, call, outcome);

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
  add_algorithm_arguments(app, a.question.algorithm, {.files = true}).required();
  add_model_arguments(app, a.question);
  add_network_arguments(app, a.question.network);
  add_argument(
      app, "--clock", a.clock, by_name(parse_clock_mode, kClocks), "NAME",
      "virtual: messages carry their times; wall: ranks keep deadlines in real time; none: "
      "full speed, where --ports limits the messages that a rank has in flight (virtual)");
  add_argument(app, "--dilate", a.dilate, parse_dilation, "F",
               "wall: real seconds per modelled second; auto: the least that this machine can "
               "keep (auto)");
  add_argument(app, "--repeat", a.repeat, Whole{1, 1'000'000}, "R",
               "number of runs (10; with a virtual clock 1)");
  add_argument(app, "--perturb", a.perturb, read_seed, "SEED",
               "delay ranks, links and wake-ups at random; data and virtual times stay exact");
  app.add_flag("--rounds", a.rounds, "predicted and measured for every round");
  add_argument(app, "--placement", a.placement, read_placement, "POLICY",
               "compact, scatter, one_per_node, none or CPUs such as 0,2,4-7 (compact)");
  add_argument(app, "--wait", a.wait, read_wait, "POLICY", "auto, spin, yield or park (auto)");
  add_argument(app, "-T,--timeout", a.timeout, parse_duration, "TIME",
               "limit of one call: 30 (seconds), 500ms; then exit code 124 (30)");
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
