// run_tool() runs the command-line tool as a function: arguments in, text and an exit code out.
// This header declares it and all subcommands.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "numa/topology.h"

namespace rankine::tools {

// The subcommands.
Subcommand add_choose(Command tool);
Subcommand add_compare(Command tool);
Subcommand add_list(Command tool);
Subcommand add_network(Command tool);
Subcommand add_perf(Command tool);
Subcommand add_run(Command tool);
Subcommand add_show(Command tool);
Subcommand add_simulate(Command tool);
Subcommand add_top(Command tool);
Subcommand add_topo(Command tool);
Subcommand add_tune(Command tool);
Subcommand add_verify(Command tool);

// `rankine topo` shows the machine, and the place of every rank and its memory.

struct TopoOptions {
  int ranks = 0;  // 0: usable cores, at least 2; on a synthetic machine its cores
  PlacementPolicy placement{};
  std::optional<Topology> synthetic{};  // draw this machine instead of the real one; pins no thread
  bool lock_memory = false;             // TeamOptions::lock_memory
  std::string svg{};                    // path of the picture, or empty
  bool json = false;
};

// On the real machine this makes a team, so that refusals are found by trying.
Result<Exit> topo(const TopoOptions& options, Console& console);

// `rankine check` judges a learner's schedule, a function that makes schedules, the order of a
// pipeline's work, or a formula for a task's question.

struct FormulaArguments {
  std::string task, formula;
  std::optional<std::uint64_t> seed;
  bool list = false;  // list the tasks
};

// The laboratory's functions that judge formulas and orders of pipelines.
struct CheckLaboratory {
  Result<Exit> (*formula)(const FormulaArguments& arguments, bool json, Console& console);
  Result<Exit> (*order)(std::string_view text, bool json, Console& console);
};

// Without a laboratory, `rankine check` starts rankine-lab for formulas and orders.
Subcommand add_check(Command tool, const CheckLaboratory* laboratory);

// The parts that the program rankine-lab adds to the product's subcommands.
struct Laboratory {
  std::span<Subcommand (*const)(Command)> subcommands;
  CheckLaboratory check;
};

// The laboratory's subcommands as the program rankine knows them: names and help.
struct LaboratoryCommand {
  const char *name, *help;
};

// In the order of the help. A test compares them with the subcommands of rankine-lab.
std::span<const LaboratoryCommand> laboratory_commands();

// Replaces this process by rankine-lab with the same arguments (Console::arguments). The program is
// looked up beside this one, in Bazel's layout (../lab/), then in PATH. With `input`, its standard
// input is this text. Returns only on failure: Exit::usage, and the reason is on console.err.
Exit start_laboratory(Console& console, std::optional<std::string_view> input = {});

// `arguments` without the program's name. Without a laboratory, the laboratory's subcommands start
// the program rankine-lab. Output is flushed at the end; the first failing print or
// flush ends the work, with Exit::environment and the reason on console.err. For that, console.out
// throws meanwhile (ios::badbit).
Exit run_tool(const std::vector<std::string>& arguments, Console& console,
              const Laboratory* laboratory = nullptr);

// Calls run_tool() with the streams of the process. main() of both programs calls it.
int tool_main(int argc, char** argv, const Laboratory* laboratory);

// The names of all subcommands, in the order of the help; without a laboratory, the product's only.
std::vector<std::string> subcommand_names(const Laboratory* laboratory = nullptr);

}  // namespace rankine::tools
