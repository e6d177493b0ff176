// The tool: its command line, help, shell completion and manual pages, and the main() of both
// programs.

#include "engine/cli/tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <iostream>
#include <map>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/version.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/laboratory.h"
#include "engine/cli/machine.h"
#include "engine/cli/perf.h"
#include "engine/cli/text.h"
#include "engine/cli/tune.h"

namespace rankine::tools {

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

CommandOutline outline_of(const Command& command);

// The heading in the help for the subcommands of rankine-lab.
constexpr const char* kLaboratoryHeading = "Laboratory";

// The text of --help.

// The command, its usage, its options under their headings, its subcommands, and its footer,
// wrapped by filled() (console.h). `called` is the typed name, "rankine perf".
std::string help_text(const CommandOutline& command, const std::string& called, int width);

// `rankine completion` prints a shell script that completes the tool's subcommands, options and
// names.

Subcommand add_completion(Command tool);

// `rankine manual` prints pages for man(1), for the tool and its subcommands, made from the texts
// of --help.

Subcommand add_manual(Command tool);

namespace {

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

}  // namespace

CommandOutline outline_of(const Command& command) { return outline_of(command.app()); }

namespace {

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

}  // namespace

std::string help_text(const CommandOutline& command, const std::string& called, int width) {
  std::string usage = fmt::format("Usage: {} [OPTIONS]", called), entries, heading;
  for (const OptionOutline& option : command.options) {
    if (option.positional) {
      const std::string& name = option.names.front();
      usage += option.required ? " " + name : " [" + name + "]";
    }
    const std::string under = option.positional ? "Arguments" : option.heading;
    if (under != heading) entries += fmt::format("\n{}:\n", heading = under);
    entries += entry(name_of(option), option.help + (option.required ? " (required)" : ""), width);
  }
  if (!command.commands.empty()) {
    usage += " [SUBCOMMAND]";
    entries += "\nSubcommands:\n";
  }
  bool laboratory = false;
  for (const CommandOutline& one : command.commands) {
    if (one.laboratory && !std::exchange(laboratory, true)) {
      entries += fmt::format("\n{}:\n", kLaboratoryHeading);
    }
    entries += entry(one.name, one.help, width);
  }
  return filled(command.help, width) + usage + "\n" + entries + "\n" +
         filled(command.footer, width);
}

namespace {

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

using Names = std::vector<std::string>;

std::string line_of(const Names& words) { return fmt::format("{}", fmt::join(words, " ")); }

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

// Completes subcommands, then the options of each, then values of options, and files if no list of
// values is known.
void print_bash(const CommandOutline& tool, std::ostream& out) {
  Names first;
  for (const CommandOutline& one : tool.commands) first.push_back(one.name);
  for (const OptionOutline& option : tool.options) {
    first.insert(first.end(), option.names.begin(), option.names.end());
  }
  out << "_rankine() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=''\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
      << fmt::format("    words='{}'\n", line_of(first))
      << "  else\n"
         "    case ${COMP_WORDS[1]}:$before:$word in\n";
  for (const CommandOutline& one : tool.commands) {
    Names options, names;
    for (const OptionOutline& option : one.options) {
      const Names values = values_of(option, tool);
      if (option.positional) {
        names.insert(names.end(), values.begin(), values.end());
        continue;
      }
      options.insert(options.end(), option.names.begin(), option.names.end());
      if (option.kind.empty()) continue;
      Names patterns;
      for (const std::string& name : option.names) {
        patterns.push_back(fmt::format("{}:{}:*", one.name, name));
      }
      out << fmt::format("      {}) words='{}' ;;\n", fmt::join(patterns, " | "), line_of(values));
    }
    out << fmt::format("      {}:*:-*) words='{}' ;;\n", one.name, line_of(options));
    if (!names.empty()) {
      out << fmt::format("      {}:*) words='{}' ;;\n", one.name, line_of(names));
    }
  }
  out << "    esac\n"
         "  fi\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _rankine rankine\n";
}

// Quotes text for fish's single quotes.
std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

void print_fish(const CommandOutline& tool, std::ostream& out) {
  const auto print = [&](const std::string& where, const OptionOutline& option) {
    const Names values = values_of(option, tool);
    if (option.positional && values.empty()) return;
    out << "complete -c rankine -n " << shell_quoted(where);
    for (const std::string& name : option.names) {
      if (option.positional) break;
      out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
    }
    if (!option.positional && !option.kind.empty()) out << " -r";
    if (!values.empty()) out << " -f -a " << shell_quoted(line_of(values));
    out << " -d " << shell_quoted(option.help) << "\n";
  };
  for (const OptionOutline& option : tool.options) print("__fish_use_subcommand", option);
  for (const CommandOutline& one : tool.commands) {
    out << fmt::format("complete -c rankine -n __fish_use_subcommand -f -a {} -d {}\n", one.name,
                       shell_quoted(one.help));
    for (const OptionOutline& option : one.options) {
      print("__fish_seen_subcommand_from " + one.name, option);
    }
  }
}

}  // namespace

Subcommand add_completion(Command tool) {
  auto shell = std::make_shared<std::string>();
  const Command app =
      tool.add_subcommand("completion", "completion of this tool's words for bash, zsh or fish");
  const auto read = [](std::string_view argument, std::string_view text) -> Result<std::string> {
    if (std::find(std::begin(kShells), std::end(kShells), text) != std::end(kShells)) {
      return std::string(text);
    }
    return unknown_name(argument, text, kShells);
  };
  add_argument(app, "shell", *shell, read, "NAME", "bash, zsh or fish").required();
  app.footer(
      "Examples:\n"
      "  source <(rankine completion bash)\n"
      "  rankine completion zsh >~/.zfunc/_rankine\n"
      "  rankine completion fish >~/.config/fish/completions/rankine.fish");
  return {app, [shell, tool](Console& console) -> Result<Exit> {
            const CommandOutline outline = outline_of(tool);
            if (*shell == "fish") {
              print_fish(outline, console.out);
            } else {
              // zsh runs bash's script: as a separate file in fpath, or sourced.
              if (*shell == "zsh") {
                console.out << "#compdef rankine\nautoload -U +X bashcompinit && bashcompinit\n";
              }
              print_bash(outline, console.out);
            }
            return Exit::ok;
          }};
}

namespace {

// Text that groff prints verbatim: no line of it is a macro, and copied text has ASCII's hyphens,
// quotes and carets.
std::string plain(std::string_view text) {
  std::string plain;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) plain += "\\&";
    begins = c == '\n';
    switch (c) {
      case '\\':
        plain += "\\e";
        break;
      case '-':
        plain += "\\-";
        break;
      case '\'':
        plain += "\\(aq";
        break;
      case '^':
        plain += "\\(ha";
        break;
      case '~':
        plain += "\\(ti";
        break;
      case '`':
        plain += "\\(ga";
        break;
      default:
        plain += c;
    }
  }
  return plain;
}

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

void print_option(const OptionOutline& option, std::ostream& out) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back("\\fB" + plain(name) + "\\fR");
  const std::string kind = option.kind.empty() ? "" : " \\fI" + plain(option.kind) + "\\fR";
  out << fmt::format(".TP\n{}{}\n{}{}\n", fmt::join(names, ", "), kind, plain(option.help),
                     option.required ? " (required)" : "");
}

// Text under separate headings is printed as typed; "Examples:" is the footer's.
void print_footer(std::string_view footer, std::ostream& out) {
  while (footer.starts_with('\n')) footer.remove_prefix(1);
  constexpr std::string_view kExamples = "Examples:\n";
  constexpr int kWidth = 78;
  if (footer.empty()) return;
  const bool examples = footer.starts_with(kExamples);
  if (examples) footer.remove_prefix(kExamples.size());
  out << fmt::format(".SH {}\n.nf\n{}.fi\n", examples ? "EXAMPLES" : "NOTES",
                     plain(filled(footer, kWidth)));
}

// `of` is the tool; nullptr for the page of the tool itself.
void print_page(const CommandOutline& page, const CommandOutline* of, std::ostream& out) {
  const std::string title = of == nullptr ? page.name : of->name + "-" + page.name;
  const std::string command = of == nullptr ? page.name : of->name + " " + page.name;
  out << fmt::format(".TH {} 1 \"\" \"{} {}\" \"User Commands\"\n", capitals(plain(title)),
                     of == nullptr ? page.name : of->name, kVersion)
      << fmt::format(".SH NAME\n{} \\- {}\n", plain(title), plain(page.help))
      << fmt::format(".SH SYNOPSIS\n\\fB{}\\fR", plain(command));
  if (!page.commands.empty()) out << " \\fISUBCOMMAND\\fR";
  out << " [\\fIOPTIONS\\fR]";
  std::string heading;
  for (const OptionOutline& option : page.options) {
    if (!option.positional) continue;
    const std::string name = "\\fI" + plain(option.names.front()) + "\\fR";
    out << (option.required ? " " + name : " [" + name + "]");
  }
  out << "\n";
  for (const OptionOutline& option : page.options) {
    const std::string under =
        capitals(plain(option.positional ? "Arguments" : std::string(option.heading)));
    if (under != heading) out << fmt::format(".SH \"{}\"\n", heading = under);
    print_option(option, out);
  }
  if (!page.commands.empty()) out << ".SH SUBCOMMANDS\n";
  for (const CommandOutline& one : page.commands) {
    if (one.elsewhere) continue;  // its page comes from rankine-lab
    out << fmt::format(".TP\n\\fB{}\\-{}\\fR(1)\n{}\n", plain(page.name), plain(one.name),
                       plain(one.help));
  }
  print_footer(page.footer, out);
  if (of != nullptr) out << fmt::format(".SH \"SEE ALSO\"\n\\fB{}\\fR(1)\n", plain(of->name));
}

}  // namespace

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
            const CommandOutline outline = outline_of(tool);
            if (name->empty()) {
              print_page(outline, nullptr, console.out);
              return Exit::ok;
            }
            std::vector<std::string_view> names;
            for (const CommandOutline& one : outline.commands) {
              names.push_back(one.name);
              if (one.name != *name) continue;
              if (one.elsewhere) return start_laboratory(console);
              print_page(one, &outline, console.out);
              return Exit::ok;
            }
            return unknown_name("subcommand", *name, names);
          }};
}

namespace {

// A new subcommand is its file and its name here.
constexpr Subcommand (*kSubcommands[])(Command) = {
    add_list,   add_verify,  add_show,     add_perf, add_compare, add_topo,
    add_choose, add_network, add_simulate, add_run,  add_tune};

// Adds a placeholder for a subcommand of rankine-lab: all following arguments go to that program.
Subcommand add_elsewhere(Command tool, const LaboratoryCommand& known) {
  const Command command = tool.add_subcommand(known.name, known.help);
  command.app().set_help_flag();
  command.app().prefix_command();
  return {command, [](Console& console) -> Result<Exit> { return start_laboratory(console); }};
}

CLI::App& app_of(const Subcommand& one) { return one.command.app(); }

// Long and short names of an app's options, as typed.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// "rankine", or "rankine perf".
std::string called(const CLI::App& app) {
  return app.get_parent() == nullptr ? "rankine" : "rankine " + app.get_name();
}

std::string unknown_argument(const CLI::App& app, const std::string& given) {
  const std::string whole = called(app);
  if (!given.starts_with('-')) {
    return fmt::format("'{}' is one argument too many; '{} --help' shows the allowed ones", given,
                       whole);
  }
  const std::string name = given.substr(0, given.find('='));
  const std::vector<std::string> owned = option_names(app);
  std::vector<std::string_view> names(owned.begin(), owned.end());
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
  return help_text(outline_of(command), called(command.app()), terminal_width(kReadable));
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
  const std::string footer = outline_of(command).footer;
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
    Result<Exit> result = one->run(console);
    if (result.ok()) return *result;
    const Status& status = result.status();
    const std::string kind = status.code() == Code::invalid_argument
                                 ? std::string()
                                 : fmt::format("{}: ", name_of(status.code()));
    return fail(console, who, kind + status.text(), exit_of(status.code()));
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

namespace {

// A closed descriptor would be given to the first file opened, and output would go into that file.
// /dev/null, opened for reading, takes its number: writing to it fails as before.
void keep_taken(int descriptor) {
  while (fcntl(descriptor, F_GETFD) == -1) {
    if (open("/dev/null", O_RDONLY) < 0) return;
  }
}

}  // namespace

int tool_main(int argc, char** argv, const Laboratory* laboratory) {
  keep_taken(STDIN_FILENO);
  keep_taken(STDOUT_FILENO);
  keep_taken(STDERR_FILENO);
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
