#include "engine/api/environment.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/catalogue.h"
#include "engine/api/processes/identity.h"
#include "engine/api/tuning/tuning.h"
#include "engine/api/version.h"
#include "engine/base/files.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/network/network_members.h"
#include "engine/run/kernels/reduce.h"
#include "numa/refusals.h"

namespace rankine {
namespace {

constexpr std::string_view kVariables[] = {
    "RANKINE_ALGO",   "RANKINE_FLIGHT_RECORD", "RANKINE_FLIGHT_TIMES", "RANKINE_ISA",
    "RANKINE_MPI",    "RANKINE_MPI_NODES",     "RANKINE_NETWORK",      "RANKINE_TRANSPORT",
    "RANKINE_TRIALS", "RANKINE_TUNING",        "RANKINE_WAIT"};
// Variables of the build and of the tests, which read these variables directly.
constexpr std::string_view kOfTheTree[] = {"RANKINE_MPI", "RANKINE_TEST_", "RANKINE_WITH_"};
// The last words of variables that module systems, package managers and build systems set to the
// place of an installed library: RANKINE_ROOT, RANKINE_LIBRARY_PATH. No name above ends with one of
// them.
constexpr std::string_view kOfInstallations[] = {
    "BASE",      "BIN", "CFLAGS",  "CPPFLAGS", "CXXFLAGS", "DATA", "DIR",    "DIRS", "DOC",
    "HOME",      "INC", "INCLUDE", "INCLUDES", "LDFLAGS",  "LIB",  "LIBDIR", "LIBS", "LIBRARY",
    "LIBRARIES", "MAN", "MODULE",  "PATH",     "PREFIX",   "ROOT", "SHARE",  "SRC",  "VERSION"};

// A misspelt variable would have no effect, and its user would not notice: a name that is one or
// two letters away from a known one is an error. Any other name may belong to another program: it
// gets a warning, one for the whole process.
Status check_names() {
  if (is_privileged()) return {};
  std::string strangers;
  for (const std::string& name : variables_with_prefix("RANKINE_")) {
    const auto begins = [&name](std::string_view with) { return name.starts_with(with); };
    const std::string_view last = std::string_view(name).substr(name.rfind('_') + 1);
    if (std::count(std::begin(kVariables), std::end(kVariables), name) != 0 ||
        std::count(std::begin(kOfInstallations), std::end(kOfInstallations), last) != 0) {
      continue;
    }
    std::string known;
    for (const std::string_view one : kVariables)
      known += (known.empty() ? "" : ", ") + std::string(one);
    for (const std::string_view one : kVariables) {
      constexpr std::size_t kMostSlips = 2;
      if (name.size() > one.size() + kMostSlips || edit_distance(name, one) > kMostSlips) continue;
      return invalid_argument("environment variable " + name + " is unknown; did you mean " +
                              std::string(one) + "? allowed are " + known);
    }
    if (std::any_of(std::begin(kOfTheTree), std::end(kOfTheTree), begins)) continue;
    strangers += (strangers.empty() ? "" : ", ") + name;
  }
  if (!strangers.empty()) {
    warn_once("api.environment", "environment variables that Rankine does not know: " + strangers +
                                     "; engine/GUIDE.md lists the known ones");
  }
  return {};
}

// best_isa() ignores an unknown cap, and a cap above this machine's hardware has no effect; so both
// are errors here.
Status check_isa(std::string_view text) {
  const auto isa = parse_isa(text);
  if (isa && *isa <= hardware_isa()) return {};
  std::string allowed;
  for (int i = 0; i <= static_cast<int>(hardware_isa()); ++i) {
    allowed += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Isa>(i)));
  }
  return invalid_argument("environment variable RANKINE_ISA is '" + std::string(text) + "'" +
                          (isa ? ", which this machine does not have" : "") +
                          "; allowed here are " + allowed);
}

std::string collective_names() {
  std::string names;
  for (const Collective collective : all_collectives()) {
    if (!names.empty()) names += ", ";
    names += name_of(collective);
  }
  return names;
}

Status in_variable(std::string_view variable, const Status& status) {
  return invalid_argument("environment variable " + std::string(variable) + ": " + status.text());
}

}  // namespace

Result<std::array<const Algorithm*, kCollectives>> parse_forced_algorithms(std::string_view text) {
  std::array<const Algorithm*, kCollectives> forced{}, everywhere{};
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.empty()) continue;
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos) {
      const std::vector<const Algorithm*> found = find_typed_algorithms(part);
      for (const Algorithm* entry : found) {
        everywhere[static_cast<std::size_t>(entry->collective)] = entry;
      }
      if (!found.empty()) continue;
      return invalid_argument("algorithm is '" + std::string(part) +
                              "', which no collective has; allowed are parts such as "
                              "all_reduce:ring, or ring for all collectives that have it");
    }
    const auto collective = find_typed_collective(part.substr(0, colon));
    if (!collective) {
      return invalid_argument("collective is '" + std::string(part.substr(0, colon)) +
                              "'; allowed are " + collective_names());
    }
    const Algorithm* algorithm = find_typed_algorithm(*collective, part.substr(colon + 1));
    if (algorithm == nullptr) {
      return invalid_argument("algorithm is '" + std::string(part.substr(colon + 1)) + "'; " +
                              std::string(name_of(*collective)) + " has " +
                              algorithm_names(*collective));
    }
    const Algorithm*& one = forced[static_cast<std::size_t>(*collective)];
    if (one != nullptr && one != algorithm) {
      return invalid_argument(std::string(name_of(*collective)) + " is forced to " +
                              std::string(one->name) + " and " + std::string(algorithm->name) +
                              "; allowed is one algorithm per collective");
    }
    one = algorithm;
  }
  for (std::size_t c = 0; c < forced.size(); ++c) {
    if (forced[c] == nullptr) forced[c] = everywhere[c];
  }
  return forced;
}

Result<std::optional<Transport>> parse_forced_transport(std::string_view text) {
  if (text == "auto") return std::optional<Transport>();
  for (const Transport transport : {Transport::direct, Transport::mailbox, Transport::board}) {
    if (name_of(transport) == text) return std::optional(transport);
  }
  return invalid_argument("transport is '" + std::string(text) +
                          "'; allowed are auto, direct, mailbox, board");
}

Result<std::optional<WaitPolicy::Mode>> parse_wait_mode(std::string_view text) {
  using Mode = WaitPolicy::Mode;
  if (text == "auto") return std::optional<Mode>();
  if (text == "spin") return std::optional(Mode::spin);
  if (text == "yield") return std::optional(Mode::yield);
  if (text == "park") return std::optional(Mode::park);
  return invalid_argument("wait is '" + std::string(text) +
                          "'; allowed are auto, spin, yield, park");
}

Result<Environment> read_environment() {
  Environment out;
  if (Status status = check_names(); !status.ok()) return status;
  if (const char* text = environment_variable("RANKINE_ALGO")) {
    auto forced = parse_forced_algorithms(text);
    if (!forced.ok()) return in_variable("RANKINE_ALGO", forced.status());
    out.algorithm = *forced;
  }
  if (const char* text = environment_variable("RANKINE_TRANSPORT")) {
    auto transport = parse_forced_transport(text);
    if (!transport.ok()) return in_variable("RANKINE_TRANSPORT", transport.status());
    out.transport = *transport;
  }
  if (const char* text = environment_variable("RANKINE_WAIT")) {
    auto mode = parse_wait_mode(text);
    if (!mode.ok()) return in_variable("RANKINE_WAIT", mode.status());
    out.wait = *mode;
  }
  if (const char* text = environment_variable("RANKINE_ISA")) {
    if (Status status = check_isa(text); !status.ok()) return status;
  }
  if (const char* text = environment_variable("RANKINE_NETWORK")) {
    auto network = find_call_network(text);
    if (!network.ok()) return in_variable("RANKINE_NETWORK", network.status());
    out.network = std::move(*network);
  }
  if (const char* text = environment_variable("RANKINE_FLIGHT_RECORD")) {
    out.flight_record = text;
    const std::string id = std::to_string(getpid());
    for (std::size_t at = 0; (at = out.flight_record.find("%p", at)) != std::string::npos;) {
      out.flight_record.replace(at, 2, id);
    }
  }
  const std::pair<const char*, bool*> switches[] = {{"RANKINE_FLIGHT_TIMES", &out.flight_times},
                                                    {"RANKINE_TRIALS", &out.trials}};
  for (const auto& [variable, value] : switches) {
    const char* const text = environment_variable(variable);
    if (text == nullptr) continue;
    if (std::string_view(text) != "0" && std::string_view(text) != "1") {
      return invalid_argument("environment variable " + std::string(variable) + " is '" + text +
                              "'; allowed are 0, 1");
    }
    *value = *text == '1';
  }
  return out;
}

namespace {

template <std::size_t n>
void put(char (&place)[n], std::string_view text) {
  const std::size_t length = std::min(text.size(), n - 1);
  std::memcpy(place, text.data(), length);
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = kSplitMixStep;
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

std::uint64_t hash_of(const Costs& costs) {
  std::uint64_t hash = kSplitMixStep;
  for (const CostField& field : cost_fields()) hash = mixed(hash, costs.*field.value);
  return hash;
}

// Hashes all settings that decide over plans and times. Errors: a number that a network file cannot
// express.
Result<std::uint64_t> hash_of(const std::shared_ptr<const CallNetwork>& network) {
  if (network == nullptr) return std::uint64_t{0};
  const auto file = write_network(network->fabric);
  if (!file.ok()) {
    return Status(file.status().code(),
                  "network: processes compare it in the form of a file: " + file.status().text());
  }
  std::uint64_t hash = mixed(kSplitMixStep, hash_of(*file));
  hash = mixed(hash, static_cast<std::uint64_t>(network->sync));
  hash = mixed(hash, network->lower ? 1 : 0);
  hash = mixed(hash, static_cast<std::uint64_t>(network->clock));
  hash = mixed(hash, std::bit_cast<std::uint64_t>(network->dilate));
  return mixed(hash, static_cast<std::uint64_t>(network->tolerance_ns));
}

std::uint64_t hash_of(const Environment& environment) {
  std::uint64_t hash = kSplitMixStep;
  for (const Algorithm* entry : environment.algorithm) {
    hash = mixed(hash, entry == nullptr ? 0 : hash_of(entry->name));
  }
  hash = mixed(hash, environment.trials ? 1 : 0);
  return mixed(hash,
               environment.transport ? 1 + static_cast<std::uint64_t>(*environment.transport) : 0);
}

std::uint64_t hash_of(const CommunicatorOptions& options) {
  std::uint64_t hash = mixed(kSplitMixStep, options.plan_bytes);
  hash = mixed(hash, options.order ? 1 + static_cast<std::uint64_t>(*options.order) : 0);
  hash = mixed(hash, static_cast<std::uint64_t>(options.ports));
  for (const int size : options.levels) hash = mixed(hash, static_cast<std::uint64_t>(size));
  return mixed(hash, FirstCount::current());
}

}  // namespace

Result<ProcessSettings> process_settings(const CommunicatorOptions& options,
                                         const Environment& environment, const Costs& costs) {
  ProcessSettings out;
  const auto machine = this_machine();
  if (!machine.ok()) return machine.status();
  put(out.host, machine->host);
  put(out.boot, machine->boot);
  out.pid_namespace = machine->pid_namespace;
  put(out.version, kVersion);
  put(out.isa, name_of(best_isa()));
  out.ranks = options.ranks;
  const auto of_environment = hash_of(environment.network), of_options = hash_of(options.network);
  if (!of_environment.ok()) return of_environment.status();
  if (!of_options.ok()) return of_options.status();
  out.environment = mixed(hash_of(environment), *of_environment);
  const TuningTable* table = options.tuned ? machine_tuning() : nullptr;
  out.tuning = table == nullptr ? 0 : hash_of(to_json(*table));
  out.costs = hash_of(costs);
  out.options = mixed(hash_of(options), *of_options);
  return out;
}

}  // namespace rankine
