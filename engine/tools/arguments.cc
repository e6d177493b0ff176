#include "engine/tools/arguments.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include <algorithm>
#include <array>
#include <cctype>

#include "engine/base/environment_variable.h"
#include "engine/base/files.h"
#include "engine/network/wiring.h"
#include "engine/tools/text.h"

namespace rankine::tools {

std::string argument_name(const std::string& flags) {
  for (const std::string_view part : split_list(flags)) {
    if (part.starts_with("--") || !part.starts_with('-')) return std::string(part);
  }
  return flags;
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
                       ->take_last());
  };
  // A position and a name are two ways to say one thing, of which a command line has one.
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

// "png" of "a/b.png"; "svg" where there is no ending.
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

// A file in memory, at its beginning; -1 where there is none.
int file_in_memory(std::string_view text) {
  const int file = memfd_create("rankine", MFD_CLOEXEC);
  if (file < 0) return -1;
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (written && lseek(file, 0, SEEK_SET) == 0) return file;
  close(file);
  return -1;
}

// Pictures are drawn once, as SVG; librsvg's program makes the other kinds. Empty: it did not.
std::string converted(const std::string& svg, const std::string& kind) {
  const int drawing = file_in_memory(svg), picture = file_in_memory({});
  int result = -1;
  if (drawing >= 0 && picture >= 0) {
    const pid_t child = fork();
    if (child == 0) {
      dup2(drawing, STDIN_FILENO);
      dup2(picture, STDOUT_FILENO);
      execlp(kConverter.data(), kConverter.data(), "-f", kind.c_str(), nullptr);
      _exit(127);
    }
    if (child > 0) waitpid(child, &result, 0);
  }
  std::string out;
  if (WIFEXITED(result) && WEXITSTATUS(result) == 0) {
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
      return invalid_argument(fmt::format("{} is '{}', and so is {}; each needs a file of its own",
                                          file->option, file->name, other->option));
    }
    Status status = of_option(file->option, check_replaceable(std::string(file->name)));
    if (!status.ok()) return status;
  }
  return {};
}

Result<int> Whole::operator()(std::string_view argument, std::string_view text) const {
  return parse_whole(argument, text, lowest, highest);
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

}  // namespace rankine::tools
