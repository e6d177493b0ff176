// The options that describe questions: what simulate, cost and run have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/tools/algorithm_arguments.h"
#include "engine/tools/arguments.h"
#include "engine/tools/network.h"
#include "engine/tools/question.h"

namespace rankine::tools {

struct QuestionArguments {
  AlgorithmArguments algorithm;
  std::size_t bytes = std::size_t{1} << 20;
  std::vector<std::uint64_t> counts{};  // in place of bytes
  NetworkArguments network;
  Sync sync = Sync::dataflow;
};

// --bytes, --counts and --sync; the others come by add_algorithm_arguments() and
// add_network_arguments().
void add_model_arguments(Command app, QuestionArguments& arguments);

// One question per algorithm that asked_algorithms() gives, with the same notes and errors.
Result<std::vector<Question>> questions_of(const QuestionArguments& arguments,
                                           std::vector<std::string>& notes);
// The same where one algorithm only is allowed.
Result<Question> question_of(const QuestionArguments& arguments);

}  // namespace rankine::tools
