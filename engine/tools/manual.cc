#include "engine/tools/manual.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/api/version.h"
#include "engine/tools/command_outline.h"
#include "engine/tools/terminal.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

// Text that groff prints as it stands: no line of it is a macro, and what can be copied has ASCII's
// hyphens, quotes and carets.
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

// What stands under a heading of its own, "Examples:" that of the footer, is as it was typed.
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

// `of`: the tool, unless it is the page of the tool itself.
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
      tool.add_subcommand("manual", "the page that man(1) shows, of this tool or of a subcommand");
  add_text(app, "subcommand", *name, "NAME", "which one; none: the tool's own page");
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
              print_page(one, &outline, console.out);
              return Exit::ok;
            }
            return unknown_name("subcommand", *name, names);
          }};
}

}  // namespace rankine::tools
