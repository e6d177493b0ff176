// The server over HTTP, by cpp-httplib (Debian's libcpp-httplib-dev), which is optional.
//
//   POST /v1/completions  {"prompt": [1, 2, 3], "max_tokens": 16}
//                         200 {"tokens": [5, 6, ...]}
//                         400 {"error": ...}: no such request; 503: the ranks were lost meanwhile
#pragma once

#include <memory>
#include <stdexcept>
#include <vector>

#include "bench/server/service.h"

namespace rankine::server {

bool has_http();  // whether the library was there when this was built

class HttpFront {
 public:
  // On 127.0.0.1; port 0: one that is free. `desk` outlives it. Tokens are below `vocabulary`.
  // Errors: throws Error (system), which says so where there is no library.
  HttpFront(Desk& desk, int vocabulary, int port = 0);
  ~HttpFront();  // who still waits is answered first

  int port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What a server on 127.0.0.1 answers. Throws Error (invalid_argument, rank_lost or system) as it
// says.
std::vector<int> ask_over_http(int port, const Request& request);

}  // namespace rankine::server
