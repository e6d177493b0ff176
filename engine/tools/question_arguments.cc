#include "engine/tools/question_arguments.h"

#include "engine/network/predict.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

Result<std::vector<std::uint64_t>> read_counts(std::string_view argument, std::string_view text) {
  std::vector<std::uint64_t> counts;
  for (const std::string_view part : split_list(text)) {
    const auto size = parse_size(argument, part);
    if (!size.ok()) return size.status();
    counts.push_back(*size);
  }
  return counts;
}

}  // namespace

void add_model_arguments(Command app, QuestionArguments& a) {
  const Option bytes =
      add_argument(app, "--bytes", a.bytes, parse_size, "SIZE",
                   "M: the vector, or one rank's send buffer of all_to_all; 8, 64K, 1M (1M)");
  add_argument(app, "--counts", a.counts, read_counts, "SIZES",
               "of blocks of unlike sizes, the bytes of each in place of --bytes: 1K,4K,0,2M; as "
               "many as ranks, and of all_to_all as many as pairs, by sender")
      .excludes(bytes);
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
                         .bytes = vector_bytes(one.algorithm->collective, a.bytes),
                         .fabric = wired,
                         .options = {.sync = a.sync},
                         .lower = a.network.lower});
    if (a.counts.empty()) continue;
    if (Status status = take_counts(questions.back(), a.counts); !status.ok()) {
      return Status(status.code(), "--" + status.text());
    }
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
