// Clients of a service of two ranks, for the tests: what each of them must be told, and all asking
// at once.
#pragma once

#include <thread>
#include <utility>
#include <vector>

#include "bench/server/load.h"
#include "bench/server/service.h"
#include "bench/server/small_model.h"
#include "bench/server/thread_crew.h"

namespace rankine::server {

using Tokens = std::vector<std::vector<int>>;

inline Hire threads() {
  return [](Line line, Line&) {
    return hire_threads(kSmallModel, 7, 2, Library::rankine, std::move(line));
  };
}

// What a service says to whom it knows by number.
inline Tokens told_by_service() {
  Service service(threads());
  Tokens all;
  for (const Answer& answer : play(service, kSmallLoad, [](const Record&) {}).answers) {
    all.push_back(answer.tokens);
  }
  return all;
}

// All requests at once, each on a thread of its own.
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
