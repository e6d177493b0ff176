#include "engine/tools/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <string_view>

#include "engine/base/environment_variable.h"
#include "engine/base/files.h"
#include "engine/network/fabric.h"
#include "engine/read/count.h"
#include "engine/read/draw.h"
#include "engine/tools/lesson/written_schedule.h"
#include "engine/tools/parameters_json.h"
#include "engine/tools/port_budget.h"
#include "engine/tools/schedule_svg.h"
#include "engine/tools/terminal.h"
#include "engine/tools/text.h"
#include "engine/tools/trees_text.h"

namespace rankine::tools {
namespace {

constexpr int kMostSvgRounds = 60;

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

// As no-color.org has it, and of a terminal that says it has none.
bool has_colours() {
  const char* without = environment_variable("NO_COLOR");
  const char* terminal = environment_variable("TERM");
  return (without == nullptr || *without == '\0') &&
         (terminal == nullptr || std::string_view(terminal) != "dumb");
}

bool chosen(const std::string& when, bool automatic) {
  return when == "always" || (when == "auto" && automatic);
}

auto read_when(std::string_view argument, std::string_view text) -> Result<std::string> {
  constexpr std::array<std::string_view, 3> kNames = {"auto", "always", "never"};
  for (const std::string_view name : kNames) {
    if (text == name) return std::string(text);
  }
  return unknown_name(argument, text, kNames);
}

// Round k alone: a schedule that ends with it, in which it is a phase of its own. The drawing of
// that phase is what remains.
std::string draw_round(const Schedule& schedule, const Goal& goal, int k,
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

// What nobody reads to its end: the beginning, and how to see the rest.
std::string cut(std::string text, bool all) {
  constexpr std::size_t kMostLines = 200;
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (all || lines <= kMostLines) return text;
  std::size_t at = 0;
  for (std::size_t i = 0; i < kMostLines; ++i) at = text.find('\n', at) + 1;
  text.resize(at);
  return text + fmt::format(
                    "... {} lines more: --all shows them, --round K one round, --transfers "
                    "leaves out what ranks hold\n",
                    lines - kMostLines);
}

// One form at a time, and nothing that it has no room for.
Status check_form(const ShowOptions& options) {
  std::vector<std::string_view> forms;
  if (!options.svg_file.empty()) forms.push_back("--svg");
  if (options.json) forms.push_back("--json");
  if (options.text) forms.push_back("--text");
  if (forms.size() > 1) {
    return invalid_argument(
        fmt::format("{} and {} exclude each other", forms.front(), forms.back()));
  }
  if (options.text && options.round) {
    return invalid_argument(fmt::format(
        "--round is {}; --text is a whole schedule, which one round of it is not", *options.round));
  }
  if (options.transfers_only && !forms.empty()) {
    return invalid_argument(fmt::format(
        "--transfers leaves out of the drawing what ranks hold; {} is none", forms.front()));
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
                         {"act", transfer.act == Act::copy ? "copy" : "reduce"}});
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

}  // namespace

Result<Exit> show(const ShowOptions& options, Console& console) {
  if (Status status = check_form(options); !status.ok()) return status;
  std::vector<std::string> notes;
  const auto asked = asked_algorithms(options.algorithm, notes);
  if (!asked.ok()) return asked.status();
  if (asked->size() > 1 || !notes.empty()) return one_algorithm_only(options.algorithm);
  const Algorithm& line = *asked->front().algorithm;
  Params params = asked->front().params;
  if (params.segments == 0 && line.takes("segments")) {
    return invalid_argument(
        "--segments is 'auto', which goes by size and network, and a drawing has neither; allowed "
        "are whole numbers from 1");
  }
  if (const auto refusal = line.refusal(params)) return invalid_argument(*refusal);
  params = resolved(params);
  const Schedule schedule = line.make(params);
  const Goal goal = goal_of(line, params, schedule);
  if (options.round && *options.round >= schedule.rounds) {
    return invalid_argument(schedule.rounds == 0
                                ? fmt::format("--round is {}; {} among {} ranks has no rounds",
                                              *options.round, line.name, params.ranks)
                                : fmt::format("--round is {}; allowed are 0 to {}", *options.round,
                                              schedule.rounds - 1));
  }

  if (options.text) {
    console.out << schedule_text(schedule, goal);
    return Exit::ok;
  }
  const RankCounts busiest = count(schedule).busiest;
  const int needed = std::max(busiest.send_ports, busiest.receive_ports);
  if (options.json) {
    Json json = {
        {"collective", name_of(line.collective)},
        {"algorithm", line.name},
        {"summary", line.summary},
        {"citation", line.citation},
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
    write_parameters(line, params, json, json);
    auto& views = json["views"] = Json::array();
    for (const RoundView& view : view_rounds(schedule, goal)) {
      if (!options.round || view.round == *options.round) views.push_back(view_json(view));
    }
    console.out << json.dump(1) << "\n";
    return Exit::ok;
  }

  if (!options.svg_file.empty()) {
    const std::string title =
        fmt::format("{} by {} among {} ranks", name_of(line.collective), line.name, schedule.ranks);
    const int most = options.all ? schedule.rounds : std::min(schedule.rounds, kMostSvgRounds);
    const std::string svg =
        schedule_svg(title, schedule, goal, options.round.value_or(0), options.round ? 1 : most);
    Status status = write_picture("--svg", options.svg_file, svg);
    if (!status.ok()) return status;
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
  console.out << fmt::format("{} ({}): {}\n", line.name, line.citation, line.summary);
  if (!options.round) console.out << trees_text(schedule, goal, drawing.utf8);
  console.out << cut(options.round ? draw_round(schedule, goal, *options.round, drawing)
                                   : draw(schedule, goal, drawing),
                     options.all);
  if (options.ports) {
    console.out << line.name << " " << port_budget(needed, *options.ports) << "\n";
  } else if (needed > 1) {
    console.out << line.name << " " << port_need(needed) << "\n";
  }
  return Exit::ok;
}

Subcommand add_show(Command tool) {
  auto owned = std::make_shared<ShowOptions>();
  ShowOptions& o = *owned;
  const Command app = tool.add_subcommand("show", "draw an algorithm round by round");
  add_algorithm_arguments(app, o.algorithm, {.ranks = "ranks (4)"}).required();
  add_argument(app, "--round", o.round, Whole{0, 1'000'000}, "K", "only this one, from 0");
  add_argument(app, "--ports", o.ports, Whole{1, Fabric::kMostPorts}, "K",
               "of a network: whether they are enough for every round");
  app.add_flag("--transfers", o.transfers_only, "without what the ranks hold");
  add_argument(app, "--colour,--color", o.colour, read_when, "WHEN",
               "auto, always or never (auto)");
  add_argument(app, "--utf8", o.lines, read_when, "WHEN",
               "lines and arrows: auto, always or never (auto)");
  add_argument(app, "--width", o.width, Whole{20, 10'000}, "N",
               "columns to keep to (the terminal's)");
  app.add_flag("--all", o.all, "drawings to their end, however long");
  add_picture_file(app, "--svg", o.svg_file, "ranks side by side and an arrow per message");
  app.add_flag("--json", o.json, "transfers and holdings of every round");
  app.add_flag("--text", o.text, "rounds and transfers as text that 'rankine check' reads");
  app.footer(
      "Examples:\n"
      "  rankine show all_gather --algo ring --ranks 4\n"
      "  rankine show broadcast --algo chain --ranks 5 --segments 3 --root 2\n"
      "  rankine show all_reduce --algo recursive_doubling --ranks 8 --round 1\n"
      "  rankine show all_reduce --algo recursive_doubling_pipelined --segments 4 --ports 1\n"
      "  rankine show all_reduce --algo double_tree --ranks 8 --svg double_tree.svg\n"
      "  rankine show all_reduce --algo ring --json\n"
      "Where a phase's messages make a tree, it is drawn before the rounds.");
  return {app, [owned](Console& console) { return show(*owned, console); }};
}

}  // namespace rankine::tools
