// Option and Command define the command lines of subcommands with checked values: CLI11 finds the
// options, Rankine's parsers read them. This header also declares the options that several
// subcommands share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/cli/console.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/network/fabric.h"
#include "engine/network/simulate.h"
#include "engine/read/count.h"
#include "engine/run/rank_control.h"
#include "numa/placement.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rankine::tools {

// Thrown while CLI11 parses, and caught at the call of CLI11 (tool.cc). The text is complete.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An option of a command: a light view, like Command.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}
  Option required() const;
  Option excludes(Option other) const;

 private:
  CLI::Option* option_;
};

// A command under construction: the tool itself, or one of its subcommands. A light view of CLI11's
// object, so that only arguments.cc and tool.cc include CLI11.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  Command add_subcommand(const std::string& name, const std::string& help) const;
  Option add_flag(const std::string& flags, bool& target, const std::string& help) const;
  // Adds an option and passes its text to `read`; the last text counts if the option is given more
  // than once. `kind` names the text in the help: SIZE, N, NAME ... "collective,--collective" may
  // be given by position or by name; both together are an error. An empty text is an error even if
  // `read` accepts it, because it comes from an unset shell variable. The name of another option of
  // the command is an error, too, because it comes from a forgotten value.
  Option add_option(const std::string& flags, std::function<void(const std::string&)> read,
                    const std::string& kind, const std::string& help) const;
  void footer(const std::string& text) const;
  std::size_t options() const;  // number of options
  // Calls group(heading) for all options after the first `options` ones, and returns the number of
  // options.
  std::size_t group_from(std::size_t options, const std::string& heading) const;
  CLI::App& app() const { return *app_; }

 private:
  CLI::App* app_;
};

// A subcommand with its action; `run` owns its options and is called after parsing. It returns an
// error, or throws it as an Error (status.h).
struct Subcommand {
  Command command;
  std::function<Result<Exit>(Console&)> run;
};

// "--minbytes" of "-b,--minbytes"; a positional's name.
std::string argument_name(const std::string& flags);

// Adds an option and reads its text by parse(argument, text), which returns a Result; an error
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

// Makes a parser of names: `parse` reads one of `names`, which must outlive the command.
template <class T>
auto by_name(std::optional<T> (*parse)(std::string_view), std::span<const std::string_view> names) {
  return [parse, names](std::string_view argument, std::string_view text) -> Result<T> {
    if (const std::optional<T> value = parse(text)) return *value;
    return unknown_name(argument, text, names);
  };
}

// Reads one of `names`.
struct OneOf {
  std::span<const std::string_view> names;
  Result<std::string> operator()(std::string_view argument, std::string_view text) const;
};

// Adds an option for any text, to be read when other arguments are known.
Option add_text(Command command, const std::string& flags, std::string& target,
                const std::string& kind, const std::string& help);

// Reads auto (none), direct, mailbox or board.
Result<std::optional<Transport>> read_transport(std::string_view argument, std::string_view text);

// Adds --json and --csv, which replace text.
void add_formats(Command command, bool& json, bool& csv, const std::string& json_help);

// The error of a file that an option names: "--svg: 'x' cannot be written: ...".
Status of_option(std::string_view option, const Status& status);

// Checks the name of an output file. Refuses "-", because it would be a file's name here, while
// users expect standard output.
Status check_output_file(std::string_view option, std::string_view name);
Option add_output_file(Command command, const std::string& flags, std::string& target,
                       const std::string& help);

// Adds an option for a picture file. The name's ending gives the kind: .svg, or .png, .pdf or .eps,
// converted by the program rsvg-convert. Other endings, and kinds without that program, are refused
// at once; a name without an ending is an SVG.
Option add_picture_file(Command command, const std::string& flags, std::string& target,
                        const std::string& help);
// Writes an SVG picture, in the kind of the file's name or in `kind`.
Status write_picture(std::string_view option, const std::string& file, const std::string& svg,
                     std::string_view kind = {});

// Output files named on a command line, with their options; an empty name is ignored. Detects
// errors before minutes of work: an unwritable file, and two options for one file.
struct OutputFile {
  std::string_view option, name;
};
Status check_output_files(std::initializer_list<OutputFile> files);

// parse_whole() with these limits.
struct Whole {
  int lowest, highest;
  Result<int> operator()(std::string_view argument, std::string_view text) const;
};

// Makes a parser of lists, split at commas: `parse` reads each part.
template <class Parse>
auto list_of(Parse parse) {
  return [parse](std::string_view argument, std::string_view text) {
    using Value = std::decay_t<decltype(*parse(argument, text))>;
    std::vector<Value> values;
    for (const std::string_view part : split_list(text)) {
      auto value = parse(argument, part);
      if (!value.ok()) return Result<std::vector<Value>>(value.status());
      values.push_back(std::move(*value));
    }
    return Result<std::vector<Value>>(std::move(values));
  };
}

// The finite number that the whole text denotes, or nullopt.
std::optional<double> parse_real(std::string_view text);

// Whole numbers from 0 to 2^64 - 1.
Result<std::uint64_t> read_seed(std::string_view argument, std::string_view text);

// --dims: the sizes of a torus, for a network and for algorithms.
Option add_dims(Command command, std::vector<int>& target);

Result<PlacementPolicy> read_placement(std::string_view argument, std::string_view text);

// "auto" is nullopt.
Result<std::optional<WaitPolicy>> read_wait(std::string_view argument, std::string_view text);

// Texts of the help that differ between subcommands.
struct AlgorithmHelp {
  std::string collective = "collective";
  std::string algorithms{};  // if several may be given; empty: one only
  std::string ranks = "ranks (8)";
  std::string root{};  // empty: the parameter's help
  bool files = false;  // true: a file of a schedule may stand in place of the collective
};
// Adds the collective by position, --algo, and a flag for each parameter. Returns the collective's
// option, so that the caller can require it.
Option add_algorithm_arguments(Command app, AlgorithmArguments& arguments,
                               const AlgorithmHelp& help = {});

// Adds --menu: only algorithms that a library ships. `menu` must hold the default.
void add_menu(Command app, const Menu*& menu);

// Returns the algorithms of `entries` that are on the menu. Error: none of them is.
Result<std::vector<const Algorithm*>> on_menu(const Menu& menu, Collective collective,
                                              std::vector<const Algorithm*> entries);

// A preset or file, then options that override its members.
struct NetworkArguments {
  std::string network;  // a preset's name or a file's; empty: plain_regime()
  std::optional<Rational> alpha, beta, alpha_switch, between_alpha, between_beta;
  std::optional<Rational> hop, gamma, eta_alpha, eta_beta;
  std::optional<int> ports, group, spines;
  std::optional<WiringKind> wiring;
  std::optional<Routing> routing;
  bool multicast = false, alu = false, permute = false;
  bool lower = false;  // rewrite transfers that the network cannot do into messages

  bool operator==(const NetworkArguments&) const = default;
};

// Adds --network, --lower, and options that override members of the network: --alpha, --bandwidth
// or --beta, --ports, --multicast, --alu, --permute, --alpha-switch, --node-ranks, --between-alpha,
// --between-bandwidth, --wiring, --spines, --routing, --hop, --gamma, --eta-alpha and --eta-beta.
void add_network_arguments(Command app, NetworkArguments& arguments);

// The described network, for any number of ranks; wired_for() must follow. --wiring leaves the
// ports of a grid open without --ports. Errors name the option, its value and the allowed values.
Result<Fabric> network_of(const NetworkArguments& arguments);

// "dataflow" or "rounds".
Result<Sync> read_sync(std::string_view argument, std::string_view text);

// The help of "preset or file": the presets, one per line, with their sources.
std::string describe_presets();

struct QuestionArguments {
  AlgorithmArguments algorithm;
  std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::uint64_t> counts{};  // in place of bytes
  NetworkArguments network;
  Sync sync = Sync::dataflow;
};

// Adds --bytes, --counts and --sync; add_algorithm_arguments() and add_network_arguments() add the
// others.
void add_model_arguments(Command app, QuestionArguments& arguments);

// One question per algorithm of asked_algorithms(), with its notes and errors.
Result<std::vector<Question>> questions_of(const QuestionArguments& arguments,
                                           std::vector<std::string>& notes);
// The question of a subcommand that allows one algorithm only.
Result<Question> question_of(const QuestionArguments& arguments);

}  // namespace rankine::tools
