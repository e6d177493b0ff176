// Evaluation of claims: computes both sides for each parameter set, compares them, and lets live
// ranks make some of the runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/claim.h"
#include "engine/papers/condition.h"
#include "engine/papers/runs.h"
#include "engine/papers/statements.h"

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

enum class Verdict : unsigned char {
  holds,
  holds_if,        // holds in some cases; Finding::condition names them
  does_not_hold,   // holds in no case, or in degenerate ones only
  not_reproduced,  // the model lacks the deciding part, or no computation finds it
};
inline constexpr int kVerdicts = 4;
// "holds", "holds_if", "does_not_hold", "not_reproduced": names in JSON.
std::string_view name_of(Verdict verdict);
// The same with spaces.
std::string words_of(Verdict verdict);

// The reason why live ranks have made no run of a row on a network.
enum class Unexecuted : unsigned char {
  no,                   // some runs were made, or the row has no network, or execution was off
  beyond_communicator,  // each run has more ranks than a communicator allows
  not_reproduced,       // the row is not evaluated, or none of its runs exists
};
inline constexpr int kUnexecuted = 3;
// "", "beyond_communicator", "not_reproduced": names in JSON.
std::string_view name_of(Unexecuted why);

struct Case {
  Letters letters;
  Value stated, found;             // SI units; 0 for a missing side
  std::optional<Value> allowed{};  // nullopt: the relation is exact
  bool agrees = false;
  bool own = false;         // the paper's own parameters
  bool degenerate = false;  // an agreement proves nothing here
};

struct Finding {
  const Paper* paper = nullptr;
  const Claim* claim = nullptr;
  Verdict verdict = Verdict::not_reproduced;
  std::string condition;       // holds_if: "N is a power of two"
  std::string exception;       // does_not_hold: the condition of the degenerate cases that agree
  std::string reason;          // what the evaluation adds to the claim's `why`
  std::string said, measured;  // in words, for a statement; otherwise see `cases`
  // A statement's results: one for each way to compute the figures.
  struct Again {
    reproduce::By by;
    std::string measured;
    bool agrees = false;
  };
  std::vector<Again> again;
  std::vector<std::string> order;
  std::vector<Case> cases;
  int skipped = 0;         // sets for which an algorithm does not exist
  int executed = 0;        // runs made by live ranks, with equal results to the last tick
  int first_executed = 0;  // of these: not executed for an earlier claim
  std::string fault;       // live ranks got another result: a mistake of the engine
  Unexecuted unexecuted = Unexecuted::no;

  // The first case with the paper's own parameters, or nullptr.
  const Case* own() const;
  // The case that shows the verdict best: a disagreeing one if possible. nullptr: no cases.
  const Case* shown() const;
};

struct EvaluateOptions {
  bool execute = true;  // live ranks make the runs of some cases
  int most_ranks = 81;  // limit of ranks of such a run
  // If all runs of a row have more ranks, the case with the least run is executed without runs of
  // more block moves than this; if all runs have more moves, only the least run.
  std::uint64_t most_moves_of_least = 1'100'000;
  std::size_t most_cases = 0;  // limit of the sets, evenly spaced; 0: all
};

// Compares both sides of a claim with a formula, for any set of letters. Throws NotDefined and
// NotInCatalogue (runs.h).
Case compare(const Paper& paper, const Claim& claim, Runs& runs, const Letters& letters);

// The verdict on a row by simulation, in at most `most_cases` cases (0: all).
Finding judge(const Paper& paper, const Claim& claim, Runs& runs, std::size_t most_cases = 0);
// Returns true if the verdict is Verdict::does_not_hold. Stops at the first case that proves the
// opposite, so exceptions of later cases are not seen.
bool fails(const Paper& paper, const Claim& claim, Runs& runs, std::size_t most_cases = 0);
// judge(), then execute() if options.execute is set.
Finding evaluate(const Paper& paper, const Claim& claim, Runs& runs,
                 const EvaluateOptions& options = {});

// A printed number: "35.3 MB" is 35300000 with a tolerance of 50000; "~280 ms" is 0.28 with 0.01;
// "9" is a count, with none.
struct Printed {
  Value value, tolerance;
};
Printed read_printed(std::string_view text);

// Execution by live ranks: the runs of a claim's cases, and the times of a figure's curves.
//
// A claim has cases; a statement on figures has panels. execute() chooses two of them, the last one
// and one near the middle, and makes all their runs that EvaluateOptions::most_ranks allows. If it
// allows none, execute() makes the case of the least run without runs of very many moves (for a
// panel: its (L) forms), and if all runs have very many moves, the least run. So each row with a
// run within a communicator's limit of ranks is executed. For a figure live ranks make two sizes
// (points_of()): at other sizes they would move the same bytes, and only the network's prices would
// differ.

// `rows` are judged findings. Makes the runs together, on all cores; `progress` as in
// Runs::execute().
void execute(std::span<Finding* const> rows, Runs& runs, const EvaluateOptions& options,
             const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace rankine::claims
