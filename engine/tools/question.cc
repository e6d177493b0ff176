#include "engine/tools/question.h"

#include <fmt/format.h>

#include "algorithms/schedule/combine.h"
#include "engine/base/units.h"
#include "engine/network/predict.h"
#include "engine/tools/metrics.h"
#include "engine/tools/network_text.h"

namespace rankine::tools {

Result<Prepared> prepare(const Question& question) {
  Prepared out;
  out.params = question.params;
  if (question.params.segments == 0) {
    SimulateOptions options = question.options;
    options.lower = question.lower;
    const auto best = best_segments(*question.algorithm, question.params, question.fabric,
                                    question.bytes, options);
    if (!best.ok()) return best.status();
    out.params.segments = *best;
  }
  if (const auto refusal = question.algorithm->refusal(out.params)) {
    return invalid_argument(*refusal);
  }
  out.params = resolved(out.params);
  out.schedule = question.algorithm->make(out.params);
  out.goal = goal_of(*question.algorithm, out.params, out.schedule);
  if (question.lower) out.schedule = lower(std::move(out.schedule), question.fabric.abilities());
  return out;
}

Status take_counts(Question& question, std::vector<std::uint64_t> counts) {
  const Collective collective = question.algorithm->collective;
  const int ranks = question.params.ranks;
  Status status = check_counts(collective, ranks, counts);
  if (!status.ok()) return status;
  question.bytes = size_of_counts(collective, ranks, counts);
  question.options.counts = std::move(counts);
  return {};
}

std::string describe(const Question& question) {
  return fmt::format("{} of {}{} among {} on {}, {}", name_of(question.algorithm->collective),
                     format_bytes(static_cast<double>(question.bytes)),
                     question.options.counts.empty() ? "" : " in blocks of unlike sizes",
                     counted(question.params.ranks, "rank"), describe(question.fabric),
                     name_of(question.options.sync));
}

double bytes_of(std::int64_t weight, std::int64_t weight_per_byte) {
  return nearest_double(weight, weight_per_byte);
}

}  // namespace rankine::tools
