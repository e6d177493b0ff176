#include "algorithms/closed_form.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"

namespace rankine {
namespace {

using formulas::Value;

int groups(const Params& params) { return (params.ranks - 1) / params.group + 1; }

int levels(const Params& params) {
  if (params.ranks == 1) return 0;
  return 1 + static_cast<int>(
                 std::count_if(params.levels.begin(), params.levels.end(),
                               [&params](int size) { return 1 < size && size < params.ranks; }));
}

// `params` are resolved().
std::optional<Value> letter(char name, const Params& params) {
  const auto count = [](const auto& list) { return static_cast<long long>(list.size()); };
  switch (name) {
    case 'N':
      return params.ranks;
    case 'P':
      return params.segments;
    case 'Q':
      return 1 << floor_log2(params.ranks);
    case 'H':
      return params.root == params.peer ? 0 : 1;
    case 'G':
      return params.group;
    case 'A':
      return params.aggregation;
    case 'D':
      return count(params.dims);
    case 'S':
      return count(params.skips);
    case 'L':
      return levels(params);
    default:
      return std::nullopt;
  }
}

}  // namespace

Rational evaluate(std::string_view formula, const Params& given) {
  const Params params = resolved(given);
  const auto lookup = [&](std::string_view name,
                          std::span<const Value> arguments) -> std::optional<Value> {
    if (!arguments.empty()) return std::nullopt;
    if (name == "groups") return groups(params);
    if (name == "last") return params.ranks - (groups(params) - 1) * params.group;
    return name.size() == 1 ? letter(name.front(), params) : std::nullopt;
  };
  const Value value = formulas::evaluate(formula, lookup, params.dims);
  if (!value.exact()) throw std::overflow_error("a number beyond 128 bits");
  return value.rational();
}

}  // namespace rankine
