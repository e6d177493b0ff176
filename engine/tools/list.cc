#include "engine/tools/list.h"

#include <fmt/format.h>

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "engine/api/tuning/choose.h"
#include "engine/tools/algorithm_json.h"
#include "engine/tools/readable_formula.h"
#include "engine/tools/table.h"
#include "engine/tools/terminal.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr int kMostRanks = 1 << 20;
constexpr int kWidth = 80;  // where there is no terminal

// A formula as people write it, or what it comes to.
std::string shown(std::string_view formula, const ListOptions& options, const Params& params) {
  if (options.ranks > 0 && formula != kComputed) return evaluate(formula, params).to_string();
  return readable_formula(formula);
}

// Out and in, or once where they are the same.
std::string both(std::string_view out_formula, std::string_view in_formula,
                 const ListOptions& options, const Params& params) {
  const std::string out = shown(out_formula, options, params);
  const std::string in = shown(in_formula, options, params);
  return out == in ? out : out + ", " + in;
}

// Beyond these it would take long to look at every addition.
constexpr int kMostRanksAddedUp = 64;

// How floats of 16 and 8 bits are added up in f32 and rounded once: in one fold, or by sums that
// move as f32 (engine/compile/wide_sums.h). "": the line does not add up, or takes no such N.
std::string small_floats(const Algorithm& line, const Params& params) {
  if (!reduces(line.collective) || params.ranks > kMostRanksAddedUp) return "";
  if (line.refusal(line.only_taken(params))) return "";
  return brackets_in_words(line, params).starts_with("flat") ? "one fold" : "in f32";
}

// Of any number of ranks: what holds among a few.
std::string small_floats(const Algorithm& line) {
  Params params;
  for (params.ranks = 2; params.ranks <= 9; ++params.ranks) {
    if (small_floats(line, resolved(params)) == "in f32") {
      return fmt::format("in f32 from N = {}", params.ranks);
    }
  }
  return reduces(line.collective) ? "one fold" : "";
}

nlohmann::ordered_json line_json(const Algorithm& line, const ListOptions& options,
                                 const Params& params) {
  auto json = options.ranks == 0 ? algorithm_json(line) : algorithm_json(line, params);
  const bool refused = !json.contains("at") || json["at"].contains("refused");
  if (!refused && reduces(line.collective) && params.ranks <= kMostRanksAddedUp) {
    json["at"]["adds_up"] = brackets_in_words(line, params);
    json["at"]["small_floats"] = small_floats(line, params);
  }
  if (options.ranks == 0 && reduces(line.collective)) json["small_floats"] = small_floats(line);
  return json;
}

std::string summary_of(const Algorithm& line) {
  std::string text(line.summary);
  if (!line.other_bits.empty()) text += fmt::format(" ({}: never chosen)", line.other_bits);
  return text;
}

// For so many ranks: figures side by side.
std::vector<Cell> row_of(const Algorithm& line, const ListOptions& options, const Params& params) {
  std::string name(line.name);
  if (line.refusal(line.only_taken(params))) {
    return {name, "-", "-", "-", "-",
            fmt::format("not here: needs {}", line.needs.empty() ? line.allowed_when : line.needs)};
  }
  return {name, shown(line.rounds, options, params),
          both(line.sent, line.received, options, params),
          both(line.send_ports, line.receive_ports, options, params),
          reduces(line.collective) ? small_floats(line, params) : "-",
          join(split_list(line.parameters), ",")};
}

// For any number of ranks: formulas in full, under the algorithm.
std::string entry_of(const Algorithm& line, const ListOptions& options, const Params& params) {
  constexpr std::size_t kIndent = 6, kDeeper = 8;
  const int width = terminal_width(kWidth);
  std::string text = fmt::format("  {}\n", line.name);
  text += wrapped(summary_of(line), width, kIndent);
  const auto add = [&](std::string_view what, const std::string& value) {
    if (value.empty()) return;
    const std::string first = fmt::format("{:<17}{}", what, value);
    const bool fits = kIndent + first.size() <= static_cast<std::size_t>(width);
    text += fits ? std::string(kIndent, ' ') + first + "\n"
                 : wrapped(what, width, kIndent) + wrapped(value, width, kDeeper);
  };
  add("rounds", shown(line.rounds, options, params));
  add("sent, received/M", both(line.sent, line.received, options, params));
  add("ports", both(line.send_ports, line.receive_ports, options, params));
  add("16, 8 bits", small_floats(line));
  add("takes", join(split_list(line.parameters)));
  add("source", std::string(line.citation));
  return text;
}

}  // namespace

Result<Exit> list(const ListOptions& options, Console& console) {
  if (options.brief && (options.json || options.ranks > 0)) {
    return invalid_argument(fmt::format("--short has names and summaries only; {} asks for more",
                                        options.json ? "--json" : "--ranks"));
  }
  Params params;
  params.ranks = std::max(1, options.ranks);
  params.segments = options.segments;
  params = resolved(params);
  auto json = nlohmann::ordered_json::array();
  std::string text;
  for (const Collective collective : all_collectives()) {
    if (options.collective && collective != *options.collective) continue;
    std::string lines;
    Table table(as::text("algorithm"), "rounds", "sent, received/M", "ports", "16, 8 bits",
                as::text("takes"));
    Table names(as::text("", "name"), as::text("", "summary"));
    for (const Algorithm& line : catalogue()) {
      if (line.collective != collective) continue;
      if (options.brief) {
        names.add(line.name, line.summary);
        continue;
      }
      json.push_back(line_json(line, options, params));
      if (options.ranks > 0) {
        table.rows.push_back(row_of(line, options, params));
      } else {
        lines += entry_of(line, options, params);
      }
    }
    for (Table* rows : {&table, &names}) {
      if (!rows->rows.empty()) lines = to_text(*rows, "  ");
    }
    if (lines.empty()) continue;
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", name_of(collective), lines);
  }
  if (options.json) {
    console.out << json.dump(2) << "\n";
    return Exit::ok;
  }
  if (options.brief) {
    console.out << text;
    return Exit::ok;
  }
  std::string legend;
  if (options.ranks > 0) {
    for (const Parameter& row : parameters()) {
      if (!in_formulas(row)) continue;
      legend +=
          fmt::format("{}{} = {}", legend.empty() ? "" : ", ", row.letter, params.*row.number);
    }
  } else {
    legend =
        "N ranks, P segments, G ranks per group, A blocks per message, D dimensions of a torus, "
        "each() and most() over their sizes a, S skips, L levels that have several groups";
  }
  legend +=
      "; M bytes per rank. sent, received: by the busiest rank.\n"
      "computed: no closed form; rankine cost counts it in the schedule.\n"
      "ports: messages at once. Two values: out and in. --json has every field.\n"
      "16, 8 bits: sums of f16, bf16, f8e4m3, f8e5m2 are those of f32, rounded once.\n"
      "one fold: messages have the type; in f32: they have f32, 2 or 4 times the bytes.";
  console.out << text << "\n" << filled(legend, terminal_width(kWidth));
  return Exit::ok;
}

Subcommand add_list(Command tool) {
  auto options = std::make_shared<ListOptions>();
  const Command app = tool.add_subcommand(
      "list", "the catalogue: every algorithm with its cost, constraints and source");
  add_argument(app, "collective", options->collective, read_collective, "NAME", "only this one");
  add_argument(app, "-t,--ranks", options->ranks, Whole{1, kMostRanks}, "N",
               "compute the formulas for so many ranks");
  add_argument(app, "--segments", options->segments, Whole{1, 1 << 20}, "P",
               "P of pipelined algorithms, with --ranks (1)");
  app.add_flag("--short", options->brief, "a line per algorithm: its name and what it is");
  app.add_flag("--json", options->json, "one object per algorithm, with all fields");
  app.footer(
      "Examples:\n"
      "  rankine list\n"
      "  rankine list --short\n"
      "  rankine list all_reduce --ranks 8\n"
      "  rankine list --json");
  return {app, [options](Console& console) { return list(*options, console); }};
}

}  // namespace rankine::tools
