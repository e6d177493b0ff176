// The tool: its command line, help, shell completion and manual pages, the start of rankine-lab,
// and the main() of both programs.

#include "engine/cli/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/version.h"
#include "engine/base/files.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/text.h"

namespace rankine::tools {

namespace {

constexpr LaboratoryCommand kLaboratory[] = {
    {"map",
     "the cheapest algorithm over ranks and sizes on a modelled network, as text and picture"},
    {"cost", "an algorithm's rounds, n_alpha and n_beta, and every rank's bytes and ports"},
    {"gaps", "ranks at which another algorithm is better in one cost and worse in none"},
    {"claims", "every quantitative claim of the papers, computed and compared with the engine"},
    {"skips", "search the skips of a circulant reduce-scatter that suit a network"},
    {"synthesise", "make spanning trees for a network by its tightest cut, as a schedule"},
    {"reproduce", "a paper's tables, figures and statements, recomputed from the schedules"},
    {"plan", "plan a model's training step on ranks: collectives, time, memory"},
    {"step", "play a planned step's collectives on threads: real data, planned and played times"},
    {"buckets", "the times of gradient buckets of several sizes, alone and behind a backward pass"},
    {"faults", "inject every fault of the table into every collective, and count broken promises"},
    {"soak", "kill, shrink and grow ranks for a long time, and count what is left behind"},
    {"page", "one HTML file with this engine inside: races, players, curves, proofs"},
    {"lesson", "write a course of six lessons with tasks, and the page: a folder to learn from"},
};

constexpr const char* kProgram = "rankine-lab";

}  // namespace

std::span<const LaboratoryCommand> laboratory_commands() { return kLaboratory; }

Exit start_laboratory(Console& console, std::optional<std::string_view> input) {
  const std::string called =
      console.arguments.empty() ? "rankine" : "rankine " + console.arguments.front();
  console.out.flush();
  const int file = input ? file_in_memory(*input) : STDIN_FILENO;
  if (file < 0 || dup2(file, STDIN_FILENO) != STDIN_FILENO) {
    console.err << fmt::format("{}: standard input cannot be handed over: {}\n", called,
                               std::strerror(errno));
    return Exit::environment;
  }
  std::vector<std::string> words = {kProgram};
  words.insert(words.end(), console.arguments.begin(), console.arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const auto& path : {folder / kProgram, folder / "../lab" / kProgram}) {
    execv(path.c_str(), argv.data());
  }
  // A program with more rights than its user must not use PATH.
  if (environment_variable("PATH") != nullptr) execvp(kProgram, argv.data());
  console.err << fmt::format(
      "{}: this is a part of the laboratory, and its program {} is neither in {} nor in PATH; in "
      "Rankine's sources 'third_party/bazel build //engine/lab:rankine-lab' builds it\n",
      called, kProgram, folder.string());
  return Exit::usage;
}

namespace {

// The outline of a command: its options and subcommands as data, for the help, the completion and
// the manual.

struct OptionOutline {
  std::vector<std::string> names{};  // "-b", "--minbytes"; or a positional's name
  std::string kind{};                // "SIZE"; empty: the option takes no value
  std::string help;
  std::string heading;  // heading in --help
  bool positional = false;
  bool required = false;
};

struct CommandOutline {
  std::string name, help, footer;
  bool laboratory = false;  // a subcommand of the laboratory
  bool elsewhere = false;   // a subcommand of the laboratory that is in another program
  std::vector<OptionOutline> options{};  // positionals first, then in the order of --help
  std::vector<CommandOutline> commands{};
};

// The heading in the help for the subcommands of rankine-lab.
constexpr const char* kLaboratoryHeading = "Laboratory";

OptionOutline outline_of(const CLI::Option& option) {
  const bool positional = option.get_positional();
  OptionOutline outline{.help = option.get_description(),
                        .heading = option.get_group(),
                        .positional = positional,
                        .required = option.get_required()};
  for (const std::string& name : option.get_snames()) outline.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) outline.names.push_back("--" + name);
  if (positional) outline.names = {option.get_name(true)};
  if (option.get_items_expected_max() > 0) outline.kind = option.get_type_name();
  std::string others;
  for (const CLI::Option* other : option.get_excludes()) {
    others += (others.empty() ? "not with " : ", ") + other->get_name();
  }
  if (!others.empty()) outline.help += " (" + others + ")";
  return outline;
}

CommandOutline outline_of(const CLI::App& app) {
  CommandOutline outline{
      .name = app.get_name(), .help = app.get_description(), .footer = app.get_footer()};
  outline.laboratory = app.get_group() == kLaboratoryHeading;
  outline.elsewhere = app.get_prefix_command();
  for (const CLI::Option* option : app.get_options()) {
    outline.options.push_back(outline_of(*option));
  }
  const auto named =
      std::stable_partition(outline.options.begin(), outline.options.end(),
                            [](const OptionOutline& option) { return option.positional; });
  // Options with one heading stay together, in any order of adding.
  std::map<std::string, std::size_t> headings;
  for (auto option = named; option != outline.options.end(); ++option) {
    headings.try_emplace(option->heading, headings.size());
  }
  std::stable_sort(named, outline.options.end(),
                   [&](const OptionOutline& a, const OptionOutline& b) {
                     return headings[a.heading] < headings[b.heading];
                   });
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    outline.commands.push_back(outline_of(*one));
  }
  return outline;
}

// A name with its help beside it, or below it if the name is long.
std::string entry(const std::string& name, const std::string& help, int width) {
  const auto column = static_cast<std::size_t>(std::min(30, width / 3));
  std::string text = "  " + name;
  const std::string said = wrapped(help, width, column);
  if (said.empty() || text.size() + 1 >= column) return text + "\n" + said;
  return text + said.substr(text.size());
}

std::string name_of(const OptionOutline& option) {
  return fmt::format("{}{}{}", fmt::join(option.names, ","), option.kind.empty() ? "" : " ",
                     option.kind);
}

// "rankine perf [OPTIONS] collective". `called` is the typed name, "rankine perf".
std::string usage_of(const CommandOutline& command, const std::string& called) {
  std::string usage = called + " [OPTIONS]";
  for (const OptionOutline& option : command.options) {
    if (!option.positional) continue;
    const std::string& name = option.names.front();
    usage += option.required ? " " + name : " [" + name + "]";
  }
  return command.commands.empty() ? usage : usage + " [SUBCOMMAND]";
}

// The options under their headings, the subcommands, and the footer, wrapped by filled()
// (console.h).
std::string details_of(const CommandOutline& command, int width) {
  std::string text, heading;
  const auto begin = [&](const std::string& under) {
    if (under != heading) text += fmt::format("\n{}:\n", heading = under);
  };
  for (const OptionOutline& option : command.options) {
    begin(option.positional ? "Arguments" : option.heading);
    text += entry(name_of(option), option.help + (option.required ? " (required)" : ""), width);
  }
  for (const CommandOutline& one : command.commands) {
    begin(one.laboratory ? kLaboratoryHeading : "Subcommands");
    text += entry(one.name, one.help, width);
  }
  return text + "\n" + filled(command.footer, width);
}

using Names = std::vector<std::string>;

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

// The names allowed as the value of an option or a positional, if it takes one of a few names.
Names values_of(const OptionOutline& option, const CommandOutline& tool) {
  const std::string& name = option.names.back();
  Names words;
  if (name == "collective" || name == "--collective") {
    for (const Collective collective : all_collectives()) {
      if (!algorithm_names(collective).empty()) words.emplace_back(name_of(collective));
    }
  } else if (name == "--algo") {
    for (const Algorithm& entry : catalogue()) words.emplace_back(entry.name);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    words.emplace_back("all");
  } else if (name == "shell") {
    words.assign(std::begin(kShells), std::end(kShells));
  } else if (name == "subcommand") {
    for (const CommandOutline& one : tool.commands) words.push_back(one.name);
  }
  return words;
}

// The words by which the last one of `typed` may be completed, a line each, with a tab and its
// help: subcommands, options, and values if they are names; none means a file's name.
void print_words(const CommandOutline& tool, const Names& typed, std::ostream& out) {
  const auto print_options = [&out](const CommandOutline& command) {
    for (const OptionOutline& option : command.options) {
      for (const std::string& name : option.names) {
        if (!option.positional) out << name << '\t' << option.help << '\n';
      }
    }
  };
  if (typed.size() < 2) {
    for (const CommandOutline& one : tool.commands) out << one.name << '\t' << one.help << '\n';
    return print_options(tool);
  }
  const auto print_values = [&](const OptionOutline& option) {
    for (const std::string& value : values_of(option, tool)) out << value << '\n';
  };
  for (const CommandOutline& one : tool.commands) {
    if (one.name != typed.front()) continue;
    for (const OptionOutline& option : one.options) {
      const bool before = std::count(option.names.begin(), option.names.end(), *(typed.end() - 2));
      if (before && !option.positional && !option.kind.empty()) return print_values(option);
    }
    if (typed.back().starts_with('-')) return print_options(one);
    for (const OptionOutline& option : one.options) {
      if (option.positional) print_values(option);
    }
  }
}

constexpr std::string_view kBash =
    "_rankine() {\n"
    "  local words\n"
    "  words=$(\"${COMP_WORDS[0]}\" completion words \"${COMP_WORDS[@]:1:COMP_CWORD}\" "
    "2>/dev/null)\n"
    "  COMPREPLY=($(compgen -W \"$(cut -f 1 <<<\"$words\")\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
    "}\n"
    "complete -o default -F _rankine rankine\n";
constexpr std::string_view kFish =
    "complete -c rankine -a "
    "'(rankine completion words (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'\n";

// `rankine completion` prints a script that completes words by `rankine completion words`.
Subcommand add_completion(Command tool) {
  auto shell = std::make_shared<std::string>();
  const Command app =
      tool.add_subcommand("completion", "completion of this tool's words for bash, zsh or fish");
  add_argument(app, "shell", *shell, OneOf{kShells}, "NAME", "bash, zsh or fish").required();
  app.footer(
      "Examples:\n"
      "  source <(rankine completion bash)\n"
      "  rankine completion zsh >~/.zfunc/_rankine\n"
      "  rankine completion fish >~/.config/fish/completions/rankine.fish");
  return {app, [shell](Console& console) -> Result<Exit> {
            // zsh runs bash's script: as a separate file in fpath, or sourced.
            if (*shell == "zsh") {
              console.out << "#compdef rankine\nautoload -U +X bashcompinit && bashcompinit\n";
            }
            console.out << (*shell == "fish" ? kFish : kBash);
            return Exit::ok;
          }};
}

// Text that groff prints verbatim: no line of it is a macro, and copied text has ASCII's hyphens,
// quotes and carets.
std::string plain(std::string_view text) {
  constexpr std::pair<char, std::string_view> kNames[] = {
      {'\\', "\\e"}, {'-', "\\-"}, {'\'', "\\(aq"}, {'^', "\\(ha"}, {'~', "\\(ti"}, {'`', "\\(ga"}};
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((i == 0 || text[i - 1] == '\n') && (text[i] == '.' || text[i] == '\'')) plain += "\\&";
    const auto* const named = std::find_if(std::begin(kNames), std::end(kNames),
                                           [&](const auto& each) { return each.first == text[i]; });
    plain += named == std::end(kNames) ? text.substr(i, 1) : named->second;
  }
  return plain;
}

// The text of --help as a page for man(1).
std::string page_of(const CommandOutline& command, const std::string& called) {
  constexpr int kWidth = 72;
  std::string name = called;
  std::replace(name.begin(), name.end(), ' ', '-');
  return fmt::format(
      ".TH {0} 1 \"\" \"rankine {1}\" \"User Commands\"\n.SH NAME\n{0} \\- {2}\n"
      ".SH SYNOPSIS\n{3}\n.SH DESCRIPTION\n.nf\n{4}.fi\n.SH \"SEE ALSO\"\n\\fBrankine\\fR(1)\n",
      plain(name), kVersion, plain(command.help), plain(usage_of(command, called)),
      plain(details_of(command, kWidth).substr(1)));
}

Subcommand add_manual(Command tool) {
  auto name = std::make_shared<std::string>();
  const Command app =
      tool.add_subcommand("manual", "page for man(1), for this tool or a subcommand");
  add_text(app, "subcommand", *name, "NAME", "subcommand; none: the page of the tool itself");
  app.footer(
      "Examples:\n"
      "  rankine manual perf | man -l -\n"
      "  rankine manual >rankine.1");
  return {app, [name, tool](Console& console) -> Result<Exit> {
            const CommandOutline outline = outline_of(tool.app());
            if (name->empty()) console.out << page_of(outline, outline.name);
            std::vector<std::string_view> names;
            for (const CommandOutline& one : outline.commands) {
              names.push_back(one.name);
              if (one.name != *name) continue;
              if (one.elsewhere) return start_laboratory(console);
              console.out << page_of(one, outline.name + " " + one.name);
              return Exit::ok;
            }
            return name->empty() ? Result<Exit>(Exit::ok)
                                 : unknown_name("subcommand", *name, names);
          }};
}

// A new subcommand is its file and its name here.
constexpr Subcommand (*kSubcommands[])(Command) = {
    add_list,   add_verify,  add_show,     add_perf, add_compare, add_topo,
    add_choose, add_network, add_simulate, add_run,  add_tune,    add_top};

// Adds a placeholder for a subcommand of rankine-lab: all following arguments go to that program.
Subcommand add_elsewhere(Command tool, const LaboratoryCommand& known) {
  const Command command = tool.add_subcommand(known.name, known.help);
  command.app().set_help_flag();
  command.app().prefix_command();
  return {command, [](Console& console) -> Result<Exit> { return start_laboratory(console); }};
}

CLI::App& app_of(const Subcommand& one) { return one.command.app(); }

// "rankine", or "rankine perf".
std::string called(const CLI::App& app) {
  return app.get_parent() == nullptr ? "rankine" : "rankine " + app.get_name();
}

// Options of earlier versions, and what replaces them.
struct ReplacedOption {
  std::string_view command, option, now;
};
constexpr ReplacedOption kReplaced[] = {
    {"rankine show", "--text", "--format text"},
    {"rankine simulate", "--goal", "'rankine show --format goal --bytes SIZE > FILE'"},
};

std::string unknown_argument(const CLI::App& app, const std::string& given) {
  const std::string whole = called(app);
  if (!given.starts_with('-')) {
    return fmt::format("'{}' is one argument too many; '{} --help' shows the allowed ones", given,
                       whole);
  }
  const std::string name = given.substr(0, given.find('='));
  for (const auto& [command, option, now] : kReplaced) {
    if (whole == command && name == option) {
      return fmt::format("{} is no option of '{}' any more; {} replaces it", name, whole, now);
    }
  }
  const CommandOutline outline = outline_of(app);
  std::vector<std::string_view> names;
  for (const OptionOutline& option : outline.options) {
    if (!option.positional) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  std::string text =
      fmt::format("{} is no option of '{}'; '{} --help' lists all", name, whole, whole);
  return name.starts_with("--") ? text + did_you_mean(name, names) : text;
}

// Adds the product's subcommands, then the laboratory's.
std::vector<Subcommand> add_all(CLI::App& app, const Laboratory* laboratory) {
  const Command tool(app);
  std::vector<Subcommand> subcommands;
  for (const auto add : kSubcommands) subcommands.push_back(add(tool));
  subcommands.push_back(add_check(tool, laboratory != nullptr ? &laboratory->check : nullptr));
  subcommands.push_back(add_completion(tool));
  subcommands.push_back(add_manual(tool));
  const std::size_t product = subcommands.size();
  if (laboratory != nullptr) {
    for (const auto add : laboratory->subcommands) subcommands.push_back(add(tool));
  } else {
    for (const LaboratoryCommand& known : laboratory_commands()) {
      subcommands.push_back(add_elsewhere(tool, known));
    }
  }
  for (std::size_t i = product; i < subcommands.size(); ++i) {
    app_of(subcommands[i]).group(kLaboratoryHeading);
  }
  for (const Subcommand& one : subcommands) app_of(one).allow_extras();
  return subcommands;
}

std::string help_of(const Command& command) {
  constexpr int kReadable = 100;
  const CommandOutline outline = outline_of(command.app());
  const int width = terminal_width(kReadable);
  return filled(outline.help, width) + "Usage: " + usage_of(outline, called(command.app())) + "\n" +
         details_of(outline, width);
}

// Rewrites CLI11's error about two options that exclude each other.
std::string both_given(std::string_view text) {
  constexpr std::string_view kBetween = " excludes ";
  const std::size_t at = text.find(kBetween);
  return fmt::format("{} and {} are given; allowed is one of them", text.substr(0, at),
                     text.substr(at + kBetween.size()));
}

// Rewrites CLI11's error about a flag with a value: "Could not convert: --json = x".
std::string value_given(std::string_view text) {
  const std::string_view flag = text.substr(std::min(text.find("--"), text.size()));
  const std::size_t value = flag.find(" = ");
  if (value == std::string_view::npos) return std::string(text);
  return fmt::format("{} is '{}'; it takes no value", flag.substr(0, value),
                     flag.substr(value + 3));
}

// The first example of a command's help, without the comment beside it.
std::string example_of(const Command& command) {
  const std::string footer = command.app().get_footer();
  const std::size_t at = footer.find("  rankine ");
  if (at == std::string::npos) return {};
  const std::string line = footer.substr(at + 2, footer.find('\n', at) - at - 2);
  return line.substr(0, line.find("  "));
}

Exit fail(Console& console, std::string_view who, std::string_view text, Exit exit) {
  console.err << fmt::format("{}: {}\n", who, text);
  return exit;
}

Exit run(std::vector<std::string> arguments, Console& console, const Laboratory* laboratory) {
  if (!arguments.empty() && arguments.front() == "help") {  // git, go and cargo have this command,
                                                            // too
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  CLI::App app("Collectives on the threads of one node: measured, proved and drawn.", "rankine");
  app.set_version_flag("--version", fmt::format("rankine {}", kVersion));
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer(
      "'rankine help <subcommand>' or 'rankine <subcommand> --help' explains each, with examples.");
  const std::vector<Subcommand> subcommands = add_all(app, laboratory);
  if (arguments.size() > 2 && arguments[0] == "completion" && arguments[1] == "words") {
    const Names typed(arguments.begin() + 2, arguments.end());
    for (const Subcommand& one : subcommands) {
      const bool elsewhere = app_of(one).get_prefix_command();
      if (elsewhere && typed.size() > 1 && typed[0] == app_of(one).get_name()) {
        return start_laboratory(console);
      }
    }
    print_words(outline_of(app), typed, console.out);
    return Exit::ok;
  }

  const auto chosen = [&]() -> const Subcommand* {
    for (const Subcommand& one : subcommands) {
      if (app_of(one).parsed()) return &one;
    }
    return nullptr;
  };
  const auto command = [&] {
    const Subcommand* one = chosen();
    return one != nullptr ? one->command : Command(app);
  };
  // A request for help succeeds despite other errors.
  const auto refuse = [&](const std::string& text) {
    const CLI::Option* help = command().app().get_help_ptr();
    if (help == nullptr || help->count() == 0) {
      return fail(console, called(command().app()), text, Exit::usage);
    }
    console.out << help_of(command());
    return Exit::ok;
  };
  try {
    std::vector<std::string> reversed(arguments.rbegin(),
                                      arguments.rend());  // the order that CLI11 expects
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    const Subcommand* one = chosen();
    const bool elsewhere = one != nullptr && app_of(*one).get_prefix_command();
    if (!elsewhere && (one != nullptr || app.remaining().empty())) {
      console.out << help_of(command());
      return Exit::ok;
    }  // else: help for an unknown subcommand, or for one of rankine-lab
  } catch (const CLI::CallForVersion& version) {
    console.out << version.what() << "\n";
    return Exit::ok;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string_view text = error.what();
    return refuse(fmt::format("{} needs a value", text.substr(0, text.find(':'))));
  } catch (const CLI::ConversionError& error) {
    return refuse(value_given(error.what()));
  } catch (const CLI::RequiredError& error) {
    const std::string example = example_of(command());
    return refuse(fmt::format("{}{}; '{} --help' says more", error.what(),
                              example.empty() ? "" : fmt::format(", as in '{}'", example),
                              called(command().app())));
  } catch (const CLI::ExcludesError& error) {
    return refuse(both_given(error.what()));
  } catch (const CLI::ParseError& error) {
    return refuse(fmt::format("{}; '{} --help' says more", error.what(), called(command().app())));
  } catch (const UsageError& error) {
    // A misspelt option leaves its value behind as a surplus argument: name the option, not the
    // value.
    for (const std::string& given : command().app().remaining()) {
      if (given.starts_with("-")) return refuse(unknown_argument(command().app(), given));
    }
    return refuse(error.what());
  }

  const Subcommand* one = chosen();
  const std::vector<std::string> before = app.remaining();
  if (!before.empty() && before.front().starts_with("-")) {
    const std::string text = unknown_argument(app, before.front());
    return fail(console, "rankine",
                one == nullptr ? text
                               : fmt::format("{}; options of '{}' stand behind it", text,
                                             called(app_of(*one))),
                Exit::usage);
  }
  if (!before.empty() || one == nullptr) {
    std::vector<std::string> owned;
    for (const Subcommand& each : subcommands) owned.push_back(app_of(each).get_name());
    const std::vector<std::string_view> names(owned.begin(), owned.end());
    if (!before.empty()) {
      return fail(console, "rankine",
                  before.front() == "train"
                      ? "'train' is an example in Python now: engine/api/python/examples/train.py "
                        "has its --tp, --dp, --pp and --zero, experts.py its --ep"
                      : unknown_name("subcommand", before.front(), names).text(),
                  Exit::usage);
    }
    console.err << help_of(Command(app));
    return fail(console, "rankine", "a subcommand is needed; allowed are " + join(names),
                Exit::usage);
  }
  const std::string who = called(app_of(*one));
  const std::vector<std::string> rest = app_of(*one).remaining(true);
  if (!rest.empty() && !app_of(*one).get_prefix_command()) {
    return fail(console, who, unknown_argument(app_of(*one), rest.front()), Exit::usage);
  }
  try {
    return one->run(console).value();
  } catch (const Error& error) {
    std::string_view text = error.what();
    const bool is_usage = error.code() == Code::invalid_argument;
    if (is_usage) text.remove_prefix(name_of(error.code()).size() + std::strlen(": "));
    return fail(console, who, text, exit_of(error.code()));
  } catch (const std::bad_alloc&) {
    return fail(console, who, "out of memory", Exit::environment);
  } catch (const std::exception& error) {
    return fail(console, who, error.what(), Exit::environment);
  }
}

}  // namespace

Exit run_tool(const std::vector<std::string>& arguments, Console& console,
              const Laboratory* laboratory) {
  console.arguments = arguments;
  const std::ios::iostate before = console.out.exceptions();
  Exit exit = Exit::environment;
  try {
    console.out.exceptions(before | std::ios::badbit);
    exit = run(arguments, console, laboratory);
    // A bad stream has reported its error already, and would throw another one now.
    if (console.out.good()) console.out.flush();
  } catch (const std::exception& error) {
    exit = fail(console, "rankine", error.what(), Exit::environment);
  }
  if (console.out.good()) console.out.exceptions(before);
  return exit;
}

int tool_main(int argc, char** argv, const Laboratory* laboratory) {
  // A closed descriptor would be given to the first file opened, and output would go into that
  // file. /dev/null, opened for reading, takes its number: writing to it fails as before.
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    while (fcntl(stream, F_GETFD) == -1 && open("/dev/null", O_RDONLY) >= 0) {
    }
  }
  change_to_user_directory();
  std::ios::sync_with_stdio(false);
  // If a reader ends early, writes fail instead of killing the program.
  std::signal(SIGPIPE, SIG_IGN);
  DescriptorBuffer buffer(STDOUT_FILENO, "standard output");
  std::ostream out(&buffer);
  Console console{.out = out,
                  .err = std::cerr,
                  .out_is_terminal = isatty(STDOUT_FILENO) == 1,
                  .err_is_terminal = isatty(STDERR_FILENO) == 1,
                  .progress_after = 5};
  return static_cast<int>(run_tool({argv + 1, argv + argc}, console, laboratory));
}

std::vector<std::string> subcommand_names(const Laboratory* laboratory) {
  CLI::App app;
  std::vector<std::string> names;
  for (const Subcommand& each : add_all(app, laboratory)) {
    if (!app_of(each).get_prefix_command()) names.push_back(app_of(each).get_name());
  }
  return names;
}

}  // namespace rankine::tools
