#include "engine/api/flight_record.h"
#include "algorithms/catalogue.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>
#include <thread>

#include "engine/base/whole_file.h"
#include "engine/run/machine.h"
#include "numa/warnings.h"

namespace rankine {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

// "?" where the record was torn by a call begun meanwhile.
std::string_view algorithm_of(Fingerprint print) {
  const auto line = static_cast<std::size_t>(print.algorithm());
  return line < catalogue().size() ? catalogue()[line].name : "?";
}

double microseconds(std::int64_t ns) { return static_cast<double>(ns) / 1000; }

Json json_of(const FlightRecorder::Call& call, std::int64_t since_ns) {
  Json json = {{"call", call.number},
               {"what", describe(call.fingerprint)},
               {"algorithm", algorithm_of(call.fingerprint)},
               {"root", call.fingerprint.root()}};
  if (call.begin_ns != 0) json["began_us"] = microseconds(call.begin_ns - since_ns);
  if (call.end_ns != 0) json["took_us"] = microseconds(call.end_ns - call.begin_ns);
  return json;
}

Json json_of(const SlowWait& wait, std::int64_t since_ns) {
  Json json = {{"call", wait.call},
               {"for", wait.peer},
               {"round", wait.round},
               {"began_us", microseconds(wait.begin_ns - since_ns)}};
  if (wait.end_ns != 0) {
    json["took_us"] = microseconds(wait.end_ns - wait.begin_ns);
    json["end"] = name_of(wait.end);
  }
  return json;
}

// The earliest time recorded.
std::int64_t begin_of(const FlightRecord& record) {
  std::int64_t since_ns = std::numeric_limits<std::int64_t>::max();
  for (const FlightRecord::OfRank& rank : record.ranks) {
    for (const FlightRecorder::Call& call : rank.calls) {
      if (call.begin_ns != 0) since_ns = std::min(since_ns, call.begin_ns);
    }
    for (const SlowWait& wait : rank.waits) since_ns = std::min(since_ns, wait.begin_ns);
  }
  return since_ns;
}

void write_file(const FlightRecord& record, const std::string& path) noexcept {
  try {
    std::string error;
    {
      WholeFile file(path);
      write_json(record, [&](std::string_view text) { file.append(text); });
      file.append("\n");
      error = file.finish();
    }
    if (error.empty()) return;
    warn_once("api.flight_record",
              "RANKINE_FLIGHT_RECORD is '" + path + "', which cannot be written: " + error);
  } catch (const std::exception& error) {
    warn_once("api.flight_record", error.what());
  }
}

// Starts a thread that no signal of the program goes to: they are for its own threads.
template <class Body>
void start_thread(const Body& body) {
  struct NoSignals {
    sigset_t before;
    NoSignals() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }
  } const no_signals;
  std::thread(body).detach();
}

}  // namespace

void write_json(const FlightRecord& record, const std::function<void(std::string_view)>& append) {
  const Status& health = record.health;
  append("{\n \"health\": " +
         dump(health.ok() ? "ok" : std::string(name_of(health.code())) + ": " + health.text()) +
         ",\n \"ranks\": [");
  const std::int64_t since_ns = begin_of(record);
  for (std::size_t r = 0; r < record.ranks.size(); ++r) {
    const FlightRecord::OfRank& of_rank = record.ranks[r];
    Json rank = {{"rank", r},
                 {"calls", of_rank.calls.empty() ? 0 : of_rank.calls.back().number},
                 {"state", of_rank.state},
                 {"last", Json::array()},
                 {"slow_waits", Json::array()}};
    for (const auto& call : of_rank.calls) rank["last"].push_back(json_of(call, since_ns));
    for (const auto& wait : of_rank.waits) rank["slow_waits"].push_back(json_of(wait, since_ns));
    append((r == 0 ? "\n" : ",\n") + dump(rank));
  }
  append("\n ]\n}");
}

void FlightRecordFile::leave(const std::function<FlightRecord()>& make) noexcept {
  if (path_.empty() || begun_.exchange(true)) return;
  try {
    const auto record = std::make_shared<const FlightRecord>(make());
    try {
      start_thread([record, path = path_, done = done_] {
        write_file(*record, path);
        done->store(true, std::memory_order_release);  // pairs with wait()
      });
      return;
    } catch (const std::system_error&) {  // no more threads
      write_file(*record, path_);
    }
  } catch (const std::exception& error) {
    warn_once("api.flight_record", error.what());
  }
  done_->store(true, std::memory_order_release);  // pairs with wait()
}

void FlightRecordFile::wait(std::chrono::nanoseconds most) const noexcept {
  // Relaxed: whoever has begun itself knows; of others it is enough to hear soon.
  if (!begun_.load(std::memory_order_relaxed)) return;
  const std::int64_t until_ns = now_ns() + most.count();
  std::int64_t nap_ns = 20'000;
  while (!done_->load(std::memory_order_acquire) && now_ns() < until_ns) {  // pairs with leave()
    sleep_ns(nap_ns);
    nap_ns = std::min<std::int64_t>(2 * nap_ns, 2'000'000);
  }
}

}  // namespace rankine
