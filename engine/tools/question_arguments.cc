#include "engine/tools/question_arguments.h"

#include "engine/network/wire.h"
#include "engine/tools/text.h"

namespace rankine::tools {

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

}  // namespace rankine::tools
