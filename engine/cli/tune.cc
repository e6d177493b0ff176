// `rankine tune`: its trials of c_real, its verdicts and its report.

#include "engine/cli/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <utility>

#include "engine/api/tuning/choose.h"
#include "engine/api/tuning/tuning.h"
#include "engine/api/tuning/tuning_json.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/cli/console.h"
#include "engine/cli/machine.h"
#include "engine/cli/question.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/fabric.h"
#include "engine/network/predict.h"

namespace rankine::tools {

void CRealTrials::add(const Contest& contest) {
  for (std::size_t i = 0; i < contest.contenders.size(); ++i) {
    const Question question(contest.collective, contest.ranks, contest.bytes,
                            contest.contenders[i]);
    for (std::size_t p = 0; p < kProtocols; ++p) {
      for (const Context& times : contest.contexts[p]) {
        if (times[i] != kNotTimed) seconds_[question][p].push_back(times[i]);
      }
    }
  }
}

Result<std::vector<MeasuredCReal>> CRealTrials::measured() const {
  struct Ratios {
    std::vector<double> latency, bandwidth;
  };
  std::map<std::tuple<Collective, int, const Algorithm*>, Ratios> found;
  for (const auto& [question, protocols] : seconds_) {
    const auto& [collective, ranks, bytes, algorithm] = question;
    const auto model = predict_on_threads(*algorithm, ranks, bytes, machine_, costs_);
    if (!model.ok()) return model.status();
    if (!model->ok() || !(model->seconds > 0)) continue;
    const auto share = latency_share(*model, machine_);
    if (!share.ok()) return share.status();
    Ratios& ratios = found[{collective, ranks, algorithm}];
    for (const std::vector<double>& rounds : protocols) {
      if (rounds.empty()) continue;
      (*share >= 0.5 ? ratios.latency : ratios.bandwidth)
          .push_back(median(rounds) / model->seconds);
    }
  }
  std::vector<MeasuredCReal> out;
  for (const auto& [of, ratios] : found) {
    if (ratios.latency.empty() || ratios.bandwidth.empty()) continue;
    const auto& [collective, ranks, algorithm] = of;
    const CReal c_real{.latency = median(ratios.latency), .bandwidth = median(ratios.bandwidth)};
    if (!CReal::allows(c_real.latency) || !CReal::allows(c_real.bandwidth)) continue;
    out.push_back({collective, ranks, algorithm, c_real});
  }
  return out;
}

std::string table_of(const std::vector<MeasuredCReal>& measured) {
  if (measured.empty()) return {};
  Table table(as::text("collective"), "ranks", as::text("algorithm"), As("{:.2f}")("latency"),
              As("{:.2f}")("bandwidth"));
  for (const auto& [collective, ranks, algorithm, c_real] : measured) {
    table.add(name_of(collective), ranks, algorithm->name, c_real.latency, c_real.bandwidth);
  }
  return to_text(table, "  ");
}

namespace {

// Shares of the time for one number of ranks: looking ends at the first, choosing at the second;
// the rest is for measuring the choice.
constexpr double kForLooking = 0.2, kForChoosing = 0.65;
constexpr std::size_t kGoOn = 4;  // contenders that go on after the first round, besides the
                                  // default
constexpr double kNear = 2;       // contenders that never come within this factor of the best are
                                  // dropped

struct TunePlan {
  std::vector<int> ranks;
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;
  int rounds;         // in each phase, choosing and judging, at most
  bool until_budget;  // stop choosing and judging when the time is over
  Costs costs{};      // used by the calls
};

// All contests for this number of ranks, small sizes first.
std::vector<Contest> contests_for(const TunePlan& plan, int ranks) {
  std::vector<Contest> contests;
  for (const Collective collective : plan.collectives) {
    for (Contest& one : make_contests(collective, ranks, plan.sizes, plan.costs)) {
      contests.push_back(std::move(one));
    }
  }
  std::stable_sort(contests.begin(), contests.end(),
                   [](const Contest& a, const Contest& b) { return a.bytes < b.bytes; });
  return contests;
}

std::unique_ptr<Workbench> workbench_for(const std::vector<Contest>& contests, int ranks,
                                         const Costs& costs) {
  Workbench::Options options;
  options.team = {.ranks = ranks, .tuned = false, .costs = costs};
  for (const Contest& contest : contests) {
    const BufferBytes bytes = buffer_bytes(call_of(contest), ranks);
    options.buffers.input = std::max(options.buffers.input, bytes.input);
    options.buffers.output = std::max(options.buffers.output, bytes.output);
  }
  Workbench::check_memory(options, "--maxbytes: " + counted(ranks, "rank")).throw_if_error();
  return Workbench::create(options).value();
}

// Computes the protocols' medians, and the choices' regrets against the best of each protocol.
void judge(Verdict& verdict) {
  const Contest& contest = verdict.contest;
  if (contest.rounds() == 0) return;
  const auto regrets = [&](const Algorithm& algorithm) {
    std::vector<double> out;
    const std::size_t i = contest.stands_for(algorithm);
    for (const Context& times : verdict.medians) {
      out.push_back(times.empty() ? 1 : regret_in(times, i));  // empty: the protocol does not count
    }
    return out;
  };
  for (const auto& contexts : contest.contexts) verdict.medians.push_back(median_over(contexts));
  verdict.standard_regrets = regrets(*verdict.standard);
  verdict.table_regrets = regrets(verdict.table != nullptr ? *verdict.table : *verdict.standard);
}

// Measures with `ranks` ranks for `seconds` and appends the verdicts. With a table it judges the
// table's choices; without one it makes the choices. All rounds go to `trials` unless it is
// nullptr. Errors: errors of the calls, and insufficient memory.
void reach_verdicts(const TunePlan& plan, int ranks, const TuningTable* table, double seconds,
                    Progress& progress, std::vector<Verdict>& verdicts, CRealTrials* trials) {
  std::vector<Contest> contests = contests_for(plan, ranks);
  if (contests.empty()) return;
  const auto workbench = workbench_for(contests, ranks, plan.costs);
  const auto begin = Clock::now();
  const auto after = [&](double part) {
    if (!plan.until_budget) return Clock::time_point::max();
    return begin + std::chrono::duration_cast<Clock::duration>(
                       std::chrono::duration<double>(seconds * part));
  };
  const auto show = [&](const char* what) {
    return [&progress, what, begin](const Contest& contest, int round) {
      progress.show(
          fmt::format("{}, round {}: {} of {} among {} ranks, {}", what, round + 1,
                      name_of(contest.collective), format_bytes(contest.bytes), contest.ranks,
                      format_seconds(std::chrono::duration<double>(Clock::now() - begin).count())));
    };
  };
  const auto asked = [&](const Contest& contest) -> const Algorithm* {
    if (table == nullptr) return nullptr;
    const TuningRow* row = table->find(contest.collective, ranks, contest.bytes);
    return row != nullptr ? row->algorithm : nullptr;
  };

  const auto add_trials = [trials](const std::vector<Contest>& timed) {
    for (const Contest& contest : timed) {
      if (trials != nullptr) trials->add(contest);
    }
  };

  race(*workbench, contests, 1, true, after(kForLooking), show("looking")).throw_if_error();
  add_trials(contests);
  std::erase_if(contests, [](const Contest& contest) { return contest.rounds() == 0; });
  for (Contest& contest : contests) keep_the_best(contest, kGoOn, kNear, asked(contest));
  if (table == nullptr) {
    race(*workbench, contests, plan.rounds, false, after(kForChoosing), show("choosing"))
        .throw_if_error();
    add_trials(contests);
  }
  const std::size_t first = verdicts.size();
  for (Contest& contest : contests) {
    Verdict verdict{.standard = contest.contenders[contest.standard], .table = asked(contest)};
    // If the time did not suffice for a choice, the table gets no row.
    if (table == nullptr && contest.rounds() >= kFewestRounds) {
      const Choice choice =
          robust_choice(contest.contexts, contest.contenders.size(), contest.standard);
      verdict.table = contest.contenders[choice.contender];
      verdict.chosen_with = choice.regret;
    }
    verdict.contest = std::move(contest);
    // The regret of a choice is measured anew, independent of the measurements behind the choice.
    for (auto& rounds : verdict.contest.contexts) rounds.clear();
    verdicts.push_back(std::move(verdict));
  }
  std::vector<Contest> again;
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    again.push_back(std::move(verdicts[i].contest));
  }
  race(*workbench, again, plan.rounds, false, after(1), show("judging")).throw_if_error();
  add_trials(again);
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    verdicts[i].contest = std::move(again[i - first]);
    judge(verdicts[i]);
  }
}

// The verdicts of one collective with one number of ranks.
using Group = std::vector<const Verdict*>;

std::vector<Group> groups_of(const std::vector<Verdict>& verdicts) {
  std::vector<Group> groups;
  for (const Verdict& verdict : verdicts) {
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.front()->contest.collective == verdict.contest.collective &&
             group.front()->contest.ranks == verdict.contest.ranks;
    });
    if (same != groups.end()) {
      same->push_back(&verdict);
    } else {
      groups.push_back({&verdict});
    }
  }
  return groups;
}

struct Regrets {
  RegretSummary summary;
  std::string where{};  // place of the maximum: "32 KiB, fresh"
};

Regrets regrets_of(const Group& group, std::vector<double> Verdict::*of) {
  std::vector<double> all;
  std::vector<std::string> where;
  for (const Verdict* verdict : group) {
    if (!verdict->judged()) continue;
    const std::vector<double>& regrets = verdict->*of;
    for (std::size_t p = 0; p < regrets.size(); ++p) {
      if (verdict->medians[p].empty()) continue;
      all.push_back(regrets[p]);
      where.push_back(fmt::format("{} {}, {}", name_of(verdict->contest.collective),
                                  format_bytes(verdict->contest.bytes),
                                  name_of(static_cast<Protocol>(p))));
    }
  }
  Regrets out{.summary = summarise_regrets(all)};
  if (!all.empty()) out.where = where[out.summary.worst];
  return out;
}

// The scatter of repeated measurements: the slowest over the fastest round of the default, for
// every size and protocol.
Statistics spread_of(const std::vector<Verdict>& verdicts) {
  std::vector<double> spreads;
  for (const Verdict& v : verdicts) {
    for (const auto& rounds : v.contest.contexts) {
      if (rounds.size() < 2) continue;
      std::vector<double> times;
      for (const Context& each : rounds) times.push_back(each[v.contest.standard]);
      const Statistics s = summarise(times);
      spreads.push_back(s.max / s.min);
    }
  }
  return summarise(spreads);
}

// "direct_one_shot to 16 KiB, direct_two_shot"
std::string choices_of(const Group& group) {
  std::string text;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto name = [&](std::size_t k) {
      const Verdict& v = *group[k];
      return (v.table != nullptr ? v.table : v.standard)->name;
    };
    if (i + 1 < group.size() && name(i) == name(i + 1)) continue;
    text += (text.empty() ? "" : ", ") + std::string(name(i));
    if (i + 1 < group.size()) text += " to " + format_bytes(group[i]->contest.bytes);
  }
  return text;
}

Table points_of(const std::vector<CostPoint>& points, const CostFit& fit) {
  Table table(as::text("point", "what"), as::bytes("size", "bytes"), as::data("hops"),
              as::data("moved"), as::data("added"), as::measured_time("measured", "time"),
              as::measured_time("model", "-"), As("{:+.0f} %")("residual"));
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CostPoint& p = points[i];
    table.add(p.what, p.bytes, p.hops, p.moved, p.added, p.seconds,
              p.seconds * (1 + fit.residuals[i]), fit.residuals[i]);
  }
  return table;
}

void print_model(const std::vector<CostPoint>& points, const CostFit& fit, Console& console) {
  const CostModel& m = fit.model;
  const auto rate = [](double seconds_per_byte) {
    return seconds_per_byte > 0 ? fmt::format("{:.3g} GB/s", 1e-9 / seconds_per_byte)
                                : std::string("not seen");
  };
  console.out << fmt::format(
      "T = hops alpha + bytes moved beta + bytes added gamma, least squares over {} points, rms of "
      "the\nresiduals {:.0f} %:\n"
      "  alpha  {:<10} a hop of a call, one way\n"
      "  beta   {:<10} from core to core, {:.3g} ps per byte\n"
      "  gamma  {:<10} added, {:.3g} ps per byte\n\n",
      points.size(), 100 * fit.rms, format_seconds(m.alpha), rate(m.beta), 1e12 * m.beta,
      rate(m.gamma), 1e12 * m.gamma);
  console.out << to_text(points_of(points, fit), "  ") << "\n";
}

void print_sizes(const Group& group, Console& console) {
  Table table(as::bytes("size"), "rounds", as::text("default"), As("{:.2f}")("regret"),
              as::text("table", "", "-"), As("{:.2f}")("regret"), as::text("best, warm"),
              as::text("fresh"));
  for (const Verdict* v : group) {
    if (v->medians.empty()) continue;
    const auto worst = [](const std::vector<double>& regrets) {
      return *std::max_element(regrets.begin(), regrets.end());
    };
    const auto best = [&](Protocol protocol) {
      const Context& times = v->medians[static_cast<std::size_t>(protocol)];
      const auto i =
          static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
      return fmt::format("{} {}", v->contest.contenders[i]->name, format_seconds(times[i]));
    };
    table.add(v->contest.bytes, v->contest.rounds(), v->standard->name, worst(v->standard_regrets),
              v->table != nullptr ? Cell(v->table->name) : Cell(), worst(v->table_regrets),
              best(Protocol::warm_apart), best(Protocol::fresh_apart));
  }
  console.out << to_text(table, "  ") << "\n";
}

void print_costs(const std::vector<CostFinding>& costs, Console& console) {
  if (costs.empty()) return;
  console.out << "costs, by forms timed on both sides of them:\n";
  for (const CostFinding& one : costs) {
    console.out << fmt::format("  {:<14} {}", one.field->name, value_text(*one.field, one.before));
    if (one.after != one.before) {
      console.out << fmt::format(" -> {}, {:.2f} times as fast", value_text(*one.field, one.after),
                                 one.gain);
    }
    console.out << "\n";
  }
  console.out << "\n";
}

void print_c_real(const TuneFindings& findings, Console& console) {
  if (!findings.no_c_real.empty()) {
    console.out << fmt::format("c_real: the fit is no model to compare with: {}\n",
                               findings.no_c_real);
  }
  if (findings.c_real.empty()) return;
  console.out << "c_real: times over the model's, for calls dominated by alphas and by bytes; "
                 "medians\n"
                 "\n"
              << tools::table_of(findings.c_real) << "\n";
}

}  // namespace

void print(const TuneFindings& findings, bool sizes, Console& console) {
  print_costs(findings.costs, console);
  if (findings.fit) print_model(findings.points, *findings.fit, console);
  const std::vector<Verdict>& verdicts = findings.verdicts;
  if (verdicts.empty()) return;
  Table rows(as::text("collective"), "ranks", "judged", As("{:.3f}")("default: mean", "", "-"),
             As("{:.2f}")("max", "", "-"), As("{:.3f}")("table: mean", "", "-"),
             As("{:.2f}")("max", "", "-"), as::text("the table's choices"));
  Group all;
  const auto add = [&rows](const Group& group, Cell name, Cell ranks, Cell choices) {
    const auto judged = std::count_if(group.begin(), group.end(),
                                      [](const Verdict* verdict) { return verdict->judged(); });
    std::vector<Cell> row = {std::move(name), std::move(ranks),
                             fmt::format("{} of {}", judged, group.size())};
    for (const auto of : {&Verdict::standard_regrets, &Verdict::table_regrets}) {
      const RegretSummary summary = regrets_of(group, of).summary;
      row.push_back(judged > 0 ? Cell(summary.geometric_mean) : Cell());
      row.push_back(judged > 0 ? Cell(summary.max) : Cell());
    }
    row.push_back(std::move(choices));
    rows.rows.push_back(std::move(row));
  };
  for (const Group& group : groups_of(verdicts)) {
    const Contest& contest = group.front()->contest;
    if (sizes) {
      console.out << fmt::format("{}, {}\n", name_of(contest.collective),
                                 counted(contest.ranks, "rank"));
      print_sizes(group, console);
    }
    add(group, name_of(contest.collective), contest.ranks, choices_of(group));
    all.insert(all.end(), group.begin(), group.end());
  }
  add(all, "all", {}, {});
  console.out
      << "Regret: the time of the choice over the time of the best, warm and fresh, apart and in "
         "place; geometric mean\n"
         "and maximum over the judged sizes (in three rounds or more, by their medians)\n"
         "\n"
      << to_text(rows, "  ");
  const Regrets standard = regrets_of(all, &Verdict::standard_regrets);
  const Regrets table = regrets_of(all, &Verdict::table_regrets);
  console.out << "\n";
  if (!standard.where.empty()) {
    console.out << fmt::format("worst: default at {}; table at {}\n", standard.where, table.where);
    if (table.summary.max > 1.1) {
      console.out << "The table has one choice per size for all ways of measuring: the algorithm "
                     "with the least worst regret,\n"
                     "and the default if the difference is less than a tenth, or noise. "
                     "Therefore one way may have a faster algorithm;\n"
                     "--sizes shows each.\n";
    }
  }
  print_c_real(findings, console);
  if (const Statistics spread = spread_of(verdicts); spread.samples > 0) {
    console.out << fmt::format(
        "noise: the slowest round of the default takes {:.2f} times the fastest (median; at worst "
        "{:.1f})\n",
        spread.median, spread.max);
  }
}

nlohmann::ordered_json to_json(const TuneFindings& findings, const MachineReport& machine) {
  const auto& [points, fit, costs, verdicts, c_real, no_c_real, file, written, complete] = findings;
  Json json = {{"version", kVersion}, {"machine", machine.topology.summary()},
               {"cpu", machine.cpu},  {"cores", machine.budget.why},
               {"table", file},       {"written", written},
               {"complete", complete}};
  if (fit) {
    Json& tried = json["costs"] = Json::array();
    for (const CostFinding& one : costs) {
      Json sizes = Json::array();
      for (const FormTimes& size : one.sizes) {
        sizes.push_back({{"border", size.border}, {"first", size.first}, {"second", size.second}});
      }
      tried.push_back({{"name", one.field->name},
                       {"unit", name_of(one.field->unit)},
                       {"before", one.before},
                       {"after", one.after},
                       {"gain", one.gain},
                       {"sizes", std::move(sizes)}});
    }
    Json model = {{"alpha", fit->model.alpha},
                  {"beta", fit->model.beta},
                  {"gamma", fit->model.gamma},
                  {"rms", fit->rms}};
    model["points"] = rankine::tools::to_json(points_of(points, *fit));
    json["model"] = std::move(model);
  }
  if (!no_c_real.empty()) json["no_c_real"] = no_c_real;
  Json& factors = json["c_real"] = Json::array();
  for (const MeasuredCReal& one : c_real) factors.push_back(rankine::to_json(one));
  const auto summary = [](const Group& group, std::vector<double> Verdict::*of) {
    const Regrets regrets = regrets_of(group, of);
    return Json{{"samples", regrets.summary.samples},
                {"geometric_mean", regrets.summary.geometric_mean},
                {"max", regrets.summary.max},
                {"at", regrets.where}};
  };
  Group all;
  Json& rows = json["rows"] = Json::array();
  for (const Verdict& v : verdicts) {
    all.push_back(&v);
    Json row = {{"collective", name_of(v.contest.collective)},
                {"ranks", v.contest.ranks},
                {"bytes", v.contest.bytes},
                {"rounds", v.contest.rounds()},
                {"default", v.standard->name},
                {"table", v.table != nullptr ? Json(v.table->name) : Json()}};
    for (std::size_t p = 0; p < v.medians.size(); ++p) {
      if (v.medians[p].empty()) continue;
      Json protocol = {{"default_regret", v.standard_regrets[p]},
                       {"table_regret", v.table_regrets[p]}};
      for (std::size_t i = 0; i < v.contest.contenders.size(); ++i) {
        if (v.medians[p][i] == kNotTimed) continue;
        protocol["times"][std::string(v.contest.contenders[i]->name)] = v.medians[p][i];
      }
      row[std::string(name_of(static_cast<Protocol>(p)))] = std::move(protocol);
    }
    rows.push_back(std::move(row));
  }
  const Statistics spread = spread_of(verdicts);
  json["noise"] = {{"median", spread.median}, {"max", spread.max}};
  json["regret"] = {{"default", summary(all, &Verdict::standard_regrets)},
                    {"table", summary(all, &Verdict::table_regrets)}};
  return json;
}

namespace {

struct TuneArguments {
  std::vector<int> ranks;               // empty: 2 to the usable cores
  std::vector<Collective> collectives;  // empty: all that have several algorithms
  std::size_t min_bytes = 8, max_bytes = std::size_t{64} << 20;
  int step_factor = 4;
  std::chrono::milliseconds budget{60'000};
  int rounds = 0;      // in each phase, choosing and judging; 0: as many as the budget allows
  bool check = false;  // measure the regret of the existing table, and write nothing
  bool sizes = false;  // a line per size
  bool json = false;
};

constexpr int kMostRounds = 12;  // in each phase; more rounds would waste time

TunePlan plan_of(const TuneArguments& a, const MachineReport& machine) {
  TunePlan plan{.ranks = a.ranks,
                .collectives = a.collectives,
                .sizes = {},
                .rounds = a.rounds > 0 ? a.rounds : kMostRounds,
                .until_budget = a.rounds == 0};
  if (plan.ranks.empty()) {
    for (int n = 2; n <= std::max(2, machine.budget.cores); ++n) plan.ranks.push_back(n);
  }
  if (plan.collectives.empty()) {
    plan.collectives.assign(all_collectives().begin(), all_collectives().end());
  }
  for (std::size_t size = a.min_bytes; size < a.max_bytes;
       size *= static_cast<std::size_t>(a.step_factor)) {
    plan.sizes.push_back(size);
  }
  plan.sizes.push_back(a.max_bytes);
  return plan;
}

// `fresh`, and the entries of `old` for collectives and ranks that were not measured now.
template <class T>
std::vector<T> with_old(std::vector<T> fresh, const std::vector<T>& old) {
  const std::size_t measured = fresh.size();
  for (const T& one : old) {
    const bool replaced = std::any_of(
        fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(measured), [&](const T& each) {
          return each.collective == one.collective && each.ranks == one.ranks;
        });
    if (!replaced) fresh.push_back(one);
  }
  return fresh;
}

// The new rows and c_real, and entries of an older table of this machine for collectives and ranks
// that were not measured now. (Old c_real belong to an old model; but all candidates of one
// question come from one table.)
TuningTable table_of(std::span<const Verdict> verdicts, const CostModel& model, const Costs& costs,
                     std::vector<MeasuredCReal> c_real, const std::optional<TuningTable>& before,
                     const Hardware& here) {
  std::vector<TuningRow> rows;
  for (const Verdict& v : verdicts) {
    if (v.table == nullptr) continue;
    rows.push_back({.collective = v.contest.collective,
                    .ranks = v.contest.ranks,
                    .bytes = v.contest.bytes,
                    .algorithm = v.table,
                    .regret = v.chosen_with});
  }
  if (before) {
    rows = with_old(std::move(rows), before->rows());
    c_real = with_old(std::move(c_real), before->c_real());
  }
  // Without a model c_real has no factor to apply to.
  if (!machine_fabric(model).ok()) c_real.clear();
  return {here, utc_now(), model, std::move(rows), costs, std::move(c_real)};
}

// Searches the costs with each number of ranks, as far as they can be tried with it.
void search_all_costs(const TuneArguments& a, TunePlan& plan, Clock::time_point begin,
                      Progress& progress, TuneFindings& found) {
  constexpr double kShare = 0.25;  // of the budget
  constexpr int kRounds = 5;
  const auto share = std::chrono::duration_cast<Clock::duration>(kShare * a.budget);
  for (const int ranks : plan.ranks) {
    const auto findings =
        search_costs(plan.costs, ranks,
                     {.deadline = plan.until_budget ? begin + share : Clock::time_point::max(),
                      .rounds = std::min(plan.rounds, kRounds),
                      .collectives = plan.collectives,
                      .progress =
                          [&](std::string_view field) {
                            progress.show(fmt::format("costs among {} ranks: {}", ranks, field));
                          }})
            .value();
    plan.costs = settled(plan.costs, findings);
    found.costs.insert(found.costs.end(), findings.begin(), findings.end());
  }
}

// Checks the plan before the long measurement.
Status check_contested(const TunePlan& plan) {
  const std::vector<std::size_t> ends = {plan.sizes.front(), plan.sizes.back()};
  std::string names;
  for (const Collective collective : plan.collectives) {
    for (const int ranks : plan.ranks) {
      if (!make_contests(collective, ranks, ends, plan.costs).empty()) return {};
    }
    names += fmt::format("{}{}", names.empty() ? "" : ",", name_of(collective));
  }
  return invalid_argument(fmt::format(
      "--collectives is {}; with {} ranks they have no choice; allowed are collectives with "
      "several algorithms",
      names, fmt::join(plan.ranks, ", ")));
}

Result<Exit> run_tune(const TuneArguments& a, Console& console) {
  if (a.min_bytes == 0 || a.min_bytes > a.max_bytes) {
    return invalid_argument(
        fmt::format("--minbytes is {}; allowed are sizes from 1 up to "
                    "--maxbytes, which is {}",
                    format_size(a.min_bytes), format_size(a.max_bytes)));
  }
  const TuningFile file = tuning_file();
  if (file.path.empty()) {
    return invalid_argument(
        "RANKINE_TUNING is 'off', or HOME and XDG_CACHE_HOME name no folder; the table needs a "
        "file: RANKINE_TUNING=FILE");
  }
  const MachineReport machine = read_machine();
  const Hardware here = read_hardware();
  // A missing table is not an error.
  const std::optional<TuningTable> before = load_tuning({.path = file.path}, here);
  if (a.check && !before) {
    return Status(Code::system,
                  fmt::format("--check: '{}' holds no table of this machine; 'rankine tune' makes "
                              "one",
                              file.path));
  }
  // Detects an unwritable path before minutes of measuring.
  if (!a.check) prepare_tuning_file(file.path).throw_if_error();
  TunePlan plan = plan_of(a, machine);
  if (before) plan.costs = before->costs();
  check_contested(plan).throw_if_error();
  const InterruptGuard guard;

  const double budget = std::chrono::duration<double>(a.budget).count();
  Progress progress(console);
  TuneFindings found{.file = file.path};
  const auto begin = Clock::now();
  if (!a.check) {
    progress.show("measuring hops and additions");
    constexpr double kShare = 0.05, kMost = 3;  // of the budget; seconds
    auto measured = measure_costs(std::min(kMost, kShare * budget));
    if (!measured.ok() && interruption() == 0) return measured.status();
    if (measured.ok()) {
      found.points = std::move(*measured);
      found.fit = fit_costs(found.points).value();
    }
    search_all_costs(a, plan, begin, progress, found);
  }
  // A fit to noise may be no valid model; then times have no model to be compared with.
  std::optional<Fabric> fabric;
  if (found.fit) {
    auto fitted = machine_fabric(found.fit->model);
    if (fitted.ok()) {
      fabric = std::move(*fitted);
    } else {
      found.no_c_real = fitted.status().text();
    }
  }
  // Counts the numbers of ranks that were measured to the end; only their rows go to the table,
  // because the old table may have better rows for the others.
  std::size_t whole = 0;
  for (std::size_t i = 0; i < plan.ranks.size() && interruption() == 0; ++i) {
    const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
    std::optional<CRealTrials> trials;
    if (fabric) trials.emplace(*fabric, plan.costs);
    reach_verdicts(plan, plan.ranks[i], a.check ? &*before : nullptr,
                   (budget - spent) / static_cast<double>(plan.ranks.size() - i), progress,
                   found.verdicts, trials ? &*trials : nullptr);
    if (interruption() != 0) break;
    whole = found.verdicts.size();
    if (!trials) continue;
    const auto measured = trials->measured().value();
    found.c_real.insert(found.c_real.end(), measured.begin(), measured.end());
  }
  const bool interrupted = interruption() != 0;
  progress.clear();
  if (found.verdicts.empty() && !interrupted) {
    return invalid_argument(
        fmt::format("--budget is {}, which is too short for a single contest; increase it",
                    format_duration(budget)));
  }
  found.written = !a.check && whole > 0;
  found.complete = !interrupted;
  if (found.written) {
    const std::span<const Verdict> measured(found.verdicts.data(), whole);
    save_tuning(table_of(measured, found.fit->model, plan.costs, found.c_real, before, here),
                file.path)
        .throw_if_error();
  }
  const std::string about =
      a.check ? fmt::format("table of {}: {}", before->made(), file.path)
              : fmt::format("{} {}", found.written ? "written to" : "not written:", file.path);
  if (a.json) {
    console.out << to_json(found, machine).dump(1) << "\n";
  } else {
    console.out << fmt::format("{}, {} ({})\n{}\n\n", machine.cpu, machine.topology.summary(),
                               machine.budget.why, about);
    print(found, a.sizes, console);
  }
  if (!interrupted) return Exit::ok;
  console.err << "rankine tune: interrupted; the report has the measurements so far\n";
  return exit_of_interruption();
}

}  // namespace

Subcommand add_tune(Command tool) {
  auto owned = std::make_shared<TuneArguments>();
  TuneArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "tune", "measure the fastest algorithms on this machine, and store them in a table");
  add_argument(
      app, "-t,--ranks", a.ranks,
      [](std::string_view argument, std::string_view text) {
        return parse_whole_list(argument, text, 2, Communicator::kMaxRanks);
      },
      "LIST", "N: 2, 2,4,8 or 2..16; also more than cores (2 to the usable cores)");
  add_argument(app, "--collectives", a.collectives, list_of(read_collective), "LIST",
               "only these (all that have several algorithms)");
  add_argument(app, "-b,--minbytes", a.min_bytes, parse_size, "SIZE", "smallest size (8)");
  add_argument(app, "-e,--maxbytes", a.max_bytes, parse_size, "SIZE", "largest size (64M)");
  add_argument(app, "-f,--stepfactor", a.step_factor, Whole{2, 1024}, "N", "from size to size (4)");
  add_argument(app, "--budget", a.budget, parse_duration, "TIME",
               "total time: 60 (seconds), 5min; sizes not reached keep the default (60)");
  add_argument(app, "--rounds", a.rounds, Whole{1, 1000}, "N",
               "N rounds of choosing and of judging, regardless of the budget");
  app.add_flag("--check", a.check, "measure the regret of the existing table, and write nothing");
  app.add_flag("--sizes", a.sizes, "also a line for every size");
  app.add_flag("--json", a.json, "everything measured, as JSON");
  app.footer(
      "Examples:\n"
      "  rankine tune                                 all collectives, 2 to all cores, a minute\n"
      "  rankine tune --ranks 2,4,8 --budget 5min     oversubscribed, too\n"
      "  rankine tune --collectives all_reduce --sizes\n"
      "  rankine tune --check                         is the table still right?\n"
      "The table is $XDG_CACHE_HOME/rankine/tuning.json or ~/.cache/rankine/tuning.json; "
      "RANKINE_TUNING=FILE names another one, RANKINE_TUNING=off none. Calls without a named "
      "algorithm use it, on the hardware on which it was made.");
  return {app, [owned](Console& console) { return run_tune(*owned, console); }};
}

}  // namespace rankine::tools
