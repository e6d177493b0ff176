// This header provides a small model, a load and clients for the tests of the server.
#pragma once

#include <thread>
#include <utility>
#include <vector>

#include "bench/server/crews.h"
#include "bench/server/service.h"
#include "engine/lab/planner/model.h"

namespace rankine::server {

inline const tools::Model kSmallModel{.layers = 3,
                                      .hidden = 64,
                                      .heads = 8,
                                      .kv_heads = 4,
                                      .feed_forward = 96,
                                      .gated = true,
                                      .vocabulary = 240,
                                      .tied = true};

inline const Load kSmallLoad{.requests = 24,
                             .rate = 200,
                             .prompt = {1, 40},
                             .answer = {1, 12},
                             .vocabulary = kSmallModel.vocabulary,
                             .seed = 3};

using Tokens = std::vector<std::vector<int>>;

inline Hire threads() {
  return [](Line line, Line&) {
    return hire_threads(kSmallModel, 7, 2, Library::rankine, std::move(line));
  };
}

// The tokens of each request of kSmallLoad when one Service plays the load.
inline Tokens told_by_service() {
  Service service(threads());
  Tokens all;
  for (const Answer& answer : play(service, kSmallLoad, [](const Record&) {}).answers) {
    all.push_back(answer.tokens);
  }
  return all;
}

// The tokens of each request of kSmallLoad when `ask` answers all requests at once, each on its own
// thread.
template <class Ask>
Tokens told_by(const Ask& ask) {
  const auto requests = requests_of(kSmallLoad);
  Tokens all(requests.size());
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    clients.emplace_back([&, i] { all[i] = ask(requests[i].second); });
  }
  for (std::thread& client : clients) client.join();
  return all;
}

}  // namespace rankine::server
