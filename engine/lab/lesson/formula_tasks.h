// Questions whose answer is a formula, and what judges one: the engine, on inputs drawn by chance.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/formula.h"
#include "engine/base/status.h"
#include "engine/cli/text.h"

namespace rankine::tools {

// A letter of a task: `unit` times a whole number from lowest to highest.
struct TaskLetter {
  char letter;
  std::string_view meaning;
  int lowest, highest;
  Rational unit{1};
};

struct FormulaTask {
  std::string_view name;
  std::string_view question;
  std::vector<TaskLetter> letters;
  // What the engine says, by simulating, counting or planning: never by a formula of its own. A
  // pure function; what it throws is a mistake here.
  std::function<formulas::Value(const formulas::Letters&)> answer;
};

std::span<const FormulaTask> formula_tasks();
// Errors: there is none of that name.
Result<const FormulaTask*> find_formula_task(std::string_view argument, std::string_view name);

inline constexpr int kFormulaTrials = 20;

// Where a formula and the engine differ.
struct FormulaMiss {
  formulas::Letters letters;
  formulas::Value said, right;
};

// The first of kFormulaTrials inputs, which belong to the seed, at which the formula is wrong;
// none: it is right at all of them. Errors: invalid_argument where the text is no formula of these
// letters, or has no value.
Result<std::optional<FormulaMiss>> judge_formula(const FormulaTask& task,
                                                 const std::string& formula, std::uint64_t seed);

// "N = 6, S = 1048576"
std::string letters_text(const FormulaTask& task, const formulas::Letters& letters);

// What is said of a learner's formula, as one JSON object: by check --json and on the page.
// Without a miss the formula is right at the inputs of the seed.
Json formula_json(const FormulaTask& task, const std::string& formula, std::uint64_t seed,
                  const std::optional<FormulaMiss>& miss);

}  // namespace rankine::tools
