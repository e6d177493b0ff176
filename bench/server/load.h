// Clients of a server, made on the spot: requests that come at random times, and what they see.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/server/service.h"

namespace rankine::server {

// Both bounds can be drawn.
struct Bounds {
  int least = 1, most = 1;
};

struct Load {
  int requests = 64;
  double rate = 8;                        // a second, on average: a Poisson process
  Bounds prompt{16, 128}, answer{8, 64};  // tokens
  int vocabulary = 0;
  std::uint64_t seed = 1;
};

// What became of a request. Times are seconds since the first one was due.
struct Answer {
  double due = 0, first = 0, last = 0;  // its tokens
  std::vector<int> tokens{};
  bool is_done = false, is_lost = false;  // all tokens are there; or never will be
};

// That the ranks were lost, and with them so many requests.
struct Loss {
  double time = 0;
  int requests = 0;
  std::string why{};
};

struct Record {
  std::vector<Answer> answers{};             // by request
  int over = 0;                              // of them: done or lost
  double seconds = 0;                        // until the last token so far
  double step_seconds = 0, sum_seconds = 0;  // of rank 0 meanwhile: in steps, and of these in sums
  std::vector<Loss> losses{};
};

// The requests of a load, with when each is due; the same for the same load.
std::vector<std::pair<double, Request>> requests_of(const Load& load);

// All requests of the load, each submitted when it is due and waited for until it is answered or
// lost; `progress` is told of every token.
Record play(Service& service, const Load& load, const std::function<void(const Record&)>& progress);

}  // namespace rankine::server
