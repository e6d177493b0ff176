#include "engine/tools/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/tools/command_outline.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

using Words = std::vector<std::string>;

std::string line_of(const Words& words) { return fmt::format("{}", fmt::join(words, " ")); }

// What an option's value, or a positional, may be, where that is one of a few names.
Words values_of(const OptionOutline& option, const CommandOutline& tool) {
  const std::string& name = option.names.back();
  Words words;
  if (name == "collective" || name == "--collective") {
    for (const Collective collective : all_collectives()) {
      if (!algorithm_names(collective).empty()) words.emplace_back(name_of(collective));
    }
  } else if (name == "--algo") {
    for (const Algorithm& line : catalogue()) words.emplace_back(line.name);
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

// Subcommands, then the options of each; what stands behind an option that takes a value; files
// where nothing else is known.
void print_bash(const CommandOutline& tool, std::ostream& out) {
  Words first;
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
    Words options, names;
    for (const OptionOutline& option : one.options) {
      const Words values = values_of(option, tool);
      if (option.positional) {
        names.insert(names.end(), values.begin(), values.end());
        continue;
      }
      options.insert(options.end(), option.names.begin(), option.names.end());
      if (option.kind.empty()) continue;
      Words patterns;
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

// As fish reads what stands between single quotes.
std::string quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

void print_fish(const CommandOutline& tool, std::ostream& out) {
  const auto print = [&](const std::string& where, const OptionOutline& option) {
    const Words values = values_of(option, tool);
    if (option.positional && values.empty()) return;
    out << "complete -c rankine -n " << quoted(where);
    for (const std::string& name : option.names) {
      if (option.positional) break;
      out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
    }
    if (!option.positional && !option.kind.empty()) out << " -r";
    if (!values.empty()) out << " -f -a " << quoted(line_of(values));
    out << " -d " << quoted(option.help) << "\n";
  };
  for (const OptionOutline& option : tool.options) print("__fish_use_subcommand", option);
  for (const CommandOutline& one : tool.commands) {
    out << fmt::format("complete -c rankine -n __fish_use_subcommand -f -a {} -d {}\n", one.name,
                       quoted(one.help));
    for (const OptionOutline& option : one.options) {
      print("__fish_seen_subcommand_from " + one.name, option);
    }
  }
}

}  // namespace

Subcommand add_completion(Command tool) {
  auto shell = std::make_shared<std::string>();
  const Command app = tool.add_subcommand(
      "completion", "what bash, zsh or fish needs to complete this tool's words");
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
              // zsh reads bash's: as a file of its own in fpath, or sourced.
              if (*shell == "zsh") {
                console.out << "#compdef rankine\nautoload -U +X bashcompinit && bashcompinit\n";
              }
              print_bash(outline, console.out);
            }
            return Exit::ok;
          }};
}

}  // namespace rankine::tools
