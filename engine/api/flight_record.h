// What the ranks of a communicator did last, at one moment, apart from the communicator: text of it
// can be made when that has gone on or is gone. communicator.h says what the text holds.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/run/flight_recorder.h"
#include "engine/run/slow_waits.h"

namespace rankine {

struct FlightRecord {
  struct OfRank {
    std::string state;
    std::vector<FlightRecorder::Call> calls;  // oldest first
    std::vector<SlowWait> waits;              // their calls counted as those above
  };
  Status health;
  std::vector<OfRank> ranks;
};

// As JSON, piece by piece: there may be a thousand ranks with a thousand calls each. Bytes that are
// no UTF-8 are replaced.
void write_json(const FlightRecord& record, const std::function<void(std::string_view)>& append);

// The file in which a communicator that ends by an error leaves its record. A thread of its own
// writes it, so that no disk keeps a call from returning; where there can be no thread, the caller
// does. Thread-safe.
class FlightRecordFile {
 public:
  // Empty: there is none to leave.
  explicit FlightRecordFile(std::string path) : path_(std::move(path)) {}
  FlightRecordFile(const FlightRecordFile&) = delete;
  FlightRecordFile& operator=(const FlightRecordFile&) = delete;

  // Begins to write what make() returns, the first time. What fails is a warning, once.
  void leave(const std::function<FlightRecord()>& make) noexcept;
  // Until what was begun is there or has failed, but at most so long.
  void wait(std::chrono::nanoseconds most) const noexcept;

 private:
  const std::string path_;
  std::atomic<bool> begun_{false};
  // Of the thread, too, which may outlive us. True: there is nothing more to come.
  const std::shared_ptr<std::atomic<bool>> done_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace rankine
