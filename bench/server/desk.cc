#include "bench/server/desk.h"

#include <chrono>

namespace rankine::server {

Desk::Desk(const Hire& hire) : service_(hire), clerk_([this] { work(); }) {}

Desk::~Desk() {
  closes_ = true;
  clerk_.join();
}

std::vector<int> Desk::answer(const Request& request) {
  std::future<Result<std::vector<int>>> answer;
  {
    const std::lock_guard lock(mutex_);
    answer = come_.emplace_back(request, Answer()).second.get_future();
  }
  return answer.get().value();
}

void Desk::work() {
  while (!closes_) {
    submit_new();
    // A request that comes meanwhile waits no longer than this.
    if (const auto event = service_.next(std::chrono::milliseconds(1))) take(*event);
  }
}

void Desk::submit_new() {
  decltype(come_) come;
  {
    const std::lock_guard lock(mutex_);
    come.swap(come_);
  }
  for (auto& [request, answer] : come) {
    request.id = waiting_.empty() ? 0 : waiting_.rbegin()->first + 1;
    waiting_[request.id].answer = std::move(answer);
    service_.submit(request);
  }
}

void Desk::take(const Event& event) {
  if (event.request == Event::kLost) {
    const Status lost(Code::rank_lost, event.why.data());
    for (auto& [id, waiting] : waiting_) waiting.answer.set_value(lost);
    waiting_.clear();
    return;
  }
  const auto found = waiting_.find(event.request);
  found->second.tokens.push_back(event.token);
  if (event.left > 0) return;
  found->second.answer.set_value(std::move(found->second.tokens));
  waiting_.erase(found);
}

}  // namespace rankine::server
