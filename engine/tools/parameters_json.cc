#include "engine/tools/parameters_json.h"

#include <fmt/format.h>

#include <algorithm>

namespace rankine::tools {
namespace {

constexpr std::string_view kRest = "params.";

// Its name in "params", or "" of a request's own.
std::string_view rest_name(const Parameter& row) {
  return row.member.starts_with(kRest) ? row.member.substr(kRest.size()) : "";
}

Json to_json(const Parameter& row, const Params& params) {
  if (row.number != nullptr) return params.*row.number;
  if (row.kind == Parameter::Kind::torus) return row.text(params);
  return params.*row.list;
}

// As Parameter::read() takes it; "" of what no parameter can be.
std::string text_of(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  if (value.is_string()) return value.get<std::string>();
  std::string text;
  if (!value.is_array()) return text;
  for (const Json& part : value) {
    if (!part.is_number_integer()) return "";
    text += (text.empty() ? "" : ",") + part.dump();
  }
  return text;
}

std::string members(bool rest) {
  std::string names;
  for (const Parameter& row : parameters()) {
    const std::string_view name = rest ? rest_name(row) : row.member;
    if (row.name == "ranks" || name.empty() || (!rest && !rest_name(row).empty())) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

}  // namespace

void write_parameters(const Algorithm& line, const Params& params, Json& request, Json& rest) {
  for (const Parameter& row : parameters()) {
    if (!line.takes(row.name)) continue;
    const std::string_view name = rest_name(row);
    (name.empty() ? request : rest)[std::string(name.empty() ? row.member : name)] =
        to_json(row, params);
  }
}

bool read_parameter(std::string_view member, const Json& value, AlgorithmArguments& into) {
  for (const Parameter& row : parameters()) {
    if (row.member != member) continue;
    into.given.push_back({&row, text_of(value), std::string(member), value.dump()});
    return true;
  }
  return false;
}

Status read_rest(const Json& rest, AlgorithmArguments& into) {
  if (!rest.is_object()) {
    return bad_member("params", rest, "objects with the members " + rest_members());
  }
  for (const auto& [name, value] : rest.items()) {
    if (read_parameter(std::string(kRest) + name, value, into)) continue;
    return invalid_argument(
        fmt::format("params has a member '{}'; allowed are {}", name, rest_members()));
  }
  return {};
}

std::string own_members() { return members(false); }
std::string rest_members() { return members(true); }

Status bad_member(std::string_view member, const Json& value, std::string_view allowed) {
  return invalid_argument(fmt::format("{} is {}; allowed are {}", member, value.dump(), allowed));
}

}  // namespace rankine::tools
