#include "engine/tools/page/curves.h"

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "algorithms/parameters.h"
#include "engine/tools/answer.h"
#include "engine/tools/crossovers.h"
#include "engine/tools/question_json.h"

namespace rankine::tools {
namespace {

using Numbers = std::vector<double>;

// A formula, or nothing where the catalogue has none or it leaves the numbers.
std::optional<double> value_of(std::string_view formula, const Params& params) {
  if (formula == kComputed) return std::nullopt;
  return evaluate(formula, params).to_double();
}

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// rounds * alpha + bytes that the busiest rank sends * beta, by the catalogue's closed forms.
double formula_of(const Answer& a) {
  const auto rounds = value_of(a.question.algorithm->rounds, a.params);
  const auto sent = value_of(a.question.algorithm->sent, a.params);
  if (!rounds || !sent) return kNone;
  const Link& link = a.question.fabric.link;
  return *rounds * link.latency().to_double() +
         *sent * static_cast<double>(a.question.bytes) * link.per_byte().to_double();
}

// The first that none beats, by index; none where nobody has a time.
Json fastest(const Numbers& times, std::size_t questions, std::size_t values) {
  Json out = Json::array();
  for (std::size_t v = 0; v < values; ++v) {
    std::optional<std::size_t> best;
    for (std::size_t q = 0; q < questions; ++q) {
      const double time = times[q * values + v];
      if (time == time && (!best || time < times[*best * values + v])) best = q;
    }
    out.push_back(best ? Json(*best) : Json());
  }
  return out;
}

Json crossovers_json(const Numbers& times, const std::vector<double>& values) {
  NetworkCurves curves;
  for (std::size_t q = 0; q * values.size() < times.size(); ++q) {
    PlotCurve& curve = curves.curves.emplace_back();
    for (std::size_t v = 0; v < values.size(); ++v) {
      const double time = times[q * values.size() + v];
      if (time == time) curve.points.push_back({values[v], time * 1e6});
    }
    // One that does not run everywhere has no part in it.
    if (curve.points.size() < values.size()) curve.points.clear();
  }
  Json out = Json::array();
  for (const Crossover& crossover : crossovers(curves)) {
    out.push_back(
        {{"bytes", crossover.bytes}, {"winner", crossover.winner}, {"time", crossover.us * 1e-6}});
  }
  return out;
}

}  // namespace

Status ask_curve(const Json& request, Json& out, Numbers& numbers) {
  constexpr std::size_t kMostPoints = 4096;
  const Json none = Json::array();
  const Json& questions = request.contains("questions") ? request["questions"] : none;
  const Json& points = request.contains("values") ? request["values"] : none;
  const std::string over = request.value("over", "");
  if (over != "bytes" && over != "ranks") {
    return bad_member("over", request.contains("over") ? request["over"] : Json(),
                      "\"bytes\" and \"ranks\"");
  }
  if (!questions.is_array() || questions.empty()) {
    return bad_member("questions", questions, "lists of questions");
  }
  if (!points.is_array() || points.empty() || points.size() * questions.size() > kMostPoints) {
    return bad_member("values", points, "lists of numbers, not too many");
  }
  std::vector<double> values;
  for (const Json& value : points) {
    if (!value.is_number()) return bad_member("values", value, "numbers");
    values.push_back(value.get<double>());
  }
  Numbers formulas;
  Json& refused = out["refused"] = Json::array();
  for (const Json& asked : questions) {
    Json why;
    for (const Json& value : points) {
      if (!asked.is_object()) return bad_member("questions", asked, "lists of objects");
      Json one = asked;
      one[over] = value;
      auto question = read_question(one);
      auto answered =
          question.ok() ? answer(std::move(*question)) : Result<Answer>(question.status());
      numbers.push_back(answered.ok() ? answered->seconds() : kNone);
      formulas.push_back(answered.ok() ? formula_of(*answered) : kNone);
      if (!answered.ok() && why.is_null()) why = answered.status().text();
    }
    refused.push_back(std::move(why));
  }
  out["values"] = points;
  out["fastest"] = fastest(numbers, questions.size(), values.size());
  if (over == "bytes" && values.size() > 1) out["crossovers"] = crossovers_json(numbers, values);
  numbers.insert(numbers.end(), formulas.begin(), formulas.end());
  return {};
}

}  // namespace rankine::tools
