// Declares the commands that rankine-lab adds to rankine, with their options, and the program
// itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/faults/fault.h"

namespace rankine::tools {

struct ClaimsOptions {
  std::string paper;           // its key; empty: all
  std::string only;            // the name of a verdict or of a kind of claim; empty: all
  std::string id;              // begin of the ids of the selected claims; empty: all
  std::string markdown, html;  // files for the report; empty: none
  bool all = false;            // prints each claim instead of the totals and the failed claims
  bool json = false, golden = false;
  bool no_execute = false;
  int most_ranks = 81;  // the largest number of ranks for which live ranks repeat a run
};

// rankine claims: compares every quantitative claim of the papers with the engine's result.
Subcommand add_claims(Command tool);

// Prints the claims. Exit::wrong: an executed run differs from the simulated one. A refuted claim
// is no error. Errors: a file cannot be written.
Result<Exit> claims_report(const ClaimsOptions& options, Console& console);

// rankine reproduce: recomputes a paper's tables, figures and statements from the schedules.

struct ReproduceArguments {
  std::string paper;  // trivance, the only one
  std::string svg;    // a folder for the figures; empty: none
  bool json = false;
};

Subcommand add_reproduce(Command tool);

// Prints the tables. A difference from the paper is no error. Errors: a folder cannot be written.
Result<Exit> reproduce_papers(const ReproduceArguments& arguments, Console& console);

// rankine faults: plays the table of faults on threads or among processes and counts the results.

struct FaultsArguments {
  std::vector<const faults::Fault*> faults;  // empty: all
  std::optional<Collective> collective;
  std::string algorithms = "all";
  std::vector<int> ranks;  // empty: faults::kRanks, or kProcessRanks
  int repeat = 1;
  std::optional<std::uint64_t> seed;
  int jobs = 0;            // 0: one per core
  bool processes = false;  // ranks are processes
  int cycles = 0;          // > 0: plays only the fault `cycles`, this often per number of ranks
  bool quick = false;
  bool list = false;
  bool json = false, csv = false;

  static constexpr int kQuickSample = 40;  // `quick` plays one case in 40
  static constexpr int kMostRanks = 256;
  static constexpr int kRanksOfCycles = 4;
};

Subcommand add_faults(Command tool);

// Plays the faults. Exit::wrong: a promise was broken. Errors: no case to play, or this system
// cannot run processes.
Result<Exit> play_faults(const FaultsArguments& arguments, Console& console);

// rankine soak: ranks are killed and replaced for a long time; nothing may be left behind.

Subcommand add_soak(Command tool);

// rankine cost: prints an algorithm's costs in the model's terms: rounds, critical path, n_alpha
// and n_beta, and every rank's bytes, partners and ports.

Subcommand add_cost(Command tool);

// rankine gaps: lists the numbers of ranks at which an algorithm is behind another algorithm of the
// catalogue, and its distance from the lower bounds.

Subcommand add_gaps(Command tool);

// rankine skips: searches the skips of a circulant reduce-scatter that suit a network.

Subcommand add_skips_search(Command tool);

// rankine synthesise: makes spanning trees that suit a network, as a schedule's text.

Subcommand add_synthesise(Command tool);

// rankine map: draws the cheapest algorithm over ranks and sizes on a modelled network.

Subcommand add_map(Command tool);

// rankine lesson: writes a course of six lessons with the engine's current answers.

Subcommand add_lesson(Command tool);

// rankine page: writes the page, or answers one request as the page's engine does.

Subcommand add_page(Command tool);

// The page as it was when this program was built: one HTML file; empty if there was none.
std::vector<EmbeddedFile> built_page();

// rankine plan: computes the time of a model's training step that is mapped to ranks.

Subcommand add_plan(Command tool);

// rankine step: plays a planned step's collectives on threads with real buffers.

Subcommand add_step(Command tool);

// rankine buckets: compares sizes of gradient buckets by their time.

Subcommand add_buckets(Command tool);

// The commands and the checks that rankine-lab adds to the product.
extern const CheckLaboratory kCheckLaboratory;
const Laboratory& laboratory();

// run_tool() with the laboratory: the main function of rankine-lab.
Exit run_lab(const std::vector<std::string>& arguments, Console& console);

}  // namespace rankine::tools
