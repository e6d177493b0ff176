// Measures the engine's own time for the calls that perf.py makes from Python: all-reduces of f32,
// in place, among processes.
//
//   engine NAME RANKS RANK BYTES...     rank 0 prints the median microseconds of each size
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string_view>
#include <vector>

#include "engine/api/communicator.h"
#include "engine/base/statistics.h"

namespace {

double time_of(rankine::Member& me, std::size_t bytes) {
  std::vector<float> data(bytes / sizeof(float));
  const auto calls = [&](int times) {
    for (int i = 0; i < times; ++i) me.all_reduce(std::span(data)).throw_if_error();
  };
  // The batches of perf.py have these numbers of calls.
  const int times = bytes >= (std::size_t{1} << 20) ? 5 : bytes >= (std::size_t{1} << 16) ? 20 : 50;
  std::vector<double> batches;
  calls(times);
  for (int batch = 0; batch < 41; ++batch) {
    me.barrier().throw_if_error();
    const auto began = std::chrono::steady_clock::now();
    calls(times);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - began;
    batches.push_back(took.count() / times);
  }
  return rankine::median(batches);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 5) return 2;
  const rankine::Rank rank = std::atoi(argv[3]);
  const auto communicator =
      rankine::Communicator::create({.ranks = std::atoi(argv[2]), .rank = rank, .name = argv[1]});
  communicator.status().throw_if_error();
  const auto me = (*communicator)->join(rank).value();
  for (int i = 4; i < argc; ++i) {
    const double time = time_of(*me, static_cast<std::size_t>(std::atoll(argv[i])));
    if (rank == 0) std::printf("%.3f\n", time);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "engine: %s\n", error.what());
  return 1;
}
