// Threads of a C++17 program as ranks: each contributes its number plus one, and all get the sum.
//
//   g++ -std=c++17 sum.cc $(pkg-config --cflags --libs rankine) -pthread
#include <cstdio>
#include <rankine/rankine.hpp>
#include <thread>
#include <vector>

int main() {
  constexpr int kRanks = 4;
  rk::Communicator team(kRanks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&team, rank] {
      try {
        std::vector<float> x(1000, static_cast<float>(rank + 1));
        team[rank].all_reduce(x);
        if (rank == 0) std::printf("every element: %g\n", static_cast<double>(x.back()));
      } catch (const rk::Error& e) {
        std::fprintf(stderr, "%s\n", e.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}
