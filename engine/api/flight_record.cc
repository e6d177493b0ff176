// The flight record of a communicator as JSON; communicator.h says what it holds.
#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/api/communicator_state.h"
#include "engine/exec/flight_recorder.h"
#include "numa/warnings.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

Json json_of(const FlightRecorder::Call& call, std::int64_t since_ns) {
  Json json = {{"call", call.number},
               {"what", describe(call.fingerprint)},
               {"algorithm", algorithm_name(call.fingerprint)},
               {"root", call.fingerprint.root()}};
  if (call.begin_ns != 0) json["began_us"] = microseconds(call.begin_ns - since_ns);
  if (call.end_ns != 0) json["took_us"] = microseconds(call.end_ns - call.begin_ns);
  return json;
}

Json json_of(const SlowWait& wait, std::uint64_t first_count, std::int64_t since_ns) {
  Json json = {{"call", wait.call - first_count},
               {"for", wait.peer},
               {"round", wait.round},
               {"began_us", microseconds(wait.begin_ns - since_ns)}};
  if (wait.end_ns != 0) {
    json["took_us"] = microseconds(wait.end_ns - wait.begin_ns);
    json["end"] = name_of(wait.end);
  }
  return json;
}

}  // namespace

std::string Communicator::flight_record() const {
  Shared& shared = *shared_;
  std::vector<std::vector<FlightRecorder::Call>> calls;
  std::vector<std::vector<SlowWait>> waits;
  std::int64_t since_ns = std::numeric_limits<std::int64_t>::max();
  for (Rank r = 0; r < shared.ranks; ++r) {
    const std::uint64_t number =
        shared.crossbar.record(r).number.load(std::memory_order_acquire);  // pairs with run()
    const std::uint64_t begun = number == 0 ? 0 : number - shared.first_count;
    calls.push_back(shared.recorder.last_calls(r, begun));
    for (const FlightRecorder::Call& call : calls.back()) {
      if (call.begin_ns != 0) since_ns = std::min(since_ns, call.begin_ns);
    }
    waits.push_back(shared.crossbar.slow_waits(r).last());
    for (const SlowWait& wait : waits.back()) since_ns = std::min(since_ns, wait.begin_ns);
  }
  const Status state = health();
  Json json = {
      {"health", state.ok() ? "ok" : std::string(name_of(state.code())) + ": " + state.text()},
      {"ranks", Json::array()}};
  for (Rank r = 0; r < shared.ranks; ++r) {
    const auto& of_rank = calls[static_cast<std::size_t>(r)];
    Json rank = {{"rank", r},
                 {"calls", of_rank.empty() ? 0 : of_rank.back().number},
                 {"state", shared.crossbar.who_waits_for_whom(r)},
                 {"last", Json::array()},
                 {"slow_waits", Json::array()}};
    for (const FlightRecorder::Call& call : of_rank) {
      rank["last"].push_back(json_of(call, since_ns));
    }
    for (const SlowWait& wait : waits[static_cast<std::size_t>(r)]) {
      rank["slow_waits"].push_back(json_of(wait, shared.first_count, since_ns));
    }
    json["ranks"].push_back(std::move(rank));
  }
  return json.dump(1);
}

void Communicator::leave_flight_record() noexcept {
  const std::string& path = shared_->forced.flight_record;
  if (path.empty() || shared_->flight_record_left.exchange(true)) return;
  try {
    std::ofstream file(path);
    file << flight_record() << "\n";
    file.close();
    if (!file) {
      warn_once("api.flight_record",
                "RANKINE_FLIGHT_RECORD is '" + path + "', which cannot be written");
    }
  } catch (const std::exception& error) {
    warn_once("api.flight_record", error.what());
  }
}

}  // namespace rankine
