#include "engine/tools/cost_text.h"

#include <fmt/format.h>

#include "engine/base/units.h"

namespace rankine::tools {

std::string value_text(const CostField& field, std::size_t value) {
  return field.unit == CostField::Unit::bytes ? format_bytes(value)
                                              : fmt::format("{} {}", value, name_of(field.unit));
}

std::string differences_text(const Costs& costs) {
  std::string text;
  for (const CostField& field : cost_fields()) {
    const std::size_t value = costs.*field.value, standard = Costs().*field.value;
    if (value == standard) continue;
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", field.name,
                        value_text(field, value), value_text(field, standard));
  }
  return text;
}

}  // namespace rankine::tools
