#include "engine/tools/parameters_json.h"

#include <fmt/format.h>

#include <algorithm>

namespace rankine::tools {
namespace {

Json to_json(const Parameter& row, const Params& params) {
  if (row.number != nullptr) return params.*row.number;
  if (row.kind == Parameter::Kind::torus) return row.text(params);
  return params.*row.list;
}

// As Parameter::read() takes it, who refuses what is neither a number, a text nor a list of
// numbers.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const auto is_whole = [](const Json& part) { return part.is_number_integer(); };
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_whole)) return value.dump();
  std::string text;
  for (const Json& part : value) text += (text.empty() ? "" : ",") + part.dump();
  return text;
}

}  // namespace

void write_parameters(const Algorithm& line, const Params& params, Json& request, Json& rest) {
  for (const Parameter& row : parameters()) {
    if (!line.takes(row.name)) continue;
    (row.in_request ? request : rest)[std::string(row.name)] = to_json(row, params);
  }
}

bool read_parameter(const std::string& name, const Json& value, bool in_request,
                    AlgorithmArguments& into) {
  const Parameter* row = find_parameter(name);
  if (row == nullptr || row->in_request != in_request) return false;
  into.given.push_back({row, text_of(value), (in_request ? "" : "params.") + name, value.dump()});
  return true;
}

Status read_params_member(const Json& params, AlgorithmArguments& into) {
  const std::string names = parameter_names(false);
  if (!params.is_object()) return bad_member("params", params, "objects with the members " + names);
  for (const auto& [name, value] : params.items()) {
    if (read_parameter(name, value, false, into)) continue;
    return invalid_argument(fmt::format("params has a member '{}'; allowed are {}", name, names));
  }
  return {};
}

std::string parameter_names(bool in_request) {
  std::string names;
  for (const Parameter& row : parameters()) {
    if (row.in_request != in_request || row.name == "ranks") continue;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return names;
}

Status bad_member(std::string_view member, const Json& value, std::string_view allowed) {
  return invalid_argument(fmt::format("{} is {}; allowed are {}", member, value.dump(), allowed));
}

}  // namespace rankine::tools
