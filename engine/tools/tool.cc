#include "engine/tools/tool.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <ostream>

#include <CLI/CLI.hpp>

#include "engine/tools/arguments.h"
#include "engine/tools/choose.h"
#include "engine/tools/claims.h"
#include "engine/tools/command_outline.h"
#include "engine/tools/compare.h"
#include "engine/tools/completion.h"
#include "engine/tools/cost.h"
#include "engine/tools/faults.h"
#include "engine/tools/gaps.h"
#include "engine/tools/help.h"
#include "engine/tools/lesson/check.h"
#include "engine/tools/lesson/lesson.h"
#include "engine/tools/list.h"
#include "engine/tools/machine.h"
#include "engine/tools/manual.h"
#include "engine/tools/map.h"
#include "engine/tools/network_command.h"
#include "engine/tools/page/page.h"
#include "engine/tools/perf.h"
#include "engine/tools/plan/bucket_sizes.h"
#include "engine/tools/plan/plan.h"
#include "engine/tools/plan/step_command.h"
#include "engine/tools/reproduce.h"
#include "engine/tools/run.h"
#include "engine/tools/show.h"
#include "engine/tools/simulate.h"
#include "engine/tools/skips.h"
#include "engine/tools/terminal.h"
#include "engine/tools/text.h"
#include "engine/tools/topo.h"
#include "engine/tools/train/train.h"
#include "engine/tools/tune.h"
#include "engine/tools/verify.h"

namespace rankine::tools {
namespace {

// Lessons are written by asking the tool itself.
Subcommand add_course(Command tool) { return add_lesson(tool, run_tool); }

// A new subcommand is its file and its name here.
constexpr Subcommand (*kSubcommands[])(Command) = {
    add_list,    add_verify,     add_show,         add_perf,      add_compare, add_topo,
    add_choose,  add_map,        add_network,      add_simulate,  add_cost,    add_gaps,
    add_run,     add_claims,     add_skips_search, add_reproduce, add_plan,    add_step,
    add_buckets, add_train,      add_tune,         add_faults,    add_page,    add_check,
    add_course,  add_completion, add_manual};

CLI::App& app_of(const Subcommand& one) { return one.command.app(); }

// Long and short names of an app's options, as people write them.
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
    return fmt::format("'{}' is one argument too many; '{} --help' shows what is allowed", given,
                       whole);
  }
  const std::string name = given.substr(0, given.find('='));
  const std::vector<std::string> owned = option_names(app);
  std::vector<std::string_view> names(owned.begin(), owned.end());
  std::string text =
      fmt::format("{} is no option of '{}'; '{} --help' lists all", name, whole, whole);
  return name.starts_with("--") ? text + did_you_mean(name, names) : text;
}

// The program and its subcommands, which are added to `subcommands`.
void add_all(CLI::App& app, std::vector<Subcommand>& subcommands) {
  for (const auto add : kSubcommands) {
    subcommands.push_back(add(Command(app)));
    app_of(subcommands.back()).allow_extras();
  }
}

std::string help_of(const Command& command) {
  constexpr int kReadable = 100;
  return help_text(outline_of(command), called(command.app()), terminal_width(kReadable));
}

// What CLI11 says of two options that exclude each other.
std::string both_given(std::string_view text) {
  constexpr std::string_view kBetween = " excludes ";
  const std::size_t at = text.find(kBetween);
  return fmt::format("{} and {} exclude each other", text.substr(0, at),
                     text.substr(at + kBetween.size()));
}

// What CLI11 says of a flag that has a value: "Could not convert: --json = x".
std::string value_given(std::string_view text) {
  const std::string_view flag = text.substr(std::min(text.find("--"), text.size()));
  const std::size_t value = flag.find(" = ");
  if (value == std::string_view::npos) return std::string(text);
  return fmt::format("{} is '{}'; it takes no value", flag.substr(0, value),
                     flag.substr(value + 3));
}

// The first example of a command's help, without what the help says beside it.
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

Exit run(std::vector<std::string> arguments, Console& console) {
  if (!arguments.empty() && arguments.front() == "help") {  // as git, go and cargo have it
    arguments.erase(arguments.begin());
    arguments.push_back("--help");
  }
  CLI::App app("Collectives on the threads of one node: measured, proved and drawn.", "rankine");
  app.set_version_flag("--version", fmt::format("rankine {}", kVersion));
  app.require_subcommand(0, 1);
  app.allow_extras();
  app.footer(
      "'rankine help <subcommand>' or 'rankine <subcommand> --help' explains each, with examples.");
  std::vector<Subcommand> subcommands;
  add_all(app, subcommands);

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
  // Whoever asks for help gets it, whatever else is wrong.
  const auto refuse = [&](const std::string& text) {
    if (command().app().get_help_ptr()->count() == 0) {
      return fail(console, called(command().app()), text, Exit::usage);
    }
    console.out << help_of(command());
    return Exit::ok;
  };
  try {
    std::vector<std::string> reversed(arguments.rbegin(),
                                      arguments.rend());  // as CLI11 wants it
    app.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    if (chosen() != nullptr || app.remaining().empty()) {
      console.out << help_of(command());
      return Exit::ok;
    }  // else of what there is not
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
    // An option misspelt leaves its value behind: name the cause, not what came of it.
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
      return fail(console, "rankine", unknown_name("subcommand", before.front(), names).text(),
                  Exit::usage);
    }
    console.err << help_of(Command(app));
    return fail(console, "rankine", "a subcommand is needed; allowed are " + join(names),
                Exit::usage);
  }
  const std::string who = called(app_of(*one));
  const std::vector<std::string> rest = app_of(*one).remaining(true);
  if (!rest.empty()) {
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

Exit run_tool(const std::vector<std::string>& arguments, Console& console) {
  console.arguments = arguments;
  const std::ios::iostate before = console.out.exceptions();
  Exit exit = Exit::environment;
  try {
    console.out.exceptions(before | std::ios::badbit);
    exit = run(arguments, console);
    // A stream that is bad has told so already, and would throw something else now.
    if (console.out.good()) console.out.flush();
  } catch (const std::exception& error) {
    exit = fail(console, "rankine", error.what(), Exit::environment);
  }
  if (console.out.good()) console.out.exceptions(before);
  return exit;
}

std::vector<std::string> subcommand_names() {
  CLI::App app;
  std::vector<Subcommand> subcommands;
  add_all(app, subcommands);
  std::vector<std::string> names;
  for (const Subcommand& each : subcommands) names.push_back(app_of(each).get_name());
  return names;
}

}  // namespace rankine::tools
