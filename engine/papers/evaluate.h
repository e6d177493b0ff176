// From a claim to a verdict: both sides computed for every parameter set, and compared.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/papers/claim.h"
#include "engine/papers/parameter_sets.h"
#include "engine/papers/runs.h"

namespace rankine::claims {

using formulas::Letters;
using formulas::Value;

enum class Verdict : unsigned char {
  holds,
  holds_if,  // in some of the cases; Finding::condition says in which
  fails,
  open,  // not checkable yet
};
inline constexpr int kVerdicts = 4;
std::string_view name_of(Verdict verdict);   // "holds", "holds_if", "fails", "open": for machines
std::string_view words_of(Verdict verdict);  // "holds", "holds only if", "does not hold", ...

struct Case {
  Letters letters;
  Value stated, found;  // in SI units; what is not there is 0
  bool agrees = false;
};

struct Finding {
  const Paper* paper = nullptr;
  const Claim* claim = nullptr;
  Verdict verdict = Verdict::open;
  std::string condition;       // holds_if: "N is a power of two"
  std::string reason;          // open: what is missing
  std::string said, measured;  // of what engine/papers measured, in words; else cases have it
  std::vector<std::string> order;
  std::vector<Case> cases;
  int skipped = 0;         // sets for which an algorithm does not exist
  int executed = 0;        // runs repeated on threads, with the same result to the last tick
  int first_executed = 0;  // of these: not executed for an earlier claim
  std::string fault;       // executing gave something else: the engine's mistake

  // The case that shows the verdict best: one that disagrees where there is one.
  const Case* shown() const;
};

struct EvaluateOptions {
  bool execute = true;  // repeat some of the cases on threads
  int most_ranks = 16;  // that are executed
};

Finding evaluate(const Paper& paper, const Claim& claim, Runs& runs,
                 const EvaluateOptions& options = {});

// A printed number: "35.3 MB" is 35300000 with a tolerance of 50000; "~280 ms" 0.28 with 0.005.
struct Printed {
  Value value, tolerance;
};
Printed read_printed(std::string_view text);

}  // namespace rankine::claims
