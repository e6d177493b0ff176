// An all-gather by doubling distances (Bruck), as rankine check reads it:
//   g++ -std=c++17 -o all_gather examples/all_gather.cc && ./all_gather 6 | rankine check -
//
// schedule() is yours to change; the rest prints what it says.
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <vector>

struct Transfer {
  int from, to;
  std::vector<int> blocks;  // one message
};
using Round = std::vector<Transfer>;

// In the round of distance d every rank has d blocks, its own and those before it, and hands as
// many on as the receiver lacks.
std::vector<Round> schedule(int ranks) {
  std::vector<Round> rounds;
  for (int distance = 1; distance < ranks; distance *= 2) {
    rounds.emplace_back();
    for (int r = 0; r < ranks; ++r) {
      Transfer t{r, (r + distance) % ranks, {}};
      for (int i = 0; i < std::min(distance, ranks - distance); ++i) {
        t.blocks.push_back((r - i + ranks) % ranks);
      }
      rounds.back().push_back(t);
    }
  }
  return rounds;
}

int main(int count, char** arguments) {
  const int ranks = count > 1 ? std::atoi(arguments[1]) : 4;
  std::cout << "all_gather " << ranks << "\n";
  for (const Round& round : schedule(ranks)) {
    std::cout << "round\n";
    for (const Transfer& t : round) {
      std::cout << t.from << " -> " << t.to << ": ";
      for (std::size_t i = 0; i < t.blocks.size(); ++i) {
        std::cout << (i > 0 ? "," : "") << t.blocks[i];
      }
      std::cout << "\n";
    }
  }
}
