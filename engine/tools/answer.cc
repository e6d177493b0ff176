#include "engine/tools/answer.h"

#include <algorithm>
#include <limits>

#include "engine/base/json_text.h"
#include "engine/read/flow.h"
#include "engine/tools/memory.h"
#include "engine/tools/metrics.h"
#include "engine/tools/port_budget.h"
#include "engine/tools/question_json.h"

namespace rankine::tools {
namespace {

// Bytes as a whole number where they are one.
Json bytes_json(std::int64_t weight, std::int64_t per_byte) {
  if (weight % per_byte == 0) return weight / per_byte;
  return bytes_of(weight, per_byte);
}

Json load_json(Int128 load, std::int64_t per_byte) {
  const Int128 per = Int128{per_byte} * 2;
  if (load % per == 0 && load / per <= std::numeric_limits<std::int64_t>::max()) {
    return static_cast<std::int64_t>(load / per);
  }
  return bytes_of_load(load, per_byte);
}

Result<std::optional<CarriedTimes>> carried_by(const Prepared& prepared, const Question& question) {
  const auto carry = [&](auto simulator) {
    return simulator(prepared.schedule, prepared.goal, question.fabric, question.bytes,
                     question.options);
  };
  std::optional<CarriedTimes> out;
  switch (question.fidelity) {
    case Fidelity::eq1:
      return out;
    case Fidelity::flow: {
      auto times = carry([](const auto&... of) { return simulate_flow(of...); });
      if (!times.ok()) return times.status();
      out = {times->seconds, std::move(times->round_end)};
      return out;
    }
    case Fidelity::packet: {
      const auto times = carry([](const auto&... of) { return simulate_packets(of...); });
      if (!times.ok()) return times.status();
      out = {times->seconds, {}};
      for (const Ticks end : times->round_end) {
        out->round_end.push_back(nearest_double(end, times->ticks_per_second));
      }
      return out;
    }
  }
  return out;
}

BatchAnswer refused(const Json& request, std::size_t number, std::string_view error) {
  Json line = request.is_object() ? request : Json::object();
  line["line"] = number;
  line["error"] = error;
  // Texts of requests may hold anything; what is no UTF-8 must not make the answer fail.
  return {line.dump(-1, ' ', false, Json::error_handler_t::replace), false};
}

}  // namespace

double Answer::algbw() const {
  return seconds() > 0 ? static_cast<double>(question.bytes) / seconds() : 0;
}
double Answer::busbw() const {
  return algbw() * bus_factor(question.algorithm->collective, params.ranks);
}
std::optional<double> Answer::eta() const { return eta_of(busbw(), peak_of(question.fabric)); }

const RoundTraffic& busiest_round(const Simulation& r) {
  return *std::max_element(
      r.traffic.begin(), r.traffic.end(),
      [](const RoundTraffic& a, const RoundTraffic& b) { return a.load < b.load; });
}
double congestion_max(const Simulation& r) {
  double most = 0;
  for (const RoundTraffic& round : r.traffic) most = std::max(most, round.congestion());
  return most;
}
int hops_max(const Simulation& r) {
  int most = 0;
  for (const RoundTraffic& round : r.traffic) most = std::max(most, round.hops);
  return most;
}

double bytes_of_load(Int128 load, std::int64_t per_byte) {
  return nearest_double(load, Int128{per_byte} * 2);
}
std::int64_t greatest(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

Result<Answer> answer(Question question) {
  // As it was at the first question: asking takes longer than a small answer.
  static const std::uint64_t memory = available_memory().bytes;
  if (question.options.most_bytes == 0) question.options.most_bytes = memory;
  auto prepared = prepare(question);
  if (!prepared.ok()) return prepared.status();
  auto result = simulate(prepared->schedule, prepared->goal, question.fabric, question.bytes,
                         question.options);
  if (!result.ok()) return result.status();
  auto carried = carried_by(*prepared, question);
  if (!carried.ok()) return carried.status();
  return Answer{std::move(question), prepared->params, std::move(*result), std::move(*carried)};
}

void add_result(const Answer& a, Json& line) {
  const Simulation& r = a.result;
  line["time"] = a.seconds();
  line["busbw"] = a.busbw();
  if (const auto eta = a.eta()) line["eta"] = *eta;
  line["rounds"] = r.rounds;
  line["messages"] = r.messages;
  line["sent_max"] = bytes_json(greatest(r.sent), r.weight_per_byte);
  line["received_max"] = bytes_json(greatest(r.received), r.weight_per_byte);
  line["reduced_max"] = bytes_json(greatest(r.reduced), r.weight_per_byte);
  Json& sent = line["sent"] = Json::array();
  for (const std::int64_t weight : r.sent) sent.push_back(bytes_json(weight, r.weight_per_byte));
  line["partners_max"] = r.partners_max;
  line["targets_max"] = r.targets_max;
  line["sources_max"] = r.sources_max;
  line["ports_needed"] = r.ports_needed();
  line["serialises"] = rounds_serialise(r.ports_needed(), a.question.fabric.ports);
  if (r.traffic.empty()) return;
  line["link_max"] = load_json(busiest_round(r).load, r.weight_per_byte);
  line["congestion_max"] = congestion_max(r);
  line["hops_max"] = hops_max(r);
}

Json to_json(const Answer& a, bool rounds) {
  Json out = question_json(a.question, a.params);
  add_result(a, out);
  if (rounds) {
    Json& ends = out["round_end"] = Json::array();
    for (std::size_t k = 0; k < a.result.round_end.size(); ++k) ends.push_back(a.round_end(k));
    for (const RoundTraffic& round : a.result.traffic) {
      out["round_link"].push_back(load_json(round.load, a.result.weight_per_byte));
      out["round_congestion"].push_back(round.congestion());
      out["round_hops"].push_back(round.hops);
    }
  }
  return out;
}

BatchAnswer answer_request(std::string_view line, std::size_t number) {
  const auto read = read_json<Json>("the request", line);
  if (!read.ok()) return refused({}, number, read.status().text());
  Json request = *read;
  try {
    auto question = read_question(request);
    if (!question.ok()) return refused(request, number, question.status().text());
    auto answered = answer(std::move(*question));
    if (!answered.ok()) return refused(request, number, answered.status().text());
    if (request.contains("segments")) request["segments"] = answered->params.segments;
    add_result(*answered, request);
    return {request.dump(), true};
  } catch (const std::exception& error) {
    return refused(request, number, error.what());
  }
}

}  // namespace rankine::tools
