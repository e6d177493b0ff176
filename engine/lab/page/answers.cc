#include "engine/lab/page/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "algorithms/parameters.h"
#include "engine/base/json_text.h"
#include "engine/base/numbers.h"
#include "engine/cli/drawing.h"
#include "engine/cli/judge.h"
#include "engine/cli/question.h"
#include "engine/cli/text.h"
#include "engine/lab/coefficients.h"
#include "engine/lab/lesson/formula_tasks.h"
#include "engine/lab/lesson/written_order.h"
#include "engine/lab/page/parts.h"
#include "engine/network/predict.h"
#include "engine/read/verify.h"

namespace rankine::tools {
namespace {

using Numbers = std::vector<double>;

// A formula's value; empty if the catalogue has no formula or the value is out of range.
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

// For each value the index of the first fastest question; null if no question has a time.
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
    // A question that does not run at all values has no crossovers.
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

namespace {

using Rounds = std::vector<std::vector<Transfer>>;

// The member as a whole number below `end`.
Result<int> index_of(const Json& edit, const char* member, std::size_t end) {
  const auto found = edit.find(member);
  if (found == edit.end()) return invalid_argument(fmt::format("{} is missing", member));
  const bool whole = found->is_number_integer();
  const std::int64_t value = whole ? found->get<std::int64_t>() : -1;
  if (value >= 0 && value < static_cast<std::int64_t>(end)) return static_cast<int>(value);
  return bad_member(member, *found,
                    end == 0 ? "none, because the list is empty" : fmt::format("0 to {}", end - 1));
}

// The next number of the sequence `state`, below `end`.
int drawn(std::uint64_t& state, std::size_t end) {
  state += kSplitMixStep;
  return static_cast<int>(splitmix(state) % end);
}

// Draws an edit that changes the schedule: the round has transfers, and a redirected transfer gets
// a new rank.
Result<Json> draw(const Rounds& rounds, int ranks, const Json& edit) {
  const auto seed = edit.find("seed");
  if (seed == edit.end() || !seed->is_number_unsigned()) {
    return bad_member("seed", seed == edit.end() ? Json() : *seed, "whole numbers, not negative");
  }
  std::vector<int> busy;
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    if (!rounds[k].empty()) busy.push_back(static_cast<int>(k));
  }
  if (busy.empty()) return invalid_argument("the schedule has no transfer to change");
  std::uint64_t state = splitmix(seed->get<std::uint64_t>() + 1);
  const int round = busy[static_cast<std::size_t>(drawn(state, busy.size()))];
  const std::vector<Transfer>& transfers = rounds[static_cast<std::size_t>(round)];
  const int transfer = drawn(state, transfers.size());
  constexpr std::array<const char*, 4> kWays = {"delete", "double", "redirect", "move"};
  const std::size_t ways = busy.size() > 1 ? 4 : ranks > 2 ? 3 : 2;
  Json out = {{"do", kWays[static_cast<std::size_t>(drawn(state, ways))]},
              {"round", round},
              {"transfer", transfer}};
  if (out["do"] == "redirect") {
    const Transfer& t = transfers[static_cast<std::size_t>(transfer)];
    int to = drawn(state, static_cast<std::size_t>(ranks));
    while (ranks > 2 && (to == t.from.front() || to == t.to.front())) to = (to + 1) % ranks;
    out["to"] = to;
  }
  if (out["do"] == "move") {
    int into = round;
    while (into == round) into = busy[static_cast<std::size_t>(drawn(state, busy.size()))];
    out["into"] = into;
  }
  return out;
}

Status edit_once(Rounds& rounds, int ranks, const Json& edit) {
  const auto round = index_of(edit, "round", rounds.size());
  if (!round.ok()) return round.status();
  std::vector<Transfer>& transfers = rounds[static_cast<std::size_t>(*round)];
  const auto index = index_of(edit, "transfer", transfers.size());
  if (!index.ok()) return index.status();
  const auto at = transfers.begin() + *index;
  const std::string what = edit.value("do", "");
  if (what == "delete") {
    transfers.erase(at);
  } else if (what == "double") {
    transfers.insert(at + 1, Transfer(*at));
  } else if (what == "redirect") {
    const auto to = index_of(edit, "to", static_cast<std::size_t>(ranks));
    if (!to.ok()) return to.status();
    at->to = RankSet(*to);
  } else if (what == "move") {
    const auto into = index_of(edit, "into", rounds.size());
    if (!into.ok()) return into.status();
    Transfer moved = std::move(*at);
    transfers.erase(at);
    rounds[static_cast<std::size_t>(*into)].push_back(std::move(moved));
  } else {
    return bad_member("do", edit.contains("do") ? edit["do"] : Json(),
                      "delete, redirect, double, move and chance");
  }
  return {};
}

}  // namespace

Result<Schedule> edited(const Schedule& schedule, const Json& edits, Json& done) {
  done = Json::array();
  if (!edits.is_array()) return bad_member("edits", edits, "lists of objects");
  auto rounds = std::make_shared<Rounds>(static_cast<std::size_t>(schedule.rounds));
  std::size_t count = 0;
  for (int k = 0; k < schedule.rounds && count <= kMostEditedTransfers; ++k) {
    for_each_transfer(schedule, k, [&](const Transfer& t) {
      if (++count <= kMostEditedTransfers) (*rounds)[static_cast<std::size_t>(k)].push_back(t);
    });
  }
  if (count > kMostEditedTransfers) {
    return invalid_argument(
        fmt::format("the schedule has more than {} transfers, too many to edit; fewer ranks are "
                    "needed",
                    kMostEditedTransfers));
  }
  for (const Json& asked : edits) {
    if (!asked.is_object()) return bad_member("edits", asked, "lists of objects");
    Json edit = asked;
    if (asked.contains("do") && asked["do"] == "chance") {
      auto found = draw(*rounds, schedule.ranks, asked);
      if (!found.ok()) return found.status();
      edit = std::move(*found);
    }
    if (Status status = edit_once(*rounds, schedule.ranks, edit); !status.ok()) return status;
    done.push_back(std::move(edit));
  }
  Schedule out = schedule;
  out.round = [rounds](int k, Send send) {
    for (const Transfer& t : (*rounds)[static_cast<std::size_t>(k)]) send.exactly(t);
  };
  return out;
}

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

namespace {

constexpr int kMostRanks = 1 << 20;

Result<Question> question_member(const Json& request) {
  const auto found = request.find("question");
  if (found == request.end()) return invalid_argument("question is missing");
  return read_question(*found);
}

Json networks_json(int ranks) {
  Json out = Json::array();
  for (const Regime& regime : regimes()) {
    Json& one = out.emplace_back(Json{{"name", regime.name}, {"source", regime.source}});
    if (const auto wired = wired_for(regime.fabric, ranks); wired.ok()) {
      one["words"] = describe(*wired);
      one["ports"] = wired->ports;
      one["group"] = wired->group;
      one["wiring"] = name_of(wired->wiring.kind);
    }
  }
  return out;
}

Json parameters_json() {
  Json out = Json::array();
  for (const Parameter& row : parameters()) {
    out.push_back({{"name", row.name},
                   {"letter", row.letter},
                   {"help", row.help},
                   {"argument", row.argument},
                   {"allowed", row.allowed()},
                   {"in_request", row.in_request}});
  }
  return out;
}

Status ask_catalogue(const Json& request, Json& out, Numbers&) {
  constexpr int kShown = 16;  // ranks of the shown networks if the request names none
  int ranks = 0;
  if (Status s = read_number(request, "ranks", 1, kMostRanks, ranks); !s.ok()) return s;
  Params params;
  params.ranks = std::max(ranks, 1);
  params = resolved(params);
  Json& collectives = out["collectives"] = Json::array();
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    collectives.push_back({{"name", name_of(collective)},
                           {"reduces", reduces(collective)},
                           {"rooted", has_root(collective)}});
  }
  Json& lines = out["algorithms"] = Json::array();
  for (const Algorithm& entry : catalogue()) {
    Json one = ranks > 0 ? algorithm_json(entry, params) : algorithm_json(entry);
    for (const char* formula : {"rounds", "sent", "received", "send_ports", "receive_ports"}) {
      one["readable"][formula] = readable_formula(one[formula].get<std::string>());
    }
    lines.push_back(std::move(one));
  }
  out["networks"] = networks_json(ranks > 0 ? ranks : kShown);
  out["parameters"] = parameters_json();
  Json& violations = out["violations"] = Json::array();
  for (int kind = 0; kind < kViolationKinds; ++kind) {
    const auto each = static_cast<ViolationKind>(kind);
    violations.push_back({{"kind", name_of(each)}, {"rule", rule_of(each)}});
  }
  return {};
}

// The answer in the form of a batch, with the question in words and the check of the ports.
Json described(const Answer& answer) {
  Json out = to_json(answer, true);
  out["words"] = describe(answer.question);
  out["budget"] = port_budget(out["ports_needed"].get<int>(), answer.question.fabric.ports);
  return out;
}

Status ask_simulate(const Json& request, Json& out, Numbers&) {
  auto question = question_member(request);
  if (!question.ok()) return question.status();
  const auto prepared = prepare(*question);
  if (!prepared.ok()) return prepared.status();
  const auto made_of = coefficients(*prepared, question->fabric, question->options);
  if (!made_of.ok()) return made_of.status();
  const auto answered = answer(std::move(*question));
  if (!answered.ok()) return answered.status();
  out = described(*answered);
  out["alphas"] = made_of->alpha.to_double();
  out["alphas_text"] = made_of->alpha.to_string();
  out["betas"] = made_of->beta.to_double();
  out["betas_text"] = made_of->beta.to_string();
  if (made_of->hop) out["hops_text"] = made_of->hop->to_string();
  // busbw's lower bound of the bytes of the busiest rank.
  const Question& asked = answered->question;
  out["least_bytes"] = bus_factor(asked.algorithm->collective, answered->params.ranks) *
                       static_cast<double>(asked.bytes);
  out["at"] = algorithm_json(*answered->question.algorithm, answered->params)["at"];
  return {};
}

Status ask_messages(const Json& request, Json& out, Numbers& numbers) {
  auto question = question_member(request);
  if (!question.ok()) return question.status();
  if (question->fidelity != Fidelity::eq1) {
    return invalid_argument(fmt::format("fidelity is \"{}\"; allowed with messages is \"eq1\"",
                                        name_of(question->fidelity)));
  }
  question->options.trace = true;
  const auto answered = answer(std::move(*question));
  if (!answered.ok()) return answered.status();
  const Simulation& result = answered->result;
  const Fabric& fabric = answered->question.fabric;
  constexpr std::size_t kMostMessages = std::size_t{1} << 18;
  if (result.trace.size() > kMostMessages) {
    return invalid_argument(fmt::format("{} messages are too many to show; at most {} are allowed",
                                        result.trace.size(), kMostMessages));
  }
  const auto routes = Routes::make(fabric.wiring, fabric.places_among(answered->params.ranks));
  if (!routes.ok()) return routes.status();
  out = described(*answered);
  out["columns"] = {"round", "transfer",  "from",         "to",   "bytes", "start",
                    "end",   "send_port", "receive_port", "hops", "far"};
  const auto seconds = [&](Ticks ticks) { return nearest_double(ticks, result.ticks_per_second); };
  for (const TracedMessage& m : result.trace) {
    numbers.insert(
        numbers.end(),
        {static_cast<double>(m.round), static_cast<double>(m.transfer), static_cast<double>(m.from),
         static_cast<double>(m.to), bytes_of(m.weight, result.weight_per_byte), seconds(m.start),
         seconds(m.end), static_cast<double>(m.send_port), static_cast<double>(m.receive_port),
         static_cast<double>(routes->hops(fabric.place_of(m.from), fabric.place_of(m.to))),
         static_cast<double>(fabric.kind_between(m.from, m.to) % 2)});
  }
  return {};
}

Status ask_play(const Json& request, Json& out, Numbers& numbers) {
  auto question = question_member(request);
  if (!question.ok()) return question.status();
  auto prepared = prepare(*question);
  if (!prepared.ok()) return prepared.status();
  Json done = Json::array();
  if (request.contains("edits")) {
    auto changed = edited(prepared->schedule, request["edits"], done);
    if (!changed.ok()) return changed.status();
    prepared->schedule = std::move(*changed);
  }
  out = question_json(*question, prepared->params);
  auto states = states_of(prepared->schedule, prepared->goal, out);
  if (!states.ok()) return states.status();
  numbers = std::move(*states);
  out["edits"] = std::move(done);
  Json& proof = out["proof"] = Json::object();
  const auto violation = verify(prepared->schedule, prepared->goal);
  proof["proved"] = !violation.has_value();
  if (violation) {
    proof["kind"] = name_of(violation->kind);
    proof["round"] = violation->round;
    proof["rank"] = violation->rank;
    proof["block"] = violation->block;
    proof["text"] = violation->text;
  }
  return {};
}

struct Asked {
  std::string_view name;
  Status (*answer)(const Json& request, Json& out, Numbers& numbers);
};
constexpr std::array<Asked, 9> kAsked = {{{"catalogue", ask_catalogue},
                                          {"simulate", ask_simulate},
                                          {"messages", ask_messages},
                                          {"curve", ask_curve},
                                          {"play", ask_play},
                                          {"plan", ask_plan},
                                          {"buckets", ask_buckets},
                                          {"check", ask_check},
                                          {"formula", ask_formula}}};

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
PageAnswer refused(std::string_view why) { return {text_of({{"error", why}}), {}}; }

Status ask(const Json& request, Json& out, Numbers& numbers) {
  std::vector<std::string_view> names;
  const Json wanted = request.contains("ask") ? request["ask"] : Json();
  for (const Asked& one : kAsked) {
    if (wanted == one.name) return one.answer(request, out, numbers);
    names.push_back(one.name);
  }
  return bad_member("ask", wanted, join(names));
}

}  // namespace

PageAnswer answer_page(std::string_view request) {
  const auto read = read_json<Json>("the request", request);
  if (!read.ok()) return refused(read.status().text());
  if (!read->is_object()) return refused("the request must be a JSON object");
  try {
    Json out = Json::object();
    Numbers numbers;
    if (Status status = ask(*read, out, numbers); !status.ok()) return refused(status.text());
    return {text_of(out), std::move(numbers)};
  } catch (const std::exception& error) {
    return refused(error.what());
  }
}

}  // namespace rankine::tools

// The engine of the page's JavaScript, through WebAssembly (third_party/page). For one thread. The
// answer is UTF-8 with a final zero; it and its numbers stay valid until the next call.
static rankine::tools::PageAnswer& last_answer() {
  static rankine::tools::PageAnswer answer;
  return answer;
}

extern "C" {

const char* rankine_answer(const char* request) {
  last_answer() = rankine::tools::answer_page(request == nullptr ? "" : request);
  return last_answer().json.c_str();
}
const double* rankine_numbers() { return last_answer().numbers.data(); }
std::size_t rankine_number_count() { return last_answer().numbers.size(); }

}  // extern "C"
