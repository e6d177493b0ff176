#include "engine/tools/lesson/formula_tasks.h"

#include <fmt/format.h>

#include <exception>

#include "engine/base/numbers.h"
#include "engine/tools/lesson/task_answers.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

using formulas::Letters;
using formulas::Value;

const TaskLetter kN{'N', "ranks", 2, 33};
const TaskLetter kS{'S', "bytes", 1, 1 << 28};
const TaskLetter kW{'W', "bytes per second of a port", 1, 400, Rational(1'000'000'000)};
const TaskLetter kA{'A', "seconds that a message takes besides its bytes", 1, 50,
                    Rational(1, 10'000'000)};
const TaskLetter kK{'K', "chunks", 1, 64};

std::vector<FormulaTask> all_tasks() {
  return {
      {"ring_bytes",
       "How many bytes does each of N ranks send in a ring all-reduce of S bytes?",
       {kN, kS},
       ring_bytes},
      {"ring_time",
       "How long does a ring all-reduce of S bytes take among N ranks?",
       {kN, kS, kW, kA},
       ring_time},
      {"alternate_ring",
       "An alternate ring all-reduce: every rank hands whole vectors of S bytes on, its own first, "
       "and adds up what comes by. How long does it take, where only bytes count?",
       {kN, kS, kW},
       alternate_ring_time},
      {"tree_rounds",
       "How many rounds does a binomial reduction take among N ranks, any N?",
       {{'N', "ranks", 2, 200}},
       tree_rounds},
      {"chain_broadcast",
       "How long is a broadcast of S bytes along a chain of N ranks?",
       {kN, kS, kW, kA},
       chain_broadcast},
      {"tree_broadcast",
       "How long is a broadcast of S bytes along a binomial tree of N ranks?",
       {kN, kS, kW, kA},
       tree_broadcast},
      {"pipeline_broadcast",
       "How long is a broadcast of S bytes along a chain of N ranks, in K equal chunks?",
       {kN, kS, kW, kA, kK},
       pipeline_broadcast},
      {"torus_rounds",
       "How many rounds has the Bucket all-reduce on a torus of D x D ranks?",
       {{'D', "ranks along each dimension", 2, 12}},
       torus_rounds},
      {"crossover",
       "2^E ranks: at how many bytes S does a ring all-reduce cost the same as recursive doubling?",
       {{'E', "N = pow(2,E) ranks", 2, 6}, kW, kA},
       crossover_bytes},
      {"dp_bytes",
       "Data parallelism: how many bytes does each of N ranks send per step, at least, to sum up "
       "gradients of S bytes?",
       {kN, kS},
       ring_bytes},
      {"fsdp_bytes",
       "FSDP: parameters of S bytes lie in shards, are gathered forward and again backward, and "
       "gradients (S bytes, too) end in shards. How many bytes does each of N ranks send per step?",
       {kN, kS},
       fsdp_bytes},
      {"tp_bytes",
       "Tensor parallelism: how many bytes does each of N ranks send per layer, forward and "
       "backward, by rings, with activations of T tokens, H numbers each, 2 bytes a number?",
       {{'N', "ranks", 2, 16}, {'T', "tokens", 1, 8192}, {'H', "numbers per token", 64, 16384}},
       tp_bytes},
      {"accumulation_bytes",
       "FSDP and gradients accumulated in shards over K micro-batches: how many bytes does each of "
       "N ranks send per step?",
       {kN, kS, {'K', "micro-batches", 1, 32}},
       accumulation_bytes},
      {"bubble",
       "GPipe: P stages, K micro-batches, F seconds forward and B seconds backward for each. How "
       "long is the first stage idle between its first work and its last?",
       {{'P', "stages", 2, 16},
        {'K', "micro-batches", 1, 32},
        {'F', "seconds", 1, 9},
        {'B', "seconds", 1, 9}},
       bubble_seconds},
  };
}

// The next input of the sequence that is the seed's. The least of all letters comes first, since
// mistakes like to show there.
Letters draw(const FormulaTask& task, std::uint64_t& state, bool least) {
  Letters out;
  for (const TaskLetter& one : task.letters) {
    state += kSplitMixStep;
    const auto numbers = static_cast<std::uint64_t>(one.highest - one.lowest + 1);
    const auto drawn = least ? 0 : static_cast<std::int64_t>(splitmix(state) % numbers);
    out.emplace(std::string(1, one.letter), Rational(one.lowest + drawn) * one.unit);
  }
  return out;
}

}  // namespace

std::span<const FormulaTask> formula_tasks() {
  static const std::vector<FormulaTask> tasks = all_tasks();
  return tasks;
}

Result<const FormulaTask*> find_formula_task(std::string_view argument, std::string_view name) {
  std::vector<std::string_view> names;
  for (const FormulaTask& task : formula_tasks()) {
    if (task.name == name) return &task;
    names.push_back(task.name);
  }
  return unknown_name(argument, name, names);
}

Result<std::optional<FormulaMiss>> judge_formula(const FormulaTask& task,
                                                 const std::string& formula, std::uint64_t seed) {
  constexpr std::size_t kLongest = 400;
  if (formula.size() > kLongest) {
    return invalid_argument(fmt::format("the formula has {} characters; at most {} are read",
                                        formula.size(), kLongest));
  }
  std::uint64_t state = splitmix(seed + 1);
  for (int i = 0; i < kFormulaTrials; ++i) {
    const Letters letters = draw(task, state, i == 0);
    Value said;
    try {
      said = formulas::evaluate(formula, letters);
    } catch (const std::exception& error) {
      return invalid_argument(fmt::format("the formula: {}", error.what()));
    }
    const Value right = task.answer(letters);
    if (!formulas::equal(said, right)) return std::optional(FormulaMiss{letters, said, right});
  }
  return std::optional<FormulaMiss>();
}

std::string letters_text(const FormulaTask& task, const Letters& letters) {
  std::string out;
  for (const TaskLetter& one : task.letters) {
    out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", one.letter,
                       formulas::to_string(letters.find(std::string(1, one.letter))->second));
  }
  return out;
}

}  // namespace rankine::tools
