#include "engine/tools/question.h"

#include <fmt/format.h>

#include "algorithms/schedule/lower.h"
#include "engine/base/units.h"
#include "engine/network/segments.h"
#include "engine/network/wire.h"
#include "engine/tools/arguments.h"
#include "engine/tools/text.h"

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

void add_model_arguments(Command app, QuestionArguments& a) {
  add_argument(app, "--bytes", a.bytes, parse_size, "SIZE",
               "M: the vector, or one rank's send buffer of all_to_all; 8, 64K, 1M (1M)");
  add_argument(app, "--sync", a.sync, read_sync, "NAME",
               "dataflow: a message waits for its data only; rounds: for all of the round before "
               "(dataflow)");
}

Result<std::vector<Question>> questions_of(const QuestionArguments& a,
                                           std::vector<std::string>& notes) {
  const auto network = network_of(a.network);
  if (!network.ok()) return network.status();
  Fabric wired;  // the same for all
  auto asked =
      asked_algorithms(a.algorithm, notes, [&](const Algorithm& line, Params& params) -> Status {
        auto found = wire(*network, line, params);
        if (!found.ok()) return found.status();
        wired = std::move(*found);
        return {};
      });
  if (!asked.ok()) return asked.status();
  std::vector<Question> questions;
  for (AskedAlgorithm& one : *asked) {
    questions.push_back({.algorithm = one.algorithm,
                         .params = std::move(one.params),
                         .bytes = a.bytes,
                         .fabric = wired,
                         .options = {.sync = a.sync},
                         .lower = a.network.lower});
  }
  return questions;
}

Result<Question> question_of(const QuestionArguments& a) {
  std::vector<std::string> notes;
  auto questions = questions_of(a, notes);
  if (!questions.ok()) return questions.status();
  if (questions->size() > 1 || !notes.empty()) return one_algorithm_only(a.algorithm);
  return std::move(questions->front());
}

std::string describe(const Question& question) {
  return fmt::format("{} of {} among {} ranks on {}, {}", name_of(question.algorithm->collective),
                     format_bytes(static_cast<double>(question.bytes)), question.params.ranks,
                     describe(question.fabric), name_of(question.options.sync));
}

double bytes_of(std::int64_t weight, std::int64_t weight_per_byte) {
  return nearest_double(weight, weight_per_byte);
}

}  // namespace rankine::tools
