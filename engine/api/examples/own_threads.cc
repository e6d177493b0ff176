// A program's own threads are the ranks: each brings a gradient and gets the sum of all gradients.
//
//   bazel run //engine/api/examples:own_threads
//   RANKINE_NETWORK=scale_out bazel run //engine/api/examples:own_threads
#include <algorithm>
#include <cstdio>
#include <span>
#include <thread>
#include <vector>

#include "engine/api/communicator.h"

int main() {
  constexpr int kRanks = 16;
  auto communicator = rankine::Communicator::create({.ranks = kRanks});
  communicator.status().throw_if_error();
  std::vector<double> model_time(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      auto member = (*communicator)->join(rank);
      member.status().throw_if_error();
      std::vector<float> gradient(1 << 16, 1.0F);
      (*member)
          ->all_reduce(std::span(gradient), rankine::ReduceOp::sum, {.algorithm = "ring"})
          .throw_if_error();
      if (rank == 0) std::printf("every element: %g\n", gradient.back());
      model_time[static_cast<std::size_t>(rank)] = (*member)->model_time();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("model time: %.17g s\n", *std::max_element(model_time.begin(), model_time.end()));
}
