// Prints the values that this program takes from its environment, and lets a call fail, which
// writes a flight record to the file of RANKINE_FLIGHT_RECORD. privileged_test.cc runs it with more
// rights than its user.
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "engine/api/environment.h"
#include "engine/api/team.h"
#include "engine/api/tuning/tuning.h"
#include "engine/base/files.h"
#include "engine/run/kernels/reduce.h"
#include "numa/topology.h"

int main() {
  using namespace rankine;
  dup2(STDOUT_FILENO, STDERR_FILENO);
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  std::printf("privileged: %d\n", is_privileged() ? 1 : 0);
  std::printf("tuning: '%s'\n", tuning_file().path.c_str());
  std::printf("capped: %d\n", best_isa() != hardware_isa() ? 1 : 0);
  const auto environment = read_environment();
  std::printf("environment: %s\n", environment.ok() ? "ok" : environment.status().text().c_str());
  std::printf("topology: %s\n", Topology::detect().source().c_str());
  auto team = Team::create({.ranks = 2});
  std::printf("team: %s\n", team.ok() ? "ok" : team.status().text().c_str());
  if (!team.ok()) return 1;
  const Status status = (*team)->run([](Member& me) {
    std::vector<float> x(4, 1.0F);
    if (me.rank() == 0) (void)me.barrier();
    if (me.rank() == 1) (void)me.all_reduce(x);
  });
  std::printf("call: %s\n", status.ok() ? "ok" : "failed");
}
