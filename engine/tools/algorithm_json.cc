#include "engine/tools/algorithm_json.h"

#include <string>
#include <string_view>

#include "algorithms/parameters.h"
#include "engine/tools/text.h"

namespace rankine::tools {

nlohmann::ordered_json algorithm_json(const Algorithm& line) {
  return {
      {"collective", name_of(line.collective)},
      {"name", line.name},
      {"allowed_when", line.allowed_when},
      {"needs", line.needs},
      {"parameters", split_list(line.parameters)},
      {"rounds", line.rounds},
      {"sent", line.sent},
      {"received", line.received},
      {"send_ports", line.send_ports},
      {"receive_ports", line.receive_ports},
      {"summary", line.summary},
      {"citation", line.citation},
      {"other_bits", line.other_bits},
  };
}

nlohmann::ordered_json algorithm_json(const Algorithm& line, const Params& params) {
  nlohmann::ordered_json json = algorithm_json(line);
  const auto value = [&](std::string_view formula) {
    return formula == kComputed ? std::string(formula) : evaluate(formula, params).to_string();
  };
  for (const Parameter& row : parameters()) {
    if (in_formulas(row)) json["at"][std::string(row.name)] = params.*row.number;
  }
  if (const auto refusal = line.refusal(line.only_taken(params))) {
    json["at"]["refused"] = *refusal;
    return json;
  }
  json["at"]["rounds"] = value(line.rounds);
  json["at"]["sent"] = value(line.sent);
  json["at"]["received"] = value(line.received);
  json["at"]["send_ports"] = value(line.send_ports);
  json["at"]["receive_ports"] = value(line.receive_ports);
  return json;
}

}  // namespace rankine::tools
