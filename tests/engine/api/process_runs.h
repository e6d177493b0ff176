// Processes that play ranks (process_rank.cc) under names that nobody else has, for the tests that
// hold what they say against what they should.
#pragma once

#include <unistd.h>

#include <csignal>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/api/spawned.h"

namespace rankine::testing_processes {

// One that nobody else has, in another pid namespace neither.
inline std::string fresh_name() {
  static const unsigned mine = std::random_device()();
  static int names = 0;
  return "test." + std::to_string(mine) + "." + std::to_string(++names);
}
inline std::string path_of(const std::string& name) { return "/dev/shm/rankine." + name; }
inline bool is_there(const std::string& name) { return access(path_of(name).c_str(), F_OK) == 0; }

// A process that plays these ranks: "2", "0,3".
inline Spawned process(const std::string& name, const std::string& plays, int ranks,
                       const std::string& play, int at = 0,
                       const std::vector<std::string>& variables = {}, int signal = SIGKILL) {
  return Spawned({"tests/engine/api/process_rank", name, plays, std::to_string(ranks), play,
                  std::to_string(at), std::to_string(signal)},
                 variables);
}

}  // namespace rankine::testing_processes
