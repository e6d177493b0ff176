// An all-gather by doubling distances (Bruck):  rankine check examples/all_gather.cc

#include "schedule_to_check.h"

// In the round of distance d every rank has d blocks, its own and the blocks of the ranks before
// it. It sends as many of them as the receiver lacks.
Schedule schedule(int n) {
  Schedule s{"all_gather", n};
  for (int distance = 1; distance < n; distance *= 2) {
    s.round();
    for (int r = 0; r < n; ++r) {
      std::vector<int> blocks;
      for (int i = 0; i < distance && i < n - distance; ++i) blocks.push_back((r - i + n) % n);
      s.copy(r, (r + distance) % n, blocks);
    }
  }
  return s;
}
