#include "bench/server/work.h"

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "bench/server/request.h"
#include "bench/server/scheduler.h"

namespace rankine::server {
namespace {

using std::chrono::milliseconds;

// What has come meanwhile. False: the clients have hung up.
bool hear_requests(const Line& clients, Scheduler& scheduler) {
  Request request;
  while (clients.has_news(milliseconds(scheduler.is_idle() ? 100 : 0))) {
    if (!clients.hear(request)) return false;
    scheduler.add(request);
  }
  return true;
}

}  // namespace

void work(Decoder& decoder, Exchange& ranks, const Line& clients) {
  const bool leads = ranks.rank() == 0;
  Scheduler scheduler;
  for (;;) {
    Batch batch;
    if (leads) {
      batch.stop = !hear_requests(clients, scheduler);
      if (!batch.stop) batch = scheduler.next();
    }
    ranks.broadcast(std::as_writable_bytes(std::span(&batch, 1)));
    if (batch.stop) return;
    const std::vector<int> tokens = decoder.step(batch);
    if (!leads) continue;
    for (Event& event : scheduler.take(tokens)) {
      event.step_seconds = decoder.times().steps;
      event.sum_seconds = decoder.times().sums;
      if (!clients.say(event)) break;  // they have hung up, which the next step hears
    }
  }
}

}  // namespace rankine::server
