// Implements rankine reproduce: recomputes the figures of the papers and writes them as text, JSON
// and pictures.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "algorithms/torus.h"
#include "engine/base/files.h"
#include "engine/base/units.h"
#include "engine/cli/drawing.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/lab/commands.h"
#include "engine/papers/figures.h"
#include "engine/papers/statements.h"
#include "engine/papers/tables.h"

namespace rankine::reproduce {
namespace {

using tools::Cell, tools::Plot, tools::PlotCurve, tools::Table;
namespace as = tools::as;
using Json = nlohmann::ordered_json;

constexpr std::string_view kTrivanceKey = "trivance";
constexpr std::string_view kTrivanceTitle =
    "Juerss, Addanki & Schmid, Trivance: Latency-Optimal AllReduce by Shortcutting Multiport "
    "Networks";

// All computed results about Trivance.
struct Trivance {
  Profiles profiles;
  std::vector<TableRow> rows;
  std::vector<Panel> panels;
  std::vector<Outcome> outcomes;
};

std::size_t agreeing(const std::vector<Outcome>& outcomes) {
  return static_cast<std::size_t>(std::count_if(outcomes.begin(), outcomes.end(),
                                                [](const Outcome& each) { return each.agrees; }));
}

struct Picture {
  std::string name, svg;
};

// Trivance (L) at the distances that section 4.4 prints, beside the Trivance of the panel.
constexpr std::string_view kAtDistances = "Trivance at 4.4's distances";
double gain_at_distances(const Panel& panel, double bytes) {
  const Panel printed = at_printed_distances(panel);
  return printed.time(printed.trivance(), bytes) / panel.time(panel.trivance(), bytes) - 1;
}

constexpr std::string_view kGainLabel = "time over that of Trivance, less 1, in percent";

Plot plot_of(const Panel& panel) {
  Plot plot{.title = std::string(panel.spec.title) + "; Trivance: " + Panel::trivance_lines(),
            .y_label = std::string(kGainLabel),
            .y_low = -60,
            .y_high = 100};
  for (const Curve& curve : panel.curves) {
    if (&curve == &panel.trivance()) continue;
    PlotCurve drawn{.name = std::string(curve.contender->name)};
    bool before = curve.latency == nullptr;
    for (const std::uint64_t size : figure_sizes()) {
      const auto bytes = static_cast<double>(size);
      const bool large = panel.form(curve, bytes) == Form::bandwidth;
      // A hollow mark shows the first size that takes the B form.
      drawn.points.push_back({bytes, 100 * panel.gain(curve, bytes), large && !before});
      before = large;
    }
    plot.curves.push_back(std::move(drawn));
  }
  PlotCurve beside{.name = std::string(kAtDistances)};
  for (const std::uint64_t size : figure_sizes()) {
    const auto bytes = static_cast<double>(size);
    beside.points.push_back({bytes, 100 * gain_at_distances(panel, bytes)});
  }
  plot.curves.push_back(std::move(beside));
  plot.dotted = panel.change_of_form(panel.trivance());
  plot.dotted_name = "Trivance: L to B";
  return plot;
}

// Figure 8: for every bandwidth, the fastest of the other algorithms.
Plot plot_of_bandwidths(const std::vector<const Panel*>& panels) {
  Plot plot{.title = "Figure 8: 32 x 32 torus, the fastest other algorithm against " +
                     Panel::trivance_lines(),
            .y_label = std::string(kGainLabel),
            .y_low = -20,
            .y_high = 40};
  for (const Panel* panel : panels) {
    PlotCurve drawn{.name = fmt::format("{} Gb/s", panel->spec.gigabits)};
    for (const std::uint64_t size : figure_sizes()) {
      const auto bytes = static_cast<double>(size);
      drawn.points.push_back({bytes, 100 * panel->gain(panel->rival(bytes), bytes)});
    }
    plot.curves.push_back(std::move(drawn));
  }
  return plot;
}

std::vector<Picture> pictures_of(const std::vector<Panel>& panels) {
  std::vector<Picture> out;
  std::vector<const Panel*> bandwidths;
  for (const Panel& panel : panels) {
    if (panel.spec.id.starts_with("8-")) {
      bandwidths.push_back(&panel);
    } else {
      out.push_back({fmt::format("trivance-figure-{}.svg", panel.spec.id), to_svg(plot_of(panel))});
    }
  }
  out.push_back({"trivance-figure-8.svg", to_svg(plot_of_bandwidths(bandwidths))});
  return out;
}

Json json_of(const Value& value) {
  return {{"exact", value.exact() ? Json(formulas::to_string(value)) : Json(nullptr)},
          {"number", static_cast<double>(value.approximate())}};
}
Json json_of(const std::optional<Value>& value) { return value ? json_of(*value) : Json(nullptr); }
Json json_of(const TableEntry& entry) {
  return {{"printed", json_of(entry.printed)},
          {"derived", json_of(entry.derived)},
          {"found", json_of(entry.found)},
          {"exact", entry.exact()}};
}

Json json_of(const Panel& panel) {
  Json curves = Json::array();
  const auto sizes = figure_sizes();
  for (const Curve& curve : panel.curves) {
    Json seconds = Json::array(), gains = Json::array(), forms = Json::array();
    for (const std::uint64_t size : sizes) {
      const auto bytes = static_cast<double>(size);
      seconds.push_back(panel.time(curve, bytes));
      gains.push_back(100 * panel.gain(curve, bytes));
      forms.push_back(letter_of(panel.form(curve, bytes)));
    }
    const auto change = panel.change_of_form(curve);
    curves.push_back({{"algorithm", curve.contender->name},
                      {"seconds", std::move(seconds)},
                      {"gain_percent", std::move(gains)},
                      {"form", std::move(forms)},
                      {"change_of_form_bytes", change ? Json(*change) : Json(nullptr)}});
  }
  Json changes = Json::array();
  for (const Crossover& crossover : crossovers(panel)) {
    changes.push_back({{"bytes", crossover.bytes},
                       {"before", crossover.before->contender->name},
                       {"after", crossover.after->contender->name}});
  }
  Json beside = Json::array();
  for (const std::uint64_t size : sizes) {
    beside.push_back(100 * gain_at_distances(panel, static_cast<double>(size)));
  }
  return {{"id", panel.spec.id},
          {"title", panel.spec.title},
          {"trivance", Panel::trivance_lines()},
          {"gain_percent_at_printed_distances", std::move(beside)},
          {"dims", panel.spec.dims},
          {"gigabits_per_second", panel.spec.gigabits},
          {"sizes", sizes},
          {"curves", std::move(curves)},
          {"crossovers", std::move(changes)}};
}

Json end_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const Outcome& outcome) {
  const Statement& s = *outcome.statement;
  return {{"id", s.id},
          {"where", s.where},
          {"statement", s.text},
          {"measure", name_of(s.measure)},
          {"unit", name_of(unit_of(s.measure))},
          {"panels", s.panels},
          {"others", s.others},
          {"stated", {{"text", stated_text(s)}, {"low", end_of(s.low)}, {"high", end_of(s.high)}}},
          {"found",
           {{"text", found_text(outcome)},
            {"low", end_of(outcome.low.value)},
            {"low_at", outcome.low.at},
            {"high", end_of(outcome.high.value)},
            {"high_at", outcome.high.at}}},
          {"allowed", s.allowed},
          {"distance", end_of(outcome.distance)},
          {"verdict", outcome.agrees ? "holds" : "does not hold"},
          {"why", outcome.agrees ? "" : s.why}};
}

Json to_json(const Trivance& trivance) {
  Json tables = Json::array(), figures = Json::array(), rows = Json::array();
  for (const TableRow& row : trivance.rows) {
    tables.push_back({{"table", row.table},
                      {"algorithm", row.line->name},
                      {"line", row.line->line},
                      {"routing", rankine::name_of(row.line->routing)},
                      {"dims", row.dims},
                      {"lambda", json_of(row.lambda)},
                      {"delta", json_of(row.delta)},
                      {"theta", json_of(row.theta)},
                      {"why", row.why}});
  }
  for (const Panel& panel : trivance.panels) figures.push_back(json_of(panel));
  for (const Outcome& outcome : trivance.outcomes) rows.push_back(json_of(outcome));
  return {{"paper", kTrivanceKey},         {"title", kTrivanceTitle},
          {"tables", std::move(tables)},   {"figures", std::move(figures)},
          {"statements", std::move(rows)}, {"agree", agreeing(trivance.outcomes)}};
}

std::string number(const Value& value) {
  return fmt::format("{:.4g}", static_cast<double>(value.approximate()));
}
std::string number(const std::optional<Value>& value) { return value ? number(*value) : "-"; }

void print_table(std::ostream& out, const std::vector<TableRow>& all, int table) {
  out << fmt::format(
      "Table {}: multiples of the optimum. printed: the paper's entry (n to infinity); derived: "
      "the text's\nvalue for this number of ranks; found: the schedule's value; =: the last two "
      "are equal, as fractions.\n\n",
      table);
  Table text(as::text(""), as::text(""), "", "", "", "", "", "", "", "", "", as::text(""));
  text.add("", "", "rounds", "", "", "bytes", "", "", "delay");
  text.add("algorithm", "ranks", "printed", "derived", "found", "printed", "derived", "found",
           "printed", "derived", "found");
  std::vector<std::string> notes;
  for (const TableRow& row : all) {
    if (row.table != table) continue;
    std::vector<Cell>& cells = text.add(row.line->name, dims_text(row.dims));
    for (const TableEntry* entry : {&row.lambda, &row.delta, &row.theta}) {
      cells.push_back(number(entry->printed));
      cells.push_back(number(entry->derived));
      cells.push_back(number(entry->found) + (entry->exact() ? " =" : "  "));
    }
    if (!row.why.empty()) {
      const std::string why(row.why);
      const auto known = std::find(notes.begin(), notes.end(), why);
      cells.push_back(fmt::format("({})", known - notes.begin() + 1));
      if (known == notes.end()) notes.push_back(why);
    }
  }
  out << to_text(text);
  for (std::size_t i = 0; i < notes.size(); ++i) out << fmt::format("({}) {}\n", i + 1, notes[i]);
  out << "\n";
}

void print_figure(std::ostream& out, const Panel& panel) {
  constexpr std::size_t kEvery = 2;  // the figures' marks are powers of four
  out << panel.spec.title << "; Trivance: " << Panel::trivance_lines() << "\n\n";
  Table table(as::bytes("size"));
  for (const Curve& curve : panel.curves) {
    const std::string name = std::string(curve.contender->name) + ", %";
    table.columns.push_back(&curve == &panel.trivance() ? "Trivance" : as::number(name));
  }
  table.columns.push_back(as::number(std::string(kAtDistances) + ", %"));
  const auto sizes = figure_sizes();
  for (std::size_t i = 0; i < sizes.size(); i += kEvery) {
    const auto bytes = static_cast<double>(sizes[i]);
    std::vector<Cell>& cells = table.add(bytes);
    for (const Curve& curve : panel.curves) {
      const std::string_view form = letter_of(panel.form(curve, bytes));
      cells.push_back(&curve == &panel.trivance()
                          ? fmt::format("{} {}", format_seconds(panel.time(curve, bytes)), form)
                          : fmt::format("{:+.1f} {}", 100 * panel.gain(curve, bytes), form));
    }
    cells.push_back(fmt::format("{:+.1f}", 100 * gain_at_distances(panel, bytes)));
  }
  out << to_text(table) << "fastest: ";
  std::string text(panel.fastest(static_cast<double>(sizes.front())).contender->name);
  for (const Crossover& crossover : crossovers(panel)) {
    text += fmt::format(", {} from {}", crossover.after->contender->name,
                        format_bytes(crossover.bytes));
  }
  out << text << "\nfrom L to B:";
  std::string changes;
  for (const Curve& curve : panel.curves) {
    if (const auto bytes = panel.change_of_form(curve)) {
      changes += fmt::format("{} {} at {}", changes.empty() ? "" : ",", curve.contender->name,
                             format_bytes(*bytes));
    }
  }
  out << changes << "\n\n";
}

void print(std::ostream& out, const Trivance& trivance) {
  out << kTrivanceTitle << "\n\n";
  print_table(out, trivance.rows, 1);
  print_table(out, trivance.rows, 2);
  out << "Figures 6 to 10: time over that of Trivance, less 1, in percent (positive: Trivance is "
         "faster); L or B is the form\nthat is the faster one. Eq. (1), 1.5 us per round, 200 ns "
         "per hop.\n\n";
  for (const Panel& panel : trivance.panels) print_figure(out, panel);
  out << "Statements. Gains are those of the figures, against the fastest of the others.\n\n";
  for (const Outcome& outcome : trivance.outcomes) {
    const Statement& s = *outcome.statement;
    out << fmt::format("{}  [{}]\n  {}\n  paper {}; found {}: {}\n", s.id, s.where, s.text,
                       stated_text(s), found_text(outcome), verdict_text(outcome));
    if (!outcome.agrees && !s.why.empty()) out << fmt::format("  {}\n", s.why);
    out << "\n";
  }
  out << fmt::format("{} of {} statements hold\n", agreeing(trivance.outcomes),
                     trivance.outcomes.size());
}

}  // namespace
}  // namespace rankine::reproduce

namespace rankine::tools {
namespace {

using namespace reproduce;  // NOLINT: this file is about nothing else

struct ReproduceArguments {
  std::string paper;  // trivance, the only one
  std::string svg;    // a folder for the figures; empty: none
  bool json = false;
};

std::unique_ptr<Trivance> work_out_trivance(const ProgressReport& progress) {
  auto out = std::make_unique<Trivance>();
  std::vector<ProfileKey> keys = table_keys();
  for (ProfileKey& key : figure_keys()) keys.push_back(std::move(key));
  out->profiles.work_out(std::move(keys), progress);
  out->rows = table_rows(out->profiles);
  out->panels = reproduce::panels(out->profiles);
  for (const Statement& each : statements()) {
    out->outcomes.push_back(outcome_of(each, out->panels));
  }
  return out;
}

// Makes the folder if it is missing, and checks that files can be made in it.
Status prepare_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  const bool there = !failed && std::filesystem::is_directory(folder, failed);
  if (there && check_replaceable((std::filesystem::path(folder) / "figure.svg").string()).ok()) {
    return {};
  }
  return {Code::system,
          fmt::format("--svg is '{}', which cannot be written; allowed are new folders "
                      "and writable folders",
                      folder)};
}

Status write_pictures(const std::string& folder, const std::vector<Picture>& pictures) {
  for (const Picture& picture : pictures) {
    const auto path = std::filesystem::path(folder) / picture.name;
    Status status = of_option("--svg", replace_file(path.string(), picture.svg));
    if (!status.ok()) return status;
  }
  return {};
}

Result<std::string> read_reproduced_paper(std::string_view argument, std::string_view text) {
  if (text == kTrivanceKey) return std::string(text);
  if (text == "traff") {
    return invalid_argument(
        "paper is 'traff', whose statements are claims; 'rankine claims traff' checks them");
  }
  return unknown_name(argument, text, std::span(&kTrivanceKey, 1));
}

Result<Exit> reproduce_papers(const ReproduceArguments& arguments, Console& console) {
  if (!arguments.svg.empty()) {
    // Checks the folder before the work begins, so that no work is lost.
    Status status = prepare_folder(arguments.svg);
    if (!status.ok()) return status;
  }
  std::unique_ptr<Trivance> trivance;
  {
    Progress progress(console);
    trivance = work_out_trivance([&](std::size_t done, std::size_t all) {
      if (!progress.due()) return;
      progress.show(fmt::format("{} of {} schedules of Trivance's evaluation", done, all));
    });
  }
  if (!arguments.svg.empty()) {
    const Status status = write_pictures(arguments.svg, pictures_of(trivance->panels));
    if (!status.ok()) return status;
  }
  if (arguments.json) {
    const auto papers = nlohmann::ordered_json::array({to_json(*trivance)});
    console.out << nlohmann::ordered_json{{"papers", papers}}.dump(2) << "\n";
  } else {
    print(console.out, *trivance);
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_reproduce(Command tool) {
  auto owned = std::make_shared<ReproduceArguments>();
  ReproduceArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "reproduce", "a paper's tables, figures and statements, recomputed from the schedules");
  add_argument(app, "paper", a.paper, read_reproduced_paper, "NAME", "trivance");
  add_text(app, "--svg", a.svg, "DIR", "write the figures into this folder, one file per part");
  app.add_flag("--json", a.json, "everything as JSON: tables, figures, statements");
  app.footer(
      "Examples:\n"
      "  rankine reproduce trivance --svg figures\n"
      "  rankine reproduce --json > papers.json\n"
      "Verdicts compare the paper's numbers with the engine's, by Eq. (1); rankine claims asks "
      "flows and packets, too.");
  return {app, [owned](Console& console) { return reproduce_papers(*owned, console); }};
}

}  // namespace rankine::tools
