#include "bench/server/service.h"

#include <utility>

namespace rankine::server {

Service::Service(Hire hire) : hire_(std::move(hire)) { begin(); }

Service::~Service() { end(); }

void Service::begin() {
  auto [ours, theirs] = Line::make();
  line_.emplace(std::move(ours));
  crew_ = hire_(std::move(theirs), *line_);
}

void Service::end() {
  line_->hang_up();
  crew_.reset();
}

void Service::submit(const Request& request) {
  // What cannot be said is lost with everything else: next() hears that nobody is there.
  static_cast<void>(line_->say(request));
}

std::optional<Event> Service::next(std::chrono::milliseconds within) {
  if (!line_->has_news(within)) return std::nullopt;
  Event event;
  if (!line_->hear(event)) event = lost("all ranks have ended");
  if (event.request == Event::kLost) {
    end();
    begin();
  }
  return event;
}

}  // namespace rankine::server
