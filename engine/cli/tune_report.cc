// The report of tune, as text and as JSON.

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "engine/api/tuning/tuning_json.h"
#include "engine/base/statistics.h"
#include "engine/base/units.h"
#include "engine/cli/machine.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tune.h"

namespace rankine::tools {
namespace {

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
              << table_of(findings.c_real) << "\n";
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

}  // namespace rankine::tools
