// The commands that show the catalogue: `rankine list`, `rankine show` and `rankine verify`.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/parameters.h"
#include "algorithms/schedule/combine.h"
#include "algorithms/torus.h"
#include "engine/api/check.h"
#include "engine/api/environment.h"
#include "engine/api/plans.h"
#include "engine/api/tuning/choose.h"
#include "engine/base/files.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/drawing.h"
#include "engine/cli/formats/formats.h"
#include "engine/cli/harness.h"
#include "engine/cli/machine.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/fabric.h"
#include "engine/read/count.h"
#include "engine/read/draw.h"
#include "engine/read/sweep.h"
#include "engine/read/verify.h"
#include "engine/run/plan.h"
#include "numa/cpus.h"

namespace rankine::tools {
namespace {

constexpr int kMostRanks = 1 << 20;  // as of algorithms
constexpr int kPlainWidth = 80;      // without a terminal

struct ListOptions {
  std::optional<Collective> collective;  // restricts the list
  int ranks = 0;                         // N for evaluating the formulas; 0: formulas are printed
  int segments = 1;
  bool json = false;
  bool brief = false;  // one line per algorithm
};

// A formula as text, or its value.
std::string shown(std::string_view formula, const ListOptions& options, const Params& params) {
  if (options.ranks > 0 && formula != kComputed) return evaluate(formula, params).to_string();
  return readable_formula(formula);
}

// Both formulas, or one if they are equal.
std::string both(std::string_view out_formula, std::string_view in_formula,
                 const ListOptions& options, const Params& params) {
  const std::string out = shown(out_formula, options, params);
  const std::string in = shown(in_formula, options, params);
  return out == in ? out : out + ", " + in;
}

// With more ranks, examining every addition takes too long.
constexpr int kMostRanksAddedUp = 64;

// The way of adding floats of 16 and 8 bits in f32 with one rounding: in one fold, or by sums that
// move as f32 (engine/compile/passes.h). "": the entry does not add, or does not take this N.
std::string small_floats(const Algorithm& entry, const Params& params) {
  if (!reduces(entry.collective) || params.ranks > kMostRanksAddedUp) return "";
  if (entry.refusal(entry.only_taken(params))) return "";
  return brackets_in_words(entry, params).starts_with("flat") ? "one fold" : "in f32";
}

// The way for any number of ranks, inferred from a few numbers of ranks.
std::string small_floats(const Algorithm& entry) {
  Params params;
  for (params.ranks = 2; params.ranks <= 9; ++params.ranks) {
    if (small_floats(entry, resolved(params)) == "in f32") {
      return fmt::format("in f32 from N = {}", params.ranks);
    }
  }
  return reduces(entry.collective) ? "one fold" : "";
}

nlohmann::ordered_json entry_json(const Algorithm& entry, const ListOptions& options,
                                  const Params& params) {
  auto json = options.ranks == 0 ? algorithm_json(entry) : algorithm_json(entry, params);
  const bool refused = !json.contains("at") || json["at"].contains("refused");
  if (!refused && reduces(entry.collective) && params.ranks <= kMostRanksAddedUp) {
    json["at"]["adds_up"] = brackets_in_words(entry, params);
    json["at"]["small_floats"] = small_floats(entry, params);
  }
  if (options.ranks == 0 && reduces(entry.collective)) json["small_floats"] = small_floats(entry);
  return json;
}

std::string summary_of(const Algorithm& entry) {
  std::string text(entry.summary);
  if (!entry.other_bits.empty()) text += fmt::format(" ({}: never chosen)", entry.other_bits);
  return text;
}

// A row of figures for one number of ranks.
std::vector<Cell> row_of(const Algorithm& entry, const ListOptions& options, const Params& params) {
  std::string name(entry.name);
  if (entry.refusal(entry.only_taken(params))) {
    return {
        name,
        "-",
        "-",
        "-",
        "-",
        fmt::format("not here: needs {}", entry.needs.empty() ? entry.allowed_when : entry.needs)};
  }
  return {name,
          shown(entry.rounds, options, params),
          both(entry.sent, entry.received, options, params),
          both(entry.send_ports, entry.receive_ports, options, params),
          reduces(entry.collective) ? small_floats(entry, params) : "-",
          join(split_list(entry.parameters), ",")};
}

// An entry for any number of ranks: full formulas under the algorithm.
std::string entry_of(const Algorithm& entry, const ListOptions& options, const Params& params) {
  constexpr std::size_t kIndent = 6, kDeeper = 8;
  const int width = terminal_width(kPlainWidth);
  std::string text = fmt::format("  {}\n", entry.name);
  text += wrapped(summary_of(entry), width, kIndent);
  const auto add = [&](std::string_view what, const std::string& value) {
    if (value.empty()) return;
    const std::string first = fmt::format("{:<17}{}", what, value);
    const bool fits = kIndent + first.size() <= static_cast<std::size_t>(width);
    text += fits ? std::string(kIndent, ' ') + first + "\n"
                 : wrapped(what, width, kIndent) + wrapped(value, width, kDeeper);
  };
  add("rounds", shown(entry.rounds, options, params));
  add("sent, received/M", both(entry.sent, entry.received, options, params));
  add("ports", both(entry.send_ports, entry.receive_ports, options, params));
  add("16, 8 bits", small_floats(entry));
  add("takes", join(split_list(entry.parameters)));
  add("source", std::string(entry.citation));
  return text;
}

Result<Exit> run_list(const ListOptions& options, Console& console) {
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
    for (const Algorithm& entry : catalogue()) {
      if (entry.collective != collective) continue;
      if (options.brief) {
        names.add(entry.name, entry.summary);
        continue;
      }
      json.push_back(entry_json(entry, options, params));
      if (options.ranks > 0) {
        table.rows.push_back(row_of(entry, options, params));
      } else {
        lines += entry_of(entry, options, params);
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
  console.out << text << "\n" << filled(legend, terminal_width(kPlainWidth));
  return Exit::ok;
}

}  // namespace

Subcommand add_list(Command tool) {
  auto options = std::make_shared<ListOptions>();
  const Command app = tool.add_subcommand(
      "list", "the catalogue: every algorithm with its cost, constraints and source");
  add_argument(app, "collective", options->collective, read_collective, "NAME", "only this one");
  add_argument(app, "-t,--ranks", options->ranks, Whole{1, kMostRanks}, "N",
               "compute the formulas for N ranks");
  add_argument(app, "--segments", options->segments, Whole{1, 1 << 20}, "P",
               "P of pipelined algorithms, with --ranks (1)");
  app.add_flag("--short", options->brief, "a line per algorithm: its name and summary");
  app.add_flag("--json", options->json, "one object per algorithm, with all fields");
  app.footer(
      "Examples:\n"
      "  rankine list\n"
      "  rankine list --short\n"
      "  rankine list all_reduce --ranks 8\n"
      "  rankine list --json");
  return {app, [options](Console& console) { return run_list(*options, console); }};
}

namespace {

struct ShowOptions {
  AlgorithmArguments algorithm{.begin = {.ranks = 4}, .most_ranks = 128};  // more ranks make rows
                                                                           // too wide
  std::optional<int> round;                                                // restricts the drawing
  std::optional<int> ports;  // the network's ports, for a comparison; none: no network
  bool transfers_only = false;
  std::string colour = "auto", lines = "auto";
  int width = 0;  // 0: the terminal's width
  bool json = false;
  const ScheduleFormat* format = nullptr;  // the schedule in this format, in place of the drawing
  bool lower = false;    // with `format`: messages in place of switches' transfers
  bool all = false;      // all rounds and lines without a limit
  std::string svg_file;  // a picture, in place of the text
  // The plan that ranks execute, in place of the schedule: its ops, of one rank or of all.
  bool plan = false;
  std::optional<int> rank;
  std::optional<std::size_t> bytes;    // of the vector, for plans and GOAL; none: 64 KiB
  std::optional<Transport> transport;  // none: the engine's choice
};

constexpr int kMostSvgRounds = 60;
constexpr std::size_t kShownBytes = 64 << 10;

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = environment_variable(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text = value;
    return text.find("UTF-8") != std::string_view::npos ||
           text.find("utf8") != std::string_view::npos;
  }
  return false;
}

// Follows no-color.org, and terminals that report no colours.
bool has_colours() {
  const char* without = environment_variable("NO_COLOR");
  const char* terminal = environment_variable("TERM");
  return (without == nullptr || *without == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

bool chosen(const std::string& when, bool automatic) {
  return when == "always" || (when == "auto" && automatic);
}

constexpr std::string_view kColourModes[] = {"auto", "always", "never"};

// Draws round k alone: draws a schedule that ends with round k as a separate phase, and returns the
// part of that phase.
std::string draw_round(const Schedule& schedule, const CollectiveSpec& goal, int k,
                       const DrawOptions& drawing) {
  Schedule cut = schedule;
  cut.rounds = k + 1;
  const std::string mark = "\x01";  // occurs in no drawing
  cut.phases = {{"before", k}, {mark, 1}};
  if (k == 0) cut.phases.erase(cut.phases.begin());
  std::string text = draw(cut, goal, drawing);
  text.erase(0, text.find('\n', text.find(mark)) + 1);
  return fmt::format("{}: {}, {}, round {} of {}\n\n{}", name_of(goal.collective),
                     counted(schedule.ranks, "rank"), counted(schedule.blocks, "block"), k,
                     schedule.rounds, text);
}

// Cuts off a text that is too long to read, and names the option for the rest.
std::string cut(std::string text, bool all) {
  constexpr std::size_t kMostLines = 200;
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (all || lines <= kMostLines) return text;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kMostLines; ++i) at = text.find('\n', at) + 1;
  text.resize(at);
  return text + fmt::format(
                    "... {} lines more: --all shows them, --round K one round, --transfers "
                    "leaves out the ranks' holdings\n",
                    lines - kMostLines);
}

// Refuses more than one form, and options that the form does not support.
Status check_form(const ShowOptions& options) {
  std::vector<std::string_view> forms;
  if (!options.svg_file.empty()) forms.push_back("--svg");
  if (options.json) forms.push_back("--json");
  if (options.format != nullptr) forms.push_back("--format");
  if (options.plan && !options.json) forms.push_back("--plan");
  if (forms.size() > 1) {
    return invalid_argument(
        fmt::format("{} and {} are given; allowed is one of them", forms.front(), forms.back()));
  }
  const bool sizes = options.bytes && options.format == nullptr;
  if (!options.plan && (options.rank || sizes || options.transport)) {
    return invalid_argument("--rank, --bytes and --transport belong to --plan; add --plan");
  }
  if (options.plan && options.round) {
    return invalid_argument(
        fmt::format("--round is {}; --plan prints all rounds; leave out --round", *options.round));
  }
  if (options.format != nullptr && options.round) {
    return invalid_argument(fmt::format(
        "--round is {}; --format writes whole schedules only; leave out --round", *options.round));
  }
  if (options.transfers_only && !forms.empty()) {
    return invalid_argument(
        fmt::format("--transfers is given with {}; allowed are drawings only", forms.front()));
  }
  return {};
}

Json view_json(const RoundView& view) {
  Json json;
  json["round"] = view.round;
  json["phase"] = view.phase;
  Json& transfers = json["transfers"] = Json::array();
  for (const TransferView& transfer : view.transfers) {
    transfers.push_back({{"from", transfer.from},
                         {"to", transfer.to},
                         {"what", transfer.what},
                         {"what_plane", transfer.what_plane},
                         {"where", transfer.where},
                         {"where_plane", transfer.where_plane},
                         {"act", transfer.kind == TransferKind::copy ? "copy" : "reduce"}});
  }
  Json& holdings = json["holdings"] = Json::array();
  for (std::size_t r = 0; r < view.ranks.size(); ++r) {
    Json places = Json::array();
    for (const HoldingView& place : view.ranks[r]) {
      places.push_back({{"block", place.block},
                        {"plane", place.plane},
                        {"contributions", place.contributions},
                        {"complete", place.complete},
                        {"needed", place.needed},
                        {"written", place.written}});
    }
    holdings.push_back({{"rank", r}, {"places", std::move(places)}});
  }
  return json;
}

// The ops of a rank: what each waits for, reads and writes.
Table ops_table(const Plan& plan, Rank rank) {
  Table table("round", as::text("op"), "peer", "number", as::bytes("bytes"), as::text("to"),
              as::text("from"), as::text("how"));
  const auto joined = [](const auto& parts) { return fmt::format("{}", fmt::join(parts, ", ")); };
  for (const OpView& op : view_ops(plan, rank)) {
    table.add(op.round, op.code, op.peer, op.number, op.bytes > 0 ? Cell(op.bytes) : Cell(),
              joined(op.to), joined(op.from), joined(op.how));
  }
  return table;
}

// The plan of a first call among threads, by this version's costs: tables of measurements and
// variables of the environment change nothing.
Result<std::unique_ptr<CachedPlan>> plan_of(const ShowOptions& options, const Algorithm& entry,
                                            const Params& params) {
  Call call{.collective = entry.collective, .root = params.root, .peer = params.peer};
  call.count = count_for(entry.collective, params.ranks, options.bytes.value_or(kShownBytes),
                         size_of(call.type));
  if (entry.collective == Collective::barrier) {  // as barrier_of()
    call.count = 1;
    call.type = DataType::u32;
    call.op = ReduceOp::bor;
  }
  set_parameters(params, call.options);
  call.options.algorithm = entry.name;
  call.options.transport = options.transport;
  return plan_among(params.ranks, call, {}, {}, nullptr, options.ports.value_or(0),
                    options.algorithm.written);
}

Result<Exit> show_plan(const ShowOptions& options, const Algorithm& entry, const Params& params,
                       Console& console) {
  if (options.rank && *options.rank >= params.ranks) {
    return invalid_argument(
        fmt::format("--rank is {}; allowed are 0 to {}", *options.rank, params.ranks - 1));
  }
  const auto made = plan_of(options, entry, params).value();
  const Plan& plan = made->plan;
  Json json = {{"collective", name_of(entry.collective)},
               {"algorithm", entry.name},
               {"ranks", params.ranks}};
  write_parameters(entry, resolved(params), json, json);
  json["transport"] = name_of(plan.transport);
  Json& ranks = json["plan"] = Json::array();
  std::string text =
      fmt::format("{} by {} among {} ranks, {} transport\n", name_of(entry.collective), entry.name,
                  params.ranks, name_of(plan.transport));
  for (Rank r = options.rank.value_or(0); r <= options.rank.value_or(params.ranks - 1); ++r) {
    const RankPlan& own = plan.rank[static_cast<std::size_t>(r)];
    Table table = ops_table(plan, r);
    table.title = fmt::format("\nrank {}: {}, {} of scratch", r, counted(own.ops.size(), "op"),
                              format_bytes(static_cast<double>(own.scratch_bytes)));
    Json traffic = Json::array();
    for (const Traffic& one : own.traffic) {
      table.title += fmt::format("; {} to rank {}, {} from it", counted(one.sent, "message"),
                                 one.peer, one.received);
      traffic.push_back({{"peer", one.peer}, {"sent", one.sent}, {"received", one.received}});
    }
    text += to_text(table);
    ranks.push_back({{"rank", r},
                     {"scratch_bytes", own.scratch_bytes},
                     {"traffic", std::move(traffic)},
                     {"ops", to_json(table)}});
  }
  console.out << (options.json ? json.dump(1) + "\n" : text);
  return Exit::ok;
}

Result<const ScheduleFormat*> read_format(std::string_view argument, std::string_view text) {
  std::vector<std::string_view> names;
  for (const ScheduleFormat& format : schedule_formats()) {
    if (format.name == text) return &format;
    names.push_back(format.name);
  }
  return unknown_name(argument, text, names);
}

Result<Exit> run_show(const ShowOptions& options, Console& console) {
  check_form(options).throw_if_error();
  std::vector<std::string> notes;
  const auto asked = asked_algorithms(options.algorithm, notes).value();
  if (asked.size() > 1 || !notes.empty()) return one_algorithm_only(options.algorithm);
  const Algorithm& entry = *asked.front().algorithm;
  Params params = asked.front().params;
  if (params.segments == 0 && entry.takes("segments")) {
    return invalid_argument(
        "--segments is 'auto', which goes by size and network, and a drawing has neither; allowed "
        "are whole numbers from 1");
  }
  if (const auto refusal = entry.refusal(params)) return invalid_argument(*refusal);
  if (options.plan) return show_plan(options, entry, params, console);
  params = resolved(params);
  const Schedule schedule = entry.make(params);
  const CollectiveSpec goal = goal_of(entry, params, schedule);
  if (options.round && *options.round >= schedule.rounds) {
    return invalid_argument(schedule.rounds == 0
                                ? fmt::format("--round is {}; {} among {} ranks has no rounds",
                                              *options.round, entry.name, params.ranks)
                                : fmt::format("--round is {}; allowed are 0 to {}", *options.round,
                                              schedule.rounds - 1));
  }

  if (options.format != nullptr) {
    const auto text = options.format->write(options.lower ? lower(schedule, {}) : schedule, goal,
                                            options.bytes.value_or(kShownBytes));
    if (!text.ok()) {
      return invalid_argument(
          fmt::format("--format {}: {}", options.format->name, text.status().text()));
    }
    console.out << *text;
    return Exit::ok;
  }
  const RankCounts busiest = count(schedule).busiest;
  const int needed = std::max(busiest.send_ports, busiest.receive_ports);
  if (options.json) {
    Json json = {
        {"collective", name_of(entry.collective)},
        {"algorithm", entry.name},
        {"summary", entry.summary},
        {"citation", entry.citation},
        {"ranks", schedule.ranks},
        {"blocks", schedule.blocks},
        {"planes", schedule.planes},
        {"rounds", schedule.rounds},
        {"root", -1},
        {"segments", 0},
        {"group", 0},
        {"aggregation", 0},
        {"ports_needed", needed},
    };
    if (options.ports) {
      json["ports"] = *options.ports;
      json["serialises"] = rounds_serialise(needed, *options.ports);
    }
    write_parameters(entry, params, json, json);
    auto& views = json["views"] = Json::array();
    for (const RoundView& view : view_rounds(schedule, goal)) {
      if (!options.round || view.round == *options.round) views.push_back(view_json(view));
    }
    console.out << json.dump(1) << "\n";
    return Exit::ok;
  }

  if (!options.svg_file.empty()) {
    const std::string title = fmt::format("{} by {} among {} ranks", name_of(entry.collective),
                                          entry.name, schedule.ranks);
    const int most = options.all ? schedule.rounds : std::min(schedule.rounds, kMostSvgRounds);
    const std::string svg =
        schedule_svg(title, schedule, goal, options.round.value_or(0), options.round ? 1 : most);
    write_picture("--svg", options.svg_file, svg).throw_if_error();
    if (!options.round && most < schedule.rounds) {
      console.err << fmt::format(
          "rankine show: --svg has the first {} of {} rounds; --all draws all\n", most,
          schedule.rounds);
    }
    return Exit::ok;
  }

  const DrawOptions drawing{
      .colour = chosen(options.colour, console.out_is_terminal && has_colours()),
      .utf8 = chosen(options.lines, console.out_is_terminal && locale_is_utf8()),
      .width = options.width > 0 ? options.width : terminal_width(100),
      .states = !options.transfers_only};
  console.out << fmt::format("{} ({}): {}\n", entry.name, entry.citation, entry.summary);
  if (!options.round) console.out << trees_text(schedule, goal, drawing.utf8);
  console.out << cut(options.round ? draw_round(schedule, goal, *options.round, drawing)
                                   : draw(schedule, goal, drawing),
                     options.all);
  if (options.ports) {
    console.out << entry.name << " " << port_budget(needed, *options.ports) << "\n";
  } else if (needed > 1) {
    console.out << entry.name << " " << port_need(needed) << "\n";
  }
  return Exit::ok;
}

}  // namespace

Subcommand add_show(Command tool) {
  auto owned = std::make_shared<ShowOptions>();
  ShowOptions& o = *owned;
  const Command app = tool.add_subcommand("show", "draw an algorithm round by round");
  add_algorithm_arguments(app, o.algorithm, {.ranks = "ranks (4)", .files = true}).required();
  add_argument(app, "--round", o.round, Whole{0, 1'000'000}, "K", "only this one, from 0");
  add_argument(app, "--ports", o.ports, Whole{1, Fabric::kMostPorts}, "K",
               "ports of a network, compared with the need of every round");
  app.add_flag("--transfers", o.transfers_only, "without the ranks' holdings");
  add_argument(app, "--colour,--color", o.colour, OneOf{kColourModes}, "WHEN",
               "auto, always or never (auto)");
  add_argument(app, "--utf8", o.lines, OneOf{kColourModes}, "WHEN",
               "lines and arrows: auto, always or never (auto)");
  add_argument(app, "--width", o.width, Whole{20, 10'000}, "N",
               "columns to keep to (the terminal's)");
  app.add_flag("--all", o.all, "drawings to their end, at any length");
  add_picture_file(app, "--svg", o.svg_file, "ranks side by side and an arrow per message");
  app.add_flag("--json", o.json, "transfers and holdings of every round");
  add_argument(app, "--format", o.format, read_format, "NAME",
               "the schedule as a file that 'rankine check' reads: text, json, msccl (XML of MSCCL "
               "and RCCL), mscclpp (execution plan of MSCCL++) or goal (LogGOPSim, with --bytes)");
  app.add_flag("--lower", o.lower, "with --format: switches' transfers become messages");
  app.add_flag("--plan", o.plan,
               "the ops that ranks execute, with waits, places and bytes; also as --json");
  add_argument(app, "--rank", o.rank, Whole{0, 127}, "R", "with --plan: only this rank");
  add_argument(app, "--bytes", o.bytes, parse_size, "SIZE",
               "with --plan and --format goal: the vector (64K)");
  add_argument(app, "--transport", o.transport, read_transport, "NAME",
               "with --plan: auto, direct, mailbox or board (auto)");
  app.footer(
      "Examples:\n"
      "  rankine show all_gather --algo ring --ranks 4\n"
      "  rankine show broadcast --algo chain --ranks 5 --segments 3 --root 2\n"
      "  rankine show all_reduce --algo recursive_doubling --ranks 8 --round 1\n"
      "  rankine show all_reduce --algo recursive_doubling_pipelined --segments 4 --ports 1\n"
      "  rankine show all_reduce --algo double_tree --ranks 8 --svg double_tree.svg\n"
      "  rankine show all_reduce --algo ring --json\n"
      "  rankine show all_reduce --algo ring --ranks 8 --format msccl > ring.xml\n"
      "  rankine show ring.xml\n"
      "  rankine show all_reduce --algo ring --ranks 3 --plan --rank 0 --bytes 4K\n"
      "If a phase's messages form a tree, it is drawn before the rounds.");
  return {app, [owned](Console& console) { return run_show(*owned, console); }};
}

namespace {

struct VerifyArguments {
  // Empty --algo: all. Numbers are lists of values to try, if algorithms take them; missing values
  // come from the sweep.
  AlgorithmArguments algorithm;
  std::optional<int> all_roots_up_to;  // default: the sweep's value
  int threads = 0;                     // 0: all cores
  bool json = false, csv = false;
};

// The values of a parameter in a sweep: the list if the parameter is a number, else the single
// given text.
Result<std::vector<std::string>> values_of(const GivenParameter& given) {
  const Parameter& row = *given.parameter;
  if (row.number == nullptr) {
    Params params;
    if (!row.read(given.text, params)) return invalid_value(given, row.allowed());
    return std::vector<std::string>{given.text};
  }
  const auto numbers = parse_whole_list(given.argument, given.text, row.least, row.most);
  if (!numbers.ok()) return numbers.status();
  std::vector<std::string> texts;
  for (const int number : *numbers) texts.push_back(std::to_string(number));
  return texts;
}

// The sweeps for the request: one per run of neighbouring N and named algorithm.
struct Sweeps {
  std::vector<int> ranks;
  std::vector<SweepOptions> sweeps;
};
Sweeps sweeps_of(const VerifyArguments& arguments) {
  const AlgorithmArguments& a = arguments.algorithm;
  const auto lines =
      read_algorithms("--algo", a.algorithms.empty() ? "all" : a.algorithms, a.collective).value();
  SweepOptions options;
  options.collective = a.collective;
  options.threads = arguments.threads;
  if (arguments.all_roots_up_to) options.all_roots_up_to = *arguments.all_roots_up_to;
  Sweeps out;
  for (const GivenParameter& given : a.given) {
    const auto values = values_of(given).value();
    options.values.insert_or_assign(std::string(given.parameter->name), values);
  }
  check_taken(a, lines).throw_if_error();
  if (const auto ranks = options.values.find("ranks"); ranks != options.values.end()) {
    for (const std::string& text : ranks->second) out.ranks.push_back(std::stoi(text));
  } else if (const GivenParameter* dims = a.find("dims")) {  // a torus determines the number of
                                                             // ranks
    std::int64_t product = 1;
    const auto sizes = read_dims(dims->text);
    for (const int size : *sizes) {
      product = std::min<std::int64_t>(product * size, kMostRanks);
    }
    out.ranks = {static_cast<int>(product)};
  } else {
    constexpr std::size_t kUsual = 130;
    out.ranks.resize(kUsual);
    std::iota(out.ranks.begin(), out.ranks.end(), 1);
  }
  std::set<std::string> names = {""};
  if (!a.algorithms.empty() && !a.all()) {
    names.clear();
    for (const Algorithm* entry : lines) names.insert(std::string(entry->name));
  }
  for (std::size_t first = 0, last = 0; first < out.ranks.size(); first = last + 1) {
    last = first;
    while (last + 1 < out.ranks.size() && out.ranks[last + 1] == out.ranks[last] + 1) ++last;
    options.ranks_from = out.ranks[first];
    options.ranks_to = out.ranks[last];
    for (const std::string& name : names) {
      options.algorithm = name;
      out.sweeps.push_back(options);
    }
  }
  return out;
}

// Moves cases too large for the memory out of `results`: they are neither proved nor failed.
std::vector<SweepResult> take_too_large(std::vector<SweepResult>& results) {
  const auto first =
      std::stable_partition(results.begin(), results.end(), [](const SweepResult& result) {
        return !result.failure.starts_with(name_of(ViolationKind::too_large));
      });
  std::vector<SweepResult> taken(first, results.end());
  results.erase(first, results.end());
  return taken;
}

struct Tally {
  Collective collective;
  std::set<std::string_view> algorithms{};
  std::size_t cases = 0, failed = 0;
};

std::vector<Tally> tallies_of(const std::vector<SweepResult>& results) {
  std::vector<Tally> tallies;
  for (const Collective collective : all_collectives()) {
    Tally tally{.collective = collective};
    for (const SweepResult& result : results) {
      if (result.algorithm->collective != collective) continue;
      tally.algorithms.insert(result.algorithm->name);
      ++tally.cases;
      tally.failed += result.ok() ? 0 : 1;
    }
    if (tally.cases > 0) tallies.push_back(std::move(tally));
  }
  return tallies;
}

std::size_t failed_of(const std::vector<SweepResult>& results) {
  return static_cast<std::size_t>(
      std::count_if(results.begin(), results.end(), [](const auto& one) { return !one.ok(); }));
}

void print(const std::string& ranks, const std::vector<SweepResult>& results,
           const std::vector<SweepResult>& too_large, double seconds, bool csv, Console& console) {
  Table table(as::text("collective"), "algorithms", "cases", "proved", "failed");
  const std::size_t failed = failed_of(results);
  for (const Tally& tally : tallies_of(results)) {
    table.add(name_of(tally.collective), tally.algorithms.size(), tally.cases,
              tally.cases - tally.failed, tally.failed);
  }
  console.out << (csv ? to_csv(table) : to_text(table));
  if (csv) return;
  if (failed > 0) {
    constexpr std::size_t kShown = 40;
    Table failures(as::text("failed"), as::text("why"));
    for (const SweepResult& result : results) {
      if (!result.ok() && failures.rows.size() < kShown) {
        failures.add(result.name(), result.failure);
      }
    }
    console.out << "\n" << to_text(failures);
    if (failed > kShown) {
      console.out << fmt::format("and {} more; --json has all\n", failed - kShown);
    }
  }
  for (const SweepResult& result : too_large) {
    console.out << fmt::format("left out: {}: {}\n", result.name(), result.failure);
  }
  console.out << fmt::format("\n{} of {} proved, N = {}, in {}\n", results.size() - failed,
                             counted(results.size(), "case"), ranks, format_seconds(seconds));
}

void print_json(const std::string& ranks, const std::vector<SweepResult>& results,
                const std::vector<SweepResult>& too_large, double seconds, Console& console) {
  Json json;
  const std::size_t failed = failed_of(results);
  json["ranks"] = ranks;
  json["cases"] = results.size();
  json["proved"] = results.size() - failed;
  json["failed"] = failed;
  json["seconds"] = seconds;
  Json& collectives = json["collectives"] = Json::array();
  for (const Tally& tally : tallies_of(results)) {
    collectives.push_back({{"collective", name_of(tally.collective)},
                           {"algorithms", tally.algorithms},
                           {"cases", tally.cases},
                           {"failed", tally.failed}});
  }
  Json& failures = json["failures"] = Json::array();
  for (const SweepResult& result : results) {
    if (result.ok()) continue;
    Json& failure =
        failures.emplace_back(Json{{"case", result.name()},
                                   {"collective", name_of(result.algorithm->collective)},
                                   {"algorithm", result.algorithm->name}});
    write_parameters(*result.algorithm, result.params, failure, failure);
    failure["failure"] = result.failure;
  }
  Json& left_out = json["left_out"] = Json::array();
  for (const SweepResult& result : too_large) {
    left_out.push_back({{"case", result.name()}, {"why", result.failure}});
  }
  console.out << json.dump(2) << "\n";
}

// Reads "all", or the largest N up to which every root is tried.
Result<int> read_roots(std::string_view argument, std::string_view text) {
  if (text == "all") return kMostRanks;
  auto limit = parse_whole(argument, text, 0, kMostRanks);
  if (!limit.ok()) return invalid_argument(limit.status().text() + ", or all");
  return limit;
}

// Returns Exit::wrong if a case failed. Errors: unknown algorithms, no case to prove.
Result<Exit> run_verify(const VerifyArguments& arguments, Console& console) {
  const Sweeps found = sweeps_of(arguments);
  const std::vector<SweepOptions>& sweeps = found.sweeps;
  const std::string ranks = format_cpu_list(found.ranks);  // a list of numbers in this notation,
                                                           // too
  std::size_t all = 0;
  for (const SweepOptions& options : sweeps) all += sweep_cases(options).size();
  if (all == 0) {
    std::string asked = "--ranks is " + ranks;
    for (const GivenParameter& given : arguments.algorithm.given) {
      if (given.parameter->name != "ranks") {
        asked += fmt::format(", {} is {}", given.argument, given.shown);
      }
    }
    return invalid_argument(fmt::format(
        "{}: --algo {} has no such case; 'rankine list' shows the needs of each algorithm", asked,
        arguments.algorithm.algorithms.empty() ? "all" : arguments.algorithm.algorithms));
  }
  const double begin = seconds_now();
  std::vector<SweepResult> results;
  {
    Progress progress(console);
    for (const SweepOptions& options : sweeps) {
      const std::size_t before = results.size();
      const SweepProgress report = [&](std::size_t done, std::size_t) {
        if (!progress.due()) return;
        const double seconds = seconds_now() - begin;
        progress.show(fmt::format("{} of {} cases, {}{}", before + done, all,
                                  format_seconds(seconds), time_left(before + done, all, seconds)));
      };
      for (SweepResult& result : sweep(options, report)) results.push_back(std::move(result));
    }
  }
  const double seconds = seconds_now() - begin;
  const std::vector<SweepResult> too_large = take_too_large(results);
  if (results.empty()) {
    return Status(Code::out_of_memory,
                  fmt::format("--ranks is {}: {}", ranks, too_large.front().failure));
  }
  if (arguments.json) {
    print_json(ranks, results, too_large, seconds, console);
  } else {
    print(ranks, results, too_large, seconds, arguments.csv, console);
  }
  return failed_of(results) == 0 ? Exit::ok : Exit::wrong;
}

}  // namespace

Subcommand add_verify(Command tool) {
  auto owned = std::make_shared<VerifyArguments>();
  VerifyArguments& a = *owned;
  const Command app =
      tool.add_subcommand("verify", "prove the schedules of the catalogue, and check its formulas");
  add_algorithm_arguments(app, a.algorithm,
                          {.collective = "collective,--collective",
                           .algorithms = "names of the catalogue, or all (all)",
                           .ranks = "8, 2,3,8 or 1..130; other numbers may be lists (1..130)"});
  add_argument(app, "--roots", a.all_roots_up_to, read_roots, "N",
               "all, or the largest N for which every root is tried; beyond, 0, N/2 and N-1 (9)");
  add_argument(app, "--threads", a.threads, Whole{1, 1024}, "N", "cores to use (all)");
  add_formats(app, a.json, a.csv, "counts and every failure as JSON");
  app.footer(
      "Examples:\n"
      "  rankine verify                                 the whole catalogue, N = 1..130\n"
      "  rankine verify broadcast --roots all --ranks 1..33 --segments 1,2,3,7\n"
      "  rankine verify --algo ring --ranks 4096\n"
      "Exit codes: 0 proved, 1 a case failed, 2 usage.");
  return {app, [owned](Console& console) { return run_verify(*owned, console); }};
}

}  // namespace rankine::tools
