#include "engine/tools/simulate.h"

#include <fmt/format.h>
#include <tbb/info.h>
#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <vector>

#include "algorithms/torus.h"
#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/network/network_file.h"
#include "engine/tools/line_reader.h"
#include "engine/tools/metrics.h"
#include "engine/tools/question.h"
#include "engine/tools/table.h"
#include "engine/tools/text.h"

namespace rankine::tools {
namespace {

using Json = nlohmann::ordered_json;

struct SimulateArguments {
  QuestionArguments question;
  Fidelity fidelity = Fidelity::eq1;
  bool ideal_blocks = false, rounds = false, json = false;
  std::string batch;  // a file, or "-"
};

struct Answer {
  Question question;
  Params params;
  Simulation result;
  std::optional<FlowTimes> flow{};  // of that fidelity; it replaces the times in `result`

  double seconds() const { return flow ? flow->seconds : result.seconds; }
  double round_end(std::size_t k) const {
    return flow ? flow->round_end[k] : nearest_double(result.round_end[k], result.ticks_per_second);
  }
};

Result<Answer> answer(Question question) {
  auto prepared = prepare(question);
  if (!prepared.ok()) return prepared.status();
  auto result = simulate(prepared->schedule, prepared->goal, question.fabric, question.bytes,
                         question.options);
  if (!result.ok()) return result.status();
  std::optional<FlowTimes> flow;
  if (question.fidelity == Fidelity::flow) {
    auto flown = simulate_flow(prepared->schedule, prepared->goal, question.fabric, question.bytes,
                               question.options);
    if (!flown.ok()) return flown.status();
    flow = std::move(*flown);
  }
  return Answer{std::move(question), prepared->params, std::move(*result), std::move(flow)};
}

// Bytes as a whole number where they are one.
Json bytes_json(std::int64_t weight, std::int64_t per_byte) {
  if (weight % per_byte == 0) return weight / per_byte;
  return bytes_of(weight, per_byte);
}

// Where messages share links: the round whose busiest link carries most, and the most of all
// rounds.
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

// Loads are in halves of weights.
double bytes_of_load(Int128 load, std::int64_t per_byte) {
  return nearest_double(load, Int128{per_byte} * 2);
}
Json load_json(Int128 load, std::int64_t per_byte) {
  const Int128 per = Int128{per_byte} * 2;
  if (load % per == 0 && load / per <= std::numeric_limits<std::int64_t>::max()) {
    return static_cast<std::int64_t>(load / per);
  }
  return bytes_of_load(load, per_byte);
}

std::int64_t greatest(const std::vector<std::int64_t>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

void add_result(const Answer& a, Json& line) {
  const Simulation& r = a.result;
  line["time"] = a.seconds();
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
  if (r.traffic.empty()) return;
  line["link_max"] = load_json(busiest_round(r).load, r.weight_per_byte);
  line["congestion_max"] = congestion_max(r);
  line["hops_max"] = hops_max(r);
}

// --- Requests
// -------------------------------------------------------------------------------------

constexpr std::string_view kMembers =
    "collective, algorithm, ranks, bytes, alpha, beta, bandwidth, ports, multicast, alu, "
    "alpha_switch, wiring, dims, routing, hop, network, segments, root, sync, fidelity, lower, "
    "ideal_blocks, params and id";
constexpr std::string_view kParams = "group, aggregation, peer, dims, skips and levels";

Status bad(std::string_view member, const Json& value, std::string_view allowed) {
  return invalid_argument(fmt::format("{} is {}; allowed are {}", member, value.dump(), allowed));
}

Status take_whole(std::string_view member, const Json& value, int lowest, int highest, int& into) {
  const bool whole = value.is_number_integer();
  const auto number = whole ? value.get<std::int64_t>() : -1;
  if (!whole || number < lowest || number > highest) {
    return bad(member, value, fmt::format("whole numbers from {} to {}", lowest, highest));
  }
  into = static_cast<int>(number);
  return {};
}

Status take_flag(std::string_view member, const Json& value, bool& into) {
  if (!value.is_boolean()) return bad(member, value, "true and false");
  into = value.get<bool>();
  return {};
}

Status take_bytes(const Json& value, std::uint64_t& into) {
  constexpr std::string_view kAllowed =
      "whole numbers of bytes, not negative, and texts such as \"64K\"";
  if (value.is_number_unsigned()) {
    into = value.get<std::uint64_t>();
    return {};
  }
  if (value.is_number_float()) {
    const double number = value.get<double>();
    constexpr double kMost = 9.0e15;  // whole doubles are exact up to here
    if (number >= 0 && number <= kMost && number == std::floor(number)) {
      into = static_cast<std::uint64_t>(number);
      return {};
    }
  }
  if (!value.is_string()) return bad("bytes", value, kAllowed);
  const auto size = parse_size("bytes", value.get<std::string>());
  if (size.ok()) into = *size;
  return size.status();
}

Status take_params(const Json& value, Params& params) {
  if (!value.is_object()) {
    return bad("params", value, fmt::format("objects with the members {}", kParams));
  }
  for (const auto& [name, part] : value.items()) {
    Status status;
    constexpr int kMany = 1 << 14;
    if (name == "group") {
      status = take_whole("params.group", part, 0, kMany, params.group);
    } else if (name == "aggregation") {
      status = take_whole("params.aggregation", part, 0, kMany, params.aggregation);
    } else if (name == "peer") {
      status = take_whole("params.peer", part, 0, kMany, params.peer);
    } else if (name == "dims") {
      if (!part.is_string()) {
        return bad("params.dims", part, "texts such as \"4x4\" and \"3x3x3\"");
      }
      auto dims = parse_dims("params.dims", part.get<std::string>());
      if (dims.ok()) params.dims = std::move(*dims);
      status = dims.status();
    } else if (name == "levels") {
      const auto is_whole = [](const Json& size) { return size.is_number_integer(); };
      if (!part.is_array() || !std::all_of(part.begin(), part.end(), is_whole)) {
        return bad("params.levels", part, "arrays of whole numbers such as [4, 16]");
      }
      params.levels = part.get<std::vector<int>>();
    } else if (name == "skips") {
      continue;  // take_skips()
    } else {
      status =
          invalid_argument(fmt::format("params has a member '{}'; allowed are {}", name, kParams));
    }
    if (!status.ok()) return status;
  }
  return {};
}

// A scheme's name, or a list; which need the number of ranks.
Status take_skips(const Json& request, Params& params) {
  if (!request.contains("params") || !request["params"].contains("skips")) return {};
  const Json& value = request["params"]["skips"];
  const auto is_whole = [](const Json& skip) { return skip.is_number_integer(); };
  if (value.is_array() && std::all_of(value.begin(), value.end(), is_whole)) {
    params.skips = value.get<std::vector<int>>();
    return {};
  }
  if (!value.is_string()) return bad("params.skips", value, "texts and arrays of whole numbers");
  auto skips = skips_for("params.skips", value.get<std::string>(), params.ranks);
  if (skips.ok()) params.skips = std::move(*skips);
  return skips.status();
}

Status take_network(const Json& value, Fabric& fabric) {
  if (value.is_string()) {
    const auto found = find_network("network", value.get<std::string>());
    if (found.ok()) fabric = *found;
    return found.status();
  }
  const auto read = read_network(nlohmann::json(value), "custom");
  if (read.ok()) fabric = *read;
  return read.status();
}

Status take_member(const std::string& name, const Json& value, Question& question) {
  constexpr int kMany = 1 << 14;
  Params& params = question.params;
  if (name == "collective" || name == "algorithm" || name == "network" || name == "id") return {};
  if (name == "ranks") return take_whole(name, value, 1, kMany, params.ranks);
  if (name == "bytes") return take_bytes(value, question.bytes);
  if (name == "root") return take_whole(name, value, 0, kMany - 1, params.root);
  if (name == "params") return take_params(value, params);
  if (name == "lower") return take_flag(name, value, question.lower);
  if (name == "ideal_blocks") return take_flag(name, value, question.options.ideal_blocks);
  if (name == "segments") {
    if (value.is_string() && value.get<std::string>() == "auto") {
      params.segments = 0;
      return {};
    }
    Status status = take_whole(name, value, 1, kMany, params.segments);
    return status.ok() ? status : invalid_argument(status.text() + ", and \"auto\"");
  }
  if (name == "sync") {
    const auto sync = value.is_string() ? parse_sync(value.get<std::string>()) : std::nullopt;
    if (!sync) return bad(name, value, "\"dataflow\" and \"rounds\"");
    question.options.sync = *sync;
    return {};
  }
  if (name == "fidelity") {
    const auto fidelity =
        value.is_string() ? parse_fidelity(value.get<std::string>()) : std::nullopt;
    if (!fidelity) return bad(name, value, "\"eq1\" and \"flow\"");
    question.fidelity = *fidelity;
    return {};
  }
  if (name != "name" && name != "group" && name != "between") {
    const auto status = read_network_member(name, nlohmann::json(value), question.fabric);
    if (status) return *status;
  }
  return invalid_argument(
      fmt::format("the request has a member '{}'; allowed are {}", name, kMembers));
}

Result<Question> question_of(const Json& request) {
  if (!request.is_object()) {
    return invalid_argument(
        fmt::format("the request is {}; an object is needed", request.type_name()));
  }
  const auto text_of = [&request](const char* member) -> Result<std::string> {
    const auto found = request.find(member);
    if (found == request.end()) return invalid_argument(fmt::format("{} is missing", member));
    if (!found->is_string()) return bad(member, *found, "texts");
    return found->get<std::string>();
  };
  Question question;
  question.params.segments = 1;
  question.params.peer = kNoPeer;
  question.fabric = plain_regime().fabric;

  const auto collective_name = text_of("collective");
  if (!collective_name.ok()) return collective_name.status();
  const auto collective = read_collective("collective", *collective_name);
  if (!collective.ok()) return collective.status();
  const auto name = text_of("algorithm");
  if (!name.ok()) {
    return invalid_argument(fmt::format("{}; {} has {}", name.status().text(), name_of(*collective),
                                        algorithm_names(*collective)));
  }
  question.algorithm = find_algorithm(*collective, *name);
  if (question.algorithm == nullptr) {
    const auto lines = read_algorithms("algorithm", *name, *collective);
    if (!lines.ok()) return lines.status();
    if (lines->size() != 1) {
      return invalid_argument(fmt::format("algorithm is '{}'; one name is allowed, of {}", *name,
                                          algorithm_names(*collective)));
    }
    question.algorithm = lines->front();
  }
  for (const char* member : {"ranks", "bytes"}) {
    if (!request.contains(member)) return invalid_argument(fmt::format("{} is missing", member));
  }
  if (request.contains("beta") && request.contains("bandwidth")) {
    return invalid_argument("the request has bandwidth and beta; one of them is allowed");
  }
  // The network first: other members override it.
  if (const auto network = request.find("network"); network != request.end()) {
    Status status = take_network(*network, question.fabric);
    if (!status.ok()) return status;
  }
  for (const auto& [member, value] : request.items()) {
    Status status = take_member(member, value, question);
    if (!status.ok()) return status;
  }
  set_peer(question.params);
  if (Status status = take_skips(request, question.params); !status.ok()) return status;
  if (request.contains("wiring") && !request.contains("ports")) open_ports(question.fabric);
  Status wired = wire(question);
  if (!wired.ok()) return wired;
  return question;
}

BatchAnswer refused(const Json& request, std::size_t number, std::string_view error) {
  Json line = request.is_object() ? request : Json::object();
  line["line"] = number;
  line["error"] = error;
  // Texts of requests may hold anything; what is no UTF-8 must not make the answer fail.
  return {line.dump(-1, ' ', false, Json::error_handler_t::replace), false};
}

// --- From the command line
// ------------------------------------------------------------------------

Json to_json(const Answer& a, bool rounds) {
  const Fabric& fabric = a.question.fabric;
  const Algorithm& line = *a.question.algorithm;
  Json out = {{"collective", name_of(line.collective)},
              {"algorithm", line.name},
              {"ranks", a.params.ranks},
              {"bytes", a.question.bytes},
              {"network", fabric.name},
              {"alpha", fabric.link.alpha.to_double()},
              {"beta", fabric.link.beta.to_double()},
              {"ports", fabric.ports},
              {"wiring", name_of(fabric.wiring.kind)},
              {"segments", a.params.segments},
              {"root", a.params.root},
              {"sync", name_of(a.question.options.sync)},
              {"fidelity", name_of(a.question.fidelity)},
              {"ideal_blocks", a.question.options.ideal_blocks}};
  if (a.question.lower) out["lower"] = true;
  if (fabric.wiring.shares_links()) {
    out["hop"] = fabric.alpha_hop.to_double();
    if (!fabric.wiring.dims.empty()) out["dims"] = dims_text(fabric.wiring.dims);
    if (fabric.wiring.has_rings()) out["routing"] = name_of(fabric.wiring.routing);
  }
  Json& params = out["params"] = Json::object();
  if (line.takes("group")) params["group"] = a.params.group;
  if (line.takes("aggregation")) params["aggregation"] = a.params.aggregation;
  if (line.takes("dims")) params["dims"] = dims_text(a.params.dims);
  if (line.takes("skips")) params["skips"] = a.params.skips;
  if (line.takes("levels")) params["levels"] = a.params.levels;
  if (line.collective == Collective::send_recv) params["peer"] = a.params.peer;
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

void print(const std::vector<Answer>& answers, bool rounds, Console& console) {
  console.out << describe(answers.front().question) << "\n";
  if (answers.front().flow) {
    console.out << "fidelity flow: messages share links max-min fairly in continuous time\n";
  }
  console.out << "\n";
  std::vector<std::vector<std::string>> rows = {{"algorithm", "P", "time", "algbw", "busbw",
                                                 "rounds", "messages", "sent", "received",
                                                 "reduced", "partners", "ports"}};
  const bool shared = answers.front().question.fabric.wiring.shares_links();
  if (shared) rows.front().insert(rows.front().end(), {"link", "congestion", "hops"});
  for (const Answer& a : answers) {
    const Simulation& r = a.result;
    const double seconds = a.seconds();
    const double algbw = seconds > 0 ? static_cast<double>(a.question.bytes) / seconds * 1e-9 : 0;
    const auto size = [&r](const std::vector<std::int64_t>& weights) {
      return format_bytes(bytes_of(greatest(weights), r.weight_per_byte));
    };
    rows.push_back(
        {std::string(a.question.algorithm->name),
         a.question.algorithm->takes("segments") ? std::to_string(a.params.segments) : "-",
         format_duration(seconds), fmt::format("{:.2f}", algbw),
         fmt::format("{:.2f}",
                     algbw * bus_factor(a.question.algorithm->collective, a.params.ranks)),
         std::to_string(r.rounds), std::to_string(r.messages), size(r.sent), size(r.received),
         size(r.reduced), std::to_string(r.partners_max), std::to_string(r.ports_needed())});
    if (shared) {
      const bool none = r.traffic.empty();
      rows.back().push_back(
          none ? "-" : format_bytes(bytes_of_load(busiest_round(r).load, r.weight_per_byte)));
      rows.back().push_back(fmt::format("{:g}", congestion_max(r)));
      rows.back().push_back(std::to_string(hops_max(r)));
    }
  }
  console.out << columns(rows, "lrrrrrrrrrrrrrr")
              << "\nalgbw and busbw in GB/s; sent, received, reduced, partners and ports of the "
                 "busiest rank.\n"
              << (shared ? "link, congestion and hops: what the busiest link carries in a round, "
                           "in bytes and in messages of the\nround's largest size, and the links "
                           "of the longest route; of the worst round each.\n"
                         : "");
  if (!rounds) return;
  for (const Answer& a : answers) {
    std::vector<std::vector<std::string>> ends = {{"round", "ends at"}};
    if (shared) ends.front().insert(ends.front().end(), {"link", "congestion", "hops"});
    for (std::size_t k = 0; k < a.result.round_end.size(); ++k) {
      ends.push_back({std::to_string(k), format_duration(a.round_end(k))});
      if (!shared) continue;
      const RoundTraffic& round = a.result.traffic[k];
      ends.back().push_back(format_bytes(bytes_of_load(round.load, a.result.weight_per_byte)));
      ends.back().push_back(fmt::format("{:g}", round.congestion()));
      ends.back().push_back(std::to_string(round.hops));
    }
    console.out << "\n" << a.question.algorithm->name << "\n" << columns(ends, "rrrrr");
  }
}

Result<Fidelity> read_fidelity(std::string_view argument, std::string_view text) {
  if (const auto fidelity = parse_fidelity(text)) return *fidelity;
  constexpr std::string_view kNames[] = {"eq1", "flow"};
  return unknown_name(argument, text, kNames);
}

Result<Exit> run_batch(const std::string& file, Console& console) {
  std::size_t errors = 0;
  if (file == "-") {
    errors = answer_batch(std::cin, console.out);
  } else {
    std::ifstream in(file, std::ios::binary);
    if (!in) {
      return Status(Code::system, fmt::format("--batch is '{}', which cannot be read: {}", file,
                                              std::strerror(errno)));
    }
    errors = answer_batch(in, console.out);
  }
  if (errors > 0) {
    console.err << fmt::format(
        "rankine simulate: {} request{} could not be answered; see 'error'\n", errors,
        errors == 1 ? "" : "s");
  }
  return Exit::ok;
}

Result<Exit> run_simulate(const SimulateArguments& a, Console& console) {
  if (!a.batch.empty()) return run_batch(a.batch, console);
  if (!a.question.collective) {
    return invalid_argument("a collective is needed, or --batch; 'rankine list' shows all");
  }
  std::vector<std::string> notes;
  auto questions = questions_of(a.question, notes);
  if (!questions.ok()) return questions.status();
  const bool all = a.question.algorithms == "all";
  std::vector<Answer> answers;
  for (Question& question : *questions) {
    question.options.ideal_blocks = a.ideal_blocks;
    question.fidelity = a.fidelity;
    const std::string name(question.algorithm->name);
    auto answered = answer(std::move(question));
    if (answered.ok()) {
      answers.push_back(std::move(*answered));
    } else if (all) {
      notes.push_back(fmt::format("left out: {}: {}", name, answered.status().text()));
    } else {
      const std::string hint =
          answered.status().text().find("lower the schedule") == std::string::npos
              ? ""
              : "; --lower turns it into messages";
      return Status(answered.status().code(), answered.status().text() + hint);
    }
  }
  if (answers.empty()) return invalid_argument(notes.back());
  for (const std::string& note : notes) console.err << "rankine simulate: " << note << "\n";
  if (a.json) {
    for (const Answer& one : answers) console.out << to_json(one, a.rounds).dump() << "\n";
  } else {
    print(answers, a.rounds, console);
  }
  return Exit::ok;
}

}  // namespace

BatchAnswer answer_request(std::string_view line, std::size_t number) {
  const auto read = read_json<Json>("the request", line);
  if (!read.ok()) return refused({}, number, read.status().text());
  Json request = *read;
  try {
    auto question = question_of(request);
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

std::size_t answer_batch(std::istream& in, std::ostream& out) {
  constexpr std::size_t kAtOnce = 1024;
  // Enough that a long one holds up nobody but the writer.
  const auto in_flight = static_cast<std::size_t>(16 * tbb::info::default_concurrency());
  LineReader reader(in, kMostJsonBytes);
  std::size_t errors = 0;
  using Line = LineReader::Line;
  for (std::vector<Line> lines; !(lines = reader.next(kAtOnce)).empty();) {
    std::erase_if(lines, [](const Line& line) {
      return line.text.find_first_not_of(" \t\r") == std::string::npos;
    });
    std::size_t next = 0;
    // Whoever asks waits for the answer perhaps before it asks again, so each is flushed.
    tbb::parallel_pipeline(
        in_flight,
        tbb::make_filter<void, Line*>(tbb::filter_mode::serial_in_order,
                                      [&](tbb::flow_control& control) -> Line* {
                                        if (next < lines.size()) return &lines[next++];
                                        control.stop();
                                        return nullptr;
                                      }) &
            tbb::make_filter<Line*, BatchAnswer>(
                tbb::filter_mode::parallel,
                [](const Line* line) { return answer_request(line->text, line->number); }) &
            tbb::make_filter<BatchAnswer, void>(tbb::filter_mode::serial_in_order,
                                                [&](const BatchAnswer& answer) {
                                                  out << answer.line << '\n' << std::flush;
                                                  errors += answer.ok ? 0 : 1;
                                                }));
  }
  return errors;
}

Subcommand add_simulate(CLI::App& tool) {
  auto owned = std::make_shared<SimulateArguments>();
  SimulateArguments& a = *owned;
  CLI::App* app = tool.add_subcommand(
      "simulate", "how long algorithms take on a network of the alpha-beta model, exactly");
  add_algorithm_arguments(*app, a.question);
  add_model_arguments(*app, a.question);
  add_network_arguments(*app, a.question.network);
  add_argument(*app, "--fidelity", a.fidelity, read_fidelity, "NAME",
               "where messages share links: eq1, each pays for its busiest link's load of the "
               "round; or flow, they share links max-min fairly in continuous time (eq1)");
  app->add_flag("--ideal-blocks", a.ideal_blocks,
                "blocks of exactly M / B bytes, also where that is no whole number");
  app->add_flag("--rounds", a.rounds, "also when each round ends");
  app->add_flag("--json", a.json, "one line of JSON per algorithm");
  add_text(*app, "--batch", a.batch, "FILE",
           "answer requests, one JSON object per line; '-': standard input");
  app->footer(
      "Examples:\n"
      "  rankine simulate all_reduce --algo ring --ranks 8 --bytes 64M --alpha 1us "
      "--bandwidth 100GB/s\n"
      "  rankine simulate all_reduce --algo all --ranks 64 --bytes 1M --network scale_out "
      "--segments auto\n"
      "  rankine simulate broadcast --algo switch --ranks 8 --lower --json\n"
      "  rankine simulate --batch requests.jsonl\n"
      "Requests have collective, algorithm, ranks and bytes, and may have alpha (seconds), beta\n"
      "(seconds per byte) or bandwidth, ports, multicast, alu, alpha_switch, wiring, dims "
      "(\"4x4\"),\n"
      "routing, hop (seconds), network (a preset, a file or an object like one), segments (a "
      "number\n"
      "or \"auto\"), root, sync, fidelity, lower, ideal_blocks, id (anything) and params\n"
      "({group, aggregation, peer, dims, skips}).\n"
      "Each gives one line, in order: its own members, then time (seconds),\n"
      "rounds, messages, sent_max, received_max, reduced_max (bytes of the busiest rank), sent\n"
      "(bytes per rank), partners_max, targets_max, sources_max and ports_needed; where messages\n"
      "share links also link_max (bytes that the busiest one carries in a round), congestion_max\n"
      "(the same in messages of the round's largest size) and hops_max; or its members, line and\n"
      "error. Numbers are read by their shortest decimal text, exactly.\n"
      "Networks:\n" +
      describe_presets());
  return {app, [owned](Console& console) { return run_simulate(*owned, console); }};
}

}  // namespace rankine::tools
