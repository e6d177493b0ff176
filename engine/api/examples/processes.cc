// Processes are the ranks: each starts with a common name, its rank and the number of ranks.
//
//   for r in 0 1 2; do bazel-bin/engine/api/examples/processes job $r 3 & done; wait
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "engine/api/communicator.h"

int main(int argc, char** argv) try {
  if (argc != 4) return 2;
  const int rank = std::atoi(argv[2]), ranks = std::atoi(argv[3]);
  auto comm =
      rankine::Communicator::create({.ranks = ranks, .rank = rank, .name = argv[1]}).value();
  auto me = comm->join(rank).value();

  std::vector<float> x(1000, static_cast<float>(rank + 1)), sum(1000);
  me->all_reduce(std::span<const float>(x), std::span<float>(sum)).throw_if_error();
  std::printf("rank %d: %g\n", rank, sum[999]);
} catch (const rankine::Error& error) {
  std::printf("%s\n", error.what());
  return 1;
}
