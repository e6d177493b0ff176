// How ranks that are processes come to an exchange, with one collective library or another.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "bench/server/exchange.h"

namespace rankine::server {

// Of one crew of ranks; made in the process that then forks them, and there until they have ended.
class ProcessLibrary {
 public:
  virtual ~ProcessLibrary() = default;

  struct Place {
    std::string name;  // that no other crew has, and all ranks of this one
    int rank = 0, ranks = 0;
    int cpu = 0;  // to be pinned to
  };
  // In a rank's process, once: meets the others, pins the thread, and has `part` play with what
  // they have then. Throws what goes wrong.
  virtual void play(const Place& place, const std::function<void(Exchange&)>& part) = 0;
};

std::unique_ptr<ProcessLibrary> make_rankine();
// Throws Error (system) where it is not installed.
std::unique_ptr<ProcessLibrary> make_gloo(int ranks);

}  // namespace rankine::server
