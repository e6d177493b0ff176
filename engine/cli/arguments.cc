#include "engine/cli/arguments.h"

#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "algorithms/torus.h"
#include "engine/base/child_process.h"
#include "engine/base/files.h"
#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/cli/formats/formats.h"
#include "engine/cli/table.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/network/fabric.h"
#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "engine/network/predict.h"
#include "engine/network/wiring.h"
#include "engine/read/verify.h"

namespace rankine::tools {

std::string argument_name(const std::string& flags) {
  for (const std::string_view part : split_list(flags)) {
    if (part.starts_with("--") || !part.starts_with('-')) return std::string(part);
  }
  return flags;
}

Result<std::optional<Transport>> read_transport(std::string_view argument, std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames = {"auto", "direct", "mailbox", "board"};
  if (text == "auto") return std::optional<Transport>();
  if (text == "direct") return std::optional(Transport::direct);
  if (text == "mailbox") return std::optional(Transport::mailbox);
  if (text == "board") return std::optional(Transport::board);
  return unknown_name(argument, text, kNames);
}

void add_formats(Command command, bool& json, bool& csv, const std::string& json_help) {
  const Option other = command.add_flag("--json", json, json_help);
  command.add_flag("--csv", csv, "the rows of the table as CSV").excludes(other);
}

Status of_option(std::string_view option, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}", option, status.text())};
}

Option Option::required() const {
  option_->required();
  return *this;
}
Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Command Command::add_subcommand(const std::string& name, const std::string& help) const {
  return Command(*app_->add_subcommand(name, help));
}
Option Command::add_flag(const std::string& flags, bool& target, const std::string& help) const {
  return Option(*app_->add_flag(flags, target, help));
}
Option Command::add_option(const std::string& flags, std::function<void(const std::string&)> read,
                           const std::string& kind, const std::string& help) const {
  const auto read_some = [app = app_, read = std::move(read), kind,
                          name = argument_name(flags)](const std::string& text) {
    if (text.starts_with("-") && app->get_option_no_throw(text) != nullptr) {
      throw UsageError(fmt::format("{} needs a value, {}; '{}' is an option", name, kind, text));
    }
    read(text);
    if (text.empty()) throw UsageError(fmt::format("{} is ''; it needs a value, {}", name, kind));
  };
  const auto add = [&](const std::string& names) {
    return Option(*app_->add_option_function<std::string>(names, read_some, help)
                       ->type_name(kind)
                       ->configurable(false)
                       ->take_last());
  };
  // Position and name set one value; only one of them may be given. CLI11 2.5 and newer refuse
  // equal names of options that a configuration file could set.
  if (flags.starts_with('-') || flags.find(",-") == std::string::npos) return add(flags);
  const std::size_t comma = flags.find(',');
  const Option position = add(flags.substr(0, comma));
  return position.excludes(add(flags.substr(comma + 1)));
}
void Command::footer(const std::string& text) const { app_->footer(text); }
std::size_t Command::options() const { return app_->get_options().size(); }
std::size_t Command::group_from(std::size_t options, const std::string& heading) const {
  const std::vector<CLI::Option*> all = app_->get_options();
  for (std::size_t i = options; i < all.size(); ++i) all[i]->group(heading);
  return all.size();
}

Option add_text(Command command, const std::string& flags, std::string& target,
                const std::string& kind, const std::string& help) {
  return command.add_option(
      flags, [&target](const std::string& text) { target = text; }, kind, help);
}

Status check_output_file(std::string_view option, std::string_view name) {
  if (name != "-") return {};
  return invalid_argument(
      fmt::format("{} is '-'; allowed are names of files (./- for one of that name)", option));
}

Option add_output_file(Command command, const std::string& flags, std::string& target,
                       const std::string& help) {
  const auto parse = [](std::string_view argument, std::string_view text) -> Result<std::string> {
    if (Status status = check_output_file(argument, text); !status.ok()) return status;
    return std::string(text);
  };
  return add_argument(command, flags, target, parse, "FILE", help);
}

namespace {

constexpr std::string_view kConverter = "rsvg-convert";

// "png" of "a/b.png"; "svg" without an ending.
std::string kind_of(std::string_view file) {
  const std::string_view name = file.substr(file.rfind('/') + 1);
  const std::size_t dot = name.rfind('.');
  std::string kind(dot == name.npos || dot == 0 ? "svg" : name.substr(dot + 1));
  for (char& c : kind) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return kind;
}

bool has_converter() {
  const char* path = environment_variable("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string program = fmt::format("{}/{}", rest.substr(0, colon), kConverter);
    if (access(program.c_str(), X_OK) == 0) return true;
    rest.remove_prefix(colon == rest.npos ? rest.size() : colon + 1);
  }
  return false;
}

Status no_converter(std::string_view option, std::string_view file) {
  return {Code::system,
          fmt::format("{} is '{}', which needs the program {} (Debian: librsvg2-bin); a name that "
                      "ends in .svg needs none",
                      option, file, kConverter)};
}

// Converts a picture by librsvg's program; pictures are drawn as SVG only. Empty: failed.
std::string converted(const std::string& svg, const std::string& kind) {
  const int drawing = file_in_memory(svg), picture = file_in_memory({});
  std::string out;
  const std::vector<std::string> words = {std::string(kConverter), "-f", kind};
  if (drawing >= 0 && picture >= 0 &&
      start_program(words, {.in = drawing, .out = picture}).wait() == 0) {
    out.resize(static_cast<std::size_t>(lseek(picture, 0, SEEK_END)));
    out.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, pread(picture, out.data(), out.size(), 0))));
  }
  for (const int file : {drawing, picture}) {
    if (file >= 0) close(file);
  }
  return out;
}

}  // namespace

Option add_picture_file(Command command, const std::string& flags, std::string& target,
                        const std::string& help) {
  const auto parse = [](std::string_view argument, std::string_view text) -> Result<std::string> {
    if (Status status = check_output_file(argument, text); !status.ok()) return status;
    const std::string kind = kind_of(text);
    if (kind == "svg") return std::string(text);
    if (kind != "png" && kind != "pdf" && kind != "eps") {
      return invalid_argument(fmt::format(
          "{} is '{}'; allowed are files that end in .svg, .png, .pdf or .eps", argument, text));
    }
    if (!has_converter()) return no_converter(argument, text);
    return std::string(text);
  };
  return add_argument(command, flags, target, parse, "FILE", help + ": .svg, .png, .pdf or .eps");
}

Status write_picture(std::string_view option, const std::string& file, const std::string& svg,
                     std::string_view kind) {
  const std::string wanted = kind.empty() ? kind_of(file) : std::string(kind);
  if (wanted == "svg") return of_option(option, replace_file(file, svg));
  const std::string picture = converted(svg, wanted);
  if (picture.empty()) return no_converter(option, file);
  return of_option(option, replace_file(file, picture));
}

Status check_output_files(std::initializer_list<OutputFile> files) {
  for (const OutputFile* file = files.begin(); file != files.end(); ++file) {
    if (file->name.empty()) continue;
    for (const OutputFile* other = files.begin(); other != file; ++other) {
      if (other->name != file->name) continue;
      return invalid_argument(fmt::format("{} is '{}', and so is {}; each needs a separate file",
                                          file->option, file->name, other->option));
    }
    Status status = of_option(file->option, check_replaceable(std::string(file->name)));
    if (!status.ok()) return status;
  }
  return {};
}

Result<std::string> OneOf::operator()(std::string_view argument, std::string_view text) const {
  if (std::find(names.begin(), names.end(), text) != names.end()) return std::string(text);
  return unknown_name(argument, text, names);
}

Result<int> Whole::operator()(std::string_view argument, std::string_view text) const {
  return parse_whole(argument, text, lowest, highest);
}

Option add_dims(Command command, std::vector<int>& target) {
  const Parameter& row = *find_parameter("dims");
  return add_argument(command, "--dims", target, parse_dims, std::string(row.argument),
                      std::string(row.help));
}

std::optional<double> parse_real(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

Result<std::uint64_t> read_seed(std::string_view argument, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are whole numbers from 0 to 2^64 - 1", argument, text));
}

Result<PlacementPolicy> read_placement(std::string_view argument, std::string_view text) {
  PolicyResult parsed = parse_placement_policy(text);
  if (parsed.ok()) return std::move(parsed.policy);
  constexpr std::array<std::string_view, 4> kNames = {"compact", "scatter", "one_per_node", "none"};
  return invalid_argument(
      fmt::format("{} is '{}': {}{}", argument, text, parsed.error, did_you_mean(text, kNames)));
}

Result<std::optional<WaitPolicy>> read_wait(std::string_view argument, std::string_view text) {
  constexpr std::array<std::string_view, 4> kNames = {"auto", "spin", "yield", "park"};
  WaitPolicy policy;
  if (text == "auto") return std::optional<WaitPolicy>();
  if (text == "spin") return std::optional(policy);
  policy.probes = 4;
  policy.mode = WaitPolicy::Mode::yield;
  if (text == "yield") return std::optional(policy);
  policy.mode = WaitPolicy::Mode::park;
  if (text == "park") return std::optional(policy);
  return unknown_name(argument, text, kNames);
}

namespace {

// Takes the schedule of a file as the algorithm.
Status take_file(const std::string& file, AlgorithmArguments& a) {
  const auto text = read_input("FILE", file, kMostJsonBytes);
  if (!text.ok()) return text.status();
  const auto written = read_schedule(*text);
  if (!written.ok()) return invalid_argument(fmt::format("{}: {}", file, written.status().text()));
  const CollectiveSpec& goal = written->goal;
  if (goal.ranks > a.most_ranks) {
    return invalid_argument(
        fmt::format("{} has {} ranks; allowed are up to {}", file, goal.ranks, a.most_ranks));
  }
  a.written = {given_algorithm(file, goal, written->schedule())};
  a.begin.ranks = goal.ranks;
  a.begin.root = goal.root;
  if (goal.collective == Collective::send_recv) a.begin.peer = goal.peer;
  return {};
}

}  // namespace

Option add_algorithm_arguments(Command app, AlgorithmArguments& a, const AlgorithmHelp& help) {
  const auto read = [&a, files = help.files](std::string_view argument,
                                             std::string_view text) -> Result<Collective> {
    const bool is_file = text == "-" || text.find_first_of("./") != text.npos;
    if (!files || !is_file) return read_collective(argument, text);
    if (Status status = take_file(std::string(text), a); !status.ok()) return status;
    return a.written.front()->collective;
  };
  Option first = add_argument(
      app, help.collective, a.collective, read, "NAME",
      fmt::format("collective; 'rankine list' shows all{}",
                  help.files ? "; or a file of a schedule, in any format of 'rankine check'" : ""));
  if (help.algorithms.empty()) {
    add_text(app, "--algo", a.algorithms, "NAME", "a name of the catalogue");
  } else {
    add_text(app, "--algo", a.algorithms, "LIST", help.algorithms);
  }
  for (const Parameter& row : parameters()) {
    const std::string flag = fmt::format("--{}", row.name);
    const auto take = [&a, &row, flag](const std::string& text) {
      a.given.push_back({&row, text, flag, fmt::format("'{}'", text)});
    };
    std::string text(row.help);
    if (row.name == "ranks") text = help.ranks;
    if (row.name == "root" && !help.root.empty()) text = help.root;
    if (row.kind == Parameter::Kind::skips) text += "; " + row.allowed();
    const std::string flags =
        row.short_flag == 0 ? flag : fmt::format("-{},{}", row.short_flag, flag);
    app.add_option(flags, take, std::string(row.argument), text);
  }
  return first;
}

namespace {

Result<const Menu*> read_menu(std::string_view argument, std::string_view text) {
  if (const Menu* menu = find_menu(text)) return menu;
  std::vector<std::string_view> names;
  for (const Menu& menu : menus()) names.push_back(menu.name);
  return unknown_name(argument, text, names);
}

}  // namespace

void add_menu(Command app, const Menu*& menu) {
  add_argument(app, "--menu", menu, read_menu, "NAME",
               fmt::format("only algorithms that this library ships: nccl, mpich, openmpi, ucc; "
                           "or all ({})",
                           menu->name));
}

Result<std::vector<const Algorithm*>> on_menu(const Menu& menu, Collective collective,
                                              std::vector<const Algorithm*> entries) {
  std::erase_if(entries, [&](const Algorithm* entry) { return !menu.has(*entry); });
  if (!entries.empty()) return entries;
  std::string has;
  for (const Algorithm& entry : catalogue()) {
    if (entry.collective != collective || !menu.has(entry)) continue;
    has += fmt::format("{}{}", has.empty() ? "" : ", ", entry.name);
  }
  return invalid_argument(fmt::format("--menu is '{}', which has {} of {}", menu.name,
                                      has.empty() ? "nothing" : has, name_of(collective)));
}

namespace {

Result<Rational> parse_beta(std::string_view argument, std::string_view text) {
  auto beta = parse_decimal(argument, text);
  if (!beta.ok() || !(*beta < 0)) return beta;
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are seconds per byte, not negative "
                  "(0: no limit)",
                  argument, text));
}

// Applies the options about links that messages share.
Status rewire(const NetworkArguments& arguments, Fabric& fabric) {
  if (arguments.hop) fabric.alpha_hop = *arguments.hop;
  if (arguments.routing) fabric.wiring.routing = *arguments.routing;
  if (arguments.wiring && *arguments.wiring != fabric.wiring.kind) {
    fabric.wiring = {.kind = *arguments.wiring, .routing = fabric.wiring.routing};
    if (!arguments.ports) open_ports(fabric);
  }
  if (arguments.spines) fabric.wiring.spines = *arguments.spines;
  if (!arguments.wiring) return {};
  const std::string_view kind = name_of(fabric.wiring.kind);
  if (fabric.ports == 0 && !fabric.wiring.is_grid()) {
    return invalid_argument(fmt::format(
        "--wiring is {}; --ports is needed with it, since a rank of network '{}' has as "
        "many as links",
        kind, fabric.name));
  }
  if (fabric.wiring.has_leaves() && fabric.group == 0) {
    return invalid_argument(
        fmt::format("--wiring is {}; --node-ranks is needed with it, 1 or more", kind));
  }
  if (fabric.wiring.kind == WiringKind::fat_tree && fabric.wiring.spines == 0) {
    return invalid_argument(fmt::format("--wiring is {}; --spines is needed with it, 1 to {}", kind,
                                        Wiring::kMostSpines));
  }
  return {};
}

}  // namespace

void add_network_arguments(Command app, NetworkArguments& arguments) {
  const std::size_t before = app.options();
  add_text(app, "--network", arguments.network, "NAME",
           "a preset (" + regime_names() + ") or a JSON file (plain)");
  add_argument(app, "--alpha", arguments.alpha, parse_seconds, "TIME", "per message: 1us, 500ns");
  Option bandwidth = add_argument(app, "--bandwidth", arguments.beta, parse_bandwidth, "RATE",
                                  "per port and direction: 100GB/s, 800Gb/s");
  add_argument(app, "--beta", arguments.beta, parse_beta, "SECONDS",
               "per byte, in place of a bandwidth: 1e-11; 0: no limit")
      .excludes(bandwidth);
  add_argument(app, "--ports", arguments.ports, Whole{1, Fabric::kMostPorts}, "K",
               "messages that a rank sends, and receives, at once");
  app.add_flag("--multicast", arguments.multicast, "the switch can copy a message to many");
  app.add_flag("--alu", arguments.alu, "the switch can add messages up");
  app.add_flag(
      "--permute", arguments.permute,
      "the switch carries all messages of a round in one operation: a port pays alpha once");
  add_argument(app, "--alpha-switch", arguments.alpha_switch, parse_seconds, "TIME",
               "per hop through the switch; multicasts and reductions take two");
  add_argument(
      app, "--node-ranks", arguments.group, Whole{0, 1 << 14}, "N",
      "ranks per group (node) of the network, with slower links among groups; 0: one group");
  add_argument(app, "--between-alpha", arguments.between_alpha, parse_seconds, "TIME",
               "per message among groups");
  add_argument(app, "--between-bandwidth", arguments.between_beta, parse_bandwidth, "RATE",
               "among groups");
  add_argument(app, "--wiring", arguments.wiring, by_name(parse_wiring, wiring_names()), "KIND",
               "full, or links that messages share: ring, torus and mesh (--dims), hypercube, "
               "two_level (--node-ranks), fat_tree (--node-ranks, --spines)");
  add_argument(app, "--spines", arguments.spines, Whole{1, Wiring::kMostSpines}, "N",
               "switches above the groups of a fat tree, each with a link to every group");
  add_argument(app, "--routing", arguments.routing, by_name(parse_routing, routing_names()), "NAME",
               "on rings and tori: minimal, both ways if equally long; or one_way (minimal)");
  add_argument(app, "--hop", arguments.hop, parse_seconds, "TIME",
               "per link that a message crosses, with the processing at its end: 200ns");
  add_argument(app, "--gamma", arguments.gamma, parse_seconds, "TIME",
               "per byte that a rank adds to its data: 5ps");
  add_argument(app, "--eta-alpha", arguments.eta_alpha, parse_decimal, "FACTOR",
               "factor of contention on alpha: 1 or more (1)");
  add_argument(app, "--eta-beta", arguments.eta_beta, parse_decimal, "PART",
               "share of the bandwidth left by contention: up to 1 (1)");
  app.add_flag("--lower", arguments.lower,
               "turn multicasts and reductions into messages if the switch cannot do them");
  app.group_from(before, "Network");
}

Result<Fabric> network_of(const NetworkArguments& arguments) {
  Fabric fabric = plain_regime().fabric;
  if (!arguments.network.empty()) {
    auto found = find_network("--network", arguments.network);
    if (!found.ok()) return found.status();
    fabric = *found;
  }
  const bool has_between = !(fabric.between.alpha == 0 && fabric.between.beta == 0);
  if (arguments.alpha) fabric.link.alpha = *arguments.alpha;
  if (arguments.beta) fabric.link.beta = *arguments.beta;
  if (arguments.ports) fabric.ports = *arguments.ports;
  if (arguments.gamma) fabric.gamma = *arguments.gamma;
  for (Link* link : {&fabric.link, &fabric.between}) {
    if (arguments.eta_alpha) link->eta_alpha = *arguments.eta_alpha;
    if (arguments.eta_beta) link->eta_beta = *arguments.eta_beta;
  }
  if (arguments.alpha_switch) fabric.alpha_switch = *arguments.alpha_switch;
  if (arguments.group) fabric.group = *arguments.group;
  if (arguments.between_alpha) fabric.between.alpha = *arguments.between_alpha;
  if (arguments.between_beta) fabric.between.beta = *arguments.between_beta;
  Status status = rewire(arguments, fabric);
  if (!status.ok()) return status;
  fabric.multicast |= arguments.multicast;
  fabric.alu |= arguments.alu;
  fabric.permute |= arguments.permute;
  if (fabric.group == 0 && (arguments.between_alpha || arguments.between_beta)) {
    return invalid_argument(fmt::format(
        "{} sets the links among groups, and network '{}' has one group; add --node-ranks, 1 or "
        "more",
        arguments.between_alpha ? "--between-alpha" : "--between-bandwidth", fabric.name));
  }
  if (fabric.group > 0 && !has_between && !(arguments.between_alpha && arguments.between_beta)) {
    return invalid_argument(
        fmt::format("--node-ranks is {}; --between-alpha and "
                    "--between-bandwidth are needed with it",
                    fabric.group));
  }
  NetworkArguments unchanged;
  unchanged.network = arguments.network;
  unchanged.lower = arguments.lower;
  if (arguments != unchanged) fabric.name += " (changed)";
  status = check_fabric(fabric);
  if (!status.ok()) return status;
  return fabric;
}

Result<Sync> read_sync(std::string_view argument, std::string_view text) {
  static constexpr std::string_view kNames[] = {"dataflow", "rounds"};
  return by_name(parse_sync, kNames)(argument, text);
}

std::string describe_presets() {
  std::string text;
  for (const Regime& regime : regimes()) {
    text += fmt::format("  {:<17}  {}\n", regime.name, regime.source);
  }
  return text;
}

void add_model_arguments(Command app, QuestionArguments& a) {
  const Option bytes =
      add_argument(app, "--bytes", a.bytes, parse_size, "SIZE",
                   "M: the vector, or one rank's send buffer of all_to_all; 8, 64K, 1M (1M)");
  add_argument(app, "--counts", a.counts, list_of(parse_size), "SIZES",
               "bytes of each block if sizes differ, in place of --bytes: 1K,4K,0,2M; one per "
               "rank, for all_to_all one per pair, by sender")
      .excludes(bytes);
  add_argument(app, "--sync", a.sync, read_sync, "NAME",
               "dataflow: a message waits for its data only; rounds: for all of the round before "
               "(dataflow)");
}

Result<std::vector<Question>> questions_of(const QuestionArguments& a,
                                           std::vector<std::string>& notes) {
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  Fabric wired;  // one for all algorithms
  auto asked =
      asked_algorithms(a.algorithm, notes, [&](const Algorithm& entry, Params& params) -> Status {
        auto found = wire(*network, entry, params);
        if (!found.ok()) return found.status();
        wired = std::move(*found);
        return {};
      });
  if (!asked.ok()) return asked.status();
  for (const GivenAlgorithm& written : a.algorithm.written) {
    const auto& [goal, schedule] = *written->make.given();
    const auto violation = verify(schedule, goal, {.economy = false});
    if (violation) {
      return invalid_argument(
          fmt::format("{} is wrong, as 'rankine check' shows: {}", written->name, violation->text));
    }
  }
  std::vector<Question> questions;
  for (AskedAlgorithm& one : *asked) {
    questions.push_back({.algorithm = one.algorithm,
                         .params = std::move(one.params),
                         .bytes = vector_bytes(one.algorithm->collective, a.bytes),
                         .fabric = wired,
                         .options = {.sync = a.sync},
                         .lower = a.network.lower});
    if (a.counts.empty()) continue;
    if (Status status = take_counts(questions.back(), a.counts); !status.ok()) {
      return Status(status.code(), "--" + status.text());
    }
  }
  return questions;
}

Result<Question> question_of(const QuestionArguments& a) {
  std::vector<std::string> notes;
  auto questions = questions_of(a, notes);
  if (!questions.ok()) return questions.status();
  if (questions->size() > 1 || !notes.empty()) return one_algorithm_only(a.algorithm);
  return std::move(questions->front());
}

namespace {

struct NetworkCommandArguments {
  std::string network;  // a preset's name or a file's; empty: all presets
  int ranks = 0;        // 0: any
  std::vector<int> dims;
  bool schema = false;
};

std::string describe_members() {
  Table table(as::text(""), as::text(""));
  for (const NetworkMember& row : network_members()) {
    // Presets are listed below, with their sources.
    const std::string allowed = row.kind == NetworkMember::Kind::preset ? "" : row.allowed();
    table.add(row.name, fmt::format("{}: {}{}", row.example, row.help,
                                    allowed.empty() ? "" : "; allowed are " + allowed));
  }
  return to_text(table, "  ");
}

Result<Exit> run_network(const NetworkCommandArguments& a, Console& console) {
  if (a.schema) {
    console.out << network_schema();
    return Exit::ok;
  }
  if (a.network.empty()) {
    if (a.ranks > 0 || !a.dims.empty()) {
      return invalid_argument("a network is needed with --ranks and --dims");
    }
    console.out << describe_presets();
    return Exit::ok;
  }
  if (a.ranks == 0 && !a.dims.empty()) return invalid_argument("--dims needs --ranks");
  auto fabric = find_network("network", a.network);
  if (fabric.ok() && a.ranks > 0) fabric = wired_for(*fabric, a.ranks, a.dims);
  if (!fabric.ok()) return fabric.status();
  const auto text = write_network(*fabric).value();
  console.out << text;
  return Exit::ok;
}

}  // namespace

Subcommand add_network(Command tool) {
  auto owned = std::make_shared<NetworkCommandArguments>();
  NetworkCommandArguments& a = *owned;
  const Command app = tool.add_subcommand(
      "network", "modelled networks: presets, checked files, and the members of files");
  const Option network =
      add_text(app, "network", a.network, "NAME",
               "a preset or a JSON file, to be checked and printed as a file (all presets)");
  add_argument(app, "-t,--ranks", a.ranks, Whole{1, Routes::kMostRanks}, "N",
               "also check it for N ranks, and fill in missing members");
  add_dims(app, a.dims);
  app.add_flag("--schema", a.schema, "the JSON Schema of network files (draft 2020-12)")
      .excludes(network);
  app.footer(
      "Examples:\n"
      "  rankine network\n"
      "  rankine network torus > mine.json\n"
      "  rankine network mine.json --ranks 64 --dims 8x8\n"
      "  rankine network --schema > network.schema.json\n"
      "A file is one JSON object; all members may be missing:\n" +
      describe_members() + "Presets:\n" + describe_presets());
  return {app, [owned](Console& console) { return run_network(*owned, console); }};
}

}  // namespace rankine::tools
