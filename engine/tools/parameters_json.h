// Parameters of algorithms in JSON, in and out, as algorithms/parameters.h names them: some are
// members of a request itself, the others of its member "params".
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/status.h"
#include "engine/tools/algorithm_arguments.h"

namespace rankine::tools {

using Json = nlohmann::ordered_json;

// What the algorithm takes, as numbers, lists and texts such as "4x4"; `rest` may be `request`.
void write_parameters(const Algorithm& line, const Params& params, Json& request, Json& rest);

// One of them, by its whole name: "segments" or "params.group". False: it is none.
bool read_parameter(std::string_view member, const Json& value, AlgorithmArguments& into);
// All members of a request's "params".
Status read_rest(const Json& rest, AlgorithmArguments& into);

// The names of a request's own, or of those in "params", for messages: "root, segments".
std::string own_members();
std::string rest_members();

// "bytes is -1; allowed are ..."
Status bad_member(std::string_view member, const Json& value, std::string_view allowed);

}  // namespace rankine::tools
