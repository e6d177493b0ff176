// HttpFront serves a Desk over HTTP with cpp-httplib (Debian's libcpp-httplib-dev), which is
// optional.
//
//   POST /v1/completions  {"prompt": [1, 2, 3], "max_tokens": 16}
//                         200 {"tokens": [5, 6, ...]}
//                         400 {"error": ...}: invalid request; 503: the ranks were lost
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/server/service.h"

namespace rankine::server {

bool has_http();  // this program was built with cpp-httplib

class HttpFront {
 public:
  // Listens on 127.0.0.1; port 0: any free port. `desk` must outlive the front. Tokens are below
  // `vocabulary`. Throws Error (system) if the port is not available or cpp-httplib is missing.
  HttpFront(Desk& desk, int vocabulary, int port = 0);
  ~HttpFront();  // answers waiting requests first

  int port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Sends a request to a server on 127.0.0.1 and returns the tokens of its answer. Throws the
// server's error as Error (invalid_argument, rank_lost or system).
std::vector<int> ask_over_http(int port, const Request& request);

}  // namespace rankine::server
