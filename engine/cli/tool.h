// rankine list: the catalogue as a table or as JSON.
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
#include "numa/topology.h"

namespace rankine::tools {

struct ListOptions {
  std::optional<Collective> collective;  // only this one
  int ranks = 0;  // N at which the formulas are computed; 0: shown as they are
  int segments = 1;
  bool json = false;
  bool brief = false;  // a line per algorithm
};

Subcommand add_list(Command tool);

Result<Exit> list(const ListOptions& options, Console& console);

// rankine show: an algorithm drawn round by round.

struct ShowOptions {
  AlgorithmArguments algorithm{.begin = {.ranks = 4}, .most_ranks = 128};  // rows get wide
  std::optional<int> round;                                               // only this one
  std::optional<int> ports;  // of a network, to compare with; nothing: none is given
  bool transfers_only = false;
  std::string colour = "auto", lines = "auto";
  int width = 0;  // 0: of the terminal
  bool json = false;
  bool text = false;     // as rankine check reads it, in place of the drawing
  bool all = false;      // rounds and lines, however many
  std::string svg_file;  // a drawing as a picture, in place of the text
};

Subcommand add_show(Command tool);

Result<Exit> show(const ShowOptions& options, Console& console);

// rankine verify: the catalogue, proved symbolically and compared with what its lines state.

struct VerifyArguments {
  // Empty --algo: all. Numbers are lists of what to try, where algorithms take them; of what is not
  // given it is the sweep's own.
  AlgorithmArguments algorithm;
  std::optional<int> all_roots_up_to;  // else the sweep's own
  int threads = 0;                     // 0: all cores
  bool json = false, csv = false;

  static constexpr int kDefaultRanksTo = 130;
  static constexpr int kMostRanks = 1 << 20;  // as algorithms have it
};

Subcommand add_verify(Command tool);

// Exit::wrong where a case failed. Errors: algorithms that do not exist, nothing to prove.
Result<Exit> verify_catalogue(const VerifyArguments& arguments, Console& console);

// rankine topo: the machine, and where every rank and its memory goes.

struct TopoOptions {
  int ranks = 0;  // 0: usable cores, at least 2; of a synthetic machine its cores
  PlacementPolicy placement{};
  std::optional<Topology> synthetic{};  // draw this one instead of ours; nothing is pinned
  bool lock_memory = false;             // TeamOptions::lock_memory
  std::string svg{};                    // a file to draw into, or empty
  bool json = false;
};

Subcommand add_topo(Command tool);

// On our machine a team is made, so that what is refused is found by trying.
Result<Exit> topo(const TopoOptions& options, Console& console);

// rankine choose: which algorithm a modelled network asks for, and why not another.

Subcommand add_choose(Command tool);

// rankine compare: two measurements of perf against each other.

Subcommand add_compare(Command tool);

// rankine network: presets and files, read, checked and written as files.

Subcommand add_network(Command tool);

// rankine simulate: how long algorithms take on a network of the model, exactly; one question from
// the command line, or many as lines of JSON.

Subcommand add_simulate(Command tool);

// rankine run: a collective with real data on pinned threads under a clock of the model, predicted
// beside measured.

Subcommand add_run(Command tool);

// rankine check: judges a schedule that a learner wrote, a function that makes schedules, the order
// of a pipeline's work, or a formula for the question of a task.

struct FormulaArguments {
  std::string task, formula;
  std::optional<std::uint64_t> seed;
  bool list = false;  // the tasks
};

// The laboratory judges formulas and orders of pipelines.
struct CheckLaboratory {
  Result<Exit> (*formula)(const FormulaArguments& arguments, bool json, Console& console);
  Result<Exit> (*order)(std::string_view text, bool json, Console& console);
};

// Without a laboratory, `rankine check` starts rankine-lab for these two.
Subcommand add_check(Command tool, const CheckLaboratory* laboratory);

// The tool as a function: arguments in, text and an exit code out. Tests call it as main() does.

// What the program rankine-lab has beside the subcommands of the product.
struct Laboratory {
  std::span<Subcommand (*const)(Command)> subcommands;
  CheckLaboratory check;
};

// `arguments` without the program's name. Without a laboratory, its subcommands start the program
// rankine-lab (laboratory.h). What is printed is flushed at the end; the first print or
// flush that fails ends the work, with Exit::environment and the reason on console.err. For that,
// console.out throws meanwhile (ios::badbit).
Exit run_tool(const std::vector<std::string>& arguments, Console& console,
              const Laboratory* laboratory = nullptr);

// run_tool() with the streams of the process: main() of rankine and of rankine-lab.
int tool_main(int argc, char** argv, const Laboratory* laboratory);

// Of all subcommands, in the order of the help; without a laboratory, those of the product.
std::vector<std::string> subcommand_names(const Laboratory* laboratory = nullptr);

}  // namespace rankine::tools
