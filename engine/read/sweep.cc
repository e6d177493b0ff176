#include "engine/read/sweep.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <stdexcept>

#include "algorithms/levels.h"
#include "algorithms/skips.h"
#include "algorithms/torus.h"
#include "engine/read/count.h"
#include "engine/read/statement.h"

namespace rankine {
namespace {

// Ends of the range and its middle, each once; all of it where it is short.
std::vector<Rank> ranks_to_try(int ranks, const SweepOptions& options) {
  std::vector<Rank> out;
  if (ranks <= options.all_roots_up_to) {
    for (Rank r = 0; r < ranks; ++r) out.push_back(r);
    return out;
  }
  for (const Rank r : {0, ranks / 2, ranks - 1}) {
    if (out.empty() || r > out.back()) out.push_back(r);
  }
  return out;
}

// What the texts mean for so many ranks, each once.
std::vector<std::vector<int>> skips_to_try(int ranks, const SweepOptions& options) {
  std::vector<std::vector<int>> out;
  for (const std::string& text : options.skips) {
    const auto skips = read_skips(text, ranks);
    if (!skips) throw std::invalid_argument("skips is '" + text + "'");
    if (std::find(out.begin(), out.end(), *skips) == out.end()) out.push_back(*skips);
  }
  return out;
}

// Tori of so many ranks.
std::vector<std::vector<int>> dims_to_try(int ranks, const SweepOptions& options) {
  if (!options.dims.empty()) return {options.dims};
  std::vector<std::vector<int>> out;
  for (const int dimensions : options.dimensions) {
    auto dims = balanced_dims(ranks, dimensions);
    if (!dims.empty()) out.push_back(std::move(dims));
  }
  return out;
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
  std::string out =
      fmt::format("{} {} N={}", name_of(algorithm->collective), algorithm->name, params.ranks);
  if (has_root(algorithm->collective)) out += fmt::format(" root={}", params.root);
  if (algorithm->collective == Collective::send_recv) out += fmt::format(" peer={}", params.peer);
  if (algorithm->takes("segments")) out += fmt::format(" P={}", params.segments);
  if (params.group != 0) out += fmt::format(" G={}", params.group);
  if (params.aggregation != 0) out += fmt::format(" A={}", params.aggregation);
  if (params.dims.size() > 1) out += fmt::format(" dims={}", dims_text(params.dims));
  if (!params.skips.empty()) out += fmt::format(" skips={}", skips_text(params.skips));
  if (!params.levels.empty()) out += fmt::format(" levels={}", levels_text(params.levels));
  return out;
}

std::vector<SweepResult> sweep_cases(const SweepOptions& options) {
  const std::vector<int> untaken = {0};
  const std::vector<std::vector<int>> no_list = {{}};
  std::vector<SweepResult> out;
  for (const Algorithm& line : catalogue()) {
    if (options.collective && line.collective != *options.collective) continue;
    if (!options.algorithm.empty() && line.name != options.algorithm) continue;
    const std::vector<int> one = {1};
    const bool has_peer = line.collective == Collective::send_recv;
    for (int n = options.ranks_from; n <= options.ranks_to; ++n) {
      const std::vector<Rank> some = ranks_to_try(n, options);
      for (const Rank root : has_root(line.collective) ? some : untaken) {
        for (const Rank peer : has_peer ? some : untaken) {
          for (const int segments : line.takes("segments") ? options.segments : one) {
            for (const int group : line.takes("group") ? options.groups : untaken) {
              for (const int aggregation :
                   line.takes("aggregation") ? options.aggregations : untaken) {
                SweepResult result;
                result.algorithm = &line;
                result.params = {n, root, peer, segments, group, aggregation};
                for (const auto& dims : line.takes("dims") ? dims_to_try(n, options) : no_list) {
                  result.params.dims = dims;
                  for (const auto& skips :
                       line.takes("skips") ? skips_to_try(n, options) : no_list) {
                    result.params.skips = skips;
                    for (const auto& levels : line.takes("levels") ? options.levels : no_list) {
                      result.params.levels = levels;
                      if (!line.refusal(result.params)) out.push_back(result);
                    }
                  }
                }
              }
            }
          }
        }
      }
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
