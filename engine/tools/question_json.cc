#include "engine/tools/question_json.h"

#include <fmt/format.h>

#include <cmath>

#include "algorithms/torus.h"
#include "engine/base/units.h"
#include "engine/network/network_file.h"
#include "engine/network/network_members.h"
#include "engine/network/predict.h"
#include "engine/tools/catalogue_names.h"

namespace rankine::tools {
namespace {

std::string all_members() {
  return "collective, algorithm, ranks, bytes, counts, " + request_network_members() +
         ", network, " + parameter_names(true) +
         ", sync, fidelity, lower, ideal_blocks, params and id";
}

// Other members of networks stand in the member "network" only.
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

// What is no parameter of the algorithm.
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

// Its collective and its algorithm.
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
        fmt::format("the request is {}; an object is needed", request.type_name()));
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
  // The network first: other members override it.
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
  const Algorithm& line = *question.algorithm;
  Json out = {{"collective", name_of(line.collective)},
              {"algorithm", line.name},
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
  write_parameters(line, params, out, rest);
  out["params"] = std::move(rest);
  return out;
}

}  // namespace rankine::tools
