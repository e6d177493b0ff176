#include "engine/api/network.h"

#include <string>

#include "engine/network/dilation.h"
#include "engine/network/network_file.h"

namespace rankine {
namespace {

Status set(CallNetwork& network, std::string_view part) {
  const std::size_t equals = part.find('=');
  const std::string_view name = part.substr(0, equals);
  const std::string_view value =
      equals == std::string_view::npos ? std::string_view() : part.substr(equals + 1);
  if (name == "sync") {
    const auto sync = parse_sync(value);
    if (!sync) {
      return invalid_argument("sync is '" + std::string(value) + "'; allowed are dataflow, rounds");
    }
    network.sync = *sync;
    return {};
  }
  if (name == "clock") {
    const auto clock = parse_clock_mode(value);
    if (!clock || *clock == ClockMode::none) {
      return invalid_argument("clock is '" + std::string(value) + "'; allowed are virtual, wall");
    }
    network.clock = *clock;
    return {};
  }
  if (name == "lower") {
    if (value != "yes" && value != "no") {
      return invalid_argument("lower is '" + std::string(value) + "'; allowed are yes, no");
    }
    network.lower = value == "yes";
    return {};
  }
  if (name == "dilate") {
    const auto dilate = parse_dilation(name, value);
    if (dilate.ok()) network.dilate = *dilate;
    return dilate.status();
  }
  return invalid_argument("'" + std::string(part) +
                          "' is unknown; allowed are sync=, lower=, clock=, dilate=");
}

}  // namespace

Result<std::shared_ptr<const CallNetwork>> find_call_network(std::string_view text) {
  auto network = std::make_shared<CallNetwork>();
  const bool content = text.starts_with('{');
  const std::size_t end = content ? std::string_view::npos : text.find(',');
  auto fabric = content ? parse_network(text, "custom")
                        : find_network("network", std::string(text.substr(0, end)));
  if (!fabric.ok()) return fabric.status();
  network->fabric = *fabric;
  for (std::string_view rest = end == std::string_view::npos ? "" : text.substr(end + 1);
       !rest.empty();) {
    const std::size_t comma = rest.find(',');
    Status status = set(*network, rest.substr(0, comma));
    if (!status.ok()) return status;
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
  }
  return std::shared_ptr<const CallNetwork>(std::move(network));
}

}  // namespace rankine
