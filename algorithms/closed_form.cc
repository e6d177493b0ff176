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

// The size of the largest groups that are not all ranks.
int outermost(const Params& params) {
  int size = 1;
  for (const int level : params.levels) size = level < params.ranks ? level : size;
  return size;
}

int levels(const Params& params) {
  if (params.ranks == 1) return 0;
  return 1 + static_cast<int>(
                 std::count_if(params.levels.begin(), params.levels.end(),
                               [&params](int size) { return 1 < size && size < params.ranks; }));
}

// `params` are resolved(). Q: the largest power of the radix that is not above N.
std::optional<Value> letter(std::string_view name, const Params& params) {
  if (name == "Q") return power_of(params.radix, floor_log(params.radix, params.ranks));
  if (name == "H") return params.root == params.peer ? 0 : 1;
  if (name == "L") return levels(params);
  if (name == "outermost") return outermost(params);
  if (name == "groups") return groups(params);
  if (name == "last") return params.ranks - (groups(params) - 1) * params.group;
  for (const Parameter& row : parameters()) {
    if (name == row.letter) return row.count(params);
  }
  return std::nullopt;
}

}  // namespace

Rational evaluate(std::string_view formula, const Params& given) {
  const Params params = resolved(given);
  const auto lookup = [&](std::string_view name,
                          std::span<const Value> arguments) -> std::optional<Value> {
    return arguments.empty() ? letter(name, params) : std::nullopt;
  };
  const Value value = formulas::evaluate(formula, lookup, params.dims);
  if (!value.exact()) throw std::overflow_error("a number beyond 128 bits");
  return value.rational();
}

}  // namespace rankine
