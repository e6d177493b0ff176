#include "algorithms/closed_form.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "algorithms/catalogue.h"
#include "algorithms/formula.h"
#include "algorithms/levels.h"
#include "algorithms/skips.h"
#include "algorithms/trivance.h"

namespace rankine {
namespace {

using formulas::Value;

int most_at_once(const std::vector<int>& dims) {
  std::vector<int> messages;  // by round
  for (const int size : dims) {
    const RunPlan plan = trivance_plan(size);
    messages.resize(std::max(messages.size(), plan.size()), 0);
    for (std::size_t k = 0; k < plan.size(); ++k) messages[k] += static_cast<int>(plan[k].size());
  }
  return messages.empty() ? 0 : *std::max_element(messages.begin(), messages.end());
}

int messages_of(int size) {
  constexpr int kLargest = 4096;  // as far as plans are wanted
  if (size > kLargest) throw std::logic_error("messages() of a dimension beyond 4096");
  int messages = 0;
  for (const auto& round : trivance_plan(size)) messages += static_cast<int>(round.size());
  return messages;
}

int whole_of(const Value& value) {
  const Value floor = value.floor();
  if (!floor.exact() || formulas::less(std::numeric_limits<int>::max(), floor) ||
      formulas::less(floor, -std::numeric_limits<int>::max())) {
    throw std::overflow_error("a number beyond 32 bits");
  }
  return static_cast<int>(floor.rational().top());
}

// `params` are resolved().
std::optional<Value> letter(char name, const Params& params) {
  const auto circulant = [&] { return CirculantRounds(params.ranks, params.skips); };
  const auto levels = [&] { return level_tree(params.ranks, params.root, params.levels); };
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
    case 'T':
      return most_at_once(params.dims);
    case 'S':
      return count(params.skips);
    case 'W':
      return circulant().hops();
    case 'V':
      return circulant().most_through_one();
    case 'C':
      return circulant().most_added_to_one();
    case 'L':
      return levels().rounds();
    case 'J':
      return most_neighbours(levels());
    default:
      return std::nullopt;
  }
}

}  // namespace

Rational evaluate(std::string_view formula, const Params& given) {
  const Params params = resolved(given);
  const auto lookup = [&](std::string_view name,
                          std::span<const Value> arguments) -> std::optional<Value> {
    if (arguments.empty()) {
      return name.size() == 1 ? letter(name.front(), params) : std::nullopt;
    }
    if (arguments.size() != 1) return std::nullopt;
    if (name == "messages") return messages_of(whole_of(arguments[0]));
    if (name != "children") return std::nullopt;
    return most_children(level_tree(params.ranks, params.root, params.levels),
                         whole_of(arguments[0]));
  };
  const Value value = formulas::evaluate(formula, lookup, params.dims);
  if (!value.exact()) throw std::overflow_error("a number beyond 128 bits");
  return value.rational();
}

}  // namespace rankine
