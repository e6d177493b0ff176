#include "engine/tools/page/tasks.h"

#include <string>

#include "engine/network/predict.h"
#include "engine/tools/lesson/judge_order.h"
#include "engine/tools/lesson/judgement_json.h"
#include "engine/tools/page/plans.h"

namespace rankine::tools {
namespace {

constexpr std::uint64_t kBytes = 1 << 20;
constexpr std::uint64_t kSeed = 1;

Result<std::string> text_member(const Json& request, const char* member) {
  const auto found = request.find(member);
  if (found != request.end() && found->is_string()) return found->get<std::string>();
  return bad_member(member, found == request.end() ? Json() : *found, "texts");
}

Json tasks_json() {
  Json out = Json::array();
  for (const FormulaTask& task : formula_tasks()) {
    Json letters = Json::array();
    for (const TaskLetter& one : task.letters) {
      letters.push_back({{"letter", std::string(1, one.letter)},
                         {"meaning", one.meaning},
                         {"lowest", formulas::to_string(Rational(one.lowest) * one.unit)},
                         {"highest", formulas::to_string(Rational(one.highest) * one.unit)}});
    }
    out.push_back({{"task", task.name}, {"question", task.question}, {"letters", letters}});
  }
  return out;
}

}  // namespace

Status ask_check(const Json& request, Json& out, std::vector<double>& numbers) {
  const auto text = text_member(request, "text");
  if (!text.ok()) return text.status();
  if (is_order(*text)) {
    const auto order = read_order(*text);
    if (!order.ok()) return order.status();
    const OrderJudgement judged = judge_order(*order);
    out = order_json(*order, judged);
    write_passes(judged.pipeline, out, numbers);
    return {};
  }
  const auto written = read_schedule(*text);
  if (!written.ok()) return written.status();
  const auto fabric = wired_for(plain_regime().fabric, written->goal.ranks);
  if (!fabric.ok()) return fabric.status();
  const SimulateOptions options;
  const auto judged = judge(*written, *fabric, kBytes, options);
  if (!judged.ok()) return judged.status();
  out = judgement_json(*written, *judged, *fabric, options.sync);
  return {};
}

Status ask_formula(const Json& request, Json& out, std::vector<double>&) {
  if (!request.contains("formula")) {
    out["tasks"] = tasks_json();
    return {};
  }
  const auto name = text_member(request, "task");
  if (!name.ok()) return name.status();
  const auto task = find_formula_task("task", *name);
  if (!task.ok()) return task.status();
  const auto formula = text_member(request, "formula");
  if (!formula.ok()) return formula.status();
  const auto asked = request.find("seed");
  if (asked != request.end() && !asked->is_number_unsigned()) {
    return bad_member("seed", *asked, "whole numbers, not negative");
  }
  const std::uint64_t seed = asked == request.end() ? kSeed : asked->get<std::uint64_t>();
  const auto miss = judge_formula(**task, *formula, seed);
  if (!miss.ok()) return miss.status();
  out = formula_json(**task, *formula, seed, *miss);
  return {};
}

}  // namespace rankine::tools
