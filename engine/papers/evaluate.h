// From a claim to a verdict: both sides computed for every parameter set, and compared.
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

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

enum class Verdict : unsigned char {
  holds,
  conditional,   // in some of the cases; Finding::condition says in which
  fails,         // in none, or in degenerate ones only
  beyond_model,  // what decides it is not in the model: another program, a simulator of packets
};
inline constexpr int kVerdicts = 4;
// "holds", "conditional", "fails", "beyond_model": for machines.
std::string_view name_of(Verdict verdict);
// "holds", "holds only if", "does not hold", "not reproducible by this model".
std::string_view words_of(Verdict verdict);

// Why none of the runs that a row names, on a network, has been made by live ranks.
enum class Unexecuted : unsigned char {
  no,                   // some were; or the row is on no network; or nobody asked
  beyond_communicator,  // all of them have more ranks than a communicator takes
  beyond_model,         // the row is not evaluated, or none of its runs exists
};
inline constexpr int kUnexecuted = 3;
// "", "beyond_communicator", "beyond_model": for machines.
std::string_view name_of(Unexecuted why);

struct Case {
  Letters letters;
  Value stated, found;             // in SI units; what is not there is 0
  std::optional<Value> allowed{};  // how far apart they may be; none: the relation is exact
  bool agrees = false;
  bool own = false;         // the paper's own parameters
  bool degenerate = false;  // agreeing there proves nothing
};

struct Finding {
  const Paper* paper = nullptr;
  const Claim* claim = nullptr;
  Verdict verdict = Verdict::beyond_model;
  std::string condition;       // conditional: "N is a power of two"
  std::string exception;       // fails: of the degenerate cases that agree, likewise
  std::string reason;          // beyond_model: what is missing
  std::string said, measured;  // of what engine/papers measured, in words; else cases have it
  // Of what was judged again: by which fidelity, what was found, whether it agrees.
  struct Again {
    Fidelity fidelity;
    std::string measured;
    bool agrees = false;
  };
  std::vector<Again> again;
  std::string needs;  // "packets", "flows or packets", "none of the three"; empty: Eq. (1) will do
  std::vector<std::string> order;
  std::vector<Case> cases;
  int skipped = 0;         // sets for which an algorithm does not exist
  int executed = 0;        // runs made by live ranks, with the same result to the last tick
  int first_executed = 0;  // of these: not executed for an earlier claim
  std::string fault;       // executing gave something else: the engine's mistake
  Unexecuted unexecuted = Unexecuted::no;

  // The first case with the paper's own parameters; null: none.
  const Case* own() const;
  // The case that shows the verdict best: one that disagrees where there is one.
  const Case* shown() const;
};

struct EvaluateOptions {
  bool execute = true;  // let live ranks make the runs of some of the cases (execution.h)
  int most_ranks = 81;  // of such a run
  // Of a row whose runs all have more ranks the case of the least one is executed, but for runs
  // that move more blocks than so many; or the least run, where all do.
  std::uint64_t most_moves_of_least = 1'100'000;
  std::size_t most_cases = 0;  // so many of the sets, evenly; 0: all of them
};

// A claim with a formula, for one set of letters, its own or another. Throws NotDefined and
// NotInCatalogue (runs.h).
Case compare(const Paper& paper, const Claim& claim, Runs& runs, const Letters& letters);

// What a row comes to, simulated, in so many of its cases (EvaluateOptions::most_cases).
Finding judge(const Paper& paper, const Claim& claim, Runs& runs, std::size_t most_cases = 0);
// Whether that is Verdict::fails, worked out no further than the first case that shows that it is
// not; what later ones throw is then not seen.
bool fails(const Paper& paper, const Claim& claim, Runs& runs, std::size_t most_cases = 0);
// The same, and executed (execution.h).
Finding evaluate(const Paper& paper, const Claim& claim, Runs& runs,
                 const EvaluateOptions& options = {});

// A printed number: "35.3 MB" is 35300000 with a tolerance of 50000; "~280 ms" 0.28 with 0.01.
struct Printed {
  Value value, tolerance;
};
Printed read_printed(std::string_view text);

// What live ranks make of the rows of the report: runs of a claim's cases, and of figures the times
// that their curves are drawn through.
//
// A claim has its cases, a figure's statement its panels. Of two of them, the last one and another
// about half as far, all runs are made that EvaluateOptions::most_ranks allows. Where it allows
// none, the case of the least run is made, but for runs of very many moves, or the panel's (L)
// forms; and where all have very many, the least run. So something is executed of every row that
// has a run of as many ranks as a communicator takes. Of a figure the live ranks make two sizes
// (points_of()): at others they would do the same, byte for byte, and only the network's prices
// would be others.

// Of rows that have been judged. Runs are made together, on all cores; `progress` as in
// Runs::execute().
void execute(std::span<Finding* const> rows, Runs& runs, const EvaluateOptions& options,
             const std::function<void(std::size_t done, std::size_t all)>& progress = {});

}  // namespace rankine::claims
