// Gives `rankine check` the laboratory's judgements of formulas for tasks and of pipelines' orders.

#include <fmt/format.h>

#include <ostream>

#include "engine/cli/arguments.h"
#include "engine/cli/text.h"
#include "engine/cli/tool.h"
#include "engine/lab/commands.h"
#include "engine/lab/lesson/formula_tasks.h"
#include "engine/lab/lesson/written_order.h"

namespace rankine::tools {
namespace {

void print_task(const FormulaTask& task, Console& console) {
  console.out << fmt::format("{}\n\n", task.question);
  for (const TaskLetter& one : task.letters) {
    console.out << fmt::format("  {}  {}, from {} to {}\n", one.letter, one.meaning,
                               formulas::to_string(Rational(one.lowest) * one.unit),
                               formulas::to_string(Rational(one.highest) * one.unit));
  }
}

Result<Exit> list_tasks(bool json, Console& console) {
  for (const FormulaTask& task : formula_tasks()) {
    if (json) {
      console.out << Json{{"task", task.name}, {"question", task.question}}.dump() << '\n';
    } else {
      console.out << fmt::format("{:<19} {}\n", task.name, task.question);
    }
  }
  return Exit::ok;
}

Result<Exit> check_formula(const FormulaArguments& a, bool json, Console& console) {
  if (a.list) return list_tasks(json, console);
  const auto task = find_formula_task("--task", a.task);
  if (!task.ok()) return task.status();
  if (a.formula.empty()) {
    print_task(**task, console);
    return Exit::ok;
  }
  const std::uint64_t seed = a.seed.value_or(1);
  const auto miss = judge_formula(**task, a.formula, seed);
  if (!miss.ok()) return of_option("--formula", miss.status());
  const bool right = !miss->has_value();
  if (json) {
    console.out << formula_json(**task, a.formula, seed, *miss).dump() << '\n';
  } else if (right) {
    console.out << fmt::format("right: equal to the engine's value at {} inputs drawn by seed {}\n",
                               kFormulaTrials, seed);
  } else {
    console.out << fmt::format("wrong at {}:\n  the formula says {}, the engine {}\n",
                               letters_text(**task, (*miss)->letters),
                               formulas::to_string((*miss)->said),
                               formulas::to_string((*miss)->right));
  }
  return right ? Exit::ok : Exit::wrong;
}

Result<Exit> check_order(std::string_view text, bool json, Console& console) {
  const auto written = read_order(text);
  if (!written.ok()) return written.status();
  const OrderJudgement judged = judge_order(*written);
  console.out << (json ? order_json(*written, judged).dump() + "\n" : order_text(*written, judged));
  return judged.fault ? Exit::wrong : Exit::ok;
}

}  // namespace

const CheckLaboratory kCheckLaboratory = {.formula = check_formula, .order = check_order};

}  // namespace rankine::tools
