// Options of subcommands that check themselves: CLI11 finds them, our parsers read them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/console.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/run/crossbar.h"
#include "numa/placement.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rankine::tools {

// Thrown while CLI11 parses, and caught where it was called (tool.cc). The text says it all.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option of a command: a light view, as Command is.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option required() const;
  Option group(const std::string& heading) const;  // under which the help shows it
  Option excludes(Option other) const;

 private:
  CLI::Option* option_;
};

// A command under construction: the tool itself, or one of its subcommands. A light view of what
// CLI11 holds, so that only this file, tool.cc and command_outline.cc need to see CLI11.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  Command add_subcommand(const std::string& name, const std::string& help) const;
  Option add_flag(const std::string& flags, bool& target, const std::string& help) const;
  // An option whose text goes to `read`, the last one where it is given more than once. `kind` is
  // what the help says of the text: SIZE, N, NAME ... "collective,--collective" may be given by
  // position or by name, and is refused where both are there. Where `read` has nothing against an
  // empty text, it is refused all the same: it comes of a shell's variable that is not set. So is
  // the name of another option of the command, which comes of a value that was forgotten.
  Option add_option(const std::string& flags, std::function<void(const std::string&)> read,
                    const std::string& kind, const std::string& help) const;
  void footer(const std::string& text) const;
  std::size_t options() const;  // how many it has
  // Calls group(heading) for all beyond the first so many, and says how many it has.
  std::size_t group_from(std::size_t options, const std::string& heading) const;
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

// What a subcommand leaves with the tool: its options' owner, and what it does once they are read.
struct Subcommand {
  Command command;
  std::function<Result<Exit>(Console&)> run;
};

// "--minbytes" of "-b,--minbytes"; a positional's own name.
std::string argument_name(const std::string& flags);

// Adds an option whose text goes through parse(argument, text), a Result; what is wrong with it
// throws UsageError. The target must live as long as the command.
template <class T, class Parse>
Option add_argument(Command command, const std::string& flags, T& target, Parse parse,
                    const std::string& kind, const std::string& help) {
  const auto read = [&target, parse, name = argument_name(flags)](const std::string& text) {
    auto value = parse(std::string_view(name), std::string_view(text));
    if (!value.ok()) throw UsageError(value.status().text());
    target = std::move(*value);
  };
  return command.add_option(flags, read, kind, help);
}

template <class T, class Parse>
Option add_argument(Command command, const std::string& flags, T& target, Parse parse,
                    const std::string& help) {
  return add_argument(command, flags, target, parse, "TEXT", help);
}

// Any text at all, to be read when other arguments are known.
Option add_text(Command command, const std::string& flags, std::string& target,
                const std::string& kind, const std::string& help);

// --json and --csv, in place of text.
void add_formats(Command command, bool& json, bool& csv, const std::string& json_help);

// What went wrong with a file that an option names: "--svg: 'x' cannot be written: ...".
Status of_option(std::string_view option, const Status& status);

// The name of a file that will be written. "-" is refused: it would be a file's name here and
// standard output to whoever types it.
Status check_output_file(std::string_view option, std::string_view name);
Option add_output_file(Command command, const std::string& flags, std::string& target,
                       const std::string& help);

// The same of a picture, whose name says its kind: .svg, or .png, .pdf or .eps, which the program
// rsvg-convert makes of it. Another ending, and a kind for which the program is not there, are
// refused at once; a name without an ending is an SVG.
Option add_picture_file(Command command, const std::string& flags, std::string& target,
                        const std::string& help);
// Writes a picture, which is SVG, as the kind that the file's name, or `kind`, says.
Status write_picture(std::string_view option, const std::string& file, const std::string& svg,
                     std::string_view kind = {});

// Files that a command line names for its output, by their options; an empty name is none. What is
// found now is not found after minutes of work: one that cannot be written, two that are one.
struct OutputFile {
  std::string_view option, name;
};
Status check_output_files(std::initializer_list<OutputFile> files);

// parse_whole() with these ends.
struct Whole {
  int lowest, highest;
  Result<int> operator()(std::string_view argument, std::string_view text) const;
};

// Whole numbers from 0 to 2^64 - 1.
Result<std::optional<std::uint64_t>> read_seed(std::string_view argument, std::string_view text);

// --dims: the sizes of a torus, of a network and of algorithms alike.
Option add_dims(Command command, std::vector<int>& target);

Result<PlacementPolicy> read_placement(std::string_view argument, std::string_view text);

// "auto" is nullopt.
Result<std::optional<WaitPolicy>> read_wait(std::string_view argument, std::string_view text);

// The options of subcommands that name algorithms and their parameters.

// What help says that subcommands say differently.
struct AlgorithmHelp {
  std::string collective = "collective";
  std::string algorithms{};  // where several may be given; else it is one
  std::string ranks = "ranks (8)";
  std::string root{};  // else as its row says
};
// The collective by position, --algo, and a flag for each parameter. Returns the collective's
// option, for who requires it.
Option add_algorithm_arguments(Command app, AlgorithmArguments& arguments,
                               const AlgorithmHelp& help = {});

// --menu: only what a library ships.

// `menu` begins as the one that is meant where nobody says.
void add_menu(Command app, const Menu*& menu);

// Those of `lines` that are on the menu. Error: none is.
Result<std::vector<const Algorithm*>> on_menu(const Menu& menu, Collective collective,
                                              std::vector<const Algorithm*> lines);

// The options of subcommands that model a network: a preset or file, then what overrides it.

struct NetworkArguments {
  std::string network;  // a preset's name or a file's; empty: plain_regime()
  std::optional<Rational> alpha, beta, alpha_switch, between_alpha, between_beta;
  std::optional<Rational> hop, gamma, eta_alpha, eta_beta;
  std::optional<int> ports, group, spines;
  std::optional<WiringKind> wiring;
  std::optional<Routing> routing;
  bool multicast = false, alu = false, permute = false;
  bool lower = false;  // rewrite what the network cannot do into messages

  bool operator==(const NetworkArguments&) const = default;
};

// --network, --lower, and what overrides members of the network: --alpha, --bandwidth or --beta,
// --ports, --multicast, --alu, --permute, --alpha-switch, --node-ranks, --between-alpha,
// --between-bandwidth, --wiring, --spines, --routing, --hop, --gamma, --eta-alpha and --eta-beta.
void add_network_arguments(Command app, NetworkArguments& arguments);

// The network that they describe, for any number of ranks: wired_for() comes next. --wiring leaves
// the ports of a grid open where --ports does not say. Errors name the option, its value and
// what is allowed.
Result<Fabric> network_of(const NetworkArguments& arguments);

// "dataflow" or "rounds".
Result<Sync> read_sync(std::string_view argument, std::string_view text);

// "preset or file"'s help: the presets, one per line, with their sources.
std::string describe_presets();

// The options that describe questions: what simulate, cost and run have in common.

struct QuestionArguments {
  AlgorithmArguments algorithm;
  std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::uint64_t> counts{};  // in place of bytes
  NetworkArguments network;
  Sync sync = Sync::dataflow;
};

// --bytes, --counts and --sync; the others come by add_algorithm_arguments() and
// add_network_arguments().
void add_model_arguments(Command app, QuestionArguments& arguments);

// One question per algorithm that asked_algorithms() gives, with the same notes and errors.
Result<std::vector<Question>> questions_of(const QuestionArguments& arguments,
                                           std::vector<std::string>& notes);
// The same where one algorithm only is allowed.
Result<Question> question_of(const QuestionArguments& arguments);

}  // namespace rankine::tools
