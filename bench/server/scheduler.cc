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
  Batch batch;
  const auto add = [&](Running& one, int most) {
    const int missing = static_cast<int>(one.tokens.size()) - one.done;
    const int now = std::min(missing, most);
    one.wants_next = now > 0 && now == missing;
    if (now == 0) return;
    batch.add(
        {.sequence = one.place, .position = one.done, .tokens = now, .wants_next = one.wants_next},
        std::span(one.tokens)
            .subspan(static_cast<std::size_t>(one.done), static_cast<std::size_t>(now)));
    one.done += now;
  };
  // Prompts get what answers leave, though they stand between them.
  int room = most_tokens_;
  const auto answers = [](const Running& one) {
    return static_cast<int>(one.tokens.size()) - one.done == 1;
  };
  for (const Running& one : running_) room -= answers(one) ? 1 : 0;
  for (Running& one : running_) {
    const bool is_answer = answers(one);
    const int before = batch.tokens;
    add(one, is_answer ? 1 : room);
    if (!is_answer) room -= batch.tokens - before;
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
