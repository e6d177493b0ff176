#include "bench/server/load.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "engine/base/numbers.h"

namespace rankine::server {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed) {}
  int between(Bounds bounds) {
    const auto range = static_cast<std::uint64_t>(bounds.most - bounds.least) + 1;
    return bounds.least + static_cast<int>(next() % range);
  }
  // Between events that come so many a second.
  double gap(double rate) {
    const double above_zero = (static_cast<double>(next() >> 11) + 1) / 0x1p53;
    return -std::log(above_zero) / rate;
  }

 private:
  std::uint64_t next() { return splitmix(state_ += kSplitMixStep); }
  std::uint64_t state_;
};

}  // namespace

std::vector<std::pair<double, Request>> requests_of(const Load& load) {
  Draw draw(load.seed);
  std::vector<std::pair<double, Request>> all;
  double due = 0;
  for (int id = 0; id < load.requests; ++id) {
    Request request{
        .id = id, .wanted = draw.between(load.answer), .prompt_tokens = draw.between(load.prompt)};
    for (int i = 0; i < request.prompt_tokens; ++i) {
      request.prompt[i] = draw.between({0, load.vocabulary - 1});
    }
    all.emplace_back(due, request);
    due += draw.gap(load.rate);
  }
  return all;
}

Record play(Service& service, const Load& load,
            const std::function<void(const Record&)>& progress) {
  using Clock = std::chrono::steady_clock;
  const auto requests = requests_of(load);
  const auto begin = Clock::now();
  const auto now = [begin] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  Record record;
  int submitted = 0;
  double steps_before = 0, sums_before = 0;  // of crews that are lost
  double steps = 0, sums = 0;
  while (record.over < load.requests) {
    const double time = now();
    for (; submitted < load.requests; ++submitted) {
      const auto& [due, request] = requests[static_cast<std::size_t>(submitted)];
      if (due > time) break;
      record.answers.push_back({.due = due});
      service.submit(request);
    }
    double patience = 0.1;
    if (submitted < load.requests) {
      patience = std::clamp(requests[static_cast<std::size_t>(submitted)].first - time, 0.0, 0.1);
    }
    const auto event =
        service.next(std::chrono::milliseconds(static_cast<int>(std::ceil(patience * 1e3))));
    if (!event) continue;
    if (event->request == Event::kLost) {
      record.losses.push_back({.time = now(), .why = event->why.data()});
      steps_before += std::exchange(steps, 0), sums_before += std::exchange(sums, 0);
      for (Answer& answer : record.answers) {
        if (answer.is_lost || answer.is_done) continue;
        answer.is_lost = true;
        ++record.losses.back().requests;
      }
      record.over += record.losses.back().requests;
    } else {
      Answer& answer = record.answers[static_cast<std::size_t>(event->request)];
      answer.last = now();
      if (answer.tokens.empty()) answer.first = answer.last;
      answer.tokens.push_back(event->token);
      answer.is_done = event->left == 0;
      if (answer.is_done) ++record.over;
      steps = event->step_seconds, sums = event->sum_seconds;
    }
    record.seconds = now();
    progress(record);
  }
  record.step_seconds = steps_before + steps;
  record.sum_seconds = sums_before + sums;
  return record;
}

}  // namespace rankine::server
