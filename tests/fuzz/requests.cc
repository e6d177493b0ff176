// Networks that are read are networks, and tables tables; a request gets one line of JSON, whatever
// it is.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/api/tuning/tuning.h"
#include "engine/base/json_text.h"
#include "engine/network/fabric.h"
#include "engine/network/network_file.h"
#include "engine/tools/answer.h"
#include "tests/fuzz/target.h"
#include "tests/fuzz/targets.h"

namespace rankine::fuzz {
namespace {

using Json = nlohmann::json;

// The answer would take long, or a file be read.
bool is_large(const Json& request) {
  constexpr int kMostRanks = 12, kMostSegments = 64;
  const auto number = [&](const char* member) {
    const auto found = request.find(member);
    return found != request.end() && found->is_number() ? found->get<double>() : 0.0;
  };
  if (number("ranks") > kMostRanks || number("segments") > kMostSegments) return true;
  const auto network = request.find("network");
  return network != request.end() && network->is_string() &&
         find_regime(network->get<std::string>()) == nullptr;
}

}  // namespace

void network(std::string_view input) {
  const auto fabric = parse_network(input, "fuzz");
  if (!fabric.ok()) {
    require(!fabric.status().text().empty(), "an error says something");
    return;
  }
  require(check_fabric(*fabric).ok(), "a network that is read can be used");
  static_cast<void>(wired_for(*fabric, 6));
}

void tuning(std::string_view input) {
  const auto table = parse_tuning(input);
  if (!table.ok()) {
    require(!table.status().text().empty(), "an error says something");
    return;
  }
  const std::string text = to_json(*table);
  const auto again = parse_tuning(text);
  require(again.ok() && to_json(*again) == text, "a table that is read can be written and read");
}

void batch(std::string_view input) {
  const auto request = read_json("it", input);
  if (request.ok() && request->is_object() && is_large(*request)) return;
  const tools::BatchAnswer answer = tools::answer_request(input, 1);
  require(answer.line.find('\n') == std::string::npos, "an answer is one line");
  const Json line = Json::parse(answer.line, nullptr, false);
  require(line.is_object(), "an answer is an object");
  require(answer.ok ? line.contains("time") : line.contains("error"), "a time, or an error");
}

}  // namespace rankine::fuzz
