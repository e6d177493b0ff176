#include "engine/read/sweep.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>

#include "algorithms/torus.h"
#include "engine/read/count.h"
#include "engine/read/statement.h"

namespace rankine {
namespace {

// Ends of the range and its middle, each once; all of it where it is short.
std::vector<std::string> ranks_to_try(int ranks, const SweepOptions& options) {
  std::vector<std::string> out;
  for (Rank r = 0; r < ranks; ++r) {
    const bool tried = ranks <= options.all_roots_up_to || r == 0 || r == ranks / 2;
    if (tried || r == ranks - 1) out.push_back(std::to_string(r));
  }
  return out;
}

// The most even tori of so many ranks, by the number of dimensions.
std::vector<std::string> tori_to_try(int ranks) {
  std::vector<std::string> out;
  for (const int dimensions : {1, 2, 3}) {
    const std::vector<int> dims = balanced_dims(ranks, dimensions);
    if (!dims.empty()) out.push_back(dims_text(dims));
  }
  return out;
}

// Texts of a parameter that its algorithm takes; an empty one is the default.
std::vector<std::string> texts_to_try(const Parameter& row, int ranks,
                                      const SweepOptions& options) {
  if (const auto found = options.values.find(row.name); found != options.values.end()) {
    return found->second;
  }
  if (row.kind == Parameter::Kind::torus) return tori_to_try(ranks);
  if (row.tried.empty()) return ranks_to_try(ranks, options);
  std::vector<std::string> out(1);
  for (const char c : row.tried) {
    if (c == ';') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

// All values of the parameters from `row` on, each once.
void add_cases(std::span<const Parameter> rows, const SweepOptions& options,
               const SweepResult& begun, std::vector<SweepResult>& out) {
  if (rows.empty()) {
    if (!begun.algorithm->refusal(begun.params)) out.push_back(begun);
    return;
  }
  const Parameter& row = rows.front();
  if (!begun.algorithm->takes(row.name)) return add_cases(rows.subspan(1), options, begun, out);
  std::set<std::string> tried;
  for (const std::string& text : texts_to_try(row, begun.params.ranks, options)) {
    SweepResult next = begun;
    if (!row.read(text, next.params)) {
      throw std::invalid_argument(std::string(row.name) + " is '" + text + "'");
    }
    if (tried.insert(row.text(next.params)).second) {
      add_cases(rows.subspan(1), options, next, out);
    }
  }
}

std::string failure_of(SweepResult& result, const VerifyOptions& options) {
  try {
    const Algorithm& line = *result.algorithm;
    const Schedule schedule = line.make(result.params);
    const Goal goal = goal_of(line, result.params, schedule);
    if (const auto violation = verify(schedule, goal, options)) {
      return fmt::format("{}: {}", name_of(violation->kind), violation->text);
    }
    const Counts counts = count(schedule);
    result.rounds = counts.rounds;
    return compare_statement(line, result.params, goal, counts).value_or("");
  } catch (const std::exception& error) {
    return fmt::format("throws: {}", error.what());
  }
}

}  // namespace

std::string SweepResult::name() const {
  std::string out = fmt::format("{} {}", name_of(algorithm->collective), algorithm->name);
  for (const Parameter& row : parameters()) {
    if (!algorithm->takes(row.name) || (row.has_default() && row.open(params))) continue;
    const bool by_letter = row.number != nullptr && !row.letter.empty();
    out += fmt::format(" {}={}", by_letter ? row.letter : row.name, row.text(params));
  }
  return out;
}

std::vector<SweepResult> sweep_cases(const SweepOptions& options) {
  std::vector<SweepResult> out;
  for (const Algorithm& line : catalogue()) {
    if (options.collective && line.collective != *options.collective) continue;
    if (!options.algorithm.empty() && line.name != options.algorithm) continue;
    for (int n = options.ranks_from; n <= options.ranks_to; ++n) {
      SweepResult begun;
      begun.algorithm = &line;
      begun.params.ranks = n;
      add_cases(parameters().subspan(1), options, begun, out);
    }
  }
  return out;
}

std::vector<SweepResult> sweep(const SweepOptions& options, const SweepProgress& progress) {
  std::vector<SweepResult> results = sweep_cases(options);
  // Large N first: no core is left with the longest case at the end.
  std::vector<std::size_t> order(results.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return results[a].params.ranks > results[b].params.ranks;
  });

  std::mutex reporting;
  std::size_t done = 0;
  const auto work = [&](std::size_t i) {
    SweepResult& result = results[order[i]];
    result.failure = failure_of(result, options.verify);
    if (!progress) return;
    const std::lock_guard lock(reporting);
    progress(++done, results.size());
  };
  const int cores = tbb::info::default_concurrency();
  tbb::task_arena arena(options.threads > 0 ? std::min(options.threads, cores) : cores);
  arena.execute(
      [&] { tbb::parallel_for(std::size_t{0}, order.size(), work, tbb::simple_partitioner()); });
  return results;
}

}  // namespace rankine
