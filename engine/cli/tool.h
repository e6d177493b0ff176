// run_tool() runs the command-line tool as a function: arguments in, text and an exit code out.
// This header declares it and all subcommands.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/formats/formats.h"
#include "engine/run/policy.h"
#include "numa/topology.h"

namespace rankine::tools {

// `rankine list` prints the catalogue as a table or as JSON.

struct ListOptions {
  std::optional<Collective> collective;  // restricts the list
  int ranks = 0;                         // N for evaluating the formulas; 0: formulas are printed
  int segments = 1;
  bool json = false;
  bool brief = false;  // one line per algorithm
};

Subcommand add_list(Command tool);

Result<Exit> list(const ListOptions& options, Console& console);

// `rankine show` draws an algorithm round by round.

struct ShowOptions {
  AlgorithmArguments algorithm{.begin = {.ranks = 4}, .most_ranks = 128};  // more ranks make rows
                                                                           // too wide
  std::optional<int> round;                                                // restricts the drawing
  std::optional<int> ports;  // the network's ports, for a comparison; none: no network
  bool transfers_only = false;
  std::string colour = "auto", lines = "auto";
  int width = 0;  // 0: the terminal's width
  bool json = false;
  const ScheduleFormat* format = nullptr;  // the schedule in this format, in place of the drawing
  bool lower = false;    // with `format`: messages in place of switches' transfers
  bool all = false;      // all rounds and lines without a limit
  std::string svg_file;  // a picture, in place of the text
  // The plan that ranks execute, in place of the schedule: its ops, of one rank or of all.
  bool plan = false;
  std::optional<int> rank;
  std::optional<std::size_t> bytes;    // of the vector, for plans and GOAL; none: 64 KiB
  std::optional<Transport> transport;  // none: the engine's choice
};

Subcommand add_show(Command tool);

Result<Exit> show(const ShowOptions& options, Console& console);

// `rankine verify` proves the catalogue symbolically and compares it with the counts that its lines
// state.

struct VerifyArguments {
  // Empty --algo: all. Numbers are lists of values to try, if algorithms take them; missing values
  // come from the sweep.
  AlgorithmArguments algorithm;
  std::optional<int> all_roots_up_to;  // default: the sweep's value
  int threads = 0;                     // 0: all cores
  bool json = false, csv = false;

  static constexpr int kDefaultRanksTo = 130;
  static constexpr int kMostRanks = 1 << 20;  // equals the limit of algorithms
};

Subcommand add_verify(Command tool);

// Returns Exit::wrong if a case failed. Errors: unknown algorithms, no case to prove.
Result<Exit> verify_catalogue(const VerifyArguments& arguments, Console& console);

// `rankine topo` shows the machine, and the place of every rank and its memory.

struct TopoOptions {
  int ranks = 0;  // 0: usable cores, at least 2; on a synthetic machine its cores
  PlacementPolicy placement{};
  std::optional<Topology> synthetic{};  // draw this machine instead of the real one; pins no thread
  bool lock_memory = false;             // TeamOptions::lock_memory
  std::string svg{};                    // path of the picture, or empty
  bool json = false;
};

Subcommand add_topo(Command tool);

// On the real machine this makes a team, so that refusals are found by trying.
Result<Exit> topo(const TopoOptions& options, Console& console);

// `rankine choose` names the best algorithm for a modelled network and tells why the others lose.

Subcommand add_choose(Command tool);

// `rankine compare` compares two reports of perf.

Subcommand add_compare(Command tool);

// `rankine network` reads presets and files, checks them and writes them as files.

Subcommand add_network(Command tool);

// `rankine simulate` computes exact times of algorithms on a modelled network: for one question
// from the command line, or many as lines of JSON.

Subcommand add_simulate(Command tool);

// `rankine top` shows the times of a running program by call site.

Subcommand add_top(Command tool);

// `rankine run` plays a collective with real data on pinned threads under a modelled clock, and
// prints the prediction beside the measurement.

Subcommand add_run(Command tool);

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
