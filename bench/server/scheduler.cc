#include "bench/server/scheduler.h"

#include <algorithm>
#include <cstddef>

namespace rankine::server {

Scheduler::Scheduler(int sequences, int tokens) : most_tokens_(tokens) {
  for (int place = sequences; place-- > 0;) places_.push_back(place);
}

void Scheduler::add(const Request& request) { waiting_.push_back(request); }

Batch Scheduler::next() {
  for (; !waiting_.empty() && !places_.empty(); waiting_.pop_front(), places_.pop_back()) {
    const Request& first = waiting_.front();
    running_.push_back({.id = first.id,
                        .place = places_.back(),
                        .wanted = first.wanted,
                        .tokens{first.tokens().begin(), first.tokens().end()}});
  }
  // No prompt has a token computed before those of all earlier ones are, so those who answer stand
  // first, and there is room for all of them.
  Batch batch;
  for (Running& one : running_) {
    const int missing = static_cast<int>(one.tokens.size()) - one.done;
    const int now = std::min(missing, most_tokens_ - batch.tokens);
    one.wants_next = now == missing;
    if (now == 0) continue;
    batch.add(
        {.sequence = one.place, .position = one.done, .tokens = now, .wants_next = one.wants_next},
        std::span(one.tokens)
            .subspan(static_cast<std::size_t>(one.done), static_cast<std::size_t>(now)));
    one.done += now;
  }
  return batch;
}

std::vector<Event> Scheduler::take(std::span<const int> tokens) {
  std::vector<Event> events;
  for (Running& one : running_) {
    if (!one.wants_next) continue;
    const int token = tokens[events.size()];
    one.tokens.push_back(token);
    events.push_back({.request = one.id, .token = token, .left = --one.wanted});
    if (one.wanted == 0) places_.push_back(one.place);
  }
  std::erase_if(running_, [](const Running& one) { return one.wanted == 0; });
  return events;
}

}  // namespace rankine::server
