// Asks questions with a formula as the answer, and judges a formula by comparing it with the engine
// on random inputs.
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
  // The right value by simulating, counting or planning, not by another formula. A pure function;
  // an exception from it is a bug.
  std::function<formulas::Value(const formulas::Letters&)> answer;
};

std::span<const FormulaTask> formula_tasks();
// Errors: no task has this name.
Result<const FormulaTask*> find_formula_task(std::string_view argument, std::string_view name);

inline constexpr int kFormulaTrials = 20;

// An input at which a formula and the engine differ.
struct FormulaMiss {
  formulas::Letters letters;
  formulas::Value said, right;
};

// Compares the formula at kFormulaTrials inputs, which follow from the seed. Returns the first
// wrong one; empty if all are right. Errors: invalid_argument if the text is no formula of these
// letters, or has no value.
Result<std::optional<FormulaMiss>> judge_formula(const FormulaTask& task,
                                                 const std::string& formula, std::uint64_t seed);

// "N = 6, S = 1048576"
std::string letters_text(const FormulaTask& task, const formulas::Letters& letters);

// The verdict on a learner's formula as one JSON object, for check --json and the page. Without a
// miss the formula is right at the inputs of the seed.
Json formula_json(const FormulaTask& task, const std::string& formula, std::uint64_t seed,
                  const std::optional<FormulaMiss>& miss);

}  // namespace rankine::tools
