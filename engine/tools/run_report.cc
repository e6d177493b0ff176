#include "engine/tools/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/tools/machine_team.h"
#include "engine/tools/parameters_json.h"

namespace rankine::tools {
namespace {

double median_of(const RunOutcome& outcome) { return median(outcome.seconds); }

double ratio_of(const RunOutcome& outcome) {
  return outcome.asked() > 0 ? median_of(outcome) / outcome.asked() : 1;
}

// Seconds after the start at which round k was over, the median over the runs; 0: nobody waited.
double measured_round(const RunOutcome& outcome, std::size_t k) {
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

// Nobody waited for a round that took no time.
std::string waited(double seconds) { return seconds > 0 ? format_duration(seconds) : "-"; }

}  // namespace

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

nlohmann::ordered_json to_json(const RunArguments& a, const RunOutcome& o) {
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

}  // namespace rankine::tools
