// rankine claims: every quantitative claim of the papers, and what the engine finds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/schedule/collective.h"
#include "engine/cli/arguments.h"
#include "engine/cli/console.h"
#include "engine/cli/tool.h"
#include "engine/faults/fault.h"

namespace rankine::tools {

struct ClaimsOptions {
  std::string paper;           // its key; empty: all
  std::string only;            // the name of a verdict or of a kind of claim; empty: all
  std::string id;              // only claims whose id begins so
  std::string markdown, html;  // files for the report; empty: none
  bool all = false;  // each claim, in place of the totals and what fails
  bool json = false, golden = false;
  bool no_execute = false;
  int most_ranks = 81;  // of runs that live ranks repeat
};

Subcommand add_claims(Command tool);

// Exit::wrong where executing gave something else than simulating. What a claim comes to is no
// error, whatever it is. Errors: a file that cannot be written.
Result<Exit> claims_report(const ClaimsOptions& options, Console& console);

// rankine reproduce: a paper's tables, figures and statements, recomputed from the schedules.

struct ReproduceArguments {
  std::string paper;  // trivance or traff; empty: both
  std::string svg;    // a folder for the figures; empty: none
  bool json = false;
};

Subcommand add_reproduce(Command tool);

// What comes out differently than in the paper is no error. Errors: a folder that cannot be
// written, or that no figure is there for.
Result<Exit> reproduce_papers(const ReproduceArguments& arguments, Console& console);

// rankine faults: the table of faults, played on threads or among processes, and counted.

struct FaultsArguments {
  std::vector<const faults::Fault*> faults;  // empty: all
  std::optional<Collective> collective;
  std::string algorithms = "all";
  std::vector<int> ranks;  // empty: faults::kRanks, or kProcessRanks
  int repeat = 1;
  std::optional<std::uint64_t> seed;
  int jobs = 0;            // 0: one per core
  bool processes = false;  // ranks are processes
  int cycles = 0;          // 0: as the table has them, with all others
  bool quick = false;
  bool list = false;
  bool json = false, csv = false;

  static constexpr int kQuickSample = 40;  // one case in so many
  static constexpr int kMostRanks = 256;
  static constexpr int kRanksOfCycles = 4;
};

Subcommand add_faults(Command tool);

// Exit::wrong where a promise was broken. Errors: nothing to play, no processes.
Result<Exit> play_faults(const FaultsArguments& arguments, Console& console);

// rankine cost: what an algorithm costs in the model's own terms: rounds, critical path, n_alpha
// and n_beta, and every rank's bytes, partners and ports.

Subcommand add_cost(Command tool);

// rankine gaps: among how many ranks an algorithm is behind another one of the catalogue, and how
// far from what nobody can do without.

Subcommand add_gaps(Command tool);

// rankine skips: which skips of a circulant reduce-scatter suit a network.

Subcommand add_skips_search(Command tool);

// rankine map: a picture of the cheapest algorithm over ranks and sizes on a modelled network.

Subcommand add_map(Command tool);

// rankine lesson: a course of six lessons, written with the engine's answers as they are now.

Subcommand add_lesson(Command tool);

// rankine page: writes the page, or answers as its engine does.

Subcommand add_page(Command tool);

// rankine plan: what a training step of a model costs, mapped to ranks.

Subcommand add_plan(Command tool);

// rankine step: a planned step's collectives, played on threads with real buffers.

Subcommand add_step(Command tool);

// rankine buckets: what the size of gradient buckets costs.

Subcommand add_buckets(Command tool);

// `rankine train`: a small decoder trained by ranks, and by one thread beside it.

Subcommand add_train(Command tool);

// What rankine-lab adds to the product.
extern const CheckLaboratory kCheckLaboratory;
const Laboratory& laboratory();

// run_tool() with all of it: what the program rankine-lab does.
Exit run_lab(const std::vector<std::string>& arguments, Console& console);

}  // namespace rankine::tools
