#include "engine/tools/page/answers.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <exception>
#include <utility>

#include "engine/base/json_text.h"
#include "engine/network/predict.h"
#include "engine/read/verify.h"
#include "engine/tools/algorithm_json.h"
#include "engine/tools/answer.h"
#include "engine/tools/coefficients.h"
#include "engine/tools/lesson/judge.h"
#include "engine/tools/metrics.h"
#include "engine/tools/network_text.h"
#include "engine/tools/page/curves.h"
#include "engine/tools/page/edits.h"
#include "engine/tools/page/plans.h"
#include "engine/tools/page/states.h"
#include "engine/tools/page/tasks.h"
#include "engine/tools/port_budget.h"
#include "engine/tools/question_json.h"
#include "engine/tools/readable_formula.h"

namespace rankine::tools {
namespace {

using Numbers = std::vector<double>;

constexpr int kMostRanks = 1 << 20;

// A member that is there, as a whole number within lowest .. highest.
Result<int> whole_member(const Json& request, const char* member, int lowest, int highest,
                         int otherwise) {
  const auto found = request.find(member);
  if (found == request.end()) return otherwise;
  if (found->is_number_integer() && *found >= lowest && *found <= highest) return found->get<int>();
  return bad_member(member, *found, fmt::format("whole numbers from {} to {}", lowest, highest));
}

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
  constexpr int kShown = 16;  // of networks, where nobody says how many ranks
  const auto ranks = whole_member(request, "ranks", 1, kMostRanks, 0);
  if (!ranks.ok()) return ranks.status();
  Params params;
  params.ranks = *ranks > 0 ? *ranks : 1;
  params = resolved(params);
  Json& collectives = out["collectives"] = Json::array();
  for (const Collective collective : all_collectives()) {
    if (algorithm_names(collective).empty()) continue;
    collectives.push_back({{"name", name_of(collective)},
                           {"reduces", reduces(collective)},
                           {"rooted", has_root(collective)}});
  }
  Json& lines = out["algorithms"] = Json::array();
  for (const Algorithm& line : catalogue()) {
    Json one = *ranks > 0 ? algorithm_json(line, params) : algorithm_json(line);
    for (const char* formula : {"rounds", "sent", "received", "send_ports", "receive_ports"}) {
      one["readable"][formula] = readable_formula(one[formula].get<std::string>());
    }
    lines.push_back(std::move(one));
  }
  out["networks"] = networks_json(*ranks > 0 ? *ranks : kShown);
  out["parameters"] = parameters_json();
  Json& violations = out["violations"] = Json::array();
  for (int kind = 0; kind < kViolationKinds; ++kind) {
    const auto each = static_cast<ViolationKind>(kind);
    violations.push_back({{"kind", name_of(each)}, {"rule", rule_of(each)}});
  }
  return {};
}

// As a batch has it, and in words what was asked and whether the ports suffice.
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
  // What busbw says that some rank has to move at least.
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
  std::string names;
  const Json wanted = request.contains("ask") ? request["ask"] : Json();
  for (const Asked& one : kAsked) {
    if (wanted == one.name) return one.answer(request, out, numbers);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", one.name);
  }
  return bad_member("ask", wanted, names);
}

}  // namespace

PageAnswer answer_page(std::string_view request) {
  const auto read = read_json<Json>("the request", request);
  if (!read.ok()) return refused(read.status().text());
  if (!read->is_object()) return refused("the request is no object");
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
