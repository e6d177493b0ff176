// Our own texts: what cannot be read or computed throws what the headers say, and nothing else.
#include <optional>
#include <stdexcept>
#include <string>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/parameters.h"
#include "engine/papers/condition.h"
#include "engine/papers/runs.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/targets.h"

namespace rankine::fuzz {
namespace {

template <class Read>
auto read(const Read& evaluate) -> std::optional<decltype(evaluate())> {
  try {
    return evaluate();
  } catch (const std::domain_error&) {    // no value
  } catch (const std::overflow_error&) {  // too large
  } catch (const std::logic_error&) {     // no formula
  }
  return std::nullopt;
}

}  // namespace

void formula(std::string_view input) {
  Params params;
  params.ranks = 12;
  params.segments = 3;
  params.root = 1;
  for (const std::vector<int>& dims : {std::vector<int>{}, std::vector<int>{3, 4}}) {
    params.dims = dims;
    const auto value = read([&] { return evaluate(input, params); });
    if (!value) continue;
    require(value->bottom() > 0, "a fraction's denominator is positive");
    // What a formula gives can stand in one.
    const auto again = read([&] { return evaluate("0+(" + value->to_string() + ")", params); });
    require(!again || *again == *value, "its own text is worth as much");
  }
}

void expression(std::string_view input) {
  const formulas::Letters letters = {
      {"N", 6}, {"M", 1000}, {"a.time", formulas::Value::real(1.5)}};
  const auto value = read([&] { return formulas::evaluate(input, letters); });
  if (value) require(!formulas::to_string(*value).empty(), "a value can be said");
}

void parameter_sets(std::string_view input) {
  const auto found = read([&] { return formulas::parameter_sets(input); });
  if (!found) return;
  for (const formulas::Letters& set : found->sets) {
    require(set.size() <= found->order.size(), "letters are those assigned");
  }
}

void runs(std::string_view input) {
  const auto found = read([&] { return claims::read_runs(input, "alpha=1;beta=0"); });
  if (!found) return;
  for (const claims::RunText& run : *found) {
    require(!run.options.empty(), "options that stand before count");
  }
}

}  // namespace rankine::fuzz
