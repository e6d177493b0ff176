// Parameters of algorithms in JSON, in and out, as algorithms/parameters.h names them: some are
// members of a request itself, the others of its member "params".
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/tools/given_parameters.h"

namespace rankine::tools {

using Json = nlohmann::ordered_json;

// What the algorithm takes, as numbers, lists and texts such as "4x4"; `rest` may be `request`.
void write_parameters(const Algorithm& line, const Params& params, Json& request, Json& rest);

// A member of the request, or of its "params". False: it is no parameter there.
bool read_parameter(const std::string& name, const Json& value, bool in_request,
                    AlgorithmArguments& into);
// All members of a request's "params".
Status read_params_member(const Json& params, AlgorithmArguments& into);

// Those of the request but for the ranks, or of its "params", for messages: "root, segments".
std::string parameter_names(bool in_request);

// "bytes is -1; allowed are ..."
Status bad_member(std::string_view member, const Json& value, std::string_view allowed);

}  // namespace rankine::tools
