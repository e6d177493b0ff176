#include "engine/cli/question.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include "algorithms/schedule/combine.h"
#include "algorithms/torus.h"
#include "engine/base/json_text.h"
#include "engine/base/units.h"
#include "engine/cli/text.h"
#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "engine/network/predict.h"
#include "engine/read/flow.h"

#ifdef __EMSCRIPTEN__  // the page has no files
#include <emscripten/heap.h>
#endif

namespace rankine::tools {
namespace {

[[maybe_unused]] std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream stream(file);
  std::uint64_t value = 0;
  if (!(stream >> value)) return std::nullopt;  // absent, or "max"
  return value;
}

// The number behind a name at the beginning of a line.
[[maybe_unused]] std::optional<std::uint64_t> field_in(const std::string& file,
                                                       std::string_view field) {
  std::ifstream stream(file);
  std::string name;
  std::uint64_t value = 0;
  for (std::string rest; stream >> name >> value; std::getline(stream, rest)) {
    if (name == field) return value;
  }
  return std::nullopt;
}

[[maybe_unused]] std::optional<std::uint64_t> in_bytes(std::optional<std::uint64_t> kib) {
  if (kib) *kib *= 1024;
  return kib;
}

}  // namespace

AvailableMemory available_memory([[maybe_unused]] const std::string& root) {
#ifdef __EMSCRIPTEN__
  return {emscripten_get_heap_max(), "the page's heap"};
#else
  AvailableMemory least{static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()),
                        "unknown"};
  const auto consider = [&](std::optional<std::uint64_t> bytes, std::string why) {
    if (bytes && *bytes < least.bytes) least = {*bytes, std::move(why)};
  };
  consider(in_bytes(field_in(root + "/proc/meminfo", "MemAvailable:")),
           "MemAvailable of /proc/meminfo");
  const auto cgroup = [&](const std::string& folder, const char* limit, const char* usage) {
    const auto most = number_in(root + folder + limit), used = number_in(root + folder + usage);
    if (!most) return;
    // The kernel counts files that were not read lately as used, but gives them up first.
    const std::uint64_t taken = used.value_or(0);
    const std::uint64_t files =
        std::min(taken, field_in(root + folder + "memory.stat", "inactive_file").value_or(0));
    const std::uint64_t kept = taken - files;
    consider(*most > kept ? *most - kept : 0, "the limit in " + folder + limit);
  };
  cgroup("/sys/fs/cgroup/", "memory.max", "memory.current");
  cgroup("/sys/fs/cgroup/memory/", "memory.limit_in_bytes", "memory.usage_in_bytes");
  return least;
#endif
}

Status check_memory(std::size_t needed, std::string_view what, std::string_view who,
                    std::size_t spare) {
  const AvailableMemory available = available_memory();
  if (spare <= available.bytes && needed <= available.bytes - spare) return {};
  return {Code::out_of_memory,
          fmt::format("{} must have {} of {}; available are {} ({})", who, format_bytes(needed),
                      what, format_bytes(available.bytes), available.why)};
}

std::string describe(const Fabric& fabric) {
  std::string network = fmt::format(
      "{}, {}, {}", fabric.ports == 0 ? "a port per link" : counted(fabric.ports, "port"),
      format_duration(fabric.link.latency().to_double()), format_bandwidth(fabric.link.per_byte()));
  if (fabric.two_level()) {
    network += fmt::format("; {}, {} between groups of {}",
                           format_duration(fabric.between.latency().to_double()),
                           format_bandwidth(fabric.between.per_byte()), fabric.group);
  }
  if (const std::string wiring = describe_wiring(fabric); !wiring.empty()) {
    network += "; " + wiring;
  }
  if (fabric.multicast || fabric.alu) {
    network += fmt::format("; {} in the switch, {} per hop",
                           fabric.multicast && fabric.alu ? "multicast and reduction"
                           : fabric.multicast             ? "multicast"
                                                          : "reduction",
                           format_duration(fabric.alpha_switch.to_double()));
  }
  if (fabric.permute) network += "; a switch that permutes";
  if (!(fabric.gamma == 0)) {
    network += fmt::format("; {} per byte added", format_duration(fabric.gamma.to_double()));
  }
  if (!fabric.places.empty()) {
    network += fmt::format("; {} at {}", counted(fabric.places.size(), "rank"),
                           counted(fabric.size, "place"));
  }
  if (!fabric.odd.empty()) {
    network += fmt::format("; {}", counted(fabric.odd.size(), "odd link"));
  }
  return fmt::format("{} ({})", fabric.name, network);
}

std::string describe_wiring(const Fabric& fabric) {
  const Wiring& wiring = fabric.wiring;
  std::string text;
  switch (wiring.kind) {
    case WiringKind::full:
      break;
    case WiringKind::ring:
    case WiringKind::hypercube:
      text = name_of(wiring.kind);
      break;
    case WiringKind::torus:
    case WiringKind::mesh:
      text = name_of(wiring.kind);
      if (!wiring.dims.empty()) text += " " + dims_text(wiring.dims);
      break;
    case WiringKind::two_level:
      text = "one link up and down per group";
      break;
    case WiringKind::fat_tree:
      text =
          fmt::format("{}, a link up and down per group to each", counted(wiring.spines, "spine"));
      break;
  }
  if (wiring.routing == Routing::one_way) text += ", one way";
  if (!(fabric.alpha_hop == 0)) {
    text += fmt::format("{}{} per hop", text.empty() ? "" : ", ",
                        format_duration(fabric.alpha_hop.to_double()));
  }
  return text;
}

Result<Prepared> prepare(const Question& question) {
  Prepared out;
  out.params = question.params;
  if (question.params.segments == 0) {
    SimulateOptions options = question.options;
    options.lower = question.lower;
    const auto best = best_segments(*question.algorithm, question.params, question.fabric,
                                    question.bytes, options);
    if (!best.ok()) return best.status();
    out.params.segments = *best;
  }
  if (const auto refusal = question.algorithm->refusal(out.params)) {
    return invalid_argument(*refusal);
  }
  out.params = resolved(out.params);
  out.schedule = question.algorithm->make(out.params);
  out.goal = goal_of(*question.algorithm, out.params, out.schedule);
  if (question.lower) out.schedule = lower(std::move(out.schedule), question.fabric.abilities());
  return out;
}

Status take_counts(Question& question, std::vector<std::uint64_t> counts) {
  const Collective collective = question.algorithm->collective;
  const int ranks = question.params.ranks;
  Status status = check_counts(collective, ranks, counts);
  if (!status.ok()) return status;
  question.bytes = size_of_counts(collective, ranks, counts);
  question.options.counts = std::move(counts);
  return {};
}

std::string describe(const Question& question) {
  return fmt::format("{} of {}{} among {} on {}, {}", name_of(question.algorithm->collective),
                     format_bytes(static_cast<double>(question.bytes)),
                     question.options.counts.empty() ? "" : " in blocks of unlike sizes",
                     counted(question.params.ranks, "rank"), describe(question.fabric),
                     name_of(question.options.sync));
}

double bytes_of(std::int64_t weight, std::int64_t weight_per_byte) {
  return nearest_double(weight, weight_per_byte);
}

namespace {

std::string all_members() {
  return "collective, algorithm, ranks, bytes, counts, " + request_network_members() +
         ", network, " + parameter_names(true) +
         ", sync, fidelity, lower, ideal_blocks, params and id";
}

// All other members of networks belong into the member "network".
bool is_in_request(std::string_view name) {
  return name != "name" && name != "preset" && name != "group" && name != "between";
}

Status take_flag(std::string_view member, const Json& value, bool& into) {
  if (!value.is_boolean()) return bad_member(member, value, "true and false");
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
  if (!value.is_string()) return bad_member("bytes", value, kAllowed);
  const auto size = parse_size("bytes", value.get<std::string>());
  if (size.ok()) into = *size;
  return size.status();
}

Status take_counts(const Json& value, Question& question) {
  if (!value.is_array()) return bad_member("counts", value, "arrays of sizes");
  std::vector<std::uint64_t> counts;
  for (const Json& one : value) {
    Status status = take_bytes(one, counts.emplace_back());
    if (!status.ok()) return status;
  }
  return take_counts(question, std::move(counts));
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

// Takes a member that is not a parameter of the algorithm.
Status take_member(const std::string& name, const Json& value, Question& question) {
  if (name == "collective" || name == "algorithm" || name == "network" || name == "id") return {};
  if (name == "counts") return {};  // when the ranks are known
  if (name == "bytes") return take_bytes(value, question.bytes);
  if (name == "lower") return take_flag(name, value, question.lower);
  if (name == "ideal_blocks") return take_flag(name, value, question.options.ideal_blocks);
  if (name == "sync") {
    const auto sync = value.is_string() ? parse_sync(value.get<std::string>()) : std::nullopt;
    if (!sync) return bad_member(name, value, "\"dataflow\" and \"rounds\"");
    question.options.sync = *sync;
    return {};
  }
  if (name == "fidelity") {
    const auto fidelity =
        value.is_string() ? parse_fidelity(value.get<std::string>()) : std::nullopt;
    if (!fidelity) return bad_member(name, value, "\"eq1\", \"flow\" and \"packet\"");
    question.fidelity = *fidelity;
    return {};
  }
  if (is_in_request(name)) {
    const auto status = read_network_member(name, nlohmann::json(value), question.fabric);
    if (status) return *status;
  }
  return invalid_argument(
      fmt::format("the request has a member '{}'; allowed are {}", name, all_members()));
}

// Takes the collective and the algorithm.
Status take_algorithm(const Json& request, AlgorithmArguments& arguments, Question& question) {
  const auto text_of = [&request](const char* member) -> Result<std::string> {
    const auto found = request.find(member);
    if (found == request.end()) return invalid_argument(fmt::format("{} is missing", member));
    if (!found->is_string()) return bad_member(member, *found, "texts");
    return found->get<std::string>();
  };
  const auto collective_name = text_of("collective");
  if (!collective_name.ok()) return collective_name.status();
  const auto collective = read_collective("collective", *collective_name);
  if (!collective.ok()) return collective.status();
  arguments.collective = *collective;
  const auto name = text_of("algorithm");
  if (!name.ok()) {
    return invalid_argument(fmt::format("{}; {} has {}", name.status().text(), name_of(*collective),
                                        algorithm_names(*collective)));
  }
  const auto lines = read_algorithms("algorithm", *name, *collective);
  if (!lines.ok()) return lines.status();
  question.algorithm = lines->front();
  if (lines->size() == 1) return {};
  return invalid_argument(fmt::format("algorithm is '{}'; one name is allowed, of {}", *name,
                                      algorithm_names(*collective)));
}

}  // namespace

std::string request_network_members() {
  std::string names;
  for (const NetworkMember& row : network_members()) {
    if (!is_in_request(row.name)) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names;
}

Result<Question> read_question(const Json& request) {
  if (!request.is_object()) {
    return invalid_argument(
        fmt::format("the request is {}; allowed are objects", request.type_name()));
  }
  Question question;
  question.fabric = plain_regime().fabric;
  AlgorithmArguments arguments;
  Status status = take_algorithm(request, arguments, question);
  if (!status.ok()) return status;
  const bool has_counts = request.contains("counts");
  for (const char* member : {"ranks", "bytes"}) {
    if (request.contains(member) || (has_counts && member == std::string_view("bytes"))) continue;
    return invalid_argument(fmt::format("{} is missing", member));
  }
  if (has_counts && request.contains("bytes")) {
    return invalid_argument("the request has bytes and counts; one of them is allowed");
  }
  if (request.contains("beta") && request.contains("bandwidth")) {
    return invalid_argument("the request has bandwidth and beta; one of them is allowed");
  }
  // The network comes first, because other members override it.
  if (const auto network = request.find("network"); network != request.end()) {
    status = take_network(*network, question.fabric);
    if (!status.ok()) return status;
  }
  for (const auto& [member, value] : request.items()) {
    if (read_parameter(member, value, true, arguments)) continue;
    status = member == "params" ? read_params_member(value, arguments)
                                : take_member(member, value, question);
    if (!status.ok()) return status;
  }
  if (request.contains("wiring") && !request.contains("ports")) open_ports(question.fabric);
  auto params = read_params(arguments);
  if (!params.ok()) return params.status();
  question.params = std::move(*params);
  if (has_counts) {
    status = take_counts(request["counts"], question);
    if (!status.ok()) return status;
  }
  auto wired = wire(question.fabric, *question.algorithm, question.params);
  if (!wired.ok()) return wired.status();
  question.fabric = std::move(*wired);
  return question;
}

Json question_json(const Question& question, const Params& params) {
  const Fabric& fabric = question.fabric;
  const Algorithm& entry = *question.algorithm;
  Json out = {{"collective", name_of(entry.collective)},
              {"algorithm", entry.name},
              {"ranks", params.ranks},
              {"bytes", question.bytes},
              {"network", fabric.name},
              {"alpha", fabric.link.alpha.to_double()},
              {"beta", fabric.link.beta.to_double()},
              {"ports", fabric.ports},
              {"wiring", name_of(fabric.wiring.kind)},
              {"segments", params.segments},
              {"root", params.root},
              {"sync", name_of(question.options.sync)},
              {"fidelity", name_of(question.fidelity)},
              {"ideal_blocks", question.options.ideal_blocks}};
  if (question.fidelity == Fidelity::packet) out["mtu"] = fabric.mtu;
  if (!question.options.counts.empty()) out["counts"] = question.options.counts;
  if (question.lower) out["lower"] = true;
  if (!(fabric.link.eta_alpha == 1)) out["eta_alpha"] = fabric.link.eta_alpha.to_double();
  if (!(fabric.link.eta_beta == 1)) out["eta_beta"] = fabric.link.eta_beta.to_double();
  if (!(fabric.gamma == 0)) out["gamma"] = fabric.gamma.to_double();
  if (fabric.wiring.shares_links()) {
    out["hop"] = fabric.alpha_hop.to_double();
    if (!fabric.wiring.dims.empty()) out["dims"] = dims_text(fabric.wiring.dims);
    if (fabric.wiring.spines > 0) out["spines"] = fabric.wiring.spines;
    if (fabric.wiring.has_rings()) out["routing"] = name_of(fabric.wiring.routing);
  }
  Json rest = Json::object();
  write_parameters(entry, params, out, rest);
  out["params"] = std::move(rest);
  return out;
}

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
  // Texts of requests may hold any bytes; invalid UTF-8 must not make the answer fail.
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
  // The memory at the first question: reading it takes longer than a small answer.
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

namespace {

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

}  // namespace

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
