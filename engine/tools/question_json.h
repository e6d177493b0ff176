// Questions to the model in JSON: a request of simulate's batch, and what its answers repeat.
#pragma once

#include "engine/tools/parameters_json.h"
#include "engine/tools/question.h"

namespace rankine::tools {

// Errors name the member, its value and what is allowed.
Result<Question> read_question(const Json& request);

// A request with the members of that question, and with `params` as they ran.
Json question_json(const Question& question, const Params& params);

}  // namespace rankine::tools
