#include "engine/tools/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ostream>
#include <span>

#include <nlohmann/json.hpp>

#include "engine/api/choose.h"
#include "engine/api/tuning.h"
#include "engine/base/statistics.h"
#include "engine/tools/contest.h"
#include "engine/tools/cost_fit.h"
#include "engine/tools/interrupt.h"
#include "engine/tools/machine.h"
#include "engine/tools/memory.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

// Of the time for so many ranks: until when there is looking and choosing; the rest is for
// measuring what was chosen.
constexpr double kForLooking = 0.2, kForChoosing = 0.65;
constexpr int kMostRounds = 12;   // of each; more time would be wasted
constexpr std::size_t kGoOn = 4;  // contenders after the first round, and the default
constexpr double kNear = 2;       // who is never so near to the best in that round gives up

// A contest that is over: what would have been taken, and what that costs.
struct Verdict {
  Contest contest{};  // contexts: those measured after the choice
  const Algorithm* standard = nullptr;
  const Algorithm* table = nullptr;  // nullptr: the table is silent here, so the default stands
  double chosen_with = 1;            // the worst regret seen while choosing
  // By protocol, where the contest was measured: times' medians, and the regrets of the two.
  std::vector<Context> medians{};
  std::vector<double> standard_regrets{}, table_regrets{};

  // A median of fewer rounds says little.
  bool judged() const { return contest.rounds() >= kFewestRounds; }
};

struct Plan {
  std::vector<int> ranks;
  std::vector<Collective> collectives;
  std::vector<std::size_t> sizes;
  int rounds;
  bool until_budget;
};

Plan plan_of(const TuneArguments& a, const Machine& machine) {
  Plan plan{.ranks = a.ranks,
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

// All contests for so many ranks, small sizes first.
std::vector<Contest> contests_for(const Plan& plan, int ranks) {
  std::vector<Contest> contests;
  for (const Collective collective : plan.collectives) {
    for (Contest& one : make_contests(collective, ranks, plan.sizes)) {
      contests.push_back(std::move(one));
    }
  }
  std::stable_sort(contests.begin(), contests.end(),
                   [](const Contest& a, const Contest& b) { return a.bytes < b.bytes; });
  return contests;
}

Result<std::unique_ptr<Workbench>> workbench_for(const std::vector<Contest>& contests, int ranks) {
  Workbench::Options options;
  options.team = {.ranks = ranks, .tuned = false};
  for (const Contest& contest : contests) {
    const BufferBytes bytes = buffer_bytes(call_of(contest), ranks);
    options.buffers.input = std::max(options.buffers.input, bytes.input);
    options.buffers.output = std::max(options.buffers.output, bytes.output);
  }
  const std::size_t needed = Workbench::memory_needed(options);
  const AvailableMemory available = available_memory();
  if (needed > available.bytes) {
    return Status(
        Code::out_of_memory,
        fmt::format("--maxbytes: {} ranks need {} of buffers and scratch; available are "
                    "{} ({})",
                    ranks, format_bytes(needed), format_bytes(available.bytes), available.why));
  }
  return Workbench::create(options);
}

// The protocols' medians, and what was taken against the best of each.
void judge(Verdict& verdict) {
  const Contest& contest = verdict.contest;
  if (contest.rounds() == 0) return;
  const auto regrets = [&](const Algorithm& algorithm) {
    std::vector<double> out;
    const std::size_t i = contest.stands_for(algorithm);
    for (const Context& times : verdict.medians) {
      out.push_back(times.empty() ? 1 : regret_in(times, i));  // empty: of no account here
    }
    return out;
  };
  for (const auto& contexts : contest.contexts) verdict.medians.push_back(median_over(contexts));
  verdict.standard_regrets = regrets(*verdict.standard);
  verdict.table_regrets = regrets(verdict.table != nullptr ? *verdict.table : *verdict.standard);
}

// Measures for so many ranks. With a table its choices are judged; without one they are made.
Status run_ranks(const Plan& plan, int ranks, const TuningTable* table, double seconds,
                 Progress& progress, std::vector<Verdict>& verdicts) {
  std::vector<Contest> contests = contests_for(plan, ranks);
  if (contests.empty()) return {};
  auto workbench = workbench_for(contests, ranks);
  if (!workbench.ok()) return workbench.status();
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

  Status status = race(**workbench, contests, 1, true, after(kForLooking), show("looking"));
  if (!status.ok()) return status;
  std::erase_if(contests, [](const Contest& contest) { return contest.rounds() == 0; });
  for (Contest& contest : contests) keep_the_best(contest, kGoOn, kNear, asked(contest));
  if (table == nullptr) {
    status = race(**workbench, contests, plan.rounds, false, after(kForChoosing), show("choosing"));
    if (!status.ok()) return status;
  }
  const std::size_t first = verdicts.size();
  for (Contest& contest : contests) {
    Verdict verdict{.standard = contest.contenders[contest.standard], .table = asked(contest)};
    // Where there was not enough time to choose, the table stays silent.
    if (table == nullptr && contest.rounds() >= kFewestRounds) {
      const Choice choice =
          robust_choice(contest.contexts, contest.contenders.size(), contest.standard);
      verdict.table = contest.contenders[choice.contender];
      verdict.chosen_with = choice.regret;
    }
    verdict.contest = std::move(contest);
    // What a choice is worth is measured apart from what it was made from.
    for (auto& rounds : verdict.contest.contexts) rounds.clear();
    verdicts.push_back(std::move(verdict));
  }
  std::vector<Contest> again;
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    again.push_back(std::move(verdicts[i].contest));
  }
  status = race(**workbench, again, plan.rounds, false, after(1), show("judging"));
  if (!status.ok()) return status;
  for (std::size_t i = first; i < verdicts.size(); ++i) {
    verdicts[i].contest = std::move(again[i - first]);
    judge(verdicts[i]);
  }
  return {};
}

// --- Reports ----------------------------------------------------------------------------------

// Verdicts of one collective among so many ranks.
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
  std::string where{};  // of the maximum: "32 KiB, fresh"
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
      where.push_back(fmt::format("{}{}{}, {}", name_of(verdict->contest.collective), " ",
                                  format_bytes(verdict->contest.bytes),
                                  name_of(static_cast<Protocol>(p))));
    }
  }
  Regrets out{.summary = summarise_regrets(all)};
  if (!all.empty()) out.where = where[out.summary.worst];
  return out;
}

// How far apart the rounds of one and the same thing lie: the slowest over the fastest round of the
// default, for every size and protocol.
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
  std::vector<std::vector<std::string>> rows = {{"point", "size", "measured", "model", "residual"}};
  for (std::size_t i = 0; i < points.size(); ++i) {
    const CostPoint& p = points[i];
    rows.push_back({p.what, format_bytes(p.bytes), format_seconds(p.seconds),
                    format_seconds(p.seconds * (1 + fit.residuals[i])),
                    fmt::format("{:+.0f} %", 100 * fit.residuals[i])});
  }
  console.out << columns(rows, "lrrrr", "  ") << "\n";
}

void print_sizes(const Group& group, Console& console) {
  std::vector<std::vector<std::string>> rows = {
      {"size", "rounds", "default", "regret", "table", "regret", "best, warm", "fresh"}};
  for (const Verdict* v : group) {
    if (v->medians.empty()) continue;
    const auto worst = [](const std::vector<double>& regrets) {
      return fmt::format("{:.2f}", *std::max_element(regrets.begin(), regrets.end()));
    };
    const auto best = [&](Protocol protocol) {
      const Context& times = v->medians[static_cast<std::size_t>(protocol)];
      const auto i =
          static_cast<std::size_t>(std::min_element(times.begin(), times.end()) - times.begin());
      return fmt::format("{} {}", v->contest.contenders[i]->name, format_seconds(times[i]));
    };
    rows.push_back({format_bytes(v->contest.bytes), std::to_string(v->contest.rounds()),
                    std::string(v->standard->name), worst(v->standard_regrets),
                    v->table != nullptr ? std::string(v->table->name) : "-",
                    worst(v->table_regrets), best(Protocol::warm_apart),
                    best(Protocol::fresh_apart)});
  }
  console.out << columns(rows, "rrlrlrll", "  ") << "\n";
}

void print(const TuneArguments& a, const std::vector<Verdict>& verdicts, Console& console) {
  std::vector<std::vector<std::string>> rows = {{"collective", "ranks", "judged", "default: mean",
                                                 "max", "table: mean", "max",
                                                 "the table's choices"}};
  Group all;
  const auto cells = [](const Group& group, std::string name, std::string ranks) {
    const auto judged = std::count_if(group.begin(), group.end(),
                                      [](const Verdict* verdict) { return verdict->judged(); });
    std::vector<std::string> row = {std::move(name), std::move(ranks),
                                    fmt::format("{} of {}", judged, group.size())};
    for (const auto of : {&Verdict::standard_regrets, &Verdict::table_regrets}) {
      const RegretSummary summary = regrets_of(group, of).summary;
      row.push_back(judged > 0 ? fmt::format("{:.3f}", summary.geometric_mean) : "-");
      row.push_back(judged > 0 ? fmt::format("{:.2f}", summary.max) : "-");
    }
    return row;
  };
  for (const Group& group : groups_of(verdicts)) {
    const Contest& contest = group.front()->contest;
    if (a.sizes) {
      console.out << fmt::format("{}, {} ranks\n", name_of(contest.collective), contest.ranks);
      print_sizes(group, console);
    }
    rows.push_back(
        cells(group, std::string(name_of(contest.collective)), std::to_string(contest.ranks)));
    rows.back().push_back(choices_of(group));
    all.insert(all.end(), group.begin(), group.end());
  }
  rows.push_back(cells(all, "all", ""));
  console.out
      << "Regret: the time of the choice over the time of the best, warm and fresh, apart and "
         "in place; geometric mean\nand maximum over the sizes that were judged (in three "
         "rounds or more, by their medians)\n\n"
      << columns(rows, "lrrrrrrl", "  ");
  const Regrets standard = regrets_of(all, &Verdict::standard_regrets);
  const Regrets table = regrets_of(all, &Verdict::table_regrets);
  console.out << "\n";
  if (!standard.where.empty()) {
    console.out << fmt::format("worst: default at {}; table at {}\n", standard.where, table.where);
  }
  if (const Statistics spread = spread_of(verdicts); spread.samples > 0) {
    console.out << fmt::format(
        "noise: the slowest round of the default takes {:.2f} times the fastest (median; at worst "
        "{:.1f})\n",
        spread.median, spread.max);
  }
}

Json to_json(const Machine& machine, const std::vector<CostPoint>& points,
             const std::optional<CostFit>& fit, const std::vector<Verdict>& verdicts,
             const std::string& file, bool written, bool complete) {
  Json json = {{"version", kVersion}, {"machine", machine.topology.summary()},
               {"cpu", machine.cpu},  {"cores", machine.budget.why},
               {"table", file},       {"written", written},
               {"complete", complete}};
  if (fit) {
    Json model = {{"alpha", fit->model.alpha},
                  {"beta", fit->model.beta},
                  {"gamma", fit->model.gamma},
                  {"rms", fit->rms}};
    for (std::size_t i = 0; i < points.size(); ++i) {
      model["points"].push_back({{"what", points[i].what},
                                 {"bytes", points[i].bytes},
                                 {"hops", points[i].hops},
                                 {"moved", points[i].moved},
                                 {"added", points[i].added},
                                 {"time", points[i].seconds},
                                 {"residual", fit->residuals[i]}});
    }
    json["model"] = std::move(model);
  }
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

// The new rows, and those of an older table of this machine for what was not measured now.
TuningTable table_of(std::span<const Verdict> verdicts, const CostModel& model,
                     const std::optional<TuningTable>& before, const Hardware& here) {
  std::vector<TuningRow> rows;
  for (const Verdict& v : verdicts) {
    if (v.table == nullptr) continue;
    rows.push_back({.collective = v.contest.collective,
                    .ranks = v.contest.ranks,
                    .bytes = v.contest.bytes,
                    .algorithm = v.table,
                    .regret = v.chosen_with});
  }
  const std::size_t fresh = rows.size();
  for (const TuningRow& old : before ? before->rows() : std::vector<TuningRow>()) {
    const bool replaced = std::any_of(
        rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(fresh), [&](const TuningRow& row) {
          return row.collective == old.collective && row.ranks == old.ranks;
        });
    if (!replaced) rows.push_back(old);
  }
  return {here, utc_now(), model, std::move(rows)};
}

Result<std::vector<Collective>> read_collectives(std::string_view argument, std::string_view text) {
  std::vector<Collective> out;
  for (const std::string_view part : split_list(text)) {
    const auto one = read_collective(argument, part);
    if (!one.ok()) return one.status();
    out.push_back(*one);
  }
  return out;
}

}  // namespace

Result<Exit> tune(const TuneArguments& a, Console& console) {
  if (a.min_bytes == 0 || a.min_bytes > a.max_bytes) {
    return invalid_argument(
        fmt::format("--minbytes is {}; allowed are sizes from 1 up to "
                    "--maxbytes, which is {}",
                    format_size(a.min_bytes), format_size(a.max_bytes)));
  }
  const TuningFile file = tuning_file();
  if (file.path.empty()) {
    return invalid_argument(
        "RANKINE_TUNING is 'off', or HOME and XDG_CACHE_HOME name no folder; a file is needed that "
        "the table goes to: RANKINE_TUNING=FILE");
  }
  const Machine machine = read_machine();
  const Hardware here = read_hardware();
  // That it is not there yet is no fault.
  const std::optional<TuningTable> before = load_tuning({.path = file.path}, here);
  if (a.check && !before) {
    return Status(Code::system,
                  fmt::format("--check: '{}' holds no table of this machine; 'rankine tune' makes "
                              "one",
                              file.path));
  }
  // A path that cannot be written to is known before minutes of measuring.
  if (!a.check) {
    Status status = prepare_tuning_file(file.path);
    if (!status.ok()) return status;
  }
  const Plan plan = plan_of(a, machine);
  const InterruptGuard guard;

  Progress progress(console);
  std::vector<CostPoint> points;
  std::optional<CostFit> fit;
  std::vector<Verdict> verdicts;
  const auto begin = Clock::now();
  if (!a.check) {
    progress.show("measuring hops and additions");
    auto team = Team::create({.ranks = 2, .tuned = false});
    if (!team.ok()) return team.status();
    constexpr double kShare = 0.05, kMost = 3;  // of the budget, and seconds
    auto measured = measure_costs(
        **team, std::min(kMost, kShare * std::chrono::duration<double>(a.budget).count()));
    if (!measured.ok()) return measured.status();
    points = std::move(*measured);
    auto fitted = fit_costs(points);
    if (!fitted.ok()) return fitted.status();
    fit = std::move(*fitted);
  }
  // Those of the numbers of ranks that were measured to the end; only they go to the table, which
  // may have better ones of the others.
  std::size_t whole = 0;
  for (std::size_t i = 0; i < plan.ranks.size() && interruption() == 0; ++i) {
    const double spent = std::chrono::duration<double>(Clock::now() - begin).count();
    const double left = std::chrono::duration<double>(a.budget).count() - spent;
    Status status =
        run_ranks(plan, plan.ranks[i], a.check ? &*before : nullptr,
                  left / static_cast<double>(plan.ranks.size() - i), progress, verdicts);
    if (!status.ok()) return status;
    if (interruption() == 0) whole = verdicts.size();
  }
  const bool interrupted = interruption() != 0;
  progress.clear();
  if (verdicts.empty() && !interrupted) {
    return invalid_argument(
        "--budget: too short for a single contest, or --collectives names none "
        "that has several algorithms");
  }
  const bool written = !a.check && whole > 0;
  if (written) {
    const std::span<const Verdict> measured(verdicts.data(), whole);
    Status status = save_tuning(table_of(measured, fit->model, before, here), file.path);
    if (!status.ok()) return status;
  }
  const std::string about =
      a.check ? fmt::format("table of {}: {}", before->made(), file.path)
              : fmt::format("{} {}", written ? "written to" : "not written:", file.path);
  if (a.json) {
    console.out << to_json(machine, points, fit, verdicts, file.path, written, !interrupted).dump(1)
                << "\n";
  } else {
    console.out << fmt::format("{}, {} ({})\n{}\n\n", machine.cpu, machine.topology.summary(),
                               machine.budget.why, about);
    if (fit) print_model(points, *fit, console);
    if (!verdicts.empty()) print(a, verdicts, console);
  }
  if (!interrupted) return Exit::ok;
  console.err << "rankine tune: interrupted; what was measured until then is told\n";
  return exit_of_interruption();
}

Subcommand add_tune(CLI::App& tool) {
  auto owned = std::make_shared<TuneArguments>();
  TuneArguments& a = *owned;
  CLI::App* app = tool.add_subcommand(
      "tune", "measure which algorithm is fastest where on this machine, and remember it");
  add_argument(
      *app, "-t,--ranks", a.ranks,
      [](std::string_view argument, std::string_view text) {
        return parse_whole_list(argument, text, 2, Communicator::kMaxRanks);
      },
      "LIST", "N: 2, 2,4,8 or 2..16; also more than cores (2 to the usable cores)");
  add_argument(*app, "--collectives", a.collectives, read_collectives, "LIST",
               "only these (all that have several algorithms)");
  add_argument(*app, "-b,--minbytes", a.min_bytes, parse_size, "SIZE", "smallest size (8)");
  add_argument(*app, "-e,--maxbytes", a.max_bytes, parse_size, "SIZE", "largest size (64M)");
  add_argument(*app, "-f,--stepfactor", a.step_factor, Whole{2, 1024}, "N",
               "from size to size (4)");
  add_argument(*app, "--budget", a.budget, parse_duration, "TIME",
               "for all of it: 60 (seconds), 5min; what it does not reach keeps the default (60)");
  add_argument(*app, "--rounds", a.rounds, Whole{1, 1000}, "N",
               "so many rounds of choosing and of judging, whatever the budget");
  app->add_flag("--check", a.check,
                "measure how good the table is that is there, and write nothing");
  app->add_flag("--sizes", a.sizes, "also a line for every size");
  app->add_flag("--json", a.json, "everything measured, as JSON");
  app->footer(
      "Examples:\n"
      "  rankine tune                                 all collectives, 2 to all cores, a minute\n"
      "  rankine tune --ranks 2,4,8 --budget 5min     oversubscribed, too\n"
      "  rankine tune --collectives all_reduce --sizes\n"
      "  rankine tune --check                         is the table still right?\n"
      "The table is $XDG_CACHE_HOME/rankine/tuning.json or ~/.cache/rankine/tuning.json;\n"
      "RANKINE_TUNING=FILE names another one, RANKINE_TUNING=off none. It is used on the hardware\n"
      "that it was made on, by calls that name no algorithm.");
  return {app, [owned](Console& console) { return tune(*owned, console); }};
}

}  // namespace rankine::tools
