// A server as its clients see it: requests go in, tokens come out, and when its ranks are lost it
// says so and begins again with new ones. Used by one thread.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "bench/server/line.h"
#include "bench/server/request.h"

namespace rankine::server {

// Ranks at work (work.h), as threads or processes. Its end waits for theirs; the clients have hung
// up by then.
class Crew {
 public:
  virtual ~Crew() = default;
};
// Makes one, whose rank 0 has this end of the line, and which says on it why it is lost. Processes
// that are forked for it hang up the other end, which is the clients'.
using Hire = std::function<std::unique_ptr<Crew>(Line line, Line& clients)>;

class Service {
 public:
  explicit Service(Hire hire);
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  // Requires what request.h says of a request. A crew that is lost is told of by next().
  void submit(const Request& request);
  // What came; none: nothing within that time. After an event that says kLost nothing more comes of
  // the requests so far, and a new crew is there.
  std::optional<Event> next(std::chrono::milliseconds within);

 private:
  void begin();
  void end();

  Hire hire_;
  std::optional<Line> line_;
  std::unique_ptr<Crew> crew_;
};

}  // namespace rankine::server
