// Neighbour exchange: an all-gather of p / 2 rounds in which everyone exchanges with its left and
// its right neighbour in turn, two blocks at a time.
// Chen, Zhang, Zhang & Yuan, "Performance evaluation of allgather algorithms on terascale Linux
// cluster with fast Ethernet", HPC Asia 2005; Open MPI (coll/base), which takes a ring where p is
// odd, and so does this.
//   p ranks    r rank    k round    pair c: ranks 2c and 2c + 1
#pragma once

#include "algorithms/ring.h"

namespace rankine {

// Whose blocks rank r receives in round k, as a pair; for k = 0 its own pair's, of which it had one
// block already. Pairs come from both sides in turn, each time from farther away.
constexpr int pair_received(Rank r, int k) {
  const int way = k % 2 == 0 ? k / 2 : -(k + 1) / 2;
  return r / 2 + (r % 2 == 0 ? way : -way);
}

inline Schedule neighbour_exchange_all_gather(int p) {
  if (p % 2 == 1) return ring_all_gather(p);
  return {p, p, p / 2, [p](int k, Send send) {
            for (Rank r : ranks(p)) {
              const Rank partner = (r + k) % 2 == 0 ? r + 1 : r - 1;
              send(r, partner, k == 0 ? block(r) : blocks(2 * pair_received(r, k - 1), 2), copy);
            }
          }};
}

}  // namespace rankine
