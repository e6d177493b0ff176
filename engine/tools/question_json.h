// Questions to the model in JSON: a request of simulate's batch, and what its answers repeat.
#pragma once

#include <string>

#include "engine/tools/parameters_json.h"
#include "engine/tools/question.h"

namespace rankine::tools {

// Errors name the member, its value and what is allowed.
Result<Question> read_question(const Json& request);

// Members of networks that a request has of its own: "ports, alpha, bandwidth".
std::string request_network_members();

// A request with the members of that question, and with `params` as they ran.
Json question_json(const Question& question, const Params& params);

}  // namespace rankine::tools
