#include "engine/api/environment.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "engine/api/typed_names.h"
#include "engine/run/kernels/reduce.h"

extern char** environ;  // POSIX asks programs to declare it themselves

namespace rankine {
namespace {

constexpr std::string_view kVariables[] = {
    "RANKINE_ALGO",    "RANKINE_FLIGHT_RECORD", "RANKINE_FLIGHT_TIMES", "RANKINE_ISA",
    "RANKINE_NETWORK", "RANKINE_TRANSPORT",     "RANKINE_TUNING",       "RANKINE_WAIT"};
// Of the build, of the tests and of MPI programs' library, which read them themselves.
constexpr std::string_view kOthers[] = {"RANKINE_WITH_", "RANKINE_TEST_", "RANKINE_MPI"};

// A misspelt variable would be ignored, and nobody would know.
Status check_names() {
  for (char** at = environ; at != nullptr && *at != nullptr; ++at) {
    const std::string_view entry = *at;
    const std::string_view name = entry.substr(0, entry.find('='));
    const auto begins = [name](std::string_view with) { return name.starts_with(with); };
    if (!begins("RANKINE_") || std::any_of(std::begin(kOthers), std::end(kOthers), begins) ||
        std::find(std::begin(kVariables), std::end(kVariables), name) != std::end(kVariables)) {
      continue;
    }
    std::string known;
    for (const std::string_view one : kVariables)
      known += (known.empty() ? "" : ", ") + std::string(one);
    return invalid_argument("environment variable " + std::string(name) +
                            " is unknown; known are " + known);
  }
  return {};
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
      for (const Algorithm* line : found) {
        everywhere[static_cast<std::size_t>(line->collective)] = line;
      }
      if (!found.empty()) continue;
      return invalid_argument("no collective has an algorithm '" + std::string(part) +
                              "'; allowed are parts such as all_reduce:ring, or ring for all that "
                              "have it");
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
    forced[static_cast<std::size_t>(*collective)] = algorithm;
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
  if (const char* text = std::getenv("RANKINE_ALGO")) {
    auto forced = parse_forced_algorithms(text);
    if (!forced.ok()) return in_variable("RANKINE_ALGO", forced.status());
    out.algorithm = *forced;
  }
  if (const char* text = std::getenv("RANKINE_TRANSPORT")) {
    auto transport = parse_forced_transport(text);
    if (!transport.ok()) return in_variable("RANKINE_TRANSPORT", transport.status());
    out.transport = *transport;
  }
  if (const char* text = std::getenv("RANKINE_WAIT")) {
    auto mode = parse_wait_mode(text);
    if (!mode.ok()) return in_variable("RANKINE_WAIT", mode.status());
    out.wait = *mode;
  }
  const char* const isa = std::getenv("RANKINE_ISA");  // which kernels read themselves
  if (isa != nullptr && !parse_isa(isa)) {
    std::string names;
    for (int i = 0; i < kIsas; ++i) {
      names += (i == 0 ? "" : ", ") + std::string(name_of(static_cast<Isa>(i)));
    }
    return invalid_argument("environment variable RANKINE_ISA is '" + std::string(isa) +
                            "'; allowed are " + names);
  }
  if (const char* text = std::getenv("RANKINE_NETWORK")) {
    auto network = find_call_network(text);
    if (!network.ok()) return in_variable("RANKINE_NETWORK", network.status());
    out.network = std::move(*network);
  }
  if (const char* text = std::getenv("RANKINE_FLIGHT_RECORD")) {
    out.flight_record = text;
    if (const std::size_t at = out.flight_record.find("%p"); at != std::string::npos) {
      out.flight_record.replace(at, 2, std::to_string(getpid()));
    }
  }
  if (const char* text = std::getenv("RANKINE_FLIGHT_TIMES")) {
    const std::string_view value = text;
    if (value != "0" && value != "1") {
      return invalid_argument("environment variable RANKINE_FLIGHT_TIMES is '" +
                              std::string(value) + "'; allowed are 0, 1");
    }
    out.flight_times = value == "1";
  }
  return out;
}

}  // namespace rankine
