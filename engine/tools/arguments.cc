#include "engine/tools/arguments.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include <algorithm>
#include <array>

#include "engine/api/typed_names.h"
#include "engine/network/wiring.h"
#include "engine/tools/text.h"

namespace rankine::tools {

std::string argument_name(const std::string& flags) {
  for (const std::string_view part : split_list(flags)) {
    if (part.starts_with("--") || !part.starts_with('-')) return std::string(part);
  }
  return flags;
}

Status of_option(std::string_view option, const Status& status) {
  if (status.ok()) return status;
  return {status.code(), fmt::format("{}: {}", option, status.text())};
}

Option Option::required() const {
  option_->required();
  return *this;
}
Option Option::group(const std::string& heading) const {
  option_->group(heading);
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
  return Option(*app_->add_option_function<std::string>(flags, std::move(read), help)
                     ->type_name(kind)
                     ->take_last());
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

Result<int> Whole::operator()(std::string_view argument, std::string_view text) const {
  return parse_whole(argument, text, lowest, highest);
}

Result<Collective> read_collective(std::string_view argument, std::string_view text) {
  std::vector<std::string_view> names;
  const std::optional<Collective> meant = find_typed_collective(text);
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    if (meant == collective) return collective;
    names.push_back(name_of(collective));
  }
  return unknown_name(argument, text, names);
}

Result<std::vector<const Algorithm*>> read_algorithms(std::string_view argument,
                                                      std::string_view text,
                                                      std::optional<Collective> collective) {
  std::vector<const Algorithm*> offered;
  std::vector<std::string_view> names;
  for (const Algorithm& line : catalogue()) {
    if (collective && line.collective != *collective) continue;
    offered.push_back(&line);
    if (std::find(names.begin(), names.end(), line.name) == names.end()) {
      names.push_back(line.name);
    }
  }
  std::vector<const Algorithm*> wanted;
  for (const std::string_view part : split_list(text)) {
    if (part == "all") return offered;
    std::vector<const Algorithm*> meant = find_typed_algorithms(part);
    std::erase_if(meant, [&](const Algorithm* line) {
      return collective && line->collective != *collective;
    });
    if (meant.empty()) {
      names.push_back("all");
      const std::string what = collective ? fmt::format("{} for {}", argument, name_of(*collective))
                                          : std::string(argument);
      return unknown_name(what, part, names);
    }
    wanted.insert(wanted.end(), meant.begin(), meant.end());
  }
  if (wanted.empty()) {
    return invalid_argument(
        fmt::format("{} is '{}'; allowed are {}, all", argument, text, join(names)));
  }
  // In the catalogue's order, each once.
  std::erase_if(offered, [&](const Algorithm* line) {
    return std::find(wanted.begin(), wanted.end(), line) == wanted.end();
  });
  return offered;
}

Option add_dims(Command command, std::vector<int>& target) {
  const Parameter& row = *find_parameter("dims");
  return add_argument(command, "--dims", target, parse_dims, std::string(row.argument),
                      std::string(row.help));
}

Result<std::optional<std::uint64_t>> read_seed(std::string_view argument, std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return std::optional(value);
  return invalid_argument(
      fmt::format("{} is '{}'; allowed are whole numbers from 0 to 2^64 - 1", argument, text));
}

Result<PlacementPolicy> read_placement(std::string_view argument, std::string_view text) {
  PolicyResult parsed = parse_placement_policy(text);
  if (parsed.ok()) return std::move(parsed.policy);
  constexpr std::array<std::string_view, 4> kNames = {"compact", "scatter", "one_per_node", "none"};
  std::string message = fmt::format("{} is '{}': {}", argument, text, parsed.error);
  const std::string_view meant = closest(text, kNames);
  if (!meant.empty()) message += fmt::format("; did you mean '{}'?", meant);
  return invalid_argument(std::move(message));
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

}  // namespace rankine::tools
